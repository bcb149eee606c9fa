"""Voices: finds the user's own sentences, by vector and by words, that are held at the time asked about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.domain.ids import EpisodeId, VoiceId
from services.domain.instants import Instant, Interval
from services.domain.memory import VoiceAspect
from services.domain.voice import claims_at, held
from services.recall.asking import Asking, dense_leg
from services.recall.cues import Intent
from services.recall.fuse import Fused, Leg, fuse, ranked
from services.recall.hot.reads import Searches, VoiceReads
from services.recall.standing import Standing, stand
from services.stores.vectors.port import Collection, VectorFilter

WIDTH = 30
MAX_VOICE = 5
MAX_VOICE_ASKED = 20
"""Sentences in one answer, and in one to a question about preferences or with a filter of voice aspects."""
CUED = 0.15
"""What a sentence gains whose kind the question's words point to."""
ENDED_SHARE = 0.7
"""What a sentence that is held no more is worth beside one that is."""
LEAST = 0.35
"""A sentence below this score has too little to do with the question, unless voice is what is asked for."""


@dataclass(frozen=True, slots=True)
class VoiceFound:
    """A sentence that matters, when it is held and how that stands to the time asked about."""

    aspect: VoiceAspect
    interval: Interval
    fused: Fused
    standing: Standing

    @property
    def since(self) -> Instant:
        assert self.interval.start is not None, "it holds from its first claim"
        return self.interval.start


class Voices:
    """Searches the voice aspects of one graph."""

    def __init__(self, voice: VoiceReads, vectors: Searches) -> None:
        self._voice = voice
        self._vectors = vectors

    async def find(self, asking: Asking) -> list[VoiceFound]:
        """The sentences that matter, best first."""
        index = asking.texts_index
        legs = (
            []
            if index is None
            else [Leg("voice_lexical", index.voice.best(index.voice.scores(asking.terms), WIDTH))]
        )
        if asking.vector is not None:
            where = VectorFilter(aspects=asking.question.voice_kinds)
            dense = dense_leg(self._vectors, asking, "voice_dense", Collection.VOICE, WIDTH, where)
            near = await asking.care.of(dense, None)
            legs += [near] if near else []
        found = await asking.care.of(self._checked(asking, legs), {})
        wanted = bool(asking.question.voice_kinds) or asking.plan.intent is Intent.PREFERENCES
        least, most = (0.0, MAX_VOICE_ASKED) if wanted else (LEAST, MAX_VOICE)
        return [one for one in _ranked(asking, legs, found) if one.fused.score >= least][:most]

    async def _checked(
        self, asking: Asking, legs: Sequence[Leg]
    ) -> dict[VoiceId, tuple[VoiceAspect, Interval, Standing]]:
        ids = list(dict.fromkeys(VoiceId(id) for leg in legs for id, _ in leg.hits))
        kinds = asking.question.voice_kinds
        found: dict[VoiceId, tuple[VoiceAspect, Interval, Standing]] = {}
        for aspect in await self._voice.aspects(asking.scope, ids) if ids else ():
            interval = held(aspect, asking.known.at)
            if not aspect.text or interval is None or (kinds and aspect.kind not in kinds):
                continue
            if not asking.topics.keeps(_episodes(asking, aspect)):
                continue
            standing = stand([interval], asking.time)
            if standing is not None:
                found[aspect.id] = (aspect, interval, standing)
        return found


def _ranked(
    asking: Asking,
    legs: Sequence[Leg],
    found: Mapping[VoiceId, tuple[VoiceAspect, Interval, Standing]],
) -> list[VoiceFound]:
    fusion = fuse(legs, found)
    scores: dict[str, float] = {}
    for id, (aspect, _, standing) in found.items():
        score = fusion.scores[id] + (CUED if aspect.kind in asking.plan.cues.voice else 0.0)
        score += asking.topics.lift(_episodes(asking, aspect))
        if not standing.holds and not asking.plan.intent.looks_back:
            score *= ENDED_SHARE
        scores[id] = min(1.0, score)
    voices = {
        item.id: VoiceFound(aspect, interval, item, standing)
        for item, (aspect, interval, standing) in zip(
            fusion.items(found, scores), found.values(), strict=True
        )
    }
    order = ranked(
        scores,
        len(scores),
        newest=lambda id: voices[id].since,
        sources=lambda id: len(claims_at(voices[id].aspect, asking.known.at)),
    )
    return [voices[id] for id in order]


def _episodes(asking: Asking, aspect: VoiceAspect) -> list[EpisodeId]:
    return [claim.episode for claim in claims_at(aspect, asking.known.at)]
