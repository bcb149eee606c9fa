"""A story told to a real graph, step by step, and the account of it beside."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeVar

from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from palimpsest.internal.v1 import resolver_judging_pb2 as judging_pb
from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EndStated, ValidationFailed
from services.domain.graph import Entity, Span
from services.domain.ids import (
    EntityId,
    EpisodeId,
    JobId,
    PassageId,
    RecordId,
    Revision,
    StatementId,
    derive_id,
)
from services.domain.instants import Instant
from services.domain.memory import Episode, EpisodeKind, Passage, Role
from services.domain.records import Claim as ClaimRecord
from services.domain.records import Denial as DenialRecord
from services.domain.records import End as EndRecord
from services.domain.records import Judge, Verdict, VerdictKind
from services.resolver.change import Draft
from services.resolver.index import Index
from services.resolver.publish import Publisher
from services.stores.graph.port import AsOf, Records, StatementFilter
from services.stores.memory.lexicons import Lexicons
from services.stores.paging import Page
from tests.builders import a_scope, on
from tests.integration.resolving import World, said
from tests.laws.account import Account, Kept, Row, in_order
from tests.laws.competing import SINGLE, Fact, Judged
from tests.laws.oracle import Claim, Denial, End
from tests.laws.stories import Delete, Judgement, Pair, Part, Restore, Said, Step, Take, Tell, Unite, fact_of

T = TypeVar("T")
Record = ClaimRecord | EndRecord | DenialRecord

_FIRST = on("2024-01-01")
_DAY = 24 * 3_600_000_000
_NOW = 20
"""The day on which the first step is done: users speak after all that is told."""
_ALL = Page(1000)
_graphs = count()


def instant(day: int) -> Instant:
    return Instant(_FIRST + day * _DAY)


def maybe(day: int | None) -> Instant | None:
    return None if day is None else instant(day)


def day(at: Instant | None) -> int | None:
    return None if at is None else (at - _FIRST) // _DAY


class Story:
    """A new graph in which steps are done one by one, and the account of it beside."""

    def __init__(self, world: World) -> None:
        self.world = replace(world, scope=a_scope(f"story {next(_graphs)}"))
        self.told = Account()
        self.revision = Revision(0)
        self.merged: dict[EntityId, EntityId] = {}
        self._objects: dict[Fact, EntityId] = {}
        self._united: dict[str, str] = {}
        self._steps = 0
        self._commits: list[pb.AssertRequest] = []
        self._episodes: list[EpisodeId] = []

    @property
    def now(self) -> int:
        """The day of the step that is done."""
        return _NOW + self._steps

    async def tell(self, tellings: Sequence[Tell]) -> list[int]:
        """All in one commit, each as an episode of its own; answers their numbers."""
        self._step()
        numbers = range(len(self._episodes), len(self._episodes) + len(tellings))
        episodes = [_episode(number, one.said) for number, one in zip(numbers, tellings, strict=True)]
        self._episodes += [one.id for one in episodes]
        passages = [_passage(episode) for episode in episodes]
        await self.world.memory.text.save(self.world.scope, episodes, passages, None)
        assertions = [_assertion(one.said, ep) for one, ep in zip(tellings, episodes, strict=True)]
        request = pb.AssertRequest(commit_id=f"{self._steps}", assertions=assertions)
        self._commits.append(request)
        answer = await self.world.tell(request.commit_id, *request.assertions)
        self._published(answer.revision)
        for number, one, id in zip(numbers, tellings, answer.statement_ids, strict=True):
            self.told.ids[fact_of(one.said.of)] = id
            self.told.kept.append(Kept(one.said, number, self.revision))
        return list(numbers)

    async def again(self, place: int) -> None:
        """A telling once more, as a client that heard no answer sends it."""
        request = self._commits[place % len(self._commits)]
        await self.world.tell(request.commit_id, *request.assertions)

    async def do(self, step: Step) -> bool:
        """One revision; False where there is nothing that the step could be about, or it is refused."""
        match step:
            case Delete():
                number = _one_of(self.told.left(), step.at)
                return number is not None and await self.delete(number)
            case Judgement():
                return await self.judge(step)
            case Take():
                fact = _one_of(self.told.known(), step.of)
                return fact is not None and await self.take(step, fact)
            case Restore():
                fact = _one_of(self.told.known(), step.of)
                return fact is not None and await self.restore(fact)
            case Unite():
                return await self.unite(step)
            case Part():
                entity = _one_of(sorted(self._united), step.at)
                return entity is not None and await self.part(entity)

    async def delete(self, number: int) -> bool:
        """As the gateway does: the text, then what it said."""
        self._step()
        id = self._episodes[number]
        await self.world.memory.text.delete_episode(self.world.scope, id, Instant(1))
        asked = pb.RevokeRequest(commit_id=f"delete {number}", episode_id=id, actor="user")
        self._published((await self.world.resolver.revoke(self.world.scope, asked)).revision)
        self.told.deleted(number, self.revision)
        return True

    def pair(self, places: Pair) -> tuple[Fact, Fact] | None:
        """Two known facts, if there are two."""
        known = self.told.known()
        if len(known) < 2:
            return None
        one = known.pop(places[0] % len(known))
        return one, known[places[1] % len(known)]

    async def judge(self, step: Judgement) -> bool:
        pair = self.pair(step.pair)
        if pair is None:
            return False
        self._step()
        if step.judge is Judge.USER:
            return await self._judge_by_hand(pair, step.kind)
        scope, ids = self.world.scope, sorted(StatementId(self.told.ids[fact]) for fact in pair)
        id = RecordId(derive_id(scope, "verdict", self._steps))
        verdict = Verdict(id, ids[0], ids[1], step.kind, step.judge, instant(step.attested))

        async def build(_known: Revision, revision: Revision) -> Draft:
            return Draft(revision, verdicts={id: replace(verdict, recorded_at=revision)})

        self._published((await self._publisher().publish(scope, f"verdict {self._steps}", build)).revision)
        self._keep(Judged(*pair, step.kind, step.judge, step.attested), id)
        return True

    async def judge_back(self, step: Judgement) -> None:
        """The kind that two facts are of where nobody judged them."""
        pair = self.pair(step.pair)
        assert pair is not None, "it was judged"
        self._step()
        rivals = all(fact.predicate == SINGLE for fact in pair)
        await self._judge_by_hand(pair, VerdictKind.CONTRADICTS if rivals else VerdictKind.COMPATIBLE)

    async def _judge_by_hand(self, pair: tuple[Fact, Fact], kind: VerdictKind) -> bool:
        one, other = (self.told.ids[fact] for fact in pair)
        asked = judging_pb.JudgePairRequest(
            asker=self._asker(), statement_id=one, other_statement_id=other, kind=kind.name
        )
        answer = await self.world.resolver.judge_pair(self.world.scope, asked)
        self._published(answer.revision)
        self._outweigh(pair)
        self._keep(Judged(*pair, kind, Judge.USER, self.now), answer.verdict_id)
        return True

    async def take(self, step: Take, fact: Fact) -> bool:
        """What a user takes from a fact; refused where it ends before it began."""
        self._step()
        id, asker, scope, hand = self.told.ids[fact], self._asker(), self.world.scope, self.world.resolver
        if step.start is None:
            end = judging_pb.EndStatementRequest(asker=asker, statement_id=id, at=instant(step.until))
            try:
                ended = await hand.end_statement(scope, end)
            except ValidationFailed:
                return False
            self._published(ended.revision)
            self._keep(End(fact.target, step.until, self.now), ended.record_id)
            return True
        start, until = instant(step.start), instant(step.until)
        denial = judging_pb.DenyStatementRequest(asker=asker, statement_id=id, start=start, until=until)
        denied = await hand.deny_statement(scope, denial)
        self._published(denied.revision)
        self._keep(Denial(fact.target, step.start, step.until, self.now), denied.record_id)
        return True

    async def restore(self, fact: Fact) -> bool:
        """False where its own source states the end, or it holds as it is."""
        self._step()
        asked = judging_pb.RestoreStatementRequest(asker=self._asker(), statement_id=self.told.ids[fact])
        try:
            answer = await self.world.resolver.restore_statement(self.world.scope, asked)
        except EndStated:
            return False
        if answer.revision == self.revision:
            return False
        self._published(answer.revision)
        await self._note(set(answer.revoked_record_ids), set(answer.verdict_ids))
        return True

    async def _note(self, revoked: set[str], judged: set[str]) -> None:
        """What a user's call undid, by what the store has of it: ends and denials, and pairs exempted."""
        records = await self.records()
        facts = {id: fact for fact, id in self.told.ids.items()}
        stopped: list[EndRecord | DenialRecord] = [*records.ends, *records.denials]
        for one in stopped:
            if one.id in revoked:
                assert one.revoked_at == self.revision
                (kept,) = [kept for kept in self.told.kept if self._is(kept, one)]
                kept.until = self.revision
        for verdict in records.verdicts:
            if verdict.id in judged:
                assert verdict.kind is VerdictKind.COMPATIBLE
                pair = facts[verdict.left], facts[verdict.right]
                self._outweigh(pair)
                self._keep(Judged(*pair, verdict.kind, Judge.USER, self.now), verdict.id)

    def _is(self, kept: Kept, record: EndRecord | DenialRecord) -> bool:
        if kept.until is not None or isinstance(kept.what, (Judged, Claim)):
            return False
        if kept.episode is None:
            return kept.id == record.id
        return self._episodes[kept.episode] == record.source.episode

    def _outweigh(self, pair: tuple[Fact, Fact]) -> None:
        """A user's last word on a pair takes the place of his earlier ones."""
        for kept in self.told.kept:
            what = kept.what
            if isinstance(what, Judged) and what.judge is Judge.USER and {what.left, what.right} == {*pair}:
                kept.until = self.revision if kept.until is None else kept.until

    async def unite(self, step: Unite) -> bool:
        """The first of the pair must read as itself."""
        pair = self.pair(step.pair)
        if pair is None:
            return False
        entity, into = (fact.target for fact in pair)
        root = self.told.reads[self.revision].get(into, into)
        if entity in self._united or root == entity or not self.told.supported(fact_of(root)):
            return False
        self._step()
        self._united[entity] = root
        asked = entities_pb.MergeRequest(
            commit_id=f"unite {self._steps}",
            into_id=await self._object(root),
            entity_ids=[await self._object(entity)],
            actor="user",
        )
        self._published((await self.world.resolver.merge(self.world.scope, asked)).revision)
        await self._read_as()
        return True

    async def part(self, entity: str) -> bool:
        """What reads as another, or was merged into one that does, reads as itself again."""
        if not self.told.supported(fact_of(entity)):
            return False
        self._step()
        del self._united[entity]
        asked = entities_pb.SplitRequest(
            commit_id=f"part {self._steps}", entity_id=await self._object(entity), actor="user"
        )
        self._published((await self.world.resolver.split(self.world.scope, asked)).revision)
        await self._read_as()
        return True

    async def _read_as(self) -> None:
        reads: dict[str, str] = {}
        for entity in self._united:
            root = entity
            while root in self._united:
                root = self._united[root]
            reads[entity] = root
        self.told.reads[self.revision] = reads
        self.merged = {await self._object(one): await self._object(other) for one, other in reads.items()}

    async def _object(self, target: str) -> EntityId:
        fact = fact_of(target)
        if fact not in self._objects:
            by_id = {one.id: one for one in (await self.records()).statements}
            for each, id in self.told.ids.items():
                found = by_id[StatementId(id)].object
                assert isinstance(found, str)
                self._objects[each] = found
        return self._objects[fact]

    def _step(self) -> None:
        self._steps += 1
        self.world.clock.at = instant(self.now)

    def _asker(self) -> judging_pb.Asker:
        return judging_pb.Asker(commit_id=f"{self._steps}", actor="user")

    def _publisher(self) -> Publisher:
        parts = self.world.parts
        index = Index(
            self.world.graph,
            self.world.memory.voice,
            self.world.memory.archive,
            parts.vectors,
            parts.embedder,
        )
        lexicons = Lexicons(parts.stores.readings, parts.stores.graph, parts.vocabulary)
        return Publisher(parts.stores, index, lexicons, parts.now)

    def _keep(self, what: Said | Judged, id: str) -> None:
        self.told.kept.append(Kept(what, None, self.revision, id=id))

    def _published(self, revision: int) -> None:
        self.told.reads[revision] = self.told.reads[self.revision]
        self.revision = Revision(revision)

    async def held(self, known: int | None = None, at: int | None = None) -> list[Row]:
        """What the store says was believed in a revision, also of one day; in order."""
        axes = AsOf(Revision(self.revision if known is None else known), maybe(at))
        where = StatementFilter(include_ended=True)
        listed = await self.world.graph.list_statements(self.world.scope, where, axes, _ALL)
        return self.as_held([span for view in listed.items for span in view.spans])

    def as_held(self, spans: Iterable[Span]) -> list[Row]:
        facts = {id: fact for fact, id in self.told.ids.items()}
        return in_order(
            [
                (facts[span.statement], day(span.valid_at), day(span.invalid_at), span.contested)
                for span in spans
            ]
        )

    async def records(self) -> Records:
        ids = [StatementId(id) for id in self.told.ids.values()]
        return await self.world.graph.records(self.world.scope, ids)

    async def entities(self, found: Records) -> dict[EntityId, Entity]:
        nodes = {
            node for one in found.statements for node in (one.predicate, one.object) if isinstance(node, str)
        }
        return {each.id: each for each in await self.world.graph.entities(self.world.scope, sorted(nodes))}


def _one_of(items: Sequence[T], place: int) -> T | None:
    return items[place % len(items)] if items else None


def _episode(number: int, what: Said) -> Episode:
    at = instant(what.attested)
    return Episode(EpisodeId(f"episode-{number}"), JobId("job"), EpisodeKind.CONVERSATION, "x", at, at, 1)


def _passage(episode: Episode) -> Passage:
    id = PassageId(f"{episode.id.replace('episode', 'passage', 1)}-0")
    return Passage(id, episode.id, 0, "x", 0, 1, episode.id, "", Role.USER)


def _assertion(what: Said, episode: Episode) -> pb.Assertion:
    times: dict[str, int | None]
    match what:
        case Claim():
            kind, times = values.FACT_KIND_CLAIM, {"start": what.start, "end": what.end, "seen": what.seen}
        case End():
            kind, times = values.FACT_KIND_END, {"end": what.at}
        case Denial():
            kind, times = values.FACT_KIND_DENIAL, {"start": what.start, "end": what.until}
    dated = {name: maybe(at) for name, at in times.items()}
    return said(kind, ("Mara", *fact_of(what.of)), instant(what.attested), episode, **dated)
