"""Facts of a Chinese sentence: clause by clause, each with its own time, else with the one before it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.domain.dates import Prefer, Relation, TimeExpression, find
from services.domain.facts import FactKind, Mention, Turn, WorldFact
from services.domain.graph import Literal, LiteralKind
from services.domain.instants import Instant, Precision, moment
from services.domain.names import literal
from services.llm.offline.chinese.clause import Clause
from services.llm.offline.chinese.people import People
from services.llm.offline.chinese.said import Said, read_clause
from services.llm.offline.chinese.segments import Segmenter, shared
from services.llm.offline.chinese.table import table
from services.llm.offline.clauses import Tense
from services.llm.offline.drafts import Nature
from services.llm.offline.sentences import Sentence
from services.llm.offline.speaking import Speaking
from services.llm.offline.timing import Manner, told
from services.llm.tasks import Setting

_BORDER = re.compile(r"[，；：。！？]|[,;:!?](?!\d)|\.(?=\s|$)|(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff])")
_WHOLE_DOUBT = re.compile(r"如果|假如|要是|假设|万一|除非|据说|听说|只要|即使")
_AHEAD = re.compile(r"(?:将|会(?![说讲])|要(?!求)|打算|计划|准备)")
_MAX_CHARACTERS = 120
"""Of a clause; longer ones are lists or code, and no rule reads them."""
_DATED_ROLE = re.compile(r"(?:生日|截止日期)(?:现在|目前)?(?:就)?是")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A clause of the sentence: `sentence[begin:end]` and the times in it."""

    begin: int
    end: int
    times: Sequence[TimeExpression]


def facts_of_sentence(
    turn: Turn,
    text: Sentence,
    speaking: Speaking,
    setting: Setting,
    confirmed_by: int | None,
    segmenter: Segmenter = shared,
) -> list[WorldFact]:
    """What a Chinese sentence says. It tells `speaking` of whom it spoke."""
    said_at = turn.said_at if turn.said_at is not None else setting.reference_time
    facts: list[WorldFact] = []
    spoken: list[Said] = []
    if not _WHOLE_DOUBT.search(text.text):
        people = People(speaking)
        for said, time in _read(text.text, people, segmenter, said_at, setting.time_zone):
            if not _is_future(said, time, said_at):
                spoken.append(said)
                facts.append(_fact(said, time, turn, text, said_at, confirmed_by))
    ends = [(said.subject, said.object) for said in spoken]
    speaking.told([one for pair in ends for one in pair if isinstance(one, Mention)])
    return facts


def _read(
    text: str, people: People, segmenter: Segmenter, said_at: Instant, zone: str
) -> Iterator[tuple[Said, TimeExpression | None]]:
    topic: TimeExpression | None = None
    for piece in _pieces(text, said_at, zone):
        own = piece.times[0] if piece.times else None
        words = (
            text[piece.begin : piece.end]
            if _DATED_ROLE.search(text, piece.begin, piece.end)
            else _timeless(text, piece)
        )
        words = table().lead.sub("", words, count=1) if table().lead.match(words) else words
        words = words.strip(" \t。，、.！!~～“”")
        if own is not None:
            topic = own if own.relation is Relation.AT else None
        if not words or len(words) > _MAX_CHARACTERS:
            continue
        if table().doubt.search(words):
            people.first = False
            continue
        for said in read_clause(Clause(words, segmenter.segments(words)), people):
            said = _with_date(said, own)
            yield said, None if said.timeless else own or _carried(said, topic)
        people.first = False


def _with_date(said: Said, time: TimeExpression | None) -> Said:
    """A birthday or deadline whose date is told to the day and year has that date as its value."""
    if said.predicate not in {"birthday", "deadline"} or time is None or time.start is None:
        return said
    day = literal(LiteralKind.TIME, f"{moment(time.start):%Y-%m-%d}")
    whole = time.precision is Precision.DAY and re.search(r"\d{4}|[零一二三四五六七八九]{4}", time.text)
    value: Literal = day if whole else literal(LiteralKind.STRING, time.text)
    return Said(said.kind, said.subject, said.predicate, value, said.sentence, timeless=True)


def _carried(said: Said, topic: TimeExpression | None) -> TimeExpression | None:
    """A time told before goes on for what happens; a state that follows is one of now."""
    return topic if said.nature is not Nature.STATE or said.kind is FactKind.END else None


def _is_future(said: Said, time: TimeExpression | None, said_at: Instant) -> bool:
    """True for a plan that has no date ahead: nothing is settled."""
    if said.tense is not Tense.FUTURE:
        return False
    return time is None or time.at is None or time.at <= said_at


def _pieces(text: str, said_at: Instant, zone: str) -> Iterator[_Piece]:
    past = find(text, said_at, zone)
    begin = 0
    for end in (*(match.start() for match in _BORDER.finditer(text)), len(text)):
        if any(time.begin < end < time.finish for time in past):
            continue
        times = past
        if _AHEAD.search(text, begin, end):
            times = find(text, said_at, zone, Prefer.FUTURE)
        yield _Piece(begin, end, [time for time in times if begin <= time.begin and time.finish <= end])
        begin = min(end + 1, len(text))


def _timeless(text: str, piece: _Piece) -> str:
    """The words of a clause without its times."""
    kept, at = "", piece.begin
    for time in piece.times:
        kept += text[at : time.begin]
        at = time.finish
    return kept + text[at : piece.end]


def _fact(
    said: Said,
    time: TimeExpression | None,
    turn: Turn,
    text: Sentence,
    said_at: Instant,
    confirmed_by: int | None,
) -> WorldFact:
    dated = told(Manner(said.kind, said.nature, said.tense, never=said.never), time, said_at)
    return WorldFact(
        kind=said.kind,
        subject=said.subject,
        predicate=said.predicate,
        object=said.object,
        fact=said.sentence,
        turn=turn.position,
        quote=text.text,
        start=None if said.kind is FactKind.END else dated.start,
        end=dated.end,
        seen=dated.seen if said.kind is FactKind.CLAIM else None,
        confidence=said.confidence,
        confirmed_by=confirmed_by,
    )
