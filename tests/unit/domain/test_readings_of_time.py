"""The readings of docs/adr/0005-time.md, one by one: brothers of the shared timelines, causes, precision."""

from dataclasses import replace
from datetime import date

import pytest

from services.domain.instants import Precision
from services.domain.kernel.rivals import Rivals, both_ways
from services.domain.timeline import timeline
from tests.unit.domain.given import Record, claim, denial, derived, end, orders, shown

MONTH, YEAR, DAY, WEEK = Precision.MONTH, Precision.YEAR, Precision.DAY, Precision.WEEK

BROTHERS: dict[str, tuple[list[Record], list[list[str | None]]]] = {
    "three stays told as ends alone": (
        [
            claim("a", "Paris", None, "2010-01-01", "2016-01-01"),
            claim("b", "Rome", None, "2013-01-01", "2016-01-01"),
            claim("c", "Paris", None, "2015-01-01", "2016-01-01"),
        ],
        [
            ["Paris", None, "2010-01-01"],
            ["Rome", "2010-01-01", "2013-01-01"],
            ["Paris", "2013-01-01", "2015-01-01"],
        ],
    ),
    "a later word on an end without start": (
        [
            end("a", "Google", "2025-05-10", "2025-06-01"),
            end("b", "Google", "2025-05-01", "2025-07-01"),
        ],
        [["Google", None, "2025-05-01"]],
    ),
    "an end without start after a rival": (
        [
            claim("a", "Meta", "2020-01-01", None, "2021-01-01"),
            end("b", "Google", "2025-05-01", "2025-06-01"),
        ],
        [["Meta", "2020-01-01", "2021-01-01"], ["Google", "2021-01-01", "2025-05-01"]],
    ),
    "a mention does not lose the known start": (
        [
            claim("a", "Google", "2022-01-01", None, "2022-01-02"),
            claim("b", "Google", None, None, "2024-06-01"),
            end("c", "Google", "2024-05-01", "2024-06-10"),
        ],
        [["Google", "2022-01-01", "2024-05-01"]],
    ),
    "a stale mention yields to what followed": (
        [
            claim("a", "Google", None, None, "2024-06-01"),
            claim("b", "Meta", "2024-05-10", None, "2024-05-12"),
            end("c", "Google", "2024-05-01", "2024-06-10"),
        ],
        [["Google", None, "2024-05-01"], ["Meta", "2024-05-10", None]],
    ),
    "the end was told before the beginning": (
        [
            end("a", "Acme", "2022-01-01", "2023-01-01"),
            claim("b", "Acme", "2020-01-01", None, "2026-01-01", seen="2020-01-01"),
        ],
        [["Acme", "2020-01-01", "2022-01-01"]],
    ),
    "seen since the end was told": (
        [
            end("a", "Acme", "2022-01-01", "2023-01-01"),
            claim("b", "Acme", "2020-01-01", None, "2026-01-01"),
        ],
        [["Acme", "2020-01-01", None]],
    ),
    "in a year": (
        [claim("a", "Acme", "2023-01-01", "2023-01-01", "2025-01-01", None, YEAR, YEAR)],
        [["Acme", "2023-01-01", "2024-01-01"]],
    ),
    "since a year is no stay of one year": (
        [claim("a", "Acme", "2023-06-15", None, "2025-01-01", None, YEAR)],
        [["Acme", "2023-01-01", None]],
    ),
    "a finer start of the same object": (
        [
            claim("a", "Acme", "2023-01-01", None, "2025-01-01", None, YEAR),
            claim("b", "Acme", "2023-03-01", None, "2025-02-01", None, MONTH),
            claim("c", "Acme", "2023-03-14", None, "2024-01-01", None, DAY),
        ],
        [["Acme", "2023-03-14", None]],
    ),
    "a mention is no finer start": (
        [
            claim("a", "Acme", "2023-01-01", None, "2025-01-01", None, YEAR),
            claim("b", "Acme", None, None, "2023-06-01"),
        ],
        [["Acme", "2023-01-01", None]],
    ),
    "a finer start after the stay's own end is of another stay": (
        [
            claim("a", "Acme", "2023-01-01", "2023-03-01", "2025-01-01", None, YEAR, DAY),
            claim("b", "Acme", "2023-09-01", None, "2025-01-01", None, DAY),
        ],
        [["Acme", "2023-01-01", "2023-03-01"], ["Acme", "2023-09-01", None]],
    ),
    "a coarse end before a second stay of that year": (
        [
            claim("a", "Acme", "2020-01-01", "2023-01-01", "2025-01-01", None, YEAR, YEAR),
            claim("b", "Acme", "2023-10-01", None, "2025-01-01", None, MONTH),
        ],
        [["Acme", "2020-01-01", "2023-01-01"], ["Acme", "2023-10-01", None]],
    ),
    "sold last week, mentioned that week": (
        [
            claim("a", "Honda", None, None, "2025-07-23"),
            end("b", "Honda", "2025-07-21", "2025-08-01", WEEK),
        ],
        [["Honda", "2025-07-23", "2025-07-28"]],
    ),
    "sold last week": (
        [
            claim("a", "Honda", None, None, "2025-04-01"),
            end("b", "Honda", "2025-07-21", "2025-08-01", WEEK),
        ],
        [["Honda", "2025-04-01", "2025-07-21"]],
    ),
    "a denial spares what is said after it": (
        [
            claim("a", "Paris", "2020-01-01", None, "2021-01-01"),
            denial("b", "Paris", None, None, "2022-01-01"),
            claim("c", "Paris", "2023-01-01", None, "2023-01-02"),
        ],
        [["Paris", "2023-01-01", None]],
    ),
    "a denied stretch": (
        [
            claim("a", "Paris", "2020-01-01", None, "2024-01-01"),
            denial("b", "Paris", "2021-01-01", "2022-01-01", "2024-01-02"),
        ],
        [["Paris", "2020-01-01", "2021-01-01"], ["Paris", "2022-01-01", None]],
    ),
    "a denied rival leaves no room to an end without start": (
        [
            claim("a", "Rome", "2020-01-01", None, "2021-01-01"),
            denial("b", "Rome", None, None, "2022-01-01"),
            end("c", "Paris", "2023-01-01", "2023-02-01"),
        ],
        [["Paris", None, "2023-01-01"]],
    ),
    "a stay that ends before it starts says nothing": (
        [
            claim("a", "Rome", "2020-01-01", None, "2021-01-01"),
            claim("b", "Paris", "2022-01-01", "2019-01-01", "2022-01-01"),
        ],
        [["Rome", "2020-01-01", None]],
    ),
    "of ends told at once the finer counts": (
        [
            claim("a", "Acme", "2024-01-01", None, "2024-01-01"),
            end("b", "Acme", "2025-05-01", "2025-06-01", MONTH),
            end("c", "Acme", "2025-03-10", "2025-06-01", DAY),
        ],
        [["Acme", "2024-01-01", "2025-03-10"]],
    ),
    "nobody is asserted past a stated end": (
        [
            claim("a", "Acme", "2025-01-01", "2025-12-31", "2026-02-01"),
            end("b", "Acme", "2026-03-01", "2026-04-01"),
            claim("c", "Globex", "2026-01-10", None, "2026-01-11"),
        ],
        [["Acme", "2025-01-01", "2026-01-10"], ["Globex", "2026-01-10", None]],
    ),
    "a mention and its end told at once": (
        [claim("a", "Google", None, None, "2024-06-10"), end("b", "Google", "2024-05-01", "2024-06-10")],
        [["Google", None, "2024-05-01"]],
    ),
    "a denied stay does not tell two ends apart": (
        [
            end("a", "Paris", "2010-01-01", "2017-01-01"),
            end("b", "Paris", "2015-01-01", "2016-01-01"),
            end("c", "Rome", "2013-01-01", "2016-01-01"),
            denial("d", "Rome", None, None, "2018-01-01"),
        ],
        [["Paris", None, "2010-01-01"]],
    ),
    "a mention that came too late tells two ends apart": (
        [
            end("a", "Paris", "2010-01-01", "2016-01-01"),
            end("b", "Paris", "2015-01-01", "2017-01-01"),
            claim("c", "Rome", "2005-01-01", None, "2005-01-01"),
            claim("d", "Rome", None, None, "2014-06-01"),
            end("e", "Rome", "2013-01-01", "2016-01-01"),
        ],
        [
            ["Paris", "2005-01-01", "2010-01-01"],
            ["Rome", "2010-01-01", "2013-01-01"],
            ["Paris", "2013-01-01", "2015-01-01"],
        ],
    ),
    "a past stay of known start tells two ends apart": (
        [
            end("a", "Paris", "2010-01-01", "2016-01-01"),
            end("b", "Paris", "2015-01-01", "2017-01-01"),
            claim("c", "Rome", "2005-01-01", None, "2005-01-01"),
            claim("d", "Rome", None, "2013-01-01", "2014-06-01"),
        ],
        [
            ["Paris", "2005-01-01", "2010-01-01"],
            ["Rome", "2010-01-01", "2013-01-01"],
            ["Paris", "2013-01-01", "2015-01-01"],
        ],
    ),
    "a past stay cut short by a later word": (
        [
            claim("a", "Rome", "2005-01-01", None, "2005-01-01"),
            claim("b", "Oslo", "2008-01-01", None, "2008-01-01"),
            claim("c", "Paris", None, None, "2012-06-01"),
            claim("d", "Rome", None, "2013-01-01", "2014-01-01"),
            end("e", "Rome", "2012-01-01", "2015-01-01"),
        ],
        [["Rome", "2005-01-01", "2012-01-01"], ["Paris", "2012-06-01", None]],
    ),
    "each claim of an object lapses for itself": (
        [
            claim("a", "Oslo", "2019-01-01", None, "2020-01-01"),
            claim("b", "Oslo", "2021-01-01", None, "2021-06-01"),
            claim("c", "Lisbon", "2020-06-01", "2021-09-01", "2022-01-01"),
            denial("d", "Lisbon", "2020-06-01", "2021-07-01", "2022-02-01"),
            claim("e", "Rome", "2022-01-01", "2022-03-01", "2023-01-01"),
        ],
        [
            ["Oslo", "2019-01-01", "2021-07-01"],
            ["Lisbon", "2021-07-01", "2021-09-01"],
            ["Oslo", "2021-09-01", "2022-01-01"],
            ["Rome", "2022-01-01", "2022-03-01"],
        ],
    ),
    "told at once of the same start: content decides": (
        [
            claim("a", "MySQL", "2025-06-01", None, "2025-06-02"),
            claim("b", "MariaDB", "2025-06-01", None, "2025-06-02"),
        ],
        [["MySQL", "2025-06-01", None]],
    ),
}


