"""Nothing is lost without a line: records in, as many lines out, and all that is taken in is valid."""

import csv
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from protovalidate import Validator

from palimpsest.chats import Unreadable
from palimpsest.importing import graphiti, mem0, tables
from palimpsest.importing.reading import File
from palimpsest.importing.report import Report
from palimpsest.importing.sending import Result, facts_call, text_call
from palimpsest.importing.values import Fact, Fate, Form, Reading
from tests.examples import one_in

CHANGED = datetime(2025, 7, 1, 12, tzinfo=UTC)
VALIDATOR = Validator()
SENT = (Fate.IMPORTED, Fate.KNOWN, Fate.REFUSED, Fate.FAILED)

strange = st.sampled_from(["", " ", "a\nb", "x" * 600, "\x07", "\0", "__"]) | st.text(max_size=30)
junk = st.none() | st.booleans() | st.floats() | strange | st.lists(strange, max_size=2)


OWNERS = ("group_id", "user_id")
"""Always one here: where there are several the whole file is refused."""


def mostly(values: st.SearchStrategy[Any], else_: st.SearchStrategy[Any] = junk) -> st.SearchStrategy[Any]:
    return st.integers(0, 15).flatmap(lambda number: values if number else else_)


def records(needed: dict[str, Any], more: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of a kind, in which any value may be something else."""
    return mostly(
        st.fixed_dictionaries(
            {name: mostly(value) for name, value in needed.items()},
            optional={name: value if name in OWNERS else mostly(value) for name, value in more.items()},
        )
    )


names = mostly(st.sampled_from(["Ana", "Bo", "Graz", "ana", "李雷"]), strange)
texts = mostly(st.sampled_from(["works at", "WORKS_AT", "Ana: I moved.\nbot: Noted.", "Person"]), strange)
ids = st.sampled_from(["1", "2", "3"])
dates = mostly(
    st.sampled_from(
        ["2025-03-01T00:00:00Z", "2025-03-01T10:30:00.123456+02:00", "2025", 1_740_000_000, None]
    ),
    st.sampled_from(
        [
            "2024-12-31T23:59:59.999999999Z",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-12:00",
            "soon",
            "now",
            1.7e12,
            1e300,
            -1e300,
            float("nan"),
            True,
            [],
            "",
        ]
    ),
)
nodes = records(
    {"uuid": ids, "name": names, "labels": st.lists(texts, max_size=2)},
    {"summary": texts, "created_at": dates, "group_id": st.just("g"),
     "attributes": st.dictionaries(texts, junk, max_size=3)},
)  # fmt: skip
edges = records(
    {"source_node_uuid": ids, "target_node_uuid": ids, "name": names, "fact": texts},
    {"valid_at": dates, "invalid_at": dates, "expired_at": dates, "reference_time": dates,
     "created_at": dates, "episodes": st.lists(ids, max_size=2),
     "attributes": st.dictionaries(texts, junk, max_size=2)},
)  # fmt: skip
episodes = records(
    {"uuid": ids, "content": texts, "source": st.sampled_from(["message", "text", "json"])},
    {"name": texts, "valid_at": dates, "source_description": texts},
)
histories = records(
    {"memory_id": ids, "new_memory": texts, "event": st.sampled_from(["ADD", "UPDATE", "DELETE", "NONE"])},
    {"created_at": dates, "updated_at": dates, "is_deleted": st.booleans()},
)
memories = records(
    {"id": ids, "memory": texts},
    {"created_at": dates, "updated_at": dates, "metadata": st.dictionaries(texts, junk, max_size=3),
     "role": texts, "actor_id": texts, "user_id": st.just("ana"),
     "history": st.lists(histories | junk, max_size=2)},
)  # fmt: skip
relations = records({"source": names, "relationship": names, "target": names}, {"created_at": dates})


SOME_NODES = [{"uuid": str(number), "name": f"Node {number}", "labels": ["Entity"]} for number in (1, 2)]


@st.composite
def files(
    draw: st.DrawFn, kinds: st.SearchStrategy[Any], keys: Sequence[str], first: Sequence[Any] = ()
) -> tuple[File, list[Any]]:
    """A file of any of the shapes, and what stands in it."""
    listed = [*first, *draw(st.lists(kinds, max_size=8))]
    match draw(st.sampled_from(["list", "object", "lines"])):
        case "list":
            return File("f.json", json.dumps(listed), CHANGED), listed
        case "lines":
            text = "".join(f"{json.dumps(one)}\n" for one in listed) + draw(
                st.sampled_from(["", "\n\r\n", "{"])
            )
            broken = [None] if text.endswith("{") else []
            return File("f.jsonl", text or "\n", CHANGED), listed + broken
        case _:
            whole = [one for one in listed if isinstance(one, dict)]
            return File(
                "f.json", json.dumps({draw(st.sampled_from(keys)): whole, "total": 3}), CHANGED
            ), whole


def conserved(reading: Reading, expected: int, outcomes: Callable[[int], Result | None]) -> None:
    """As many lines as records, each in one place with one fate; everything that would be sent is valid."""
    assert len(reading.records) == expected
    assert len({record.place for record in reading.records}) == expected
    spoken_of = {key for record in reading.records for key in record.items}
    assert spoken_of == reading.items.keys()
    for key, item in reading.items.items():
        assert item.key == key
        call = facts_call([item], "g", "r") if isinstance(item, Fact) else text_call(item, "g", "r")
        assert not VALIDATOR.collect_violations(call)
    dry = Report(reading, "g", dry_run=True)
    assert dry.total().total() == expected
    assert dry.total()[Fate.UNSENT] == 0
    done = Report(reading, "g")
    results = {key: outcomes(number) for number, key in enumerate(reading.items)}
    for key, result in results.items():
        if result is not None:
            done.add(key, result)
    told = done.to_json()
    assert told["records"] == len(told["lines"]) == sum(told["fates"].values()) == expected
    json.dumps(told, allow_nan=False)
    for line in done.lines():
        assert line.why or line.fate not in (Fate.REFUSED, Fate.FAILED, Fate.LEFT_OUT)
        fates = {results[key].fate if results[key] else Fate.UNSENT for key in line.record.items}  # type: ignore[union-attr]
        if line.fate is Fate.IMPORTED and line.record.items:
            assert fates <= {Fate.IMPORTED, Fate.KNOWN}
        if line.fate is Fate.KNOWN and line.record.items:
            assert fates == {Fate.KNOWN}
    assert done.left().keys() == {key for key, result in results.items() if result is None}


outcomes = st.lists(st.sampled_from([None, *(Result(fate, "why") for fate in SENT)]), min_size=1, max_size=9)


def cycled(drawn: Sequence[Result | None]) -> Callable[[int], Result | None]:
    return lambda number: drawn[number % len(drawn)]


@given(files(nodes | edges | episodes, ["nodes", "edges"], SOME_NODES), st.booleans(), outcomes)
@settings(max_examples=one_in(10))
def test_of_graphiti(file: tuple[File, list[Any]], texts: bool, drawn: Sequence[Result | None]) -> None:
    conserved(graphiti.read([file[0]], texts=texts), len(file[1]), cycled(drawn))


@given(files(memories | relations | histories, ["results", "relations"]), outcomes)
@settings(max_examples=one_in(10))
def test_of_mem0(file: tuple[File, list[Any]], drawn: Sequence[Result | None]) -> None:
    carried = [one.get("history") for one in file[1] if isinstance(one, dict)]
    inner = sum(len(one) for one in carried if isinstance(one, list))
    conserved(mem0.read([file[0]]), len(file[1]) + inner, cycled(drawn))


cells = st.sampled_from(["", "2025", "end", "yes", "12", "0.5", "a;b", "a,b", " "]) | strange
days = st.sampled_from(["", "2019", "2025-03-31", "2025-03-31T10:00+02:00", "31.03.2025"])
COLUMNS = {
    "subject": names,
    "predicate": texts,
    "object": names | st.sampled_from(["12", "true", "2025-03"]),
    "object_kind": st.sampled_from(["", "", "entity", "text", "number", "boolean", "date"]),
    "start": days,
    "end": days,
    "said_at": days,
    "record": st.sampled_from(["", "", "claim", "end", "denial"]),
    "quote": st.sampled_from(["", 'She said "now",\nand went; home|.']),
    "id": ids,
}
rows = st.tuples(*(mostly(values, cells) for values in COLUMNS.values())).map(list)


@given(
    st.lists(mostly(rows, st.lists(cells, min_size=1, max_size=len(COLUMNS) + 1)), max_size=8),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    outcomes,
)
@settings(max_examples=one_in(10))
def test_of_tables(told: list[list[str]], delimiter: str, end: str, drawn: Sequence[Result | None]) -> None:
    out = StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(
        [list(COLUMNS), *told]
    )
    full = [row for row in told if any(cell.strip() for cell in row)]
    reading = tables.read([File("f.csv", out.getvalue(), CHANGED)])
    conserved(reading, len(full), cycled(drawn))
    assert all(isinstance(item, Fact) and item.form in Form for item in reading.items.values())


@given(st.text(max_size=200), st.sampled_from(["f.json", "f.jsonl", "f.csv"]))
@settings(max_examples=one_in(10))
def test_any_file_is_read_or_refused(text: str, name: str) -> None:
    """Never a crash: Unreadable for the file, or a reason for the record."""
    file = File(name, text, CHANGED)
    for read in (graphiti.read, mem0.read, tables.read):
        try:
            reading = read([file])
        except Unreadable:
            continue
        assert all(record.why for record in reading.records)
