"""The lines of a recalled context block: how they are written, and how they are known again.

What this memory recalled must not come back as evidence when an agent pastes it into a conversation, whole
or in part. A line ends with the short name of its evidence (`[e12]`); a block has headings and lines, and
nothing else.

    - (Maya) --[lives_in]--> (Graz)  since 2024-02-01 [e12]
    - (Maya) --[lives_in]--> (Linz)  since 2020-05-01 until 2024-02-01 [e3]
    - "Always run the tests before you open a PR."  since 2025-01-01 [e4]
    - 2025-01-01 Maya: "I moved to Graz." [e12]

The marks are the arrow and the name of evidence, as chats, mails and JSON pass them on. Anybody can write
them, so they speak for themselves alone: a triple covers itself wherever it stands, a quoted sentence with
its evidence the line that it fills, and no mark covers a word beside it.
"""

import re
from collections.abc import Iterator, Sequence

_DATE = r"-?\d{1,5}(?:-\d{2}){0,2}(?:T[\d:.]+Z?)?"
_EVIDENCE = r"\\?\[e\d+(?:,[ \t]*e\d+)*\\?\]"
_DATES = rf"(?:[ \t]+(?:since|until)[ \t]+{_DATE}){{0,2}}"
_TAIL = re.compile(rf"{_DATES}(?P<evidence>(?:[ \t]*{_EVIDENCE})*)[ \t]*\Z")
_TAIL_CHARACTERS = 200
"""Longer than dates and evidence ever are; a bound on what one line costs."""
_BULLET = " \t>*+-•"
_OPENS, _CLOSES = '"“„「', '"”“」'
"""Quotation marks as we write them, and as editors make them of ours."""
_DATED = re.compile(rf'\d{{4}}(?:-\d{{2}}){{0,2}}[ \t](?:[^"\n]{{0,600}}:[ \t])?[{_OPENS}]')
_OPEN, _CLOSE = r"(?:--?|[–—])\\?\[", r"\\?\](?:(?:--?|[–—])(?:>|&gt;)|→)"
_ARROW = re.compile(rf"\s{{1,3}}{_OPEN}[^\[\]()\n]{{1,600}}?{_CLOSE}\s{{1,3}}")
"""What stands between the names, where a mail may have broken the line."""
_SUBJECT = re.compile(r"(?:\([^()\n]{1,600}\)|\S{0,100}\))\Z")
_OBJECT = re.compile(rf"\([^()\n]{{0,600}}(?:\){_DATES}(?:[ \t]*{_EVIDENCE})*|(?=\n|\Z))")
_NAME_CHARACTERS = 603
_FRAME = re.compile(r"(?:[-=*_`~]{3,}\w*|</?[\w:-]+>|[\s,\[\]{}()\"'\\nt]*)")
"""What may stand around recalled lines without adding anything: rules, tags, what quotes them in JSON."""
_LEAD_IN = re.compile(r"(?:#{1,6}[ \t]+)?(?P<words>.{1,100}?)[:：]?")
_WORD = re.compile(
    r"i|we|you|me|it|us|let|here(?:'s)?|is|are|was|were|be|what|which|how|the|an?|th(?:is|at|ese|ose)|following|below"
    r"|above|as|of|from|in|on|about|for|to|and|or|by|with|my|our|your|users?|user's|words?|remember(?:ed)?"
    r"|recall(?:ed)?|know[ns]?|found|find|have|has|had|memor(?:y|ies)|context|facts?|notes?|background|info"
    r"|information|relevant|related|past|previous(?:ly)?|earlier|prior|conversations?|chats?|history|said|stored"
    r"|saved|retrieved|long|term|so|far|according|results?|block|think|current|evidence|answer|lines|again|got"
    r"|get|given|back|now|ok|okay|yes|sure"
)
_CHINESE_WORDS = re.compile(
    r"(?:我们?|你们?|您|记得|记住|记忆|回忆|想起|以下|下面|这些?|是|的|了|相关|内容|事实|信息|关于|用户|已知|背景|上下文|如下"
    r"|根据|里|中|有|在|从|找到|查到|知道|说过?|原?话|历史|对话|之前|以前|资料|一下|[，、\s])+"
)
"""Words of which lead-ins are made, and no fact can be: a frame must not hide what somebody says."""


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
    """(start, end) of what this memory recalled, in order: whole lines, and triples within others."""
    if "[" not in text:
        return []  # the cheap test first: most texts have neither an arrow nor a name of evidence
    spans = [(start, end) for start, end in _lines(text) if _is_recalled_line(text[start:end])]
    return _merged([*spans, *_triples(text)])


def is_recalled(text: str) -> bool:
    """True when `text` is recalled lines, at most with a frame around them, and nothing else."""
    spans = recalled_spans(text)
    if not spans:
        return False
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    between = (text[end:start] for end, start in zip(ends, starts, strict=True))
    return all(_adds_nothing(line) for part in between for line in part.splitlines())


def _is_recalled_line(line: str) -> bool:
    if "]" not in line:
        return False
    cut = max(0, len(line) - _TAIL_CHARACTERS)
    tail = _TAIL.search(line[cut:])
    assert tail is not None, "the tail may be empty"
    body = line[: cut + tail.start()].strip(_BULLET)
    if _is_triple(body):
        return True  # by its arrow alone: an agent may have cut off dates and evidence
    return (
        bool(tail["evidence"])
        and body.endswith(tuple(_CLOSES))
        and (body[0] in _OPENS or _DATED.match(body) is not None)
    )


def _is_triple(body: str) -> bool:
    return body.startswith("(") and body.endswith(")") and 0 < body.find(") --[") < body.rfind("]--> (")


def _triples(text: str) -> Iterator[tuple[int, int]]:
    """Triples wherever they stand, each with its dates and evidence; what is left of one cut off."""
    for arrow in _ARROW.finditer(text):
        subject = _SUBJECT.search(text, max(0, arrow.start() - _NAME_CHARACTERS), arrow.start())
        target = _OBJECT.match(text, arrow.end())
        if subject and target:
            yield subject.start(), target.end()


def _adds_nothing(line: str) -> bool:
    line = line.strip(_BULLET)
    if _FRAME.fullmatch(line):
        return True
    lead_in = _LEAD_IN.fullmatch(line)
    if lead_in is None:
        return False
    words = lead_in["words"].strip(" *_,.!")
    plain = words.casefold().replace("’", "'").replace(",", " ").replace("-", " ")
    return all(_WORD.fullmatch(word) for word in plain.split()) or _CHINESE_WORDS.fullmatch(words) is not None


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


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
