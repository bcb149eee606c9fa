"""How long the time kernel takes for one slot of 1,000 and 10,000 records, beside sorting the same records.

The heap is settled as a server's is: what is measured includes what Python's collector looks through there.

Run: python -m benchmarks.timeline [--repeat N]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from services.domain.beliefs import SlotRecords, derive
from services.domain.graph import Statement
from services.domain.ids import EntityId, RecordId, StatementId
from services.domain.instants import Instant, Precision
from services.domain.kernel.rivals import Contradicts, Rivals
from services.domain.predicates import Cardinality
from services.domain.records import Claim, Denial, End, Source
from services.domain.timeline import timeline
from services.runtime.heap import settle

_HOUR = 3_600_000_000
_NO_SOURCE = Source(None)
Records = tuple[list[Claim], list[End], list[Denial]]


def _claim(number: int, of: str, start: int | None, end: int | None, attested: int) -> Claim:
    return Claim(
        RecordId(f"c{number}"),
        StatementId(of),
        None if start is None else Instant(start * _HOUR),
        None if end is None else Instant(end * _HOUR),
        Instant(attested * _HOUR),
        Instant(attested * _HOUR),
        _NO_SOURCE,
    )


def moves(count: int) -> Records:
    """A new object with each record, told as it happens."""
    return [_claim(n, f"o{n}", 10 * n, None, 10 * n + 1) for n in range(count)], [], []


def one_telling(count: int) -> Records:
    """A whole life told at its end, newest first."""
    return [_claim(n, f"o{n}", 10 * (count - n), None, 20 * count) for n in range(count)], [], []


def to_and_fro(count: int) -> Records:
    """Two objects by turns, mentioned without a start."""
    return [_claim(n, "Oslo" if n % 2 else "Rome", None, None, 10 * n) for n in range(count)], [], []


def repeated(count: int) -> Records:
    """One fact said again and again."""
    return [_claim(n, "Oslo", 0, None, 10 * n) for n in range(count)], [], []


def by_the_day(count: int) -> Records:
    """A new object every other day, of which the day is known; each is seen on the day of the next."""
    claims = []
    for number in range(0, count, 2):
        day = 24 * number
        told = _claim(number, f"o{number}", day, None, day + 20)
        claims.append(replace(told, start_precision=Precision.DAY))
        claims.append(_claim(number + 1, f"o{number}", None, None, day + 24 * 2 + 9))
    return claims, [], []


def mixed(count: int) -> Records:
    """All kinds of records over 100 objects."""
    random = Random(7)
    claims: list[Claim] = []
    ends: list[End] = []
    denials: list[Denial] = []
    for number in range(count):
        of, attested = f"o{random.randrange(100)}", random.randrange(10 * count)
        kind, at = random.random(), random.randrange(10 * count)
        if kind < 0.8:
            start = at if kind < 0.6 else None
            stop = at + random.randrange(1, 100) if kind < 0.2 else None
            claims.append(_claim(number, of, start, stop, attested))
        elif kind < 0.98:
            ends.append(
                End(
                    RecordId(f"e{number}"),
                    StatementId(of),
                    Instant(at * _HOUR),
                    Instant(attested * _HOUR),
                    _NO_SOURCE,
                )
            )
        else:
            until = Instant((at + random.randrange(100)) * _HOUR)
            denied = Instant(at * _HOUR), until, Instant(attested * _HOUR)
            denials.append(Denial(RecordId(f"d{number}"), StatementId(of), *denied, _NO_SOURCE))
    return claims, ends, denials


def best(run: Callable[[], object], repeat: int) -> float:
    """The least processor time of `repeat` runs, in milliseconds."""
    times = []
    for _ in range(repeat):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return 1000 * min(times)


def sorting(records: Records) -> None:
    claims, ends, denials = records
    everything: list[Claim | End | Denial] = [*claims, *ends, *denials]
    everything.sort(key=lambda record: (record.attested_at, record.statement, record.id))


def through_beliefs(records: Records) -> Callable[[], object]:
    """The same records as a slot of a stored graph, verdicts and duplicates looked after."""
    subject, predicate = EntityId("Mara"), EntityId("lives_in")
    names = {record.statement for kind in records for record in kind}
    statements = tuple(
        Statement(StatementId(name), subject, predicate, EntityId(name), f"Mara lives in {name}")
        for name in sorted(names)
    )
    claims, ends, denials = records
    slot = SlotRecords(statements, tuple(claims), tuple(ends), tuple(denials))
    return lambda: derive(slot, lambda _: Cardinality.SINGLE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    settle()  # as in a server
    print(
        f"{'slot':14}{'records':>9}{'spans':>8}{'sort ms':>9}{'timeline ms':>13}{'ratio':>7}{'derive ms':>11}"
    )
    for make in (moves, one_telling, to_and_fro, repeated, by_the_day, mixed):
        for count in (1_000, 10_000):
            records = make(count)
            rivals: Contradicts = Rivals({r.statement: "slot" for kind in records for r in kind})
            spans = len(timeline(*records, rivals))
            sort = best(partial(sorting, records), repeat)
            kernel = best(partial(timeline, *records, rivals), repeat)
            whole = best(through_beliefs(records), repeat)
            name, ratio = make.__name__, kernel / sort
            print(f"{name:14}{count:9,}{spans:8,}{sort:9.1f}{kernel:13.1f}{ratio:7.1f}{whole:11.1f}")


if __name__ == "__main__":
    main()
