"""API keys: their form, their scopes, who is let in, and who must wait."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.errors import ApiKeyInvalid, Overloaded, RateLimited, TenantSuspended
from gateway.keys import (
    CACHE_SECONDS,
    LOOKUPS,
    WAITING_FOR_LOOKUPS,
    ApiKey,
    Authenticator,
    FailedAttempts,
    KeyId,
    KeyScope,
    Minted,
    mint,
    with_implied,
)
from gateway.store.tenants import Limits, Tenant, TenantState
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.errors import StoreUnavailable

PEER = "ipv4:10.0.0.1"


class Clocks:
    """Wall clock in microseconds, and a clock that never goes back in seconds; both set by hand."""

    def __init__(self) -> None:
        self.micros = 1_000_000
        self.seconds = 0.0


class KeptKeys:
    """A store of keys in memory that counts how often it is asked."""

    def __init__(self) -> None:
        self.keys: dict[KeyId, ApiKey] = {}
        self.asked = 0
        self.error: Exception | None = None

    async def find(self, key: KeyId) -> ApiKey | None:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.keys.get(key)

    def add(
        self,
        minted: Minted,
        state: TenantState = TenantState.ACTIVE,
        expires_at: int | None = None,
        revoked_at: int | None = None,
    ) -> ApiKey:
        tenant = Tenant(TenantId("acme"), "acme", state, Limits(), Instant(0))
        key = ApiKey(
            minted.id,
            tenant,
            "",
            frozenset({KeyScope.READ}),
            minted.secret_sha256,
            Instant(0),
            None if expires_at is None else Instant(expires_at),
            None if revoked_at is None else Instant(revoked_at),
        )
        self.keys[key.id] = key
        return key


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def kept() -> KeptKeys:
    return KeptKeys()


@pytest.fixture
def authenticator(kept: KeptKeys, clocks: Clocks) -> Authenticator:
    return an_authenticator(kept, clocks)


def an_authenticator(kept: KeptKeys, clocks: Clocks) -> Authenticator:
    attempts = FailedAttempts(3, lambda: clocks.seconds)
    return Authenticator(kept, attempts, lambda: Instant(clocks.micros), lambda: clocks.seconds)


def test_a_key_says_what_it_is_and_hides_its_secret() -> None:
    minted = mint("test")
    prefix, environment, key_id, secret = minted.text.split("_")
    assert (prefix, environment, key_id, len(secret)) == ("pk", "test", minted.id, 64)
    assert secret not in repr(minted)
    assert secret not in minted.secret_sha256
    assert mint("test").text != minted.text


@pytest.mark.parametrize("environment", ["", "Live", "a_b", "x" * 17])
def test_an_environment_has_its_form(environment: str) -> None:
    with pytest.raises(ValueError, match="environment"):
        mint(environment)


def test_scopes_hold_what_they_imply() -> None:
    assert with_implied([KeyScope.ERASE]) == {KeyScope.READ, KeyScope.WRITE, KeyScope.ERASE}
    assert with_implied([KeyScope.WRITE]) == {KeyScope.READ, KeyScope.WRITE}
    assert with_implied([KeyScope.OPERATOR]) == {KeyScope.OPERATOR}


async def test_a_good_key_is_known_and_remembered_for_a_while(
    authenticator: Authenticator, kept: KeptKeys, clocks: Clocks
) -> None:
    minted = mint("test")
    key = kept.add(minted)
    assert await authenticator.authenticate(minted.text, PEER) == key
    assert await authenticator.authenticate(minted.text, PEER) == key
    assert kept.asked == 1
    clocks.seconds = CACHE_SECONDS
    await authenticator.authenticate(minted.text, PEER)
    assert kept.asked == 2


async def test_a_revoked_key_is_refused_once_it_is_asked_for_again(
    authenticator: Authenticator, kept: KeptKeys, clocks: Clocks
) -> None:
    minted = mint("test")
    kept.add(minted)
    await authenticator.authenticate(minted.text, PEER)
    kept.add(minted, revoked_at=5)
    clocks.seconds = CACHE_SECONDS
    with pytest.raises(ApiKeyInvalid):
        await authenticator.authenticate(minted.text, PEER)


async def test_a_revocation_is_seen_by_every_gateway_within_thirty_seconds(
    kept: KeptKeys, clocks: Clocks
) -> None:
    gateways = [
        Authenticator(
            kept,
            FailedAttempts(3, lambda: clocks.seconds),
            lambda: Instant(clocks.micros),
            lambda: clocks.seconds,
        )
        for _ in range(3)
    ]
    old, new = mint("test"), mint("test")
    kept.add(old)
    kept.add(new)
    for seconds, gateway in enumerate(gateways):
        clocks.seconds = seconds * 5.0
        await gateway.authenticate(old.text, PEER)
    revoked_at = clocks.seconds
    kept.add(old, revoked_at=5)
    clocks.seconds = revoked_at + 30
    for gateway in gateways:
        with pytest.raises(ApiKeyInvalid):
            await gateway.authenticate(old.text, PEER)
        assert (await gateway.authenticate(new.text, PEER)).id == new.id, "the key that replaces it works"


async def test_a_remembered_key_still_expires(
    authenticator: Authenticator, kept: KeptKeys, clocks: Clocks
) -> None:
    minted = mint("test")
    kept.add(minted, expires_at=2_000_000)
    await authenticator.authenticate(minted.text, PEER)
    clocks.micros = 2_000_000
    with pytest.raises(ApiKeyInvalid):
        await authenticator.authenticate(minted.text, PEER)


async def test_the_cache_lets_no_wrong_secret_in(authenticator: Authenticator, kept: KeptKeys) -> None:
    minted = mint("test")
    kept.add(minted)
    await authenticator.authenticate(minted.text, PEER)
    with pytest.raises(ApiKeyInvalid):
        await authenticator.authenticate(minted.text[:-64] + "0" * 64, PEER)


async def test_a_suspended_tenant_is_told_so_only_with_its_secret(
    authenticator: Authenticator, kept: KeptKeys
) -> None:
    minted = mint("test")
    kept.add(minted, state=TenantState.SUSPENDED)
    with pytest.raises(TenantSuspended):
        await authenticator.authenticate(minted.text, PEER)
    with pytest.raises(ApiKeyInvalid):
        await authenticator.authenticate(minted.text[:-64] + "0" * 64, PEER)


async def test_failures_of_a_peer_are_limited_and_recover(
    authenticator: Authenticator, kept: KeptKeys, clocks: Clocks
) -> None:
    minted = mint("test")
    kept.add(minted)
    for _ in range(3):
        with pytest.raises(ApiKeyInvalid):
            await authenticator.authenticate("pk_", PEER)
    asked = kept.asked
    with pytest.raises(RateLimited) as refusal:
        await authenticator.authenticate(minted.text, PEER)
    assert kept.asked == asked, "a peer that must wait costs no look-up"
    assert refusal.value.retry_after_seconds == pytest.approx(20)
    await authenticator.authenticate(minted.text, "ipv4:10.0.0.2")
    clocks.seconds = 20
    await authenticator.authenticate(minted.text, PEER)


async def test_a_key_of_no_known_form_asks_no_store(authenticator: Authenticator, kept: KeptKeys) -> None:
    for text in ("", "pk_test_x_y", "'; DROP TABLE api_keys; --"):
        with pytest.raises(ApiKeyInvalid):
            await authenticator.authenticate(text, PEER)
    assert kept.asked == 0


class SlowKeys(KeptKeys):
    """Answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def find(self, key: KeyId) -> ApiKey | None:
        found = await super().find(key)
        await self.go.wait()
        return found


