"""Where processes listen."""

import ipaddress
from collections.abc import Sequence

import psutil


def beyond_loopback(family: Sequence[psutil.Process]) -> list[tuple[str, str]]:
    """The sockets of processes that listen elsewhere: name and address. Fails when it sees no socket."""
    listening = {
        (process.name(), connection.laddr.ip)
        for process in family
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening, "sockets were looked at"
    return [(name, ip) for name, ip in listening if not _loopback(ip)]


def _loopback(ip: str) -> bool:
    address = ipaddress.ip_address(ip)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
