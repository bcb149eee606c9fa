"""Pack: the prompt block within a token budget: by section, each line with its dates and its evidence."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from services.llm import tokens
from services.recall.lines import Line, Section

HEADINGS = {
    Section.FACTS: "## Facts",
    Section.VOICE: "## In the user's words",
    Section.PASSAGES: "## What was said",
}
_TO_SPARE = 1
"""What a line break costs when it is counted apart from what it joins."""


@dataclass(frozen=True, slots=True)
class Item:
    """A line and where it belongs: `group` keeps together what is about one thing.

    `key` names it in the result. Items come in order of importance.
    """

    key: Hashable
    line: Line
    group: str = ""


@dataclass(frozen=True, slots=True)
class Packed:
    """The block, its length in tokens, what is in it, and how many items are not."""

    text: str
    tokens: int
    keys: frozenset[Hashable]
    left_out: int


def titled(title: str, items: Sequence[Item], budget: int) -> Packed:
    """Packs items below a heading, left out where there is no room for it."""
    if not title or not items:
        return pack(items, budget)
    head = f"# {' '.join(title.split())}\n"
    room = max(1, budget - tokens.count(head)) if budget else 0
    packed = pack(items, room)
    text = head + packed.text
    if budget and tokens.count(text) > budget:
        return pack(items, budget)
    return replace(packed, text=text, tokens=tokens.count(text))


def pack(items: Sequence[Item], budget: int) -> Packed:
    """Packs items, most important first, into at most `budget` tokens (0: no limit).

    What does not fit is left out, and a shorter one may still come in; the first is cut rather than dropped.
    """
    lines = [(item, item.line.render()) for item in items]
    if not budget or _surely_fit(lines, budget):
        return _packed(lines, len(items))
    chosen: list[tuple[Item, str]] = []
    spent = 0
    sections: set[Section] = set()
    for item, line in lines:
        cost = tokens.count(line) + _TO_SPARE
        if item.line.section not in sections:
            cost += tokens.count(HEADINGS[item.line.section]) + _TO_SPARE
        if spent + cost <= budget:
            chosen.append((item, line))
            sections.add(item.line.section)
            spent += cost
    packed = _packed(chosen, len(items))
    # Tokens of a whole are seldom more than those of its lines, yet they may be.
    while packed.tokens > budget:
        chosen.pop()
        packed = _packed(chosen, len(items))
    return packed if chosen or not items else _first(items[0], len(items), budget)


def _surely_fit(lines: Sequence[tuple[Item, str]], budget: int) -> bool:
    """Whether no counting is needed: a token has at least one byte."""
    sections = {item.line.section for item, _ in lines}
    parts = [*(HEADINGS[section] for section in sections), *(line for _, line in lines)]
    return sum(len(part.encode("utf-8", "replace")) + _TO_SPARE for part in parts) <= budget


def _first(item: Item, count: int, budget: int) -> Packed:
    """The first item alone, as much of it as fits: with its heading, else without, else its beginning."""
    heading = HEADINGS[item.line.section] + "\n"
    for head in (heading, ""):
        least, most = 0, budget * 16  # a token has seldom more characters
        best = ""
        while least <= most:
            middle = (least + most) // 2
            text = head + item.line.render(middle)
            if tokens.count(text) <= budget:
                best, least = text, middle + 1
            else:
                most = middle - 1
        if best:
            return Packed(best, tokens.count(best), frozenset({item.key}), count - 1)
    text = tokens.truncate(item.line.render(0), budget)
    return Packed(text, tokens.count(text), frozenset({item.key} if text else ()), count - bool(text))


def _packed(chosen: Sequence[tuple[Item, str]], count: int) -> Packed:
    """The block of some items, each with its line."""
    parts: list[str] = []
    for section in Section:
        mine = [each for each in chosen if each[0].line.section is section]
        if mine:
            parts.append(HEADINGS[section])
            parts += _grouped(mine)
    text = "\n".join(parts)
    return Packed(text, tokens.count(text), frozenset(item.key for item, _ in chosen), count - len(chosen))


def _grouped(items: Sequence[tuple[Item, str]]) -> list[str]:
    """The lines by group, in the order of each one's first; within one, the order given."""
    first: dict[str, int] = {}
    for place, (item, _) in enumerate(items):
        first.setdefault(item.group, place)
    return [line for _, line in sorted(items, key=lambda each: first[each[0].group])]
