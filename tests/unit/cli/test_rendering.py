"""How answers read: what ended is struck through, and no text of a user's is taken for markup."""

import io
from typing import Literal

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console, RenderableType

from palimpsest.cli import words
from palimpsest.cli.facts import statement_of, timeline_of
from palimpsest.cli.graphs import graph_of
from palimpsest.cli.money import ledger_of
from palimpsest.cli.recalling import answer_of, explained
from palimpsest.v1 import (
    common_pb2,
    credits_pb2,
    entity_pb2,
    graph_pb2,
    memory_statements_pb2,
    recall_pb2,
    statement_pb2,
)

STRIKE = "\x1b[9m"


def day(text: str) -> Timestamp:
    message = Timestamp()
    message.FromJsonString(f"{text}T00:00:00Z")
    return message


def printed(shown: RenderableType, terminal: bool = False) -> str:
    stream = io.StringIO()
    colors: Literal["standard"] | None = "standard" if terminal else None
    console = Console(file=stream, width=160, force_terminal=terminal, color_system=colors)
    console.print(shown, highlight=False)
    return stream.getvalue()


def entity(name: str) -> entity_pb2.ObjectValue:
    return entity_pb2.ObjectValue(entity=entity_pb2.Entity(name=name))


def timeline() -> memory_statements_pb2.GetTimelineResponse:
    google = statement_pb2.Span(
        valid_at=day("2024-02-01"),
        valid_at_precision=common_pb2.PRECISION_MONTH,
        invalid_at=day("2026-03-01"),
        known_from=common_pb2.RevisionStamp(revision=2),
        end_cause=statement_pb2.Cause(kind=statement_pb2.CAUSE_KIND_CLAIM),
    )
    meta = statement_pb2.Span(valid_at=day("2026-03-01"), known_from=common_pb2.RevisionStamp(revision=1))
    entry = memory_statements_pb2.TimelineEntry
    return memory_statements_pb2.GetTimelineResponse(
        entries=[
            entry(object=entity("Google"), span=google, struck=True),
            entry(object=entity("Meta"), span=meta),
        ],
        subject=entity_pb2.Entity(name="John"),
        predicate=entity_pb2.Predicate(name="works_at"),
        revision=2,
    )


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "statements_added", "1 statement added"),
        (2, "statements_added", "2 statements added"),
        (1, "entities_merged", "1 entity merged"),
        (3, "entities_merged", "3 entities merged"),
        (1, "source", "1 source"),
        (0, "source", "0 sources"),
        (1_200, "tokens saved", "1,200 tokens saved"),
    ],
)
def test_a_number_and_its_noun_agree(number: int, noun: str, text: str) -> None:
    assert words.counted(number, noun) == text


def test_what_ended_is_struck_through_in_a_terminal() -> None:
    lines = printed(timeline_of(timeline()), terminal=True).splitlines()
    (google,) = [line for line in lines if "Google" in line]
    (meta,) = [line for line in lines if "Meta" in line]
    assert f"{STRIKE}Google" in google
    assert STRIKE not in meta


def test_without_a_terminal_marks_and_dates_tell_it() -> None:
    text = printed(timeline_of(timeline()))
    assert "\x1b" not in text
    assert "(John) --[works_at]-->" in text
    (google,) = [line for line in text.splitlines() if "Google" in line]
    assert google.split() == ["✗", "Google", "2024-02", "2026-03-01", "revision", "2", "claim"]
    (meta,) = [line for line in text.splitlines() if "Meta" in line]
    assert meta.split() == ["●", "Meta", "2026-03-01", "revision", "1"]


def test_a_belief_that_was_given_up_says_from_when_until_when() -> None:
    response = timeline()
    response.entries[1].span.known_to.revision = 2
    (line,) = [line for line in printed(timeline_of(response)).splitlines() if "Meta" in line]
    assert line.split()[0] == "?"
    assert "revision 1 until 2" in line


def test_an_unknown_start_and_a_removed_source_are_told() -> None:
    response = timeline()
    span = response.entries[0].span
    span.ClearField("valid_at")
    span.end_cause.kind = statement_pb2.CAUSE_KIND_END
    span.end_cause.origin = statement_pb2.RECORD_ORIGIN_SOURCE_REMOVED
    text = printed(timeline_of(response))
    assert "unknown" in text
    assert "end, source removed" in text


def test_names_are_never_markup() -> None:
    response = timeline()
    response.entries[0].object.entity.name = "[red]x[/red] [bold"
    assert "[red]x[/red] [bold" in printed(timeline_of(response))
    graph = graph_pb2.Graph(graph_id="[/] [link=x]")
    assert "[/] [link=x]" in printed(graph_of(graph))


