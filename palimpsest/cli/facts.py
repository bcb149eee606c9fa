"""Commands that read facts: `timeline` and `statement`."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.completing import graphs
from palimpsest.cli.dates import read_known_at, shown
from palimpsest.cli.pages import whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import common_pb2, entity_pb2, memory_statements_pb2, statement_pb2

GraphId = Annotated[str, typer.Argument(metavar="GRAPH", help="The graph.", autocompletion=graphs)]
KnownAt = Annotated[
    common_pb2.KnownAt | None,
    typer.Option(
        parser=read_known_at,
        metavar="DATE|REVISION",
        help="As the graph believed then: a date, or a plain number for a revision.",
    ),
]
PastBeliefs = Annotated[bool, typer.Option("--past-beliefs", help="Show beliefs that were given up as well.")]
MinRevision = Annotated[int, typer.Option(help="Wait until this revision is published.", min=0)]


def add_to(app: typer.Typer) -> None:
    command(app, "timeline", panel="Memory")(timeline)
    command(app, "statement", panel="Memory")(statement)


async def timeline(
    shell: Shell,
    graph: GraphId,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Name of the subject.")],
    predicate: Annotated[
        str, typer.Argument(metavar="PREDICATE", help="Name of the predicate, such as works_at.")
    ],
    known_at: KnownAt = None,
    past_beliefs: PastBeliefs = False,
    min_revision: MinRevision = 0,
) -> None:
    """Shows all that ever held between a subject and a predicate; what ended is struck through."""
    request = memory_statements_pb2.GetTimelineRequest(
        graph_id=graph,
        subject=entity_pb2.EntityRef(name=subject),
        predicate=entity_pb2.PredicateRef(name=predicate),
        known_at=known_at,
        include_past_beliefs=past_beliefs,
        min_revision=min_revision,
    )
    listed = await whole(shell, shell.connection.memory.GetTimeline, request, "entries")
    shell.show(listed, timeline_of)


def timeline_of(response: memory_statements_pb2.GetTimelineResponse) -> RenderableType:
    """A slot as a table: earliest first, ended facts struck through, given-up beliefs dim as well."""
    table = words.listing("", "object", "since", "until", "believed since", "ended by")
    for entry in response.entries:
        span = entry.span
        given_up = span.HasField("known_to")
        ended = span.HasField("invalid_at")
        mark = "?" if given_up else "✗" if entry.struck else "●" if not ended else "○"
        style = "dim strike" if given_up else "strike" if entry.struck or ended else "bold"
        believed = f"revision {span.known_from.revision}"
        if given_up:
            believed += f" until {span.known_to.revision}"
        table.add_row(
            mark,
            f"[{style}]{escape(words.named(entry.object))}[/]",
            words.since(span),
            words.until(span),
            believed,
            words.cause(span.end_cause) if ended else "",
        )
    title = f"[bold]({escape(response.subject.name)}) --{escape(f'[{response.predicate.name}]')}-->[/]"
    foot = f"[dim]● holds  ✗ ended  revision {response.revision}[/]"
    lines: list[RenderableType] = [title, table, foot]
    if not response.entries:
        lines[1] = "nothing was ever known"
    if response.contested:
        lines.append("[yellow]contested: the sources waver about it[/]")
    return Group(*lines)


async def statement(
    shell: Shell,
    graph: GraphId,
    statement_id: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="Its id; `recall` and `timeline` tell it with --json.")
    ],
    known_at: KnownAt = None,
    past_beliefs: PastBeliefs = False,
    min_revision: MinRevision = 0,
) -> None:
    """Shows a fact with its spans, the records that speak of it, and what relied on it."""
    request = memory_statements_pb2.GetStatementRequest(
        graph_id=graph,
        statement_id=statement_id,
        known_at=known_at,
        include_past_beliefs=past_beliefs,
        min_revision=min_revision,
    )
    response = await shell.connection.call(shell.connection.memory.GetStatement, request)
    shell.show(response, statement_of)


def statement_of(response: memory_statements_pb2.GetStatementResponse) -> RenderableType:
    """A statement: what it says, when it holds, who said so."""
    fact = response.statement
    aspect = words.word(statement_pb2.GraphAspect.Name, fact.aspect, "GRAPH_ASPECT_")
    head = words.pairs(
        [
            ("fact", fact.fact),
            ("statement", fact.statement_id),
            ("aspect", aspect if fact.aspect else ""),
            ("confidence", f"{fact.confidence:.2f} from {words.counted(fact.source_count, 'source')}"),
            ("contested", "yes" if fact.contested else ""),
            ("invalidated by", fact.invalidated_by),
            ("no longer believed", shown(fact.expired_at) if fact.HasField("expired_at") else ""),
            ("relied on it", ", ".join(response.dependent_statement_ids)),
        ]
    )
    spans = words.listing("since", "until", "believed", "rests on", title="Spans")
    for span in [*fact.spans, *response.past_spans]:
        known = f"since revision {span.known_from.revision}"
        if span.HasField("known_to"):
            known += f" until {span.known_to.revision}"
        spans.add_row(words.since(span), words.until(span) or "now", known, words.cause(span.start_cause))
    return Group(head, spans, _records(response))


def _records(response: memory_statements_pb2.GetStatementResponse) -> RenderableType:
    table = words.listing("record", "says", "said on", "words", "episode", title="Records")

    def add(kind: str, says: str, source: statement_pb2.RecordSource) -> None:
        said = shown(source.attested_at) if source.HasField("attested_at") else ""
        style = "dim strike" if source.HasField("revoked_at") else ""
        row = [kind, says + words.why(source.origin), said, source.quote or source.reason, source.episode_id]
        table.add_row(*(escape(cell) for cell in row), style=style)

    for claim in response.claims:
        start = shown(claim.start, claim.start_precision) if claim.HasField("start") else "unknown"
        assumed = " (assumed)" if claim.start_kind == statement_pb2.START_KIND_ASSUMED else ""
        end = f" until {shown(claim.end, claim.end_precision)}" if claim.HasField("end") else ""
        add("claim", f"since {start}{assumed}{end}", claim.source)
    for stop in response.ends:
        add("end", f"stopped {shown(stop.ended_at, stop.ended_at_precision)}", stop.source)
    for denial in response.denials:
        low = shown(denial.denied_from) if denial.HasField("denied_from") else "ever"
        high = shown(denial.denied_until) if denial.HasField("denied_until") else "now on"
        add("denial", f"not from {low} until {high}", denial.source)
    for verdict in response.verdicts:
        kind = words.word(statement_pb2.VerdictKind.Name, verdict.kind, "VERDICT_KIND_")
        judge = words.word(statement_pb2.VerdictSource.Name, verdict.decided_by, "VERDICT_SOURCE_")
        table.add_row("verdict", f"{kind} {verdict.other_statement_id}", "", f"{judge}: {verdict.reason}", "")
    return table
