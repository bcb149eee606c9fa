"""The tenant assertion: whose it is can't be changed, it ends soon, and its secret can be replaced."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.errors import Unauthenticated
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.runtime.assertion import LIFETIME_SECONDS, Signer
from tests.builders import SAID

OLD, NEW = b"the old secret of these tests", b"the new secret of these tests"
SCOPE = Scope(TenantId("acme"), GraphId("notes"))
SECOND = 1_000_000


def signer(secret: bytes = OLD, other: bytes = b"", later: int = 0) -> Signer:
    return Signer(secret, lambda: Instant(SAID + later * SECOND), other)


names = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable())


@given(names, names)
def test_a_scope_comes_back_as_it_was_signed(tenant: str, graph: str) -> None:
    scope = Scope(TenantId(tenant), GraphId(graph))
    assert signer().verify(signer().sign(scope)) == scope


@pytest.mark.parametrize("change", [("globex", "notes"), ("acme", "other"), ("acmenotes", "")])
def test_an_assertion_of_one_graph_is_none_of_another(change: tuple[str, str]) -> None:
    body, mac = signer().sign(SCOPE).split(".")
    told = json.loads(urlsafe_b64decode(body))
    forged = urlsafe_b64encode(json.dumps([*change, told[2]]).encode()).decode()
    with pytest.raises(Unauthenticated):
        signer().verify(f"{forged}.{mac}")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_byte_of_it_can_be_changed(place: int, by: int) -> None:
    text = bytearray(signer().sign(SCOPE).encode())
    text[place % len(text)] ^= by
    try:
        told = signer().verify(text.decode("latin-1"))
    except Unauthenticated:
        return
    assert told == SCOPE, "another form of the same bytes, which base64 has"


@pytest.mark.parametrize(
    "text", ["", ".", "a.b", "a.b.c", "\u00e9.\u00e9", "====.====", "null.null", "W10=.W10="]
)
def test_what_was_never_signed_is_refused(text: str) -> None:
    with pytest.raises(Unauthenticated):
        signer().verify(text)


@pytest.mark.parametrize(("later", "good"), [(0, True), (LIFETIME_SECONDS, True), (-30, True)])
def test_it_lives_from_now_for_its_lifetime(later: int, good: bool) -> None:
    assert (signer(later=later).verify(signer().sign(SCOPE)) == SCOPE) is good


@pytest.mark.parametrize("later", [LIFETIME_SECONDS + 1, -31, 86_400])
def test_before_and_after_that_it_is_refused(later: int) -> None:
    with pytest.raises(Unauthenticated):
        signer(later=later).verify(signer().sign(SCOPE))


def test_a_secret_is_replaced_without_a_call_refused() -> None:
    """Services take both, gateways change over one by one, then the old secret is taken out."""
    both = signer(OLD, other=NEW)
    for gateway in (signer(OLD), signer(NEW)):
        assert both.verify(gateway.sign(SCOPE)) == SCOPE
    assert both.sign(SCOPE) == signer(OLD).sign(SCOPE), "the other one signs nothing"
    assert signer(NEW).verify(signer(NEW).sign(SCOPE)) == SCOPE
    with pytest.raises(Unauthenticated):
        signer(NEW).verify(signer(OLD).sign(SCOPE))


@pytest.mark.parametrize(("secret", "other"), [(b"short", b""), (OLD, b"short")])
def test_a_short_secret_is_refused(secret: bytes, other: bytes) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        signer(secret, other)


def test_no_secret_is_shown() -> None:
    assert "secret" not in repr(signer(OLD, NEW))
