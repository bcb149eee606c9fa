"""When a voice aspect holds, as known at a revision."""

from services.domain.ids import Revision
from services.domain.instants import Interval
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd


def _counts(record: VoiceClaim | VoiceEnd, known_at: Revision) -> bool:
    return record.recorded_at <= known_at and (record.revoked_at is None or known_at < record.revoked_at)


def claims_at(aspect: VoiceAspect, known_at: Revision) -> list[VoiceClaim]:
    """The claims that count, earliest attested first."""
    counting = [claim for claim in aspect.claims if _counts(claim, known_at)]
    return sorted(counting, key=lambda claim: (claim.attested_at, claim.id))


def known_from(aspect: VoiceAspect, known_at: Revision) -> Revision:
    """The revision that first recorded what still counts of it; `known_at` when no claim counts."""
    return min((claim.recorded_at for claim in claims_at(aspect, known_at)), default=known_at)


def held(aspect: VoiceAspect, known_at: Revision) -> Interval | None:
    """From its first claim to its first end that no claim follows; None when no claim counts.

    Said again after an end, it holds again: what ended it lies before its latest claim.
    """
    claims = claims_at(aspect, known_at)
    if not claims:
        return None
    end = ended_by(aspect, known_at)
    return Interval(claims[0].attested_at, None if end is None else end.at)


def ended_by(aspect: VoiceAspect, known_at: Revision) -> VoiceEnd | None:
    """The end that counts: the first that no claim follows, of several at one time the first recorded.

    A user's last word goes before what models say.
    """
    claims = claims_at(aspect, known_at)
    latest = max((claim.attested_at for claim in claims), default=None)
    ends = [end for end in aspect.ends if _counts(end, known_at) and (latest is None or end.at >= latest)]
    mine = [end for end in ends if of_user(end)]
    if mine:
        return max(mine, key=lambda end: (end.recorded_at, end.id))
    return min(ends, key=lambda end: (end.at, end.recorded_at, end.id), default=None)


def of_user(end: VoiceEnd) -> bool:
    """Whether a user made it by hand."""
    return end.by is None and end.episode is None
