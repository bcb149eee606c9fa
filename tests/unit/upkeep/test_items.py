"""Items as lines of JSON: what goes in comes out, whatever text it holds, and each on one line."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.ids import RecordId, Revision, SessionId
from services.domain.instants import Instant, Precision
from services.domain.predicates import Declaration, Declared
from services.domain.records import VerdictKind
from services.domain.summaries import Cited, Persona, PersonaSection, SessionSummary
from services.stores.graph.port import Alias
from services.stores.memory.archive import Moved
from services.stores.memory.port import Decision, RevisionEntry
from services.upkeep.items import (
    EntityItem,
    Item,
    Part,
    PassageItem,
    StatementItem,
    VoiceItem,
    from_json,
    part_of,
    to_json,
)
from tests.builders import Maker, a_scope, on, text, without_precisions
from tests.contracts.memory_base import aspect, claim, end, full_episode, version, whole_passage
from tests.contracts.memory_readings import merge

MAKE = Maker(a_scope())
IVO, LIKES = MAKE.entity("Ivo"), MAKE.predicate("likes")


def items(words: str) -> list[Item]:
    """One of each part, with `words` wherever text may be."""
    entity = replace(IVO, name=words, aliases=(words, "x"))
    fact = replace(MAKE.statement(IVO, LIKES, text(words)), fact=words, event_at=on("2020-01-01"))
    other = MAKE.statement(IVO, LIKES, LIKES)
    said = replace(MAKE.claim(fact, start=on("2020-01-01")), time_text=words, revoked_at=Revision(4))
    fine = Precision.YEAR, Precision.WEEK
    span = replace(
        MAKE.span(fact, None, on("2021-01-01"), 2, precisions=fine, assumed=True), known_to=Revision(4)
    )
    verdict = replace(MAKE.verdict(fact, other, VerdictKind.DUPLICATE), why=words)
    held = replace(aspect("a", text=words or "x"), claims=(claim("c", "a"),), ends=(end("e", "a", 2, "b"),))
    cited = Cited(words, (fact.id,), basis="b")
    mine = PersonaSection("mine", words, text=words, protected=True)
    return [
        EntityItem(entity, "AACAPw=="),
        Alias(words, LIKES.type, LIKES.id, words, Revision(3)),
        StatementItem(fact, (said,), (MAKE.end(fact, on("2021-01-01")),), (MAKE.denial(fact),), (span,)),
        verdict,
        Moved(fact.id, Revision(3), Revision(2)),
        replace(full_episode(), text=words, metadata=((words, words),), heading=(words,)),
        PassageItem(replace(whole_passage("p", "e"), text=words), "AACAPw=="),
        replace(version(2), text=words),
        VoiceItem(held),
        replace(merge("m", IVO.id, LIKES.id, revoked=4, why=words), episode=MAKE.episode()),
        Declared(
            RecordId("d"), Declaration(words, aliases=(words,), inverse=words), Revision(2), Revision(3)
        ),
        Decision("d", Revision(2), Instant(7), "merge", "t", words, words),
        SessionSummary(SessionId("s"), words, (words,), (cited,)),
        Persona((PersonaSection("identity", words, sentences=(cited,)), mine), version=2),
        RevisionEntry(Revision(2), "commit", Instant(-7), True, b"", words),
    ]


def test_there_is_one_of_each_part() -> None:
    assert [part_of(item) for item in items("x")] == list(Part)


@given(words=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40))
def test_an_item_comes_back_from_its_line(words: str) -> None:
    for item in items(words):
        line = to_json(item)
        assert b"\n" not in line
        back = from_json(part_of(item), line)
        assert back == item
        if isinstance(item, Alias):
            assert isinstance(back, Alias)
            assert back.recorded_at == item.recorded_at  # which no comparison sees


def test_spans_of_an_older_copy_are_read() -> None:
    [item] = [item for item in items("x") if isinstance(item, StatementItem)]
    line = json.loads(to_json(item))
    for span in line["spans"]:
        for name in ("start_precision", "end_precision", "assumed"):
            del span[name]
    back = from_json(Part.STATEMENTS, json.dumps(line).encode())
    assert back == replace(item, spans=tuple(map(without_precisions, item.spans)))


def test_a_line_that_is_no_such_item_is_refused() -> None:
    for part in Part:
        for line in (b"", b"{}", b"[]", b"null", b"{"):
            with pytest.raises(ValueError):
                from_json(part, line)
