"""The readings of docs/adr/0013, one by one: coarse starts among rivals, and what a past told later ends."""

from datetime import date

import pytest

from services.domain.instants import Precision
from tests.unit.domain.given import Record, claim, day, denial, derived, end, orders, shown

DAY, WEEK, MONTH, YEAR = Precision.DAY, Precision.WEEK, Precision.MONTH, Precision.YEAR


def vienna_in_june(told: str, seen: str | None = None, ends: str | None = None) -> Record:
    return claim("v", "Vienna", "2025-06-01", ends, told, seen, MONTH, MONTH)


NARRATED = vienna_in_june("2026-01-10", seen="2025-06-01")
SINCE_MAY = claim("l", "Linz", "2025-05-01", None, "2025-06-02", None, MONTH)

COARSE_STARTS: dict[str, tuple[list[Record], list[list[str | None]]]] = {
    "seen in the month that the next move is told of": (
        [SINCE_MAY, NARRATED],
        [["Linz", "2025-05-01", "2025-06-02"], ["Vienna", "2025-06-02", None]],
    ),
    "the same, told of the present": (
        [SINCE_MAY, vienna_in_june("2025-07-02")],
        [["Linz", "2025-05-01", "2025-06-02"], ["Vienna", "2025-06-02", None]],
    ),
    "vouched for in a text of later": (
        [claim("l", "Linz", "2025-05-01", None, "2027-01-01", "2025-06-02"), NARRATED],
        [["Linz", "2025-05-01", "2025-06-02"], ["Vienna", "2025-06-02", None]],
    ),
    "seen at the month's very first instant": (
        [claim("l", "Linz", "2025-05-01", None, "2025-06-01"), vienna_in_june("2025-06-20")],
        [["Linz", "2025-05-01", "2025-06-01"], ["Vienna", "2025-06-01", None]],
    ),
    "mentioned in that month": (
        [claim("l", "Linz", None, None, "2025-06-12"), NARRATED],
        [["Linz", "2025-06-12", "2025-06-12"], ["Vienna", "2025-06-12", None]],
    ),
    "the day of a move": (
        [
            claim("l", "Linz", "2025-01-01", None, "2025-06-12"),
            claim("v", "Vienna", "2025-06-12", None, "2025-06-20", "2025-06-12", DAY),
        ],
        [["Linz", "2025-01-01", "2025-06-12"], ["Vienna", "2025-06-12", None]],
    ),
    "left in that month": (
        [
            claim("l", "Linz", "2025-05-01", None, "2025-05-02"),
            end("e", "Linz", "2025-06-10", "2025-06-15"),
            vienna_in_june("2025-07-02"),
        ],
        [["Linz", "2025-05-01", "2025-06-10"], ["Vienna", "2025-06-10", None]],
    ),
    "left in that month, begun nobody knows when": (
        [end("e", "Linz", "2025-06-10", "2025-06-15"), NARRATED],
        [["Linz", None, "2025-06-10"], ["Vienna", "2025-06-10", None]],
    ),
    "begun in that month, and seen before the other": (
        [claim("l", "Linz", "2025-06-10", None, "2025-06-25"), vienna_in_june("2025-07-02")],
        [["Linz", "2025-06-10", "2025-06-25"], ["Vienna", "2025-06-25", None]],
    ),
    "begun on a day of that month, told as news": (
        [
            claim("l", "Linz", "2025-06-10", None, "2025-06-25", "2025-06-10", DAY),
            vienna_in_june("2025-07-02"),
        ],
        [["Linz", "2025-06-10", "2025-06-11"], ["Vienna", "2025-06-11", None]],
    ),
    "begun in a month of that year": (
        [
            claim("l", "Linz", "2025-06-01", None, "2025-06-25", "2025-06-01", MONTH),
            claim("v", "Vienna", "2025-01-01", None, "2026-02-01", None, YEAR),
        ],
        [["Linz", "2025-06-01", "2025-07-01"], ["Vienna", "2025-07-01", None]],
    ),
    "begun on the last day of that month": (
        [
            claim("l", "Linz", "2025-06-30", None, "2025-06-30", None, DAY),
            vienna_in_june("2025-07-02"),
        ],
        [["Linz", "2025-06-30", "2025-06-30"], ["Vienna", "2025-06-30", None]],
    ),
    "begun in that month, where nobody says which came first": (
        [claim("l", "Linz", "2025-06-10", None, "2025-06-25"), NARRATED],
        [["Vienna", "2025-06-01", "2025-06-10"], ["Linz", "2025-06-10", None]],
    ),
    "seen there before the other was": (
        [claim("l", "Linz", "2025-06-10", None, "2025-06-25"), vienna_in_june("2025-06-05")],
        [["Vienna", "2025-06-01", "2025-06-10"], ["Linz", "2025-06-10", None]],
    ),
    "said to live there before the other was": (
        [
            claim("l", "Linz", None, None, "2025-06-20"),
            claim("m", "Vienna", None, None, "2025-06-15"),
            NARRATED,
        ],
        [["Vienna", "2025-06-01", "2025-06-20"], ["Linz", "2025-06-20", None]],
    ),
    "the same month said later is a correction": (
        [
            claim("l", "Linz", "2025-06-01", None, "2025-06-05", None, MONTH),
            vienna_in_june("2025-07-02"),
        ],
        [["Vienna", "2025-06-01", None]],
    ),
    "a stay within the month is left as it is": (
        [SINCE_MAY, vienna_in_june("2025-07-02", ends="2025-06-01")],
        [["Linz", "2025-05-01", "2025-06-01"], ["Vienna", "2025-06-01", "2025-07-01"]],
    ),
    "a bounded stay of that month holds by itself": (
        [
            claim("l", "Linz", "2025-06-05", "2025-06-10", "2025-06-15"),
            vienna_in_june("2025-07-02"),
        ],
        [
            ["Vienna", "2025-06-01", "2025-06-05"],
            ["Linz", "2025-06-05", "2025-06-10"],
            ["Vienna", "2025-06-10", None],
        ],
    ),
    "seen, but it was denied": (
        [SINCE_MAY, denial("d", "Linz", None, None, "2025-08-01"), NARRATED],
        [["Vienna", "2025-06-01", None]],
    ),
    "mentioned, but that was denied": (
        [
            claim("l", "Linz", None, None, "2025-06-12"),
            denial("d", "Linz", "2025-06-12", "2025-06-13", "2025-08-01"),
            vienna_in_june("2025-07-02"),
        ],
        [["Vienna", "2025-06-01", None]],
    ),
    "all that name one month begin together": (
        [
            SINCE_MAY,
            claim("w", "Vienna", "2025-06-01", None, "2025-06-20", None, MONTH),
            claim("m", "Linz", None, None, "2025-06-28"),
            NARRATED,
        ],
        [
            ["Linz", "2025-05-01", "2025-06-02"],
            ["Vienna", "2025-06-02", "2025-06-28"],
            ["Linz", "2025-06-28", None],
        ],
    ),
    "a coarser word follows the finer": (
        [SINCE_MAY, NARRATED, claim("y", "Vienna", "2025-01-01", None, "2026-02-01", None, YEAR)],
        [["Linz", "2025-05-01", "2025-06-02"], ["Vienna", "2025-06-02", None]],
    ),
    "three moves told by the month, each mentioned in the next": (
        [
            claim("l", "Linz", "2025-05-01", None, "2025-06-02", "2025-06-02", MONTH),
            claim("v", "Vienna", "2025-06-01", None, "2025-07-05", "2025-07-05", MONTH),
            claim("g", "Graz", "2025-07-01", None, "2026-01-01", "2025-07-01", MONTH),
        ],
        [
            ["Linz", "2025-05-01", "2025-06-02"],
            ["Vienna", "2025-06-02", "2025-07-05"],
            ["Graz", "2025-07-05", None],
        ],
    ),
    "a plan for the month": (
        [vienna_in_june("2025-04-01"), claim("l", "Linz", None, None, "2025-06-03")],
        [["Linz", "2025-06-03", "2025-06-03"], ["Vienna", "2025-06-03", None]],
    ),
}

