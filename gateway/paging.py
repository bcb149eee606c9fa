"""Pages of the public API: sizes, and tokens that are opaque and bound to the request they came from."""

import base64
import hashlib

from google.protobuf.message import Message

from gateway.errors import ValidationFailed, Violation
from services.domain.scope import TenantId
from services.stores.paging import Page

DEFAULT_SIZE = 50
MAX_SIZE = 1000
_BOUND_BYTES = 12


def page_of(tenant: TenantId, request: Message) -> Page:
    """The page that a list request asks for: its fields `page_size` and `page_token`.

    Raises ValidationFailed for a token of another tenant, another call or other filters.
    """
    size: int = getattr(request, "page_size")  # noqa: B009 - each list request has its own class
    token: str = getattr(request, "page_token")  # noqa: B009
    return Page(
        min(size or DEFAULT_SIZE, MAX_SIZE), opened(tenant, request, token, "page_token") if token else ""
    )


def token_of(tenant: TenantId, request: Message, after: str) -> str:
    """The token of the page after `after`; "" for none."""
    return sealed(tenant, request, after) if after else ""


def sealed(tenant: TenantId, request: Message, position: str) -> str:
    """A position as an opaque token that only the same request of the same tenant can use."""
    return base64.urlsafe_b64encode(_bound(tenant, request) + position.encode()).decode().rstrip("=")


def opened(tenant: TenantId, request: Message, token: str, field: str) -> str:
    """The position in a token. Raises ValidationFailed unless `sealed` made it for this request."""
    try:
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        bound, position = data[:_BOUND_BYTES], data[_BOUND_BYTES:].decode()
    except ValueError:
        bound, position = b"", ""
    if bound != _bound(tenant, request):
        raise ValidationFailed(Violation(field, "is not of this request", "token.bound"))
    return position


def _bound(tenant: TenantId, request: Message) -> bytes:
    """What a token is bound to: the tenant, the call, and all fields but those that move through a list."""
    copy = type(request)()
    copy.CopyFrom(request)
    for field in ("page_size", "page_token", "cursor"):
        if field in request.DESCRIPTOR.fields_by_name:
            copy.ClearField(field)
    parts = (
        tenant.encode(),
        request.DESCRIPTOR.full_name.encode(),
        copy.SerializeToString(deterministic=True),
    )
    digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts))
    return digest.digest()[:_BOUND_BYTES]
