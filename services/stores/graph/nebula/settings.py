"""Settings of the NebulaGraph store, as the composition root fills them. The environment is not read here."""

import re

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[0-9A-Za-z._-]+):(\d{1,5})\Z")


class NebulaSettings(BaseModel):
    """Which cluster and space, and how patient we are with it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    addresses: str = Field(min_length=1)
    """`host:port` of each graphd, with commas between them; sessions are spread over them."""
    user: str = "root"
    """Needs the right to write to the space; to bootstrap, to make spaces too."""
    password: SecretStr = SecretStr("nebula")
    """Of that user."""
    space: str = Field(default="palimpsest", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")
    """One for all tenants; bootstrap makes it."""
    partitions: int = Field(default=100, ge=1, le=10_000)
    """Of the space, when it is made: about twenty for each disk of the cluster. It can't be changed later."""
    replicas: int = Field(default=1, ge=1, le=9)
    """Of each partition, when the space is made: an odd number; 3 in production."""
    storage_hosts: str = ""
    """`host:port` of each storaged, likewise; bootstrap adds those that the cluster does not know yet."""
    sessions: int = Field(default=8, ge=1, le=256)
    """Of one process. A server allows 300 for each user and address of a client."""
    connect_timeout_ms: int = Field(default=3_000, ge=1)
    """Until a connection stands."""
    call_timeout_ms: int = Field(default=20_000, ge=1)
    """For the answer to one sentence; then the connection is closed."""
    max_attempts: int = Field(default=6, ge=1, le=50)
    """Of one sentence, the first included: when a leader changed, a session is gone, a write met another."""
    retry_first_wait_seconds: float = Field(default=0.05, ge=0)
    """Before the second attempt; doubled from then on, with jitter."""
    retry_longest_wait_seconds: float = Field(default=1.0, ge=0)
    """No wait between attempts is longer."""
    bootstrap_timeout_seconds: float = Field(default=120.0, gt=0)
    """How long bootstrap waits until hosts are online and the schema is known to all: two heartbeats."""

    @field_validator("addresses", "storage_hosts")
    @classmethod
    def _addresses(cls, given: str) -> str:
        hosts_and_ports(given)
        return given


def hosts_and_ports(addresses: str) -> list[tuple[str, int]]:
    """`host:port,host:port` taken apart; an IPv6 address stands in brackets. Raises ValueError."""
    found = [_ADDRESS.match(address.strip()) for address in addresses.split(",")] if addresses else []
    if any(match is None or not 0 < int(match[2]) < 65_536 for match in found):
        raise ValueError("an address is host:port")
    return [(match[1].strip("[]"), int(match[2])) for match in found if match is not None]