@pytest.mark.parametrize("name", BROTHERS)
def test_brothers(name: str) -> None:
    records, expected = BROTHERS[name]
    rows = [
        [of, *(None if at is None else date.fromisoformat(at) for at in borders)]
        for of, *borders in expected
        if of
    ]
    for order in orders(records):
        assert shown(derived(order)) == rows


def test_causes_and_precision_of_borders() -> None:
    records: list[Record] = [
        claim("first", "Google", "2022-01-01", None, "2022-02-01", None, MONTH),
        claim("again", "Google", "2022-01-01", None, "2023-02-01", None, YEAR),
        claim("mention", "Meta", None, None, "2024-03-05"),
        end("left", "Meta", "2025-01-01", "2025-06-01", YEAR),
        end("left, again", "Meta", "2025-01-01", "2025-07-01", YEAR),
    ]
    google, meta = derived(records)
    assert (google.started_by, google.ended_by) == ("first", "mention"), "repetition re-points nothing"
    assert (google.start_precision, google.end_precision) == (MONTH, Precision.INSTANT)
    assert (meta.started_by, meta.ended_by, meta.end_precision) == ("mention", "left", YEAR)
    assert not google.assumed
    assert meta.assumed
    restarted = derived([*records, denial("no", "Meta", "2024-01-01", "2024-06-01", "2026-01-01")])
    assert [(span.started_by, span.ended_by) for span in restarted] == [
        ("first", "mention"),
        ("mention", "left"),
    ]


