"""TLS of a client: whom it trusts, and who it is to a server that asks."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc

SCHEME = "https://"
"""Begins a target that is reached over TLS."""

_VARIABLES = "PALIMPSEST_TLS_"


class TlsUnusable(Exception):
    """A file that the settings name can't be read, or one of a pair is missing."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files; "" for none."""

    authorities: str = ""
    """Whom to trust; "" is the public authorities that gRPC brings."""
    certificate: str = ""
    key: str = ""
    """Ours, where the server asks for one."""
    server_name: str = ""
    """The name in the server's certificate, where it isn't the one in the target."""

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> "Tls | None":
        """As PALIMPSEST_TLS_AUTHORITIES, …_CERTIFICATE, …_KEY, …_SERVER_NAME say; None when none is set."""
        found = {
            name: environment.get(f"{_VARIABLES}{name.upper()}", "")
            for name in ("authorities", "certificate", "key", "server_name")
        }
        return cls(**found) if any(found.values()) else None

    def credentials(self) -> grpc.ChannelCredentials:
        """For a channel, which keeps them: a new certificate needs a new channel. Raises TlsUnusable."""
        if bool(self.certificate) != bool(self.key):
            raise TlsUnusable("a client's certificate and its key are given together")
        authorities, certificate, key = map(_read, (self.authorities, self.certificate, self.key))
        return grpc.ssl_channel_credentials(authorities, key, certificate)

    def options(self) -> list[tuple[str, str]]:
        """For the same channel."""
        return [("grpc.ssl_target_name_override", self.server_name)] if self.server_name else []


def _read(name: str) -> bytes | None:
    if not name:
        return None
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise TlsUnusable(f"can't read {name}: {error.strerror or error}") from error