PAST_TOLD_LATER: dict[str, tuple[list[Record], list[list[str | None]]]] = {
    "a stay told whole ends no mention after it": (
        [
            claim("m", "Paris", None, None, "2024-06-01"),
            claim("w", "Paris", "2010-01-01", "2012-01-01", "2024-07-01"),
        ],
        [["Paris", "2010-01-01", "2012-01-01"], ["Paris", "2024-06-01", None]],
    ),
    "nor one between others": (
        [
            claim("n", "Paris", None, None, "2011-06-01"),
            claim("m", "Paris", None, None, "2024-06-01"),
            claim("w", "Paris", "2010-01-01", "2012-01-01", "2024-07-01"),
            claim("r", "Rome", "2015-01-01", "2017-01-01", "2024-07-01"),
        ],
        [
            ["Paris", "2010-01-01", "2012-01-01"],
            ["Rome", "2015-01-01", "2017-01-01"],
            ["Paris", "2024-06-01", None],
        ],
    ),
    "an end told again is no news": (
        [
            claim("s", "Paris", "2010-01-01", None, "2010-02-01"),
            end("e", "Paris", "2012-01-01", "2012-02-01"),
            claim("m", "Paris", None, None, "2024-06-01"),
            end("again", "Paris", "2012-01-01", "2025-07-01"),
        ],
        [["Paris", "2010-01-01", "2012-01-01"], ["Paris", "2024-06-01", None]],
    ),
    "an end told again, of a stay begun nobody knows when": (
        [
            end("e", "Paris", "2012-01-01", "2012-02-01"),
            claim("m", "Paris", None, None, "2024-06-01"),
            end("again", "Paris", "2012-01-01", "2025-07-01"),
        ],
        [["Paris", None, "2012-01-01"], ["Paris", "2024-06-01", None]],
    ),
    "a stay told whole again is no news": (
        [
            claim("s", "Paris", "2010-01-01", None, "2010-02-01"),
            end("e", "Paris", "2012-02-01", "2012-03-01"),
            claim("m", "Paris", None, None, "2024-06-01"),
            claim("w", "Paris", "2010-01-01", "2012-01-01", "2025-07-01"),
        ],
        [["Paris", "2010-01-01", "2012-01-01"], ["Paris", "2024-06-01", None]],
    ),
    "a whole stay closes what was known to be open": (
        [
            claim("s", "Google", "2019-01-01", None, "2020-02-01"),
            claim("m", "Google", None, None, "2024-06-01"),
            claim("w", "Google", "2019-01-01", "2024-05-01", "2024-07-01"),
        ],
        [["Google", "2019-01-01", "2024-05-01"]],
    ),
    "an end told as news ends a mention": (
        [
            claim("s", "Google", "2022-01-01", None, "2022-02-01"),
            claim("m", "Google", None, None, "2024-06-01"),
            end("e", "Google", "2024-05-01", "2024-06-10"),
            claim("w", "Google", "2022-01-01", "2024-05-01", "2025-01-01"),
        ],
        [["Google", "2022-01-01", "2024-05-01"]],
    ),
    "so does a corrected end": (
        [
            claim("s", "Google", "2022-01-01", None, "2022-02-01"),
            end("e", "Google", "2025-05-01", "2025-05-03"),
            claim("m", "Google", None, None, "2025-05-20"),
            end("sorry", "Google", "2025-05-10", "2025-06-01"),
        ],
        [["Google", "2022-01-01", "2025-05-10"]],
    ),
    "a past of which the end alone is told, as news": (
        [
            claim("m", "Paris", None, None, "2024-06-01"),
            claim("w", "Paris", None, "2024-05-01", "2024-07-01"),
        ],
        [["Paris", None, "2024-05-01"]],
    ),
    "an end at the very instant of a mention": (
        [
            claim("m", "Paris", None, None, "2024-06-01"),
            claim("w", "Paris", "2020-01-01", "2024-06-01", "2024-07-01"),
        ],
        [["Paris", "2020-01-01", "2024-06-01"]],
    ),
}