async def asked_at_once(authenticator: Authenticator, *texts: str) -> list[asyncio.Task[ApiKey]]:
    asking = [asyncio.create_task(authenticator.authenticate(text, PEER)) for text in texts]
    for _ in range(3):
        await asyncio.sleep(0)
    return asking


def overloaded(asking: Sequence[asyncio.Task[ApiKey]]) -> int:
    return sum(isinstance(one.exception(), Overloaded) for one in asking if one.done())


async def test_a_key_is_looked_up_once_for_all_that_show_it_at_once(clocks: Clocks) -> None:
    kept = SlowKeys()
    authenticator = an_authenticator(kept, clocks)
    minted = mint("test")
    kept.add(minted)
    asking = await asked_at_once(authenticator, *[minted.text] * (WAITING_FOR_LOOKUPS + 9))
    assert kept.asked == 1
    assert overloaded(asking) == 9, "who waits is bounded too"
    asking[0].cancel()
    kept.go.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(isinstance(answer, ApiKey) for answer in answers) == WAITING_FOR_LOOKUPS - 1


async def test_few_keys_are_looked_up_at_once_and_known_ones_pass(clocks: Clocks) -> None:
    kept = SlowKeys()
    kept.go.set()
    authenticator = an_authenticator(kept, clocks)
    known = mint("test")
    kept.add(known)
    await authenticator.authenticate(known.text, PEER)
    kept.go.clear()
    asking = await asked_at_once(authenticator, *(mint("test").text for _ in range(WAITING_FOR_LOOKUPS + 5)))
    assert (kept.asked, overloaded(asking)) == (1 + LOOKUPS, 5)
    assert (await authenticator.authenticate(known.text, PEER)).id == known.id
    kept.go.set()
    await asyncio.gather(*asking, return_exceptions=True)
    assert {type(one.exception()) for one in asking} == {ApiKeyInvalid, Overloaded}


async def test_a_look_up_that_fails_is_told_to_all_and_tried_anew(clocks: Clocks) -> None:
    kept = SlowKeys()
    authenticator = an_authenticator(kept, clocks)
    minted = mint("test")
    kept.error = StoreUnavailable("ledger")
    kept.go.set()
    asking = await asked_at_once(authenticator, minted.text, minted.text)
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
    kept.error = None
    kept.add(minted)
    assert (await authenticator.authenticate(minted.text, PEER)).id == minted.id
