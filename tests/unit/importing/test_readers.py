"""Readers: what a record of each format becomes, and what is told of the rest."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from palimpsest.importing import graphiti, mem0, tables
from palimpsest.importing.reading import File, opened
from palimpsest.importing.values import Fact, Form, Named, Reading, Words
from tests.machine import ROOT

CHANGED = datetime(2025, 7, 1, tzinfo=UTC)
HEAD = "subject,predicate,object,since,until\n"


def facts(reading: Reading) -> list[Fact]:
    return [item for item in reading.items.values() if isinstance(item, Fact)]


def whys(reading: Reading) -> list[str]:
    return [record.why for record in reading.records if record.why]


def rows(text: str) -> Reading:
    return tables.read([File("f.csv", text, CHANGED)])


def of_graphiti(*values: dict[str, Any], **options: Any) -> Reading:
    return graphiti.read([File("f.json", json.dumps(values), CHANGED)], **options)


def node(uuid: str, name: str, *labels: str) -> dict[str, Any]:
    return {"uuid": uuid, "name": name, "labels": ["Entity", *labels], "created_at": "2025-02-01T00:00:00Z"}


def edge(**more: Any) -> dict[str, Any]:
    ends = {"source_node_uuid": "a", "target_node_uuid": "b"}
    return {**ends, "name": "WORKS_AT", "fact": "A works at B.", "created_at": "2025-02-03T00:00:00Z", **more}


NODES = (node("a", "A"), node("b", "B"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_as_programs_write_it(delimiter: str, end: str) -> None:
    text = f'Object,Subject,"Predicate",FROM{end}"Fa. ""B"" & Co",A,works at,2025-Q2{end}{end}'
    (fact,) = facts(rows(text.replace(",", delimiter)))
    assert (fact.subject, fact.object, fact.predicate) == (Named("A"), Named('Fa. "B" & Co'), "works at")
    assert fact.start is not None
    assert fact.start.at == datetime(2025, 4, 1, tzinfo=UTC)
    assert not fact.said.told


def test_the_mark_of_excel_is_no_part_of_a_name() -> None:
    file = opened(ROOT / "tests" / "data" / "importing" / "facts.csv")
    assert not file.text.startswith("\ufeff")
    quotes = {fact.quote for fact in facts(tables.read([file]))}
    assert 'Since September she lives\nin Wien, "finally".'.replace("\n", "\r\n") in {
        quote.replace("\r\n", "\n").replace("\n", "\r\n") for quote in quotes
    }


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("A,knows,B,1.2.2025,", "`start` is no date"),
        ("A,knows,B,now,", "`start` is no date"),
        ("A,knows,B,2025-03,2025-02", "it ends before it begins"),
        ("A,,B,,", "`predicate` is missing"),
        ("A,--,B,,", "`predicate` has no word in it"),
        ("A,knows,B,,,too much", "it has 6 cells, the header names 5 columns"),
        ('A,knows,"B"x,,', "it can't be read as a row"),
        ('A,knows,"B,,', "it can't be read as a row"),
    ],
)
def test_a_wrong_row_is_refused_by_itself(row: str, why: str) -> None:
    reading = rows(f"{HEAD}A,likes,C,,\n{row}\n")
    assert [fact.object for fact in facts(reading)] == [Named("C")]
    assert [told.startswith(why) for told in whys(reading)] == [True]
    assert reading.records[-1].place.startswith("f.csv line 3")


def test_what_a_coarse_end_may_mean_is_taken() -> None:
    """From March until some time in that year."""
    assert not whys(rows(HEAD + "A,works_at,B,2025-03,2025\n"))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"reference_time": "2025-01-05T00:00:00Z", "episodes": ["e"]}, 5),
        ({"episodes": ["elsewhere", "e"]}, 4),
        ({}, 3),
    ],
    ids=["reference time", "episode", "created"],
)
def test_when_an_edge_was_said(told: dict[str, Any], said: int) -> None:
    episode = {"uuid": "e", "content": "x", "valid_at": "2025-01-04T00:00:00Z"}
    (fact,) = facts(of_graphiti(*NODES, episode, edge(created_at="2025-01-03T00:00:00Z", **told)))
    assert fact.said.at == datetime(2025, 1, said, tzinfo=UTC)


def test_what_graphiti_gave_up_ends() -> None:
    reading = of_graphiti(*NODES, edge(expired_at="2025-03-01T10:00:00Z"))
    (fact,) = facts(reading)
    assert fact.end is not None
    assert fact.end.at == datetime(2025, 3, 1, 10, tzinfo=UTC)
    assert reading.records[2].notes or reading.records[0].notes
    (other,) = facts(of_graphiti(*NODES, edge(expired_at="2025-03-01T10:00:00Z", invalid_at="2025-02-01")))
    assert other.end is not None
    assert other.end.at == datetime(2025, 2, 1, tzinfo=UTC)


def test_namesakes_are_told() -> None:
    reading = of_graphiti(node("a", "Ana", "Person"), node("b", "ANA", "Person"), node("c", "Ana", "Project"))
    told = [record.place for record in reading.records if any("one entity" in note for note in record.notes)]
    assert told == ["f.json [1]"]


def test_of_several_groups_one_is_chosen() -> None:
    reading = of_graphiti(
        node("a", "A") | {"group_id": "x", "summary": "of x"},
        node("b", "B") | {"group_id": "y", "summary": "of y"},
        only="x",
    )
    assert [fact.quote for fact in facts(reading)] == ["A: of x"]
    assert whys(reading) == ["of another group"]


def test_messages_of_an_episode_keep_their_speakers() -> None:
    content = "Ana Moser: I moved to Linz.\nIn May.\nassistant: Noted.\nuser (user): Thanks."
    episode = {"uuid": "e", "content": content, "source": "message", "valid_at": "2025-01-04T00:00:00Z"}
    (words,) = of_graphiti(episode, texts=True).items.values()
    assert isinstance(words, Words)
    said = words.request.messages.messages
    assert [(one.speaker, one.text) for one in said] == [
        ("Ana Moser", "I moved to Linz.\nIn May."),
        ("", "Noted."),
        ("", "Thanks."),
    ]


def test_what_was_deleted_in_mem0_stays_deleted() -> None:
    rows = [
        {"memory_id": "m", "event": "ADD", "new_memory": "A secret.", "created_at": "2025-01-01T00:00:00Z"},
        {"memory_id": "m", "event": "DELETE", "new_memory": None, "created_at": "2025-01-02T00:00:00Z"},
    ]
    reading = mem0.read([File("h.json", json.dumps(rows), CHANGED)])
    assert (reading.items, set(whys(reading))) == ({}, {"of a memory that was deleted"})


def test_a_memory_carries_its_history() -> None:
    memory = {
        "id": "m", "memory": "Lives in Linz.", "user_id": "ana", "updated_at": "2025-06-02T10:00:00Z",
        "history": [
            {"event": "ADD", "new_memory": "Lives in Graz.", "created_at": "2024-03-01T10:00:00Z"},
            {"event": "UPDATE", "new_memory": "Lives in Linz.", "updated_at": "2025-06-02T10:00:00.2Z"},
        ],
    }  # fmt: skip
    reading = mem0.read([File("m.json", json.dumps(memory), CHANGED)])
    told = [(record.place, record.kind, record.same_as) for record in reading.records]
    assert told == [
        ("m.json", "memory", ""),
        ("m.json history[0]", "history", ""),
        ("m.json history[1]", "history", "m.json"),
    ]
    sessions = {item.request.session_id for item in reading.items.values() if isinstance(item, Words)}
    assert (len(reading.items), sessions) == (2, {"mem0/ana"})


def test_forms_of_rows() -> None:
    head = "subject,predicate,object,start,end,record,denied\n"
    reading = rows(f"{head}A,is,B,,2025,end,\nA,is,B,2024,2025,,yes\nA,is,B,,,end,\nA,is,B,,,claim,x\n")
    assert [fact.form for fact in facts(reading)] == [Form.END, Form.DENIAL]
    assert whys(reading) == ["an end needs a date in `end`", "`denied` and `record` say different things"]
