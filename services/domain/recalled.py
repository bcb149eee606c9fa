"""The lines of a recalled context block: how they are written, and how they are known again.

What this memory recalled must not come back as evidence when an agent pastes it into a conversation. A line
ends with the short name of its evidence (`[e12]`); a block has headings and lines, and nothing else.

    - (Maya) --[lives_in]--> (Graz)  since 2024-02-01 [e12]
    - (Maya) --[lives_in]--> (Linz)  since 2020-05-01 until 2024-02-01 [e3]
    - "Always run the tests before you open a PR."  since 2025-01-01 [e4]
    - 2025-01-01 Maya: "I moved to Graz." [e12]
"""

import re
from collections.abc import Iterator

_DATE = r"-?\d{1,5}(?:-\d{2}){0,2}(?:T[\d:.]+Z?)?"
_TAIL = re.compile(
    rf"(?:[ \t]+(?:since|until)[ \t]+{_DATE}){{0,2}}(?P<evidence>(?:[ \t]*\[e\d+(?:,[ \t]*e\d+)*\])*)[ \t]*\Z"
)
_TAIL_CHARACTERS = 200
"""Longer than dates and evidence ever are; a bound on what one line costs."""
_BULLET = " \t>*+-"
_DATED = re.compile(rf'{_DATE}[ \t](?:[^"]*[ \t])?"')
_FRAME = re.compile(r"[ \t]*(?:#{1,6}[ \t].*|[-=*_`~]{3,}\w*|</?[\w:-]+>|.{0,80}[:：])[ \t]*")
"""What may stand around recalled lines without adding anything: headings, rules, tags, lead-ins."""


def render_fact_line(
    subject: str, predicate: str, object: str, since: str = "", until: str = "", reference: str = ""
) -> str:
    """One fact with its dates (`2024-02-01`; "" where unknown or open) and its evidence (`e12`)."""
    triple = f"- ({_flat(subject)}) --[{_flat(predicate).replace(']', '')}]--> ({_flat(object)})"
    return triple + _dates(since, until) + _reference(reference)


def render_voice_line(text: str, since: str = "", until: str = "", reference: str = "") -> str:
    """A sentence of the user's voice."""
    return f'- "{_flat(text)}"' + _dates(since, until) + _reference(reference)


def render_passage_line(said_on: str, speaker: str, text: str, reference: str) -> str:
    """What was literally said, by whom ("" in a document) and when."""
    who = f" {_flat(speaker)}:" if speaker else ""
    return f'- {said_on}{who} "{_flat(text)}"' + _reference(reference)


def recalled_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of every line of `text` that is a recalled line, without its line break."""
    return [(start, end) for start, end in _lines(text) if _is_recalled_line(text[start:end])]


def is_recalled(text: str) -> bool:
    """True when `text` is recalled lines, at most with a frame around them, and nothing else."""
    lines = [text[start:end] for start, end in _lines(text) if text[start:end].strip()]
    recalled = [_is_recalled_line(line) for line in lines]
    return any(recalled) and all(
        known or _FRAME.fullmatch(line) for line, known in zip(lines, recalled, strict=True)
    )


def _is_recalled_line(line: str) -> bool:
    # The cheap test first: most lines of most texts have neither an arrow nor a name of evidence.
    if "]-->" not in line and "[e" not in line:
        return False
    cut = max(0, len(line) - _TAIL_CHARACTERS)
    tail = _TAIL.search(line[cut:])
    assert tail is not None, "the tail may be empty"
    body = line[: cut + tail.start()].strip(_BULLET)
    if _is_triple(body):
        return True  # by its arrow alone: an agent may have cut off dates and evidence
    return (
        bool(tail["evidence"]) and body.endswith('"') and (body[0] == '"' or _DATED.match(body) is not None)
    )


def _is_triple(body: str) -> bool:
    return body.startswith("(") and body.endswith(")") and 0 < body.find(") --[") < body.rfind("]--> (")


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, start + len(line.rstrip("\r\n"))
        start += len(line)


def _flat(text: str) -> str:
    """On one line, whatever the text holds."""
    return " ".join(text.split())


def _dates(since: str, until: str) -> str:
    words = ([f"since {since}"] if since else []) + ([f"until {until}"] if until else [])
    return "  " + " ".join(words) if words else ""


def _reference(name: str) -> str:
    return f" [{name}]" if name else ""
