"""Chapter: a document in two versions. Only what changed is understood; what it no longer says ends."""

from importlib import resources

from gateway.demo.stage import Stage
from palimpsest.cli.facts import timeline_of
from palimpsest.cli.jobs import job_of
from palimpsest.v1 import (
    entity_pb2,
    episode_pb2,
    job_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    statement_pb2,
)

GRAPH = "handbook"
CHUNKED_FROM = 1_800
"""Tokens from which a text is cut into chunks."""


def version(number: int, day: str) -> memory_ingest_pb2.AddEpisodeRequest:
    """A version of the handbook, said on a day."""
    text = (resources.files("gateway.demo") / "texts" / f"handbook-{number}.md").read_text(encoding="utf-8")
    request = memory_ingest_pb2.AddEpisodeRequest(
        graph_id=GRAPH,
        text=text,
        kind=episode_pb2.EPISODE_KIND_DOCUMENT,
        document_id="handbook",
        title="Engineering handbook of Harbour",
    )
    request.reference_time.FromJsonString(f"{day}T00:00:00Z")
    return request


async def play(stage: Stage) -> None:
    """Takes in both versions, then shows what a changed and a dropped paragraph did."""
    stage.chapter("A document, and its next version")
    first = await stage.add(version(1, "2025-09-01"))
    tokens = sum(chunk.token_count for chunk in first.chunks)
    stage.tell(f"The handbook of 2025-09-01: {tokens:,} tokens, so it is cut on borders of paragraphs.")
    stage.show(job_of(first))
    stage.expect(
        f"{tokens:,} tokens became {len(first.chunks)} chunks",
        tokens >= CHUNKED_FROM and len(first.chunks) > 1,
    )
    second = await stage.add(version(2, "2026-02-02"))
    saved = second.result.counts.tokens_saved
    stage.tell(
        "\nThe version of 2026-02-02 has one paragraph changed (the database of Ledger) and one dropped "
        "(Quill). Only the changed one is understood again:"
    )
    stage.show(job_of(second))
    understood = sum(chunk.token_count for chunk in second.chunks)
    stage.expect(f"{saved:,} tokens were saved, {understood} understood", saved > 10 * understood > 0)
    await _consequences(stage)
    await _unchanged(stage)


async def _consequences(stage: Stage) -> None:
    database = await slot(stage, GRAPH, "Ledger", "primary_database")
    stage.tell("\nWhat the changed paragraph did:")
    stage.show(timeline_of(database))
    open_now = [entry.object.entity.name for entry in database.entries if not entry.struck]
    stage.expect("Ledger's primary database is PostgreSQL 16 now", open_now == ["PostgreSQL 16"])
    owner = await slot(stage, GRAPH, "Tomas", "maintains")
    stage.tell(
        "What the dropped paragraph did: no passage of the newest version supports these facts any more."
    )
    stage.show(timeline_of(owner))
    causes = {entry.span.end_cause.origin for entry in owner.entries}
    stage.expect(
        "the fact ended with the version, by SOURCE_REMOVED",
        causes == {statement_pb2.RECORD_ORIGIN_SOURCE_REMOVED},
    )


async def _unchanged(stage: Stage) -> None:
    again = await stage.add(version(2, "2026-02-03"))
    stage.expect(
        "the same text again costs nothing (unchanged document)",
        again.credits.spent_micros == 0
        and again.state == job_pb2.JOB_STATE_SUCCEEDED
        and all(chunk.stage == episode_pb2.CHUNK_STAGE_NOTHING for chunk in again.chunks),
    )


async def slot(
    stage: Stage, graph: str, subject: str, predicate: str, revision: int | None = None
) -> memory_statements_pb2.GetTimelineResponse:
    """Everything between a subject and a predicate, as known now or at a revision."""
    request = memory_statements_pb2.GetTimelineRequest(
        graph_id=graph,
        subject=entity_pb2.EntityRef(name=subject),
        predicate=entity_pb2.PredicateRef(name=predicate),
    )
    if revision is not None:
        request.known_at.revision = revision
    return await stage.connection.call(stage.connection.memory.GetTimeline, request)
