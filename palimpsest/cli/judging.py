"""Commands that decide about facts: `end`, `deny`, `restore`, `judge`."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date
from palimpsest.cli.facts import GraphId
from palimpsest.cli.operating import RequestId
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import common_pb2, memory_statements_pb2, statement_pb2

StatementId = Annotated[
    str,
    typer.Argument(metavar="STATEMENT", help="Its id; `recall` and `timeline` tell it with --json."),
]
Reason = Annotated[str, typer.Option(help="Why, in your words; kept with what is recorded.")]


class Kind(StrEnum):
    """How two statements stand to each other."""

    CONTRADICTS = "contradicts"
    DUPLICATE = "duplicate"
    COMPATIBLE = "compatible"


def add_to(app: typer.Typer) -> None:
    for name, behaviour in (("end", end), ("deny", deny), ("restore", restore), ("judge", judge)):
        command(app, name, panel="Memory")(behaviour)


async def end(
    shell: Shell,
    graph: GraphId,
    statement_id: StatementId,
    at: Annotated[
        Dated | None,
        typer.Option(parser=read_date, metavar="DATE", help=f"When it stopped: {FORMS}. (default: now)"),
    ] = None,
    reason: Reason = "",
    request_id: RequestId = "",
) -> None:
    """Ends a fact: from then on it holds no more. `restore` undoes it."""
    request = memory_statements_pb2.EndStatementRequest(
        graph_id=graph,
        statement_id=statement_id,
        ended_at=at.timestamp if at else None,
        ended_at_precision=at.precision if at else common_pb2.PRECISION_UNSPECIFIED,
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.memory.EndStatement, request)
    shell.show(response, lambda done: as_it_reads(done.statement, done.revision))


async def deny(
    shell: Shell,
    graph: GraphId,
    statement_id: StatementId,
    since: Annotated[
        Dated | None,
        typer.Option(
            "--since",
            "--from",
            parser=read_date,
            metavar="DATE",
            help="Start of the time when it did not hold.",
        ),
    ] = None,
    until: Annotated[
        Dated | None, typer.Option(parser=read_date, metavar="DATE", help="End of that time.")
    ] = None,
    reason: Reason = "",
    request_id: RequestId = "",
) -> None:
    """Denies a fact, from --since until --until; without them it never held. `restore` undoes it."""
    request = memory_statements_pb2.DenyStatementRequest(
        graph_id=graph,
        statement_id=statement_id,
        denied_from=since.timestamp if since else None,
        denied_until=until.timestamp if until else None,
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.memory.DenyStatement, request)
    shell.show(response, lambda done: as_it_reads(done.statement, done.revision))


async def restore(
    shell: Shell,
    graph: GraphId,
    statement_id: StatementId,
    reason: Reason = "",
    request_id: RequestId = "",
) -> None:
    """Makes a fact hold again: undoes ends and denials, and lets it stand beside what took over."""
    request = memory_statements_pb2.RestoreStatementRequest(
        graph_id=graph,
        statement_id=statement_id,
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.memory.RestoreStatement, request)
    shell.show(response, restored)


def restored(response: memory_statements_pb2.RestoreStatementResponse) -> RenderableType:
    """What was undone, and the fact as it reads now."""
    beside = [verdict.other_statement_id for verdict in response.verdicts]
    undone = words.pairs(
        [
            ("taken back", ", ".join(response.revoked_record_ids)),
            ("stands beside", ", ".join(beside)),
            ("changed", "" if response.revoked_record_ids or beside else "nothing: it held already"),
        ]
    )
    return Group(undone, as_it_reads(response.statement, response.revision))


async def judge(
    shell: Shell,
    graph: GraphId,
    statement_id: StatementId,
    kind: Annotated[Kind, typer.Argument(metavar="contradicts|duplicate|compatible", help="How they stand.")],
    other_statement_id: Annotated[str, typer.Argument(metavar="OTHER", help="Id of the other statement.")],
    reason: Reason = "",
    request_id: RequestId = "",
) -> None:
    """Says how two facts stand to each other; that goes before what rules and models say."""
    request = memory_statements_pb2.JudgePairRequest(
        graph_id=graph,
        statement_id=statement_id,
        other_statement_id=other_statement_id,
        verdict=statement_pb2.VerdictKind.Value(f"VERDICT_KIND_{kind.name}"),
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.memory.JudgePair, request)
    shell.show(response, judged)


def judged(response: memory_statements_pb2.JudgePairResponse) -> RenderableType:
    return Group(*(as_it_reads(one, response.revision) for one in response.statements))


def as_it_reads(statement: statement_pb2.Statement, revision: int) -> RenderableType:
    """A fact with the times in which it holds."""
    times = [f"{words.since(span)} – {words.until(span) or 'now'}" for span in statement.spans]
    return words.pairs(
        [
            ("fact", statement.fact),
            ("statement", statement.statement_id),
            ("holds", ", ".join(times) or "at no time"),
            ("contested", "yes" if statement.contested else ""),
            ("revision", str(revision)),
        ]
    )
