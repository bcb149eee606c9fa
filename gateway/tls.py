"""TLS of the gateway: a certificate from files that may be replaced while it runs; whose clients it takes."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import grpc
import structlog
from pydantic import BaseModel, ConfigDict, model_validator

log = structlog.get_logger(__name__)


class TlsUnusable(OSError):
    """The files of the settings make no certificate; the text names files, never what is in them."""


class TlsSettings(BaseModel):
    """With a certificate the gateway speaks TLS alone, without one none."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    certificate: str = ""
    """PEM file of the gateway's certificate, those that it was issued by behind it; empty: no TLS. Replaced
    files (this, key, authorities) count from the next connection on, once they fit together."""
    key: str = ""
    """PEM file of its private key, without a passphrase."""
    client_authorities: str = ""
    """PEM file of whose clients to take (mTLS): who shows no certificate that one of them issued gets no
    connection. Empty: anybody with an API key."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.certificate) != bool(self.key):
            raise ValueError("certificate and key are set together")
        if self.client_authorities and not self.certificate:
            raise ValueError("client_authorities needs a certificate and a key")
        return self

    @property
    def files(self) -> Sequence[Path]:
        """The files that are set."""
        named = (self.certificate, self.key, self.client_authorities)
        return [Path(name) for name in named if name]


Fingerprint = tuple[tuple[int, int, int], ...]
"""When each file changed, its size and its number: differs once a file has been replaced."""


@dataclass(slots=True)
class Certificates:
    """What is shown to each new connection: the files as they are, or as they last fitted together."""

    settings: TlsSettings
    _seen: Fingerprint = ()

    def credentials(self) -> grpc.ServerCredentials:
        """For a server's port; the files are looked at again at each connection. Raises TlsUnusable."""
        first, self._seen = self._load()
        # Called by gRPC on a thread of its own, one connection at a time or several: it only reads.
        return grpc.dynamic_ssl_server_credentials(
            first,
            self._fetch,  # type: ignore[arg-type]  # None is "no change" (its docstring); the stubs lack it
            bool(self.settings.client_authorities),
        )

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """None while nothing changed. Must not raise: a half-replaced pair leaves what was there in use."""
        try:
            if self._fingerprint() == self._seen:
                return None
            fresh, self._seen = self._load()
        except TlsUnusable as error:
            log.warning("the certificate in use stays", why=str(error))
            return None
        log.info("certificate replaced")
        return fresh

    def _load(self) -> tuple[grpc.ServerCertificateConfiguration, Fingerprint]:
        before = self._fingerprint()
        settings = self.settings
        try:
            check = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            # Refuses a key that is another certificate's; a passphrase is never asked for on the terminal.
            check.load_cert_chain(settings.certificate, settings.key, password="")
            if settings.client_authorities:
                check.load_verify_locations(settings.client_authorities)
            certificate, key, *authorities = [path.read_bytes() for path in settings.files]
        except (ssl.SSLError, OSError, ValueError) as error:
            names = ", ".join(map(str, settings.files))
            raise TlsUnusable(f"no usable certificate in {names}: {type(error).__name__}") from error
        if self._fingerprint() != before:
            raise TlsUnusable("the files of the certificate are being replaced")
        config = grpc.ssl_server_certificate_configuration(
            [(key, certificate)], authorities[0] if authorities else None
        )
        return config, before

    def _fingerprint(self) -> Fingerprint:
        try:
            found = [path.stat() for path in self.settings.files]
        except OSError as error:
            raise TlsUnusable(f"can't be read: {error.filename}") from error
        return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)
