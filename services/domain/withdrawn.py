"""Withdrawn: what a document's newer version leaves out, and when that ends a statement.

A version *withdraws* passages of earlier ones: for each, an end of reason SOURCE_REMOVED names the passage.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from services.domain.ids import PassageId, StatementId
from services.domain.instants import Instant
from services.domain.records import Claim, End, EndReason


def withdraws(end: End) -> bool:
    """True for an end that takes one passage back, rather than saying that something stopped."""
    return end.reason is EndReason.SOURCE_REMOVED and end.source.passage is not None


def counting_ends(claims: Iterable[Claim], ends: Sequence[End]) -> list[End]:
    """The ends without those withdrawals that leave other words standing.

    One counts when everything that claimed its statement by then was withdrawn by then. It is asked of the
    records, whenever they came: deleting what else supported a statement, or what withdrew it, puts it right.
    """
    taken = [end for end in ends if withdraws(end)]
    if not taken:
        return list(ends)
    gone: defaultdict[StatementId, dict[PassageId, Instant]] = defaultdict(dict)
    for end in taken:
        assert end.source.passage is not None
        known = gone[end.statement].get(end.source.passage, end.at)
        gone[end.statement][end.source.passage] = min(known, end.at)
    said: defaultdict[StatementId, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.statement in gone:
            said[claim.statement].append(claim)

    def counts(end: End) -> bool:
        if not withdraws(end):
            return True
        by_then = [claim for claim in said[end.statement] if claim.attested_at <= end.at]
        mine = gone[end.statement]
        return bool(by_then) and all(
            claim.source.passage in mine and mine[claim.source.passage] <= end.at for claim in by_then
        )

    return [end for end in ends if counts(end)]
