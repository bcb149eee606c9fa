"""What a newer version leaves out ends a statement when nothing else that claimed it by then stands."""

from dataclasses import replace

import pytest

from services.domain.ids import EpisodeId, PassageId, RecordId, StatementId
from services.domain.instants import Instant
from services.domain.records import Claim, End, EndReason, Source
from services.domain.withdrawn import counting_ends

S = StatementId("s")


def claim(passage: str, at: int) -> Claim:
    time = Instant(at)
    return Claim(
        RecordId(f"c-{passage}"), S, None, None, time, time, Source(EpisodeId("e"), PassageId(passage))
    )


def left_out(passage: str, at: int) -> End:
    source = Source(EpisodeId("v"), PassageId(passage))
    id = RecordId(f"w-{passage}-{at}")
    return End(id, S, Instant(at), Instant(at), source, reason=EndReason.SOURCE_REMOVED)


@pytest.mark.parametrize(
    ("claims", "ends", "counting"),
    [
        ([claim("p", 1)], [left_out("p", 5)], ["w-p-5"]),
        ([claim("p", 1), claim("q", 3)], [left_out("p", 5)], []),
        ([claim("p", 1), claim("q", 7)], [left_out("p", 5)], ["w-p-5"]),
        ([claim("p", 1), claim("q", 3)], [left_out("p", 5), left_out("q", 6)], ["w-q-6"]),
        ([claim("p", 1), claim("q", 7)], [left_out("p", 5), left_out("q", 9)], ["w-p-5", "w-q-9"]),
        ([claim("p", 6)], [left_out("p", 5)], []),
        ([], [left_out("p", 5)], []),
    ],
    ids=[
        "all is withdrawn",
        "another passage says so",
        "another says so later",
        "the other goes later",
        "said again, withdrawn again",
        "withdrawn before it was said",
        "nothing was said",
    ],
)
def test_a_withdrawal_counts_when_nothing_else_stands(
    claims: list[Claim], ends: list[End], counting: list[str]
) -> None:
    assert [end.id for end in counting_ends(claims, ends)] == counting
    assert [end.id for end in counting_ends(claims, ends[::-1])] == counting[::-1]


def test_other_ends_are_left_alone() -> None:
    stated = replace(left_out("p", 5), id=RecordId("stated"), reason=EndReason.STATED)
    without_passage = replace(left_out("p", 5), id=RecordId("whole"), source=Source(EpisodeId("v")))
    ends = [stated, without_passage]
    assert counting_ends([claim("q", 1)], ends) == ends
    assert counting_ends([claim("q", 1)], [*ends, left_out("p", 6)]) == ends
