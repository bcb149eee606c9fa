"""Shell: what a command works with. Turns async functions into commands, and errors into exit codes."""

import asyncio
import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TaskProgressColumn, TextColumn

from palimpsest import local
from palimpsest.cli.exits import Exit, complain
from palimpsest.connection import Connection
from palimpsest.errors import (
    CallError,
    InvalidRequest,
    NotFound,
    OutOfCredits,
    PermissionRefused,
    TryAgain,
    Unauthenticated,
    Unreachable,
)
from palimpsest.tls import SCHEME, Tls, TlsUnusable

Options = ParamSpec("Options")
Sent = TypeVar("Sent", bound=Message)

WIDTH_OF_PIPES = 160
"""Columns where the output is no terminal and COLUMNS is not set: tables need a width."""

_PANEL = "Connection and output"
Target = Annotated[
    str,
    typer.Option(
        envvar="PALIMPSEST_TARGET",
        help="host:port of the server, or https://host:port. (default: what `palimpsest up` wrote into "
        f"{local.DATA_DIR}, else {local.DEFAULT_TARGET})",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Key = Annotated[
    str,
    typer.Option(
        envvar="PALIMPSEST_KEY",
        help="API key. Better in the environment: a command line can be read by others.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
OperatorKey = Annotated[
    str,
    typer.Option(
        envvar=["PALIMPSEST_OPERATOR_KEY", "PALIMPSEST_KEY"],
        help="Operator's key. Better in the environment: a command line can be read by others.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print the answer as canonical proto JSON.", rich_help_panel=_PANEL),
]

# In order: the first kind that an error is of.
_EXITS: tuple[tuple[type[CallError], Exit], ...] = (
    (Unauthenticated, Exit.FORBIDDEN),
    (PermissionRefused, Exit.FORBIDDEN),
    (NotFound, Exit.NOT_FOUND),
    (InvalidRequest, Exit.USAGE),
    (OutOfCredits, Exit.CREDITS),
    (TryAgain, Exit.TRY_AGAIN),
    (CallError, Exit.FAILED),
)


@dataclass(frozen=True, slots=True)
class Access:
    """Where a command was told to go, and with which key; empty where it was told nothing."""

    target: str
    key: str
    operator: bool
    """The command is for operators alone."""


@dataclass(frozen=True, slots=True)
class Shell:
    """A connection, and where answers go: `console` is standard output, `errors` the other one."""

    connection: Connection
    json: bool
    console: Console
    errors: Console

    def show(self, message: Sent, render: Callable[[Sent], RenderableType]) -> None:
        """Prints an answer: as JSON, or as `render` makes it."""
        if self.json:
            self.console.out(MessageToJson(message, ensure_ascii=False), highlight=False)
        else:
            self.console.print(render(message), highlight=False)

    @contextmanager
    def progress(self, doing: str) -> Iterator["Bar"]:
        """A bar on standard error while something goes on; none where that is no terminal."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        hidden = not self.errors.is_terminal
        with Progress(*columns, console=self.errors, transient=True, disable=hidden) as progress:
            yield Bar(progress, progress.add_task(doing, total=None))

    def note(self, text: str) -> None:
        """Prints a line on standard error, for people."""
        self.errors.print(text, style="dim", highlight=False, markup=False)


@dataclass(frozen=True, slots=True)
class Bar:
    """How far something has come."""

    progress: Progress
    task: TaskID

    def show(self, doing: str, done: int, total: int | None) -> None:
        """`doing` is markup. Without a total it only moves."""
        self.progress.update(self.task, description=doing, completed=done, total=total)


def command(
    app: typer.Typer, name: str, *, operator: bool = False, panel: str | None = None
) -> Callable[
    [Callable[Concatenate[Shell, Options], Awaitable[None]]],
    Callable[Concatenate[Shell, Options], Awaitable[None]],
]:
    """Registers an async function as a command: its options, and those that every command has."""

    def register(
        work: Callable[Concatenate[Shell, Options], Awaitable[None]],
    ) -> Callable[Concatenate[Shell, Options], Awaitable[None]]:
        @wraps(work)
        def run(*, target: str, key: str, json: bool, **options: Any) -> None:
            asyncio.run(_run(work, Access(target, key, operator), json, options))

        common = [
            ("target", Target, ""),
            ("key", OperatorKey if operator else Key, ""),
            ("json", Json, False),
        ]
        own = list(inspect.signature(work).parameters.values())[1:]
        added = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for option, kind, default in common
        ]
        kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        run.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]  # typer reads it
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*kept, *added]}
        app.command(name, rich_help_panel=panel)(run)
        return work

    return register


async def _run(
    work: Callable[..., Awaitable[None]], access: Access, json: bool, options: dict[str, Any]
) -> None:
    where, whence = local.find(access.target)
    try:
        opened = Connection(where, access.key, Tls.of())
    except TlsUnusable as error:
        raise complain(f"TLS: {error}", Exit.USAGE) from error
    async with opened as connection:
        shell = Shell(connection, json, console_of(sys.stdout), console_of(sys.stderr))
        try:
            await work(shell, **options)
        except CallError as error:
            raise failed(error, json, where, whence, access) from error


def failed(error: CallError, json: bool, target: str, whence: str, access: Access) -> typer.Exit:
    """Prints an error as one line on standard error; returns what to raise."""
    code = next(code for kind, code in _EXITS if isinstance(error, kind))
    if json:
        print(MessageToJson(error.status, indent=None, ensure_ascii=False), file=sys.stderr)
        return typer.Exit(code)
    return complain(_line(error, target, whence, access), code)


def _line(error: CallError, target: str, whence: str, access: Access) -> str:
    if isinstance(error, Unreachable) and target.startswith(SCHEME):
        return (
            f"{error.reason}: no answer over TLS from {target} ({whence}); "
            "PALIMPSEST_TLS_AUTHORITIES names whom to trust"
        )
    if isinstance(error, Unreachable):
        return f"{error.reason}: no answer from {target} ({whence}); `palimpsest up` starts a server here"
    if isinstance(error, Unauthenticated) and not access.key:
        if access.operator:
            return f"{error.reason}: no operator's key; set PALIMPSEST_OPERATOR_KEY or give --key"
        return f"{error.reason}: no API key; set PALIMPSEST_KEY or give --key"
    parts = [str(error)]
    if error.reason == "GRAPH_NOT_FOUND":
        parts.append("the first `add` to it makes it")
    if error.retry_after_seconds is not None:
        parts.append(f"try again in {error.retry_after_seconds:g} s")
    if error.reason == "INTERNAL" and error.request_id:
        parts.append(f"request id {error.request_id}")
    return "; ".join(" ".join(part.split()) for part in parts)


def console_of(stream: Any) -> Console:
    """A console that draws where there is a terminal, and prints plain text elsewhere."""
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_OF_PIPES
    return Console(file=stream, width=width, soft_wrap=not stream.isatty())
