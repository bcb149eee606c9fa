"""A story told to a real graph, step by step, and the oracle's account of it beside."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.graph import Entity
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId, derive_id
from services.domain.instants import Instant
from services.domain.records import Claim as ClaimRecord
from services.domain.records import Denial as DenialRecord
from services.domain.records import End as EndRecord
from services.domain.records import Judge, Verdict
from services.resolver.change import Draft
from services.resolver.index import Index
from services.resolver.publish import Publisher
from services.stores.graph.port import AsOf, Records, Revocation, StatementFilter
from services.stores.memory.lexicons import Lexicons
from services.stores.paging import Page
from tests.builders import a_scope, on
from tests.integration.resolving import World, said
from tests.laws.competing import Judged
from tests.laws.oracle import Claim, Denial, End
from tests.laws.stories import (
    Delete,
    Judgement,
    Kept,
    Part,
    Row,
    Said,
    Step,
    Tell,
    Telling,
    Undo,
    Unite,
    fact_of,
    in_order,
)

Record = ClaimRecord | EndRecord | DenialRecord
_FIRST = on("2024-01-01")
_DAY = 24 * 3_600_000_000
_ALL = Page(1000)
_graphs = count()


def instant(day: int) -> Instant:
    return Instant(_FIRST + day * _DAY)


def day(at: Instant | None) -> int | None:
    return None if at is None else (at - _FIRST) // _DAY


class Story:
    """A new graph in which steps are done one by one, and the oracle's account of it beside."""

    def __init__(self, world: World) -> None:
        self.world = replace(world, scope=a_scope(f"story {next(_graphs)}"))
        self.told = Telling()
        self.revision = Revision(0)
        parts = world.parts
        index = Index(world.graph, world.memory.voice, parts.vectors, parts.embedder)
        self._publisher = Publisher(
            parts.stores,
            index,
            Lexicons(parts.stores.readings, parts.stores.graph, parts.vocabulary),
            parts.now,
        )
        self.merged: dict[EntityId, EntityId] = {}
        self._united: dict[str, str] = {}
        self._steps = 0
        self._episodes: dict[int, tuple[str, Said]] = {}

    async def run(self, steps: Iterable[Step]) -> "Story":
        for step in steps:
            await self.do(step)
        return self

    async def do(self, step: Step) -> None:
        """One revision, or none where there is nothing that the step could be about."""
        self._steps += 1
        match step:
            case Tell():
                await self._tell(f"{self._steps}", step.said)
            case Delete():
                if left := self.told.left():
                    await self.delete(left[step.at % len(left)])
            case Judgement():
                await self._judge(step)
            case Undo():
                await self._undo(step.at)
            case Unite():
                await self.unite(step.entity, step.into)
            case Part():
                if reads := sorted(self.told.reads[self.revision]):
                    await self.part(reads[step.at % len(reads)])

    async def again(self, position: int) -> None:
        """The same telling once more, as a client that heard no answer sends it."""
        if position in self._episodes:
            await self._assert(*self._episodes[position])

    async def _tell(self, name: str, what: Said) -> None:
        number = len(self._episodes)
        self._episodes[number] = (name, what)
        answer = await self._assert(name, what)
        self.told.ids[fact_of(what.of)] = answer.statement_ids[0]
        self._published(answer.revision)
        self.told.kept.append(Kept(what, number, self.revision))

    async def _assert(self, name: str, what: Said) -> pb.AssertResponse:
        triple = ("Mara", *fact_of(what.of))
        times: dict[str, int | None]
        match what:
            case Claim():
                kind, times = values.FACT_KIND_CLAIM, {"start": what.start, "end": what.end}
                times["seen"] = what.seen
            case End():
                kind, times = values.FACT_KIND_END, {"end": what.at}
            case Denial():
                kind, times = values.FACT_KIND_DENIAL, {"start": what.start, "end": what.until}
        attested = instant(what.attested)
        episode = await self.world.episode(name, attested)
        dated = {key: None if at is None else instant(at) for key, at in times.items()}
        return await self.world.tell(name, said(kind, triple, attested, episode, **dated))

    async def delete(self, number: int) -> None:
        """As the gateway does: the text, then what it said. A verdict nobody gave goes with all support."""
        id = EpisodeId(f"episode-{self._episodes[number][0]}")
        await self.world.memory.text.delete_episode(self.world.scope, id, Instant(1))
        asked = pb.RevokeRequest(commit_id=f"delete {number}", episode_id=id, actor="user")
        answer = await self.world.resolver.revoke(self.world.scope, asked)
        self._published(answer.revision)
        gone = [kept for kept in self.told.kept if kept.episode == number and kept.until is None]
        for kept in gone:
            kept.until = self.revision
        for kept in self.told.kept:
            if kept.until is None and isinstance(kept.what, Judged) and kept.what.judge is not Judge.USER:
                lost = [fact for fact in kept.what[:2] if not self.told.supported(fact)]
                if any(one.supports(fact) for one in gone for fact in lost):
                    kept.until = self.revision

    async def _judge(self, step: Judgement) -> None:
        what = step.judged
        if not (self.told.supported(what.left) and self.told.supported(what.right)):
            return
        left, right = sorted(StatementId(self.told.ids[fact]) for fact in (what.left, what.right))
        id = RecordId(derive_id(self.world.scope, "verdict", self._steps))
        draft = Draft(Revision(0))
        draft.verdicts[id] = Verdict(id, left, right, what.kind, what.judge, instant(what.attested))
        await self._publish(draft)
        self.told.kept.append(Kept(what, None, self.revision, verdict=id))

    async def _undo(self, at: int) -> None:
        if not (undoable := self.undoable()):
            return
        kept = undoable[at % len(undoable)]
        record = await self._record(kept)
        await self._publish(Draft(Revision(0), revocations={record.record: record}))
        kept.until = self.revision

    async def unite(self, entity: str, into: str) -> bool:
        """Whether it was done: both must be known, and `entity` must read as itself."""
        root = self.told.reads[self.revision].get(into, into)
        known = self.told.supported(fact_of(entity)) and self.told.supported(fact_of(root))
        if not known or entity in self._united or root == entity:
            return False
        self._united[entity] = root
        asked = entities_pb.MergeRequest(
            commit_id=f"{self._steps} unite",
            into_id=await self._entity(root),
            entity_ids=[await self._entity(entity)],
            actor="user",
        )
        self._published((await self.world.resolver.merge(self.world.scope, asked)).revision)
        await self._read_as()
        return True

    async def part(self, entity: str) -> None:
        """What reads as another, or was merged into one that does, reads as itself again."""
        if not self.told.supported(fact_of(entity)):
            return
        del self._united[entity]
        asked = entities_pb.SplitRequest(
            commit_id=f"{self._steps} part", entity_id=await self._entity(entity), actor="user"
        )
        self._published((await self.world.resolver.split(self.world.scope, asked)).revision)
        await self._read_as()

    async def _read_as(self) -> None:
        reads: dict[str, str] = {}
        for entity in self._united:
            root = entity
            while root in self._united:
                root = self._united[root]
            reads[entity] = root
        self.told.reads[self.revision] = reads
        self.merged = {await self._entity(one): await self._entity(other) for one, other in reads.items()}

    async def _entity(self, target: str) -> EntityId:
        (statement,) = (
            await self.world.graph.records(self.world.scope, [StatementId(self.told.ids[fact_of(target)])])
        ).statements
        assert isinstance(statement.object, str)
        return statement.object

    def undoable(self) -> list[Kept]:
        return [kept for kept in self.told.kept if kept.until is None and not isinstance(kept.what, Claim)]

    async def derive_again(self) -> None:
        """A revision that says nothing."""
        self._steps += 1
        await self._publish(Draft(Revision(0), again={StatementId(id) for id in self.told.ids.values()}))

    async def _record(self, kept: Kept) -> Revocation:
        if isinstance(kept.what, (Claim, End, Denial)):
            episode = EpisodeId(f"episode-{self._episodes[kept.episode or 0][0]}")
            records = await self.world.graph.of_episode(self.world.scope, episode)
            told: list[Record] = [*records.ends, *records.denials]
            return Revocation(told[0].id, told[0].statement)
        left = min(self.told.ids[fact] for fact in (kept.what.left, kept.what.right))
        return Revocation(RecordId(kept.verdict), StatementId(left))

    async def _publish(self, made: Draft) -> None:
        async def build(_known: Revision, revision: Revision) -> Draft:
            verdicts = {id: replace(one, recorded_at=revision) for id, one in made.verdicts.items()}
            return replace(made, revision=revision, verdicts=verdicts)

        published = await self._publisher.publish(self.world.scope, f"step {self._steps}", build)
        self._published(published.revision)

    def _published(self, revision: int) -> None:
        self.told.reads[revision] = self.told.reads[self.revision]
        self.revision = Revision(revision)

    async def rows(self, known: int | None = None, at: int | None = None) -> list[Row]:
        """What the store says was believed in a revision, also of one day."""
        axes = AsOf(Revision(self.revision if known is None else known), None if at is None else instant(at))
        where = StatementFilter(include_ended=True)
        listed = await self.world.graph.list_statements(self.world.scope, where, axes, _ALL)
        facts = {id: fact for fact, id in self.told.ids.items()}
        return in_order(
            [
                (facts[view.statement.id], day(span.valid_at), day(span.invalid_at))
                for view in listed.items
                for span in view.spans
            ]
        )

    async def records(self) -> Records:
        ids = [StatementId(id) for id in self.told.ids.values()]
        return await self.world.graph.records(self.world.scope, ids)

    async def entities(self) -> dict[EntityId, Entity]:
        nodes = {
            node
            for one in (await self.records()).statements
            for node in (one.predicate, one.object)
            if isinstance(node, str)
        }
        found = await self.world.graph.entities(self.world.scope, sorted(nodes))
        return {entity.id: entity for entity in found}
