"""The stores that the story runs on: the embedded ones, or production's, started on loopback beside it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console

from gateway.demo.child import NotUp, run_admin

PRODUCTION = "tests.doubles.production"
"""Starts them. Not a part of the product: it lies in the repository, from which the demo is run."""
STOP_SECONDS = 60.0


@contextmanager
def stores(name: str, console: Console, keep: bool) -> Iterator[Mapping[str, str]]:
    """The settings by which the product finds them, as environment variables; they stop at the end.

    Raises NotUp.
    """
    if name == "embedded":
        yield {}
        return
    if name != "production":
        raise NotUp(f"STORES={name}: there are `embedded` and `production`")
    if keep:
        raise NotUp("KEEP=1 goes with the embedded stores alone: production's end with the demo")
    console.print("Starting PostgreSQL, Milvus and NebulaGraph on loopback …")
    process = subprocess.Popen(
        [sys.executable, "-m", PRODUCTION],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise NotUp(f"production's stores did not start (exit code {process.wait()})")
        told: Mapping[str, Any] = json.loads(line)
        for part, where in told["told"].items():
            console.print(f"  {part:12} {where}", highlight=False)
        _make_ready(told, console)
        yield told["server"]
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):  # it goes on stopping them by itself
            process.wait(STOP_SECONDS)
        process.stdout.close()


def _make_ready(told: Mapping[str, Any], console: Console) -> None:
    """What an operator does once: by the owner of the databases, before a server starts."""
    for arguments in (["bootstrap"], ["migrate", "--app-role", told["role"]]):
        done = run_admin(arguments, told["owner"])
        console.print(f"  [dim]$ palimpsest-admin {' '.join(arguments)}[/]", highlight=False)
        if done.returncode != 0:
            raise NotUp(done.stderr)
        for line in done.stdout.splitlines():
            console.print(f"    {line}", highlight=False, markup=False)


def chosen() -> str:
    """What STORES names; the embedded ones by default."""
    return os.environ.get("STORES") or "embedded"