def recalled() -> recall_pb2.RecallResponse:
    google = statement_pb2.Statement(
        fact="John works at Google", valid_at=day("2024-02-01"), invalid_at=day("2026-03-01")
    )
    meta = statement_pb2.Statement(fact="John works at Meta", valid_at=day("2026-03-01"))
    step = recall_pb2.PathStep(to_entity=entity_pb2.Entity(name="Study"))
    found = recall_pb2.FoundBy(
        leg=recall_pb2.RECALL_LEG_WALK, target=recall_pb2.RECALL_TARGET_STATEMENTS, rank=3
    )
    return recall_pb2.RecallResponse(
        facts=[
            recall_pb2.RecalledFact(
                statement=meta, current=True, evidence=["e1"], path=[step], found_by=[found]
            ),
            recall_pb2.RecalledFact(statement=google, evidence=["e2"]),
        ],
        context=(
            "## Facts\n"
            "- (John) --[works_at]--> (Meta)  since 2026-03-01 [e1]\n"
            "- (John) --[works_at]--> (Google)  since 2024-02-01 until 2026-03-01 [e2]\n"
            '## What was said\n- 2024-02-03 "[bold]until further notice[/bold]" [e2]'
        ),
        revisions=[common_pb2.GraphRevision(graph_id="g", revision=2)],
        tokens_used=99,
    )


def test_an_answer_is_the_block_as_it_came() -> None:
    response = recalled()
    text = printed(answer_of(response))
    assert text.startswith(response.context)
    assert "99 tokens · g at revision 2" in text


def test_in_a_terminal_ended_facts_of_an_answer_are_struck_and_nothing_else() -> None:
    lines = printed(answer_of(recalled()), terminal=True).splitlines()
    assert [line for line in lines if STRIKE in line] == [line for line in lines if "(Google)" in line]


def test_an_empty_or_degraded_answer_says_so() -> None:
    down = recall_pb2.DegradedComponent(component=recall_pb2.RECALL_COMPONENT_VECTOR_STORE)
    text = printed(answer_of(recall_pb2.RecallResponse(degraded=[down], truncated=True)))
    assert "nothing is known about that" in text
    assert "vector store is down" in text
    assert "cut to the budget" in text


def test_an_explanation_tells_legs_and_ways() -> None:
    response = recalled()
    response.plan.intent = recall_pb2.RECALL_INTENT_ATTRIBUTE
    response.plan.seeds.add(name="John")
    text = printed(explained(response))
    assert "walk statements #3 (by way of Study)" in text
    assert "2024-02-01 to 2026-03-01" in text
    assert [line.split() for line in text.splitlines() if line.startswith("starts from")] == [
        ["starts", "from", "John"]
    ]


def test_a_ledger_is_signed_and_exact() -> None:
    entry = credits_pb2.LedgerEntry(
        kind=credits_pb2.LEDGER_ENTRY_KIND_HOLD,
        account=credits_pb2.LEDGER_ACCOUNT_AVAILABLE,
        amount_micros=-1_000,
        balance_after_micros=4_999_000,
        job_id="j1",
    )
    text = printed(ledger_of(credits_pb2.ListLedgerEntriesResponse(entries=[entry])))
    (line,) = [line for line in text.splitlines() if "j1" in line]
    assert line.split()[-5:] == ["hold", "available", "-0.001", "4.999", "j1"]


def test_a_statement_shows_who_said_what_and_what_was_revoked() -> None:
    source = statement_pb2.RecordSource(
        quote="I work at Google", attested_at=day("2024-02-03"), episode_id="e1"
    )
    revoked = statement_pb2.RecordSource(origin=statement_pb2.RECORD_ORIGIN_USER, reason="mistaken")
    revoked.revoked_at.revision = 4
    response = memory_statements_pb2.GetStatementResponse(
        statement=statement_pb2.Statement(fact="John works at Google", confidence=0.9, source_count=1),
        claims=[statement_pb2.Claim(start=day("2024-02-01"), source=source)],
        ends=[statement_pb2.End(ended_at=day("2026-03-01"), source=revoked)],
    )
    lines = printed(statement_of(response), terminal=True).splitlines()
    (claim,) = [line for line in lines if "I work at Google" in line]
    assert "since 2024-02-01" in claim
    assert STRIKE not in claim
    (end,) = [line for line in lines if "mistaken" in line]
    assert "stopped 2026-03-01, by a user" in end
    assert "\x1b[2;9m" in end
