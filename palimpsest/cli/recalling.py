"""`recall`: asks the memory."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date, shown
from palimpsest.cli.facts import GraphId, KnownAt, MinRevision
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import entity_pb2, recall_pb2, statement_pb2


def add_to(app: typer.Typer) -> None:
    command(app, "recall", panel="Memory")(recall)


async def recall(
    shell: Shell,
    graph: GraphId,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask.")],
    also: Annotated[list[str] | None, typer.Option("--graph", help="Ask this graph too; repeatable.")] = None,
    as_of: Annotated[
        Dated | None,
        typer.Option(parser=read_date, metavar="DATE", help=f"Only facts that held then: {FORMS}."),
    ] = None,
    known_at: KnownAt = None,
    budget: Annotated[int | None, typer.Option(help="Most tokens of the answer.", min=16)] = None,
    max_facts: Annotated[
        int | None, typer.Option(help="Most facts, besides those that they replaced. (default: 20)", min=0)
    ] = None,
    max_passages: Annotated[int | None, typer.Option(help="Most passages. (default: 10)", min=0)] = None,
    max_hops: Annotated[int | None, typer.Option(help="Longest walk. (default: 2)", min=0, max=4)] = None,
    entity: Annotated[list[str] | None, typer.Option(help="Start walks from it too; repeatable.")] = None,
    time_zone: Annotated[str, typer.Option(help="IANA time zone of dates in the question.")] = "",
    min_revision: MinRevision = 0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which leg found what, at which rank.")
    ] = False,
) -> None:
    """Asks the memory; prints a block that is ready for a prompt. Every line has its dates and evidence."""
    request = recall_pb2.RecallRequest(
        graph_ids=[graph, *(also or ())],
        query=question,
        time_zone=time_zone,
        as_of=as_of.timestamp if as_of else None,
        known_at=known_at,
        token_budget=budget,
        max_facts=max_facts,
        max_passages=max_passages,
        max_hops=max_hops,
        entity_hints=[entity_pb2.EntityRef(name=name) for name in entity or ()],
        explain=explain,
        min_revision=min_revision,
    )
    response = await shell.connection.call(shell.connection.recall.Recall, request)
    shell.show(response, explained if explain else answer_of)


def answer_of(response: recall_pb2.RecallResponse) -> RenderableType:
    """The prompt block; ended facts struck through where the terminal can."""
    ended = {fact.evidence[0] for fact in response.facts if fact.evidence and not fact.current}
    lines = [_line(line, ended) for line in response.context.splitlines()]
    return Group(*(lines or [Text("nothing is known about that", style="dim")]), "", foot_of(response))


def _line(line: str, ended: set[str]) -> Text:
    if line.startswith("## "):
        return Text(line, style="bold")
    name = line.rpartition("[")[2].rstrip("]")
    struck = line.startswith("- (") and " until " in line and name in ended
    return Text(line, style="strike" if struck else "")


def foot_of(response: recall_pb2.RecallResponse) -> RenderableType:
    """What the answer cost in tokens, what it was read from, and what was missing."""
    revisions = ", ".join(f"{each.graph_id} at revision {each.revision}" for each in response.revisions)
    parts = [f"{response.tokens_used} tokens", revisions]
    if response.engine:
        parts.append(f"engine {response.engine}")
    if response.truncated:
        parts.append("cut to the budget")
    foot = f"[dim]{escape(' · '.join(parts))}[/]"
    for part in response.degraded:
        down = words.word(recall_pb2.RecallComponent.Name, part.component, "RECALL_COMPONENT_")
        foot += f"\n[yellow]degraded: {down.replace('_', ' ')} is down[/]"
    return foot


def explained(response: recall_pb2.RecallResponse) -> RenderableType:
    """The answer, how the question was read, and how each item was found."""
    facts = words.listing("score", "fact", "dates", "evidence", "found by", title="Facts")
    for fact in response.facts:
        way = " → ".join(step.to_entity.name for step in fact.path)
        facts.add_row(
            f"{fact.score:.3f}",
            Text(fact.statement.fact, style="" if fact.current else "strike"),
            _dates(fact.statement),
            escape(" ".join(fact.evidence)),
            escape(legs(fact.found_by) + (f" (by way of {way})" if way else "")),
        )
    passages = words.listing("score", "passage", "said", "evidence", "found by", title="Passages")
    for found_passage in response.passages:
        passage = found_passage.passage
        passages.add_row(
            f"{found_passage.score:.3f}",
            escape(" ".join(passage.text.split())[:120]),
            shown(passage.reference_time),
            escape(found_passage.evidence),
            escape(legs(found_passage.found_by)),
        )
    return Group(answer_of(response), "", _plan(response), facts, passages)


def _dates(statement: statement_pb2.Statement) -> str:
    start = shown(statement.valid_at, statement.valid_at_precision) if statement.HasField("valid_at") else "?"
    if not statement.HasField("invalid_at"):
        return f"since {start}"
    return f"{start} to {shown(statement.invalid_at, statement.invalid_at_precision)}"


def legs(found_by: Iterable[recall_pb2.FoundBy]) -> str:
    """Which legs found an item, each with its place in that leg's list: `lexical statements #1`."""
    return ", ".join(
        f"{words.word(recall_pb2.RecallLeg.Name, each.leg, 'RECALL_LEG_')} "
        f"{words.word(recall_pb2.RecallTarget.Name, each.target, 'RECALL_TARGET_')} #{each.rank}"
        for each in found_by
    )


def _plan(response: recall_pb2.RecallResponse) -> RenderableType:
    plan = response.plan
    dates = [
        f"{shown(each.start) if each.HasField('start') else '…'} to "
        f"{shown(each.end) if each.HasField('end') else '…'}"
        for each in plan.dates
    ]
    return words.pairs(
        [
            (
                "read as",
                words.word(recall_pb2.RecallIntent.Name, plan.intent, "RECALL_INTENT_").replace("_", " "),
            ),
            ("starts from", ", ".join(seed.name for seed in plan.seeds)),
            ("dates", ", ".join(dates)),
            ("hints unknown", ", ".join(plan.unmatched_hints)),
            ("abstention", f"{response.abstention_score:.2f}"),
        ]
    )
