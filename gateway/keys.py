"""API keys: how one is made and read, what it may do, and who the caller of a key is.

`pk_<env>_<id>_<secret>`: looked up by id, compared by the SHA-256 of its secret, in constant time. The whole
key is shown once, when it is made, and is never stored or logged.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Protocol

from gateway.errors import ApiKeyInvalid, Overloaded, RateLimited, TenantSuspended
from gateway.store.tenants import Tenant, TenantState
from services.domain.instants import Instant

KeyId = NewType("KeyId", str)

CACHE_SECONDS = 15.0
"""How long a key is believed without asking the database: half of what a revocation may take."""
CACHED_KEYS = 10_000
TRACKED_PEERS = 10_000
LOOKUPS = 8
"""Keys that are looked up at once, each for all calls that show it."""
WAITING_FOR_LOOKUPS = 256
"""Calls that wait for these; more are refused, and nobody is asked."""

_FORM = re.compile(r"pk_([a-z0-9]{1,16})_([0-9a-f]{16})_([0-9a-f]{64})")
_ENVIRONMENT = re.compile(r"[a-z0-9]{1,16}")


class KeyScope(StrEnum):
    """What a key may do. Names as in palimpsest.v1.ApiKeyScope; each holds those it implies."""

    READ = "READ"
    WRITE = "WRITE"
    ERASE = "ERASE"
    OPERATOR = "OPERATOR"


_IMPLIED = {
    KeyScope.READ: {KeyScope.READ},
    KeyScope.WRITE: {KeyScope.READ, KeyScope.WRITE},
    KeyScope.ERASE: {KeyScope.READ, KeyScope.WRITE, KeyScope.ERASE},
    KeyScope.OPERATOR: {KeyScope.OPERATOR},
}


def with_implied(scopes: Iterable[KeyScope]) -> frozenset[KeyScope]:
    """The scopes and all that they hold."""
    return frozenset(held for scope in scopes for held in _IMPLIED[scope])


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret. `tenant` is None for an operator's."""

    id: KeyId
    tenant: Tenant | None
    display_name: str
    scopes: frozenset[KeyScope]
    secret_sha256: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None

    def works(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Minted:
    """A new key: its id, the text to show once, and the hash to keep."""

    id: KeyId
    text: str
    secret_sha256: str

    def __repr__(self) -> str:
        return f"Minted(id={self.id!r})"


def mint(environment: str) -> Minted:
    """A new key of 32 random bytes. `environment` is 1 to 16 lower-case letters and digits."""
    if not _ENVIRONMENT.fullmatch(environment):
        raise ValueError("the environment of keys is 1 to 16 lower-case letters and digits")
    key, secret = KeyId(secrets.token_hex(8)), secrets.token_hex(32)
    return Minted(key, f"pk_{environment}_{key}_{secret}", _hash(secret))


def _hash(secret: str) -> str:
    return hashlib.sha256(bytes.fromhex(secret)).hexdigest()


class KeyStore(Protocol):
    """Where keys are looked up."""

    async def find(self, key: KeyId) -> ApiKey | None:
        """The key with its tenant, whatever their state."""
        ...


class FailedAttempts:
    """Counts refused keys by peer: after `per_minute` of them its attempts wait. Bounded in memory.

    `seconds` is a clock that never goes back.
    """

    def __init__(self, per_minute: int, seconds: Callable[[], float]) -> None:
        self._rate = per_minute / 60
        self._capacity = float(per_minute)
        self._seconds = seconds
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, peer: str) -> float:
        """How long the peer must wait before its next attempt; 0 when it may try now."""
        tokens = self._tokens(peer)
        return 0.0 if tokens >= 1 else (1 - tokens) / self._rate

    def count(self, peer: str) -> None:
        self._buckets[peer] = (self._tokens(peer) - 1, self._seconds())
        self._buckets.move_to_end(peer)
        while len(self._buckets) > TRACKED_PEERS:
            self._buckets.popitem(last=False)

    def _tokens(self, peer: str) -> float:
        tokens, at = self._buckets.get(peer, (self._capacity, self._seconds()))
        return min(self._capacity, tokens + (self._seconds() - at) * self._rate)


class Authenticator:
    """Tells who holds a key. Remembers keys for CACHE_SECONDS, good ones only.

    A key is looked up once, however many calls show it at the same time, and few are at once: so what an
    overloaded gateway refuses costs it no database.
    """

    def __init__(
        self,
        store: KeyStore,
        attempts: FailedAttempts,
        now: Callable[[], Instant],
        seconds: Callable[[], float],
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._now = now
        self._seconds = seconds
        self._known: OrderedDict[KeyId, tuple[ApiKey, float]] = OrderedDict()
        self._asked: dict[KeyId, asyncio.Future[ApiKey | None]] = {}
        self._lookups = asyncio.Semaphore(LOOKUPS)
        self._waiting = 0

    async def authenticate(self, text: str, peer: str) -> ApiKey:
        """The key that `text` shows. `peer` is the address that its failures count for.

        Raises ApiKeyInvalid (one answer for every kind of bad key), RateLimited (too many of them; a key
        that was good a moment ago is let through), TenantSuspended, Overloaded.
        """
        form = _FORM.fullmatch(text)
        key_id, secret = (KeyId(form[2]), form[3]) if form else (KeyId(""), "00")
        key = self._recent(key_id)
        if key is None or not _matches(key, secret):
            wait = self._attempts.wait_seconds(peer)
            if wait:
                raise RateLimited("peer", "failed attempts to authenticate", retry_after_seconds=wait)
            key = await self._find(key_id) if form else None
            # Compared even where there is no such key: its absence takes no less time.
            if not _matches(key, secret):
                key = None
        if key is None or not key.works(self._now()):
            self._attempts.count(peer)
            raise ApiKeyInvalid
        if key.tenant is not None and key.tenant.state is TenantState.SUSPENDED:
            raise TenantSuspended
        if self._recent(key_id) is None:
            self._remember(key)
        return key

    async def _find(self, key: KeyId) -> ApiKey | None:
        if self._waiting >= WAITING_FOR_LOOKUPS:
            raise Overloaded("the gateway")
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = asyncio.ensure_future(self._looked_up(key))
            asked.add_done_callback(lambda done: self._answered(key, done))
        self._waiting += 1
        try:
            # It goes on for the others when the first of them leaves.
            return await asyncio.shield(asked)
        finally:
            self._waiting -= 1

    async def _looked_up(self, key: KeyId) -> ApiKey | None:
        async with self._lookups:
            return await self._store.find(key)

    def _answered(self, key: KeyId, done: "asyncio.Future[ApiKey | None]") -> None:
        del self._asked[key]
        if not done.cancelled():
            done.exception()  # told to who waits; nobody may

    def _recent(self, key: KeyId) -> ApiKey | None:
        known = self._known.get(key)
        if known is None or self._seconds() - known[1] >= CACHE_SECONDS:
            return None
        return known[0]

    def _remember(self, key: ApiKey) -> None:
        self._known[key.id] = (key, self._seconds())
        self._known.move_to_end(key.id)
        while len(self._known) > CACHED_KEYS:
            self._known.popitem(last=False)


_NO_KEY = "0" * 64


def _matches(key: ApiKey | None, secret: str) -> bool:
    kept = _NO_KEY if key is None else key.secret_sha256
    return hmac.compare_digest(kept, _hash(secret)) and key is not None
