"""Chinese times in a text: the readings of the rules, joined with the words around and between them."""

import re
from dataclasses import replace
from functools import cache

from services.domain.dates import chinese_words as w
from services.domain.dates.calendar import PRECISION_OF, Reading, Reference, day, shift
from services.domain.dates.chinese_days import add_days
from services.domain.dates.chinese_periods import add_periods
from services.domain.dates.relations import Relation, Told, same_year
from services.domain.dates.rules import Found, Rules
from services.domain.instants import Precision


@cache
def chinese() -> Rules:
    """The rules of Chinese. What they find may stand between any characters but digits."""
    rules = Rules(r"(?<![\d.])", r"(?!\d)")
    add_days(rules)
    add_periods(rules)
    return rules


def told_in_chinese(text: str, said: Reference) -> list[Told]:
    """The times that the Chinese of a text names, in order, without overlaps."""
    folded = w.fold(text)
    items = _related(folded, said, chinese().find(folded, said))
    for match in _FOR.finditer(folded):
        if all(match.end() <= item.begin or item.finish <= match.start() for item in items):
            item = _for(match, said)
            items += [item] if item else []
    return sorted(items, key=lambda item: item.begin)


_BEFORE = re.compile(
    r"(?:(?P<since>自从|自打|自|从|打从|打)|(?P<until>直到|截至|截止到?|[到至])|(?P<at>[在于]))(?:了)? ?$"
)
_BETWEEN = re.compile(r" ?(?:,|，)?(?:一直|直)?(?:到|至|[-~～–—]+) ?(?:了)?")
_AND = re.compile(r" ?(?:和|与|跟|及) ?")
_INSIDE = re.compile(r" ?(?:之间|期间|间)")
_AFTER = re.compile(
    r" ?(?:(?P<since>以来|至今|到现在|到今天|开始|起(?![床来点草飞])|的?时候开始)"
    r"|(?P<after>以后|之后|后(?![来面天年果期代卫勤悔备]))|(?P<before>以前|之前|前(?![往天年面夫妻台端任期总景途辈进去来]))|(?P<until>为止|止))"
)
_FOR = re.compile(
    rf"(?:已经|已|整整|差不多|大概|大约|快|都|有)*{w.QUANTITY}(?:的?时间)?(?:了(?=[。，,.!！;；\s]|$)|(?:以)?来(?=[，,\s]|$|我|一直))"
)


def _related(text: str, said: Reference, found: list[Found]) -> list[Told]:
    items: list[Told] = []
    position = 0
    while position < len(found):
        begin, finish, reading = found[position]
        before = _BEFORE.search(text, 0, begin)
        start = before.start() if before else begin
        following = found[position + 1] if position + 1 < len(found) else None
        if following is not None:
            gap, inside = text[finish : following[0]], _INSIDE.match(text, following[1])
            if _BETWEEN.fullmatch(gap) or (_AND.fullmatch(gap) and inside):
                last = _same_month(text[following[0] : following[1]], reading, following[2])
                end = inside.end() if inside else following[1]
                items.append(Told(start, end, *same_year(reading, last, said), Relation.RANGE))
                position += 2
                continue
        position += 1
        items.append(_single(text, start, finish, reading, before))
    return items


def _same_month(text: str, first: Reading, last: Reading) -> Reading:
    """`十二日` of `一月十日到十二日` is a day of the month before it."""
    if first.precision is not Precision.DAY or not re.fullmatch(rf"{w.DAY}(?:日|号)", text):
        return last
    at = first.first.replace(day=last.first.day)
    return replace(day(at, 0.9), floats=first.floats) if at > first.first else last


def _single(text: str, start: int, finish: int, reading: Reading, before: re.Match[str] | None) -> Told:
    after = _AFTER.match(text, finish)
    if after is not None:
        finish = after.end()
        since = before is not None and before["since"]
        if after["since"] or (after["after"] and since):
            return Told(start, finish, reading, None, Relation.SINCE)
        if after["after"]:
            return Told(start, finish, reading, None, Relation.AFTER)
        return Told(start, finish, None, reading, Relation.BEFORE if after["before"] else Relation.UNTIL)
    if before is not None and before["since"]:
        return Told(start, finish, reading, None, Relation.SINCE)
    if before is not None and before["until"]:
        return Told(start, finish, None, reading, Relation.UNTIL)
    return Told(start, finish, reading, None, Relation.AT)


def _for(match: re.Match[str], said: Reference) -> Told | None:
    try:
        count, unit, _ = w.amount(match)
        since = day(shift(said.now, unit, -count))
    except (ValueError, KeyError, OverflowError):
        return None
    read = Reading(since.first, since.last, PRECISION_OF[unit], 0.7)
    return Told(match.start(), match.end(), read, day(said.now), Relation.FOR)
