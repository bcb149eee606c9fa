"""A resolver over real stores in a temporary folder, a clock that tests set, and short ways to ask it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.graph import Span
from services.domain.ids import EpisodeId, JobId, PassageId, Revision
from services.domain.instants import Instant
from services.domain.memory import Episode, EpisodeKind, Passage, Role
from services.domain.predicates import Cardinality, Declaration, Vocabulary, default_vocabulary
from services.domain.scope import Scope
from services.resolver.publish import Stores
from services.resolver.service import Parts, Resolver
from services.stores.graph.port import AsOf, GraphStore, StatementFilter, StatementView
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from services.stores.sql.engine import engine_for
from tests.builders import a_scope, on
from tests.doubles.embedder import HashEmbedder
from tests.doubles.engine import ScriptedEngine
from tests.doubles.sqlite_files import laid_url
from tests.doubles.vectors import ArrayVectorStore

S = TypeVar("S", SqlGraphStore, SqlMemory)
Row = tuple[str, Instant | None, Instant | None]
"""An object's name and the borders of one of its spans."""


TODAY = on("2026-06-01")


@dataclass
class Clock:
    """A clock that stands until it is set."""

    at: Instant = TODAY

    def __call__(self) -> Instant:
        return self.at


@dataclass
class World:
    """One graph's resolver and the stores below it."""

    resolver: Resolver
    graph: GraphStore
    memory: SqlMemory
    vectors: ArrayVectorStore
    engine: ScriptedEngine
    clock: Clock
    parts: Parts
    scope: Scope = field(default_factory=a_scope)

    def another(self) -> Resolver:
        """A resolver as another process would have it, over the same stores."""
        return Resolver(self.parts)

    async def episode(self, name: str, said_at: Instant, lines: Sequence[str] = ("x",)) -> Episode:
        """Saves an episode with one passage a line."""
        made = EpisodeId(f"episode-{name}")
        episode = Episode(made, JobId("job"), EpisodeKind.CONVERSATION, "\n".join(lines), said_at, said_at, 1)
        passages = [
            Passage(
                PassageId(f"passage-{name}-{at}"), made, at, line, 0, len(line), f"{name}{at}", "", Role.USER
            )
            for at, line in enumerate(lines)
        ]
        await self.memory.text.save(self.scope, [episode], passages, None)
        return episode

    async def tell(self, commit_id: str, *assertions: pb.Assertion) -> pb.AssertResponse:
        request = pb.AssertRequest(commit_id=commit_id, assertions=assertions)
        return await self.resolver.assert_(self.scope, request)  # noqa: PT009 - not unittest's

    async def timeline(self, subject: str, predicate: str, known_at: Revision | None = None) -> list[Row]:
        """Believed spans of a slot, earliest first."""
        return [
            (_object(view), span.valid_at, span.invalid_at)
            for view, span in await self.spans(subject, predicate, known_at)
        ]

    async def spans(
        self, subject: str, predicate: str, known_at: Revision | None = None
    ) -> list[tuple[StatementView, Span]]:
        known = await self.memory.revisions.current(self.scope) if known_at is None else known_at
        found = await self.graph.find_entities(self.scope, [subject.casefold(), predicate], known)
        if subject.casefold() not in found or predicate not in found:
            return []
        where = StatementFilter(
            subjects=[entity.id for entity in found[subject.casefold()]],
            predicates=[entity.id for entity in found[predicate]],
            include_ended=True,
        )
        listed = await self.graph.list_statements(self.scope, where, AsOf(known), Page(1000))
        spans = [(view, span) for view in listed.items for span in view.spans]
        return sorted(spans, key=lambda pair: (pair[1].valid_at or 0, _object(pair[0])))


def _object(view: StatementView) -> str:
    return view.object.name if view.object else str(view.statement.object)


@asynccontextmanager
async def a_world(
    folder: Path,
    single: Sequence[str] = (),
    engine_url: str = "",
    graph_class: type[SqlGraphStore] = SqlGraphStore,
    graph: GraphStore | None = None,
    vectors: ArrayVectorStore | None = None,
    engine: Callable[[str], AsyncEngine] = engine_for,
) -> AsyncIterator[World]:
    """Opens a world; `single` predicates take one object at a time. It closes the graph, also a given one."""
    graph = graph or await _opened(graph_class.open, folder / "graph.db", engine_url, engine)
    memory = await _opened(SqlMemory.open, folder / "memory.db", engine_url, engine)
    embedder, model, clock = HashEmbedder(), ScriptedEngine(), Clock()
    vectors = vectors or ArrayVectorStore(embedder.dimension)
    parts = Parts(
        stores=Stores(
            graph,
            memory.revisions,
            memory.voice,
            memory.decisions,
            memory.readings,
            memory.archive,
            memory.summaries,
        ),
        text=memory.text,
        staging=memory.staging,
        vectors=vectors,
        embedder=embedder,
        engine=model,
        vocabulary=vocabulary(single),
        now=clock,
        memory=memory,
    )
    try:
        yield World(Resolver(parts), graph, memory, vectors, model, clock, parts)
    finally:
        await memory.close()
        await graph.close()


async def _opened(
    opening: Callable[[AsyncEngine], Awaitable[S]], file: Path, url: str, engine: Callable[[str], AsyncEngine]
) -> S:
    """A store over a server's database, or over a file, which is new unless it is there."""
    return await opening(engine(url or laid_url(file)))


def vocabulary(single: Sequence[str]) -> Vocabulary:
    return default_vocabulary().declaring([Declaration(name, Cardinality.SINGLE) for name in single])


def said(
    kind: values.FactKind.ValueType,
    triple: tuple[str, str, str],
    attested_at: Instant,
    episode: Episode,
    **times: int | None,
) -> pb.Assertion:
    """One assertion; `times` are its start, end and seen, or how fine those are."""
    subject, predicate, target = triple
    assertion = pb.Assertion(
        kind=kind,
        subject=values.Mention(name=subject),
        predicate=predicate,
        object=values.Target(mention=values.Mention(name=target)),
        attested_at=attested_at,
        confidence=1.0,
        episode_id=episode.id,
        passage_id=f"{episode.id.replace('episode', 'passage', 1)}-0",
    )
    for name, at in times.items():
        if at is not None:
            setattr(assertion, name, at)
    return assertion
