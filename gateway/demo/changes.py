"""Chapters: facts that change. What holds now, what held then, what was known when."""

from gateway.demo.handbook import slot
from gateway.demo.stage import Stage, said
from palimpsest.cli import words
from palimpsest.cli.facts import timeline_of
from palimpsest.cli.recalling import answer_of
from palimpsest.connection import new_request_id
from palimpsest.v1 import entity_pb2, memory_ingest_pb2, recall_pb2

GRAPH = "changes"


async def play(stage: Stage) -> None:
    """A migration told in order, a career told out of order, an answer two steps away."""
    await _migration(stage)
    await _career(stage)
    await _two_hops(stage)


async def _migration(stage: Stage) -> None:
    stage.chapter("MySQL → PostgreSQL")
    before, after = (
        "The primary database of Atlas is MySQL 8.0.",
        "Atlas moved its primary database to PostgreSQL 16.",
    )
    stage.tell(f'2026-01-10: [italic]"{before}"[/]\n2026-01-24: [italic]"{after}"[/]')
    await stage.add(said(GRAPH, before, "2026-01-10"))
    await stage.add(said(GRAPH, after, "2026-01-24"))
    question = "What is the primary database of Atlas?"
    now = await ask(stage, question)
    stage.tell(f"\nAsked now: [bold]{question}[/]")
    stage.show(answer_of(now))
    stage.expect("the answer says that no language model is behind it", now.engine == "offline")
    stage.expect(
        "PostgreSQL 16 comes first, MySQL 8.0 as what it replaced", held(now)[:1] == ["PostgreSQL 16"]
    )
    then = await ask(stage, question, as_of="2026-01-15")
    stage.tell("\nThe same, as of 2026-01-15:")
    stage.show(answer_of(then))
    stage.expect(
        "as of 2026-01-15 it is MySQL 8.0", "MySQL 8.0" in held(then) and "PostgreSQL 16" not in held(then)
    )


async def _career(stage: Stage) -> None:
    stage.chapter("John moves from Google to Meta, told out of order")
    stage.tell("First we hear of Meta (said 2026-03-02), later an old mail turns up (said 2024-02-03).")
    meta = await employ(stage, "Meta", since="2026-03-01", said_on="2026-03-02")
    google = await employ(stage, "Google", since="2024-02-01", said_on="2024-02-03")
    whole = await slot(stage, GRAPH, "John", "works_at")
    stage.show(timeline_of(whole))
    names = [(entry.object.entity.name, entry.struck) for entry in whole.entries]
    stage.expect("Google is struck through, Meta holds", names == [("Google", True), ("Meta", False)])
    stage.expect(
        "the old mail did not end what is newer; Google ends where Meta begins",
        whole.entries[0].span.invalid_at.ToJsonString() == "2026-03-01T00:00:00Z",
    )
    stage.tell(f"\nAs the graph believed at revision {meta}, before the old mail (revision {google}):")
    earlier = await slot(stage, GRAPH, "John", "works_at", revision=meta)
    stage.show(timeline_of(earlier))
    stage.expect(
        "then it knew of Meta alone", [entry.object.entity.name for entry in earlier.entries] == ["Meta"]
    )
    question = "Where does John work?"
    now, past = await ask(stage, question), await ask(stage, question, as_of="2025-01-01")
    ignorant = await ask(stage, question, as_of="2025-01-01", known_at=meta)
    stage.tell(f"\n[bold]{question}[/]  as facts:")
    answers = [
        ("now", now),
        ("as of 2025-01-01", past),
        (f"as of 2025-01-01, as known at revision {meta}", ignorant),
    ]
    stage.show(
        words.pairs((asked, ", ".join(held(got, "John")) or "nothing was known") for asked, got in answers)
    )
    stage.expect("now: Meta", held(now, "John") == ["Meta"])
    stage.expect("as of 2025-01-01: Google", held(past, "John") == ["Google"])
    stage.expect("as of 2025-01-01, as known before the mail: nothing", held(ignorant, "John") == [])


async def _two_hops(stage: Stage) -> None:
    stage.chapter("Two hops")
    for text in (
        "Wen maintains Study.",
        "Study is deployed on Cloudflare Pages.",
        "Study uses KV for storage.",
    ):
        stage.tell(f'2026-02-01: [italic]"{text}"[/]')
        await stage.add(said(GRAPH, text, "2026-02-01"))
    question = "What storage does the project that Wen maintains use?"
    answer = await ask(stage, question)
    stage.tell(f"\n[bold]{question}[/]  No text names Wen and KV together.")
    stage.show(answer_of(answer))
    ways = {
        fact.statement.object.entity.name: [step.to_entity.name for step in fact.path]
        for fact in answer.facts
    }
    if ways.get("KV"):
        stage.tell(f"    Walked: Wen → {' → '.join(ways['KV'])}")
    stage.expect("the fact about KV is recalled over Study", ways.get("KV") == ["Study", "KV"])


async def employ(stage: Stage, employer: str, *, since: str, said_on: str) -> int:
    """Records where John works; returns the revision that holds it."""
    request = memory_ingest_pb2.AssertTriplesRequest(graph_id=GRAPH, request_id=new_request_id())
    claim = request.claims.add(
        subject=entity_pb2.EntityRef(name="John", type=entity_pb2.ENTITY_TYPE_PERSON),
        predicate="works_at",
        object=entity_pb2.ObjectRef(
            entity=entity_pb2.EntityRef(name=employer, type=entity_pb2.ENTITY_TYPE_ORGANIZATION)
        ),
    )
    claim.valid_at.FromJsonString(f"{since}T00:00:00Z")
    claim.reference_time.FromJsonString(f"{said_on}T00:00:00Z")
    response = await stage.connection.call(stage.connection.memory.AssertTriples, request)
    return response.revision


async def ask(
    stage: Stage, question: str, as_of: str = "", known_at: int | None = None
) -> recall_pb2.RecallResponse:
    """Recalls within 400 tokens; as of a day, and as known at a revision, if given."""
    request = recall_pb2.RecallRequest(graph_ids=[GRAPH], query=question, token_budget=400, explain=True)
    if as_of:
        request.as_of.FromJsonString(f"{as_of}T12:00:00Z")
    if known_at is not None:
        request.known_at.revision = known_at
    return await stage.connection.call(stage.connection.recall.Recall, request)


def held(answer: recall_pb2.RecallResponse, subject: str = "Atlas") -> list[str]:
    """The objects of the facts about a subject that hold at the time asked for, best first."""
    return [
        fact.statement.object.entity.name
        for fact in answer.facts
        if fact.current and fact.statement.subject.name == subject
    ]
