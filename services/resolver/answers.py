"""Answers: what a revision changed, as the resolver's messages tell it."""

from collections.abc import Iterable, Mapping

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2
from services.domain.facts import NothingReason
from services.domain.ids import EpisodeId, PassageId
from services.domain.instants import Instant
from services.resolver.change import Outcome
from services.resolver.memo import Memo, Noise
from services.resolver.revoke import Withdrawn


def withdrawals_in(messages: Iterable[values_pb2.Withdrawal]) -> Mapping[PassageId, Withdrawn]:
    """By passage, what later versions leave out."""
    return {
        PassageId(one.passage_id): Withdrawn(
            PassageId(one.passage_id), Instant(one.at), EpisodeId(one.episode_id) or None
        )
        for one in messages
    }


def why_nothing(staged: pb.StoreFactsRequest, memo: Memo) -> str:
    """NO_DURABLE_FACT where all that was staged is session noise."""
    noise = memo.noise or Noise()
    left = len(staged.world) - len(noise.world) + len(staged.voice) - len(noise.voice)
    return "" if left or noise == Noise() else NothingReason.NO_DURABLE_FACT


def outcome_out(outcome: Outcome) -> pb.Outcome:
    """By id and count."""
    return pb.Outcome(
        entities_added=outcome.entities_added,
        statements_added=outcome.statements_added,
        statements_ended=outcome.statements_ended,
        statements_restored=outcome.statements_restored,
        voice_added=outcome.voice_added,
        voice_ended=outcome.voice_ended,
        claims=outcome.claims,
        ends=outcome.ends,
        denials=outcome.denials,
        statements_expired=outcome.statements_expired,
    )
