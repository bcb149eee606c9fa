"""Whose rows: what a transaction is told for each kind, and that it is told all of it."""

import pytest

from services.domain.ids import JobId
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.isolation import SETTINGS, Across, Nobody, OfJob, OfTenant, Whose, settings_of

SCOPE = Scope(TenantId("acme"), GraphId("notes"))


@pytest.mark.parametrize(
    ("whose", "told"),
    [
        (SCOPE, {"palimpsest.scope": SCOPE.key, "palimpsest.tenant": "acme"}),
        (OfTenant(TenantId("acme")), {"palimpsest.tenant": "acme"}),
        (OfJob(JobId("j")), {"palimpsest.job": "j"}),
        (Across("sweep"), {"palimpsest.across": "sweep"}),
        (Nobody(), {}),
    ],
)
def test_what_is_not_meant_is_emptied(whose: Whose, told: dict[str, str]) -> None:
    assert settings_of(whose) == {**dict.fromkeys(SETTINGS, ""), **told}


def test_operators_work_has_a_reason() -> None:
    with pytest.raises(AssertionError):
        Across("")


@pytest.mark.parametrize("name", ["a\x00", "\ud83d"])
def test_a_name_that_cannot_be_stored_is_told_as_none(name: str) -> None:
    assert set(settings_of(OfTenant(TenantId(name))).values()) == {""}
    assert set(settings_of(OfJob(JobId(name))).values()) == {""}
    scope = Scope(TenantId(name), GraphId("g"))
    assert settings_of(scope) == {**dict.fromkeys(SETTINGS, ""), "palimpsest.scope": scope.key}
