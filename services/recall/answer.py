"""Answer: what was found, as the internal API's messages."""

from collections.abc import Iterable, Sequence

from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.graph import Entity
from services.domain.voice import claims_at
from services.recall.asking import Asking
from services.recall.describe import Described
from services.recall.evidence import MAX_NAMES, EvidenceNames
from services.recall.fuse import Fused
from services.recall.messages import entity_out, passage_out, voice_out
from services.recall.pack import Packed
from services.recall.passages import PassageFound
from services.recall.ranking import FactFound
from services.recall.voices import VoiceFound
from services.recall.walking import path_out


class Messages:
    """Makes the messages of one answer; legs are told only where they were asked for."""

    def __init__(self, described: Described, names: EvidenceNames, packed: Packed, explain: bool) -> None:
        self._described = described
        self._names = names
        self._packed = packed
        self._explain = explain

    def facts(self, found: Iterable[FactFound]) -> list[pb.RecalledFact]:
        return [self._fact(fact) for fact in found]

    def passages(self, found: Iterable[PassageFound]) -> list[pb.RecalledPassage]:
        return [
            pb.RecalledPassage(
                passage=passage_out(one.passage, one.said.at),
                score=one.fused.score,
                evidence=self._names.of(one.passage.episode, one.passage.id, one.said.at),
                legs=self._legs(one.fused),
                in_context=one.passage.id in self._packed.keys,
                session_id=one.said.session or "",
                document_id=one.said.document or "",
            )
            for one in found
        ]

    def voice(self, found: Iterable[VoiceFound]) -> list[pb.RecalledVoice]:
        return [self._voice(one) for one in found]

    def _fact(self, fact: FactFound) -> pb.RecalledFact:
        id = fact.view.statement.id
        records = self._described.causes.evidence(id, self._described.known_at)
        # A path of one step is no path: the fact itself names the seed.
        walked = fact.reached is not None and len(fact.reached.path) > 1
        return pb.RecalledFact(
            statement=self._described.statement(fact.view),
            score=fact.fused.score,
            evidence=self._names.of_records(records),
            path=path_out(fact.reached) if walked and fact.reached else (),
            replaced=[self._described.statement(view) for view in fact.replaced],
            legs=self._legs(fact.fused),
            holds=fact.standing.holds,
            in_context=id in self._packed.keys,
        )

    def _voice(self, one: VoiceFound) -> pb.RecalledVoice:
        claims = claims_at(one.aspect, self._described.known_at)[:MAX_NAMES]
        names = [self._names.of(each.episode, each.passage, each.attested_at, each.quote) for each in claims]
        return pb.RecalledVoice(
            voice=voice_out(one.aspect, self._described.known_at),
            score=one.fused.score,
            evidence=list(dict.fromkeys(names)),
            legs=self._legs(one.fused),
            in_context=one.aspect.id in self._packed.keys,
            holds=one.standing.holds,
        )

    def _legs(self, fused: Fused) -> list[pb.LegRank]:
        if not self._explain:
            return []
        return [pb.LegRank(leg=one.leg, rank=one.rank, score=one.score) for one in fused.found]


def plan_out(asking: Asking, unmatched: Sequence[str]) -> pb.Plan:
    """What was read in the question, and what its hints name."""
    plan, entities = asking.plan, _each_once((*asking.plan.entities, *asking.hints))
    message = pb.Plan(
        entities=[entity_out(entity) for entity in entities],
        intent=plan.intent,
        unmatched_hints=unmatched,
        as_of=plan.as_of,
        graph_aspects=plan.cues.aspects,
        voice_aspects=plan.cues.voice,
    )
    if plan.period is not None:
        if plan.period.start is not None:
            message.range_start = plan.period.start
        if plan.period.end is not None:
            message.range_end = plan.period.end
    return message


def _each_once(entities: Iterable[Entity]) -> list[Entity]:
    return list({entity.id: entity for entity in entities}.values())
