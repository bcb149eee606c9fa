"""The tenant assertion: what proves to a service which scope an internal call is for.

A short-lived HMAC-signed text in the call's metadata. Only the gateway and the services know the secret,
so no message between them names a tenant, and a forged or stale one is refused.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from services.domain.errors import Unauthenticated
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId

METADATA_KEY = "palimpsest-scope"
LIFETIME_SECONDS = 300
"""Longer than the longest internal call; short enough that a leaked one is soon worthless."""
_CLOCK_SKEW_SECONDS = 30
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Signer:
    """Makes and checks assertions. Secrets are at least 16 bytes; `now` is the clock.

    What was signed with `other` is taken as well, if there is one: so a new secret is brought in.
    """

    secret: bytes = field(repr=False)
    now: Callable[[], Instant]
    other: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < 16 or 0 < len(self.other) < 16:
            raise ValueError("the secret of assertions must have at least 16 bytes")

    def sign(self, scope: Scope) -> str:
        """An assertion for a scope, valid from now for LIFETIME_SECONDS."""
        body = json.dumps([scope.tenant, scope.graph, self.now() // _MICROSECONDS, scope.origin]).encode()
        return f"{_text(body)}.{_text(_mac(self.secret, body))}"

    def verify(self, assertion: str) -> Scope:
        """The scope asserted. Raises Unauthenticated for anything that we did not sign just now."""
        try:
            body_text, mac_text = assertion.split(".")
            body, mac = _bytes(body_text), _bytes(mac_text)
        except ValueError as error:
            raise Unauthenticated from error
        if not self._ours(body, mac):
            raise Unauthenticated
        tenant, graph, signed_at, *more = json.loads(body)
        age = self.now() // _MICROSECONDS - signed_at
        if not -_CLOCK_SKEW_SECONDS <= age <= LIFETIME_SECONDS:
            raise Unauthenticated
        return Scope(TenantId(tenant), GraphId(graph), *more)

    def _ours(self, body: bytes, mac: bytes) -> bool:
        # Both are compared, in constant time: how long it takes tells nothing.
        matches = [hmac.compare_digest(mac, _mac(one, body)) for one in (self.secret, self.other) if one]
        return any(matches)


def _mac(secret: bytes, body: bytes) -> bytes:
    return hmac.new(secret, body, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