def expected(rows: list[list[str | None]]) -> list[list[object]]:
    return [
        [of, *(None if at is None else date.fromisoformat(at) for at in borders)] for of, *borders in rows
    ]


@pytest.mark.parametrize("name", COARSE_STARTS)
def test_coarse_starts(name: str) -> None:
    records, rows = COARSE_STARTS[name]
    for order in orders(records):
        assert shown(derived(order)) == expected(rows)


@pytest.mark.parametrize("name", PAST_TOLD_LATER)
def test_past_told_later(name: str) -> None:
    records, rows = PAST_TOLD_LATER[name]
    for order in orders(records):
        assert shown(derived(order)) == expected(rows)


def test_a_coarse_start_that_moved_is_known_no_finer() -> None:
    linz, vienna = derived([SINCE_MAY, NARRATED])
    assert linz.invalid_at == vienna.valid_at == day("2025-06-02") + 1, "the instant after it was seen"
    assert (linz.end_precision, vienna.start_precision) == (MONTH, MONTH)
    assert (linz.ended_by, vienna.started_by) == ("v", "v")


def test_who_do_not_contradict_do_not_move_each_other() -> None:
    spans = derived([SINCE_MAY, NARRATED], single=False)
    assert shown(spans) == expected([["Linz", "2025-05-01", None], ["Vienna", "2025-06-01", None]])


@pytest.mark.parametrize("others", [1, 20])
def test_what_was_seen_before_is_found_behind_all_that_began_in_the_month(others: int) -> None:
    towns = [
        claim(f"t{at}", f"Town {at}", f"2025-06-{3 + at:02}", None, f"2025-06-{3 + at:02}")
        for at in range(others)
    ]
    (vienna,) = [
        span
        for span in derived([SINCE_MAY, NARRATED, *towns])
        if span.statement == derived([NARRATED])[0].statement
    ]
    assert vienna.valid_at == day("2025-06-02") + 1
