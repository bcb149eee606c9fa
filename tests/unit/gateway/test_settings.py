"""Settings: from the environment, with limits, and printed without secrets."""

import pytest
from pydantic import ValidationError

from gateway.settings import GatewaySettings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_GATEWAY_PORT", "4321")
    monkeypatch.setenv("PALIMPSEST_TENANT_MAX_JOBS", "7")
    settings = GatewaySettings()
    assert (settings.gateway_port, settings.tenant_limits.max_jobs) == (4321, 7)


def test_by_default_it_listens_on_loopback_alone() -> None:
    assert GatewaySettings().gateway_host == "127.0.0.1"


def test_no_secret_is_printed() -> None:
    settings = GatewaySettings(
        ledger_url="postgresql://palimpsest:hunter2@db/ledger",
        jobs_url="postgresql://palimpsest:hunter2@db/ledger",
        assertion_secret="hunter2-hunter2-hunter2",
    )
    assert "hunter2" not in str(settings.redacted())
    assert settings.redacted()["ledger_url"] == "postgresql://palimpsest:***@db/ledger"


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_concurrent_streams", 99), ("key_environment", "A_b"), ("gateway_port", 70_000)],
)
def test_what_cannot_be_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError):
        GatewaySettings.model_validate({name: value})


def test_every_setting_says_what_it_is() -> None:
    assert all(field.description for field in GatewaySettings.model_fields.values())