def test_what_lapsed_while_denied_is_no_cause() -> None:
    records: list[Record] = [
        claim("lapsed", "Paris", None, None, "2023-01-01"),
        denial("no", "Paris", None, "2023-02-01", "2023-01-01"),
        claim("rival", "Rome", None, None, "2023-01-01"),
        claim("again", "Paris", None, None, "2023-02-01"),
    ]
    assert [(span.statement, span.started_by) for span in derived(records)] == [
        ("Rome", "rival"),
        ("Paris", "again"),
    ]


def test_who_is_next_in_a_slot_whose_best_is_kept_out_by_another_slot() -> None:
    records = [
        claim("top", "Rome", "2020-01-01", None, "2024-03-01"),
        claim("kept out", "Oslo", "2020-01-01", None, "2024-02-01"),
        claim("next", "Paris", "2020-01-01", None, "2024-01-01"),
        claim("last", "Zagreb", "2020-01-01", None, "2023-01-01"),
    ]
    rome, oslo, paris, zagreb = (record.statement for record in records)
    rivals = Rivals(dict.fromkeys([oslo, paris, zagreb], "slot"), judged=both_ways([(rome, oslo)]))
    assert {span.statement for span in timeline(records, [], [], rivals)} == {rome, paris}
    exempting = replace(rivals, exempt=both_ways([(paris, zagreb)]))
    assert {span.statement for span in timeline(records, [], [], exempting)} == {rome, paris, zagreb}
