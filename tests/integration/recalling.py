"""A recall service beside the resolver of tests/integration/resolving.py; short ways to tell and to ask."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.ids import EpisodeId, JobId, PassageId, SessionId
from services.domain.memory import Episode, EpisodeKind, Passage, Role
from services.domain.scope import Scope
from services.llm.port import Embedder
from services.recall.behind import Behind
from services.recall.parts import Options, Parts
from services.recall.service import Recall
from services.stores.vectors.port import Collection, VectorRow
from tests.builders import a_scope, on
from tests.doubles.embedder import HashEmbedder
from tests.integration.resolving import TODAY, World, a_world, said, vocabulary

Triple = tuple[str, str, str]
KEEPING = Options(wait_seconds=0.2, least_kept_rows=0)
"""Graphs of any size are kept for who starts cold."""


@dataclass
class Memory:
    """A world with a recall service over its stores."""

    world: World
    recall: Recall
    embedder: Embedder
    parts: Parts

    async def restart(self) -> None:
        """What recalls starts anew, with nothing in memory, once all is done behind its answers."""
        await self.recall.settled()
        self.recall = Recall(self.parts)

    async def say(
        self, name: str, said_on: str, *lines: tuple[str, str], scope: Scope | None = None, session: str = ""
    ) -> Episode:
        """Saves an episode of (speaker, text) turns with their vectors."""
        scope = scope or self.world.scope
        at = on(said_on)
        made = EpisodeId(f"episode-{name}")
        text = "\n".join(line for _, line in lines)
        episode = Episode(
            made,
            JobId("job"),
            EpisodeKind.CONVERSATION,
            text,
            at,
            at,
            1,
            session=SessionId(session) if session else None,
        )
        passages = [
            Passage(
                PassageId(f"passage-{name}-{n}"),
                made,
                n,
                line,
                0,
                len(line),
                f"{name}{n}",
                speaker,
                Role.USER,
            )
            for n, (speaker, line) in enumerate(lines)
        ]
        await self.world.memory.text.save(scope, [episode], passages, None)
        vectors = await self.embedder.passages([passage.with_speaker for passage in passages])
        rows = [VectorRow(p.id, vector, valid_at=at) for p, vector in zip(passages, vectors, strict=True)]
        await self.world.vectors.upsert(scope, Collection.PASSAGES, rows)
        return episode

    async def tell(
        self,
        name: str,
        said_on: str,
        *triples: Triple,
        since: str = "",
        kind: values.FactKind.ValueType = values.FACT_KIND_CLAIM,
        scope: Scope | None = None,
        **times: int,
    ) -> resolver_pb2.AssertResponse:
        """One episode that claims (or ends) triples, each in a sentence of its own."""
        scope = scope or self.world.scope
        lines = [("Teller", " ".join(triple).replace("_", " ")) for triple in triples]
        episode = await self.say(name, said_on, *lines, scope=scope)
        if since:
            times["start"] = on(since)
        made = []
        for at, triple in enumerate(triples):
            assertion = said(kind, triple, on(said_on), episode, **times)
            assertion.passage_id = f"passage-{name}-{at}"
            assertion.quote = lines[at][1]
            made.append(assertion)
        self.world.clock.at = on(said_on)
        request = resolver_pb2.AssertRequest(commit_id=name, assertions=made)
        return await self.world.resolver.assert_(scope, request)  # noqa: PT009 - not unittest's

    async def ask(self, query: str, *, scope: Scope | None = None, **fields: Any) -> pb.RecallResponse:
        """Recall with the usual limits; `fields` are the request's own."""
        usual: dict[str, Any] = {
            "now": TODAY, "max_hops": 2, "max_facts": 20, "max_passages": 10, "token_budget": 2000,
            "include_facts": True, "include_passages": True, "include_voice": True, "explain": True,
        }  # fmt: skip
        request = pb.RecallRequest(query=query, **(usual | fields))
        return await self.recall.recall(scope or self.world.scope, request)


@asynccontextmanager
async def a_memory(
    folder: Path, single: Sequence[str] = (), options: Options | None = None
) -> AsyncIterator[Memory]:
    """Opens a memory in a folder; `single` predicates take one object at a time."""
    async with a_world(folder, single) as world:
        embedder = HashEmbedder()
        parts = Parts(
            graph=world.graph,
            text=world.memory.text,
            voice=world.memory.voice,
            readings=world.memory.readings,
            archive=world.memory.archive,
            revisions=world.memory.revisions,
            decisions=world.memory.decisions,
            snapshots=world.memory.snapshots,
            summaries=world.memory.summaries,
            vectors=world.vectors,
            embedder=embedder,
            vocabulary=vocabulary(single),
            options=options or Options(wait_seconds=0.2),
            behind=Behind(later_seconds=0),
        )
        yield Memory(world, Recall(parts), embedder, parts)
        await parts.behind.close()


def triples(answer: pb.RecallResponse) -> list[Triple]:
    """The facts of an answer, best first."""
    return [triple(fact.statement) for fact in answer.facts]


def triple(statement: values.Statement) -> Triple:
    target = statement.entity.name if statement.HasField("entity") else statement.literal.text
    return statement.subject.name, statement.predicate.name, target


def twin() -> Scope:
    """A graph of another tenant with the same graph id."""
    return a_scope(tenant="rival")
