"""How new facts stand to known ones, by wording alone. In doubt there is no verdict: both stay.

Statements come as sentences, so that the same rules serve facts of any engine.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from services.domain.memory import VoiceKind
from services.domain.records import VerdictKind
from services.llm.tasks import JudgeStatements, JudgeVoice, Pair, PairVerdict, VoiceVerdict

_ARTICLES = frozenset({"a", "an", "the", "his", "her", "their", "its", "my", "our"})
_FILLERS = frozenset(
    {"please", "really", "very", "just", "also", "so", "now", "always", "do", "you", "to", "that"}
)
_NEGATIONS = frozenset(
    {"not", "never", "don't", "dont", "no", "avoid", "stop", "without", "doesn't", "isn't"}
)
_OVER = frozenset({"over", "than", "to", "instead"})
_WORD = re.compile(r"[^\W_]+(?:[.'’+#/-][^\W_]+)*[+#]*")


@dataclass(frozen=True, slots=True)
class _Tables:
    side: dict[str, tuple[int, int]]
    group: dict[str, int]
    chinese: re.Pattern[str]
    chinese_side: dict[str, tuple[int, int]]


@cache
def _tables() -> _Tables:
    table = tomllib.loads(files(__package__).joinpath("verdicts.toml").read_text("utf-8"))
    side = {
        verb: (line, position)
        for line, sides in enumerate(table["antonyms"])
        for position, verbs in enumerate(sides)
        for verb in verbs.split()
        if verb != "with"
    }
    group = {word: line for line, words in enumerate(table["exclusive"]) for word in words.split()}
    chinese = {
        verb: (line, position)
        for line, sides in enumerate(table["chinese_antonyms"])
        for position, verbs in enumerate(sides)
        for verb in verbs.split()
    }
    longest = re.compile("|".join(sorted(chinese, key=len, reverse=True)))
    return _Tables(side, group, longest, chinese)


def judge_statements(task: JudgeStatements) -> list[PairVerdict]:
    """CONTRADICTS for opposites of one pair of things, DUPLICATE for one fact in two spellings."""
    found: list[PairVerdict] = []
    for pair in _sound(task.pairs, len(task.new), len(task.candidates)):
        said, known = task.new[pair.new].fact, task.candidates[pair.candidate].fact
        new, old = _words(said), _words(known)
        if why := _opposed(new, old) or _opposed_in_chinese(said, known):
            found.append(PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS, why))
        elif _same(new, old):
            found.append(
                PairVerdict(pair.new, pair.candidate, VerdictKind.DUPLICATE, "one fact, spelled twice")
            )
    return found


def judge_voice(task: JudgeVoice) -> list[VoiceVerdict]:
    """Duplicates and evolutions among sentences of the user's voice."""
    found: list[VoiceVerdict] = []
    for pair in _sound(task.pairs, len(task.new), len(task.candidates)):
        new, old = task.new[pair.new], task.candidates[pair.candidate].fact
        ours, theirs = _said(new.text), _said(old)
        if ours == theirs:
            found.append(VoiceVerdict(pair.new, pair.candidate, duplicate=True, why="the same sentence"))
        elif why := _evolved(new.kind, new.text, old):
            found.append(VoiceVerdict(pair.new, pair.candidate, duplicate=False, why=why))
    return found


def _sound(pairs: Sequence[Pair], new: int, candidates: int) -> list[Pair]:
    return [pair for pair in pairs if 0 <= pair.new < new and 0 <= pair.candidate < candidates]


def _words(text: str) -> list[str]:
    """The words that matter, in order, with their capitals."""
    return [word for word in _WORD.findall(text.replace("’", "'")) if word.lower() not in _ARTICLES]


def _opposed(new: Sequence[str], old: Sequence[str]) -> str:
    side = _tables().side
    if len(new) != len(old):
        return ""
    different = [position for position, pair in enumerate(zip(new, old, strict=True)) if pair[0] != pair[1]]
    if len(different) != 1:
        return ""
    left, right = side.get(new[different[0]].lower()), side.get(old[different[0]].lower())
    if left is None or right is None or left[0] != right[0] or left[1] == right[1]:
        return ""
    return f"{new[different[0]]} is the opposite of {old[different[0]]}"


def _opposed_in_chinese(new: str, old: str) -> str:
    """The same for sentences like "Ana喜欢茶。", whose words don't stand apart."""
    tables = _tables()
    ours, theirs = tables.chinese.search(new), tables.chinese.search(old)
    if ours is None or theirs is None:
        return ""
    left, right = tables.chinese_side[ours.group()], tables.chinese_side[theirs.group()]
    around = [text[: at.start()] + "|" + text[at.end() :] for text, at in ((new, ours), (old, theirs))]
    if left[0] != right[0] or left[1] == right[1] or around[0] != around[1]:
        return ""
    return f"{ours.group()} is the opposite of {theirs.group()}"


def _same(new: Sequence[str], old: Sequence[str]) -> bool:
    """Equal but for articles and the plural of a common word ("dog", "dogs"; never "Apple", "apples")."""
    if len(new) != len(old) or not new:
        return False
    return all(left == right or (left.islower() and right.islower() and _singular(left) == _singular(right))
               for left, right in zip(new, old, strict=True))  # fmt: skip


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _said(text: str) -> list[str]:
    """A voice sentence without what doesn't change it."""
    words = [word.lower() for word in _WORD.findall(text.replace("’", "'"))]
    return [
        word
        for word in words
        if word not in _ARTICLES | {"please", "really", "also", "just", "so", "and", "but"}
    ]


def _evolved(kind: VoiceKind | None, new: str, old: str) -> str:
    """Why the new sentence replaces the old one; "" where it does not."""
    ours, theirs = _said(new), _said(old)
    negated = [bool(_NEGATIONS & set(words)) for words in (ours, theirs)]
    core = [[w for w in words if w not in _NEGATIONS | _FILLERS] for words in (ours, theirs)]
    if negated[0] != negated[1] and core[0] and core[0] == core[1]:
        return "the opposite of what was said"
    if kind not in {VoiceKind.DIRECTIVE, VoiceKind.PREFERENCE, None} or negated[0] != negated[1]:
        return ""
    if sorted(core[0]) == sorted(core[1]) and core[0] != core[1] and _OVER & set(ours):
        return "the other way round"
    if core[0][:2] == core[1][:2] == ["call", "me"]:
        return "another name"
    if len(core[0]) == len(core[1]) and _values_differ(core[0], core[1]):
        return "another value for the same thing"
    return ""


def _values_differ(new: Sequence[str], old: Sequence[str]) -> bool:
    """All differences are values of one kind that exclude each other; at least as much is shared."""
    different = [(left, right) for left, right in zip(new, old, strict=True) if left != right]
    if not different or len(different) > len(new) / 2:
        return False
    return all(_exclusive(left, right) for left, right in different)


def _exclusive(left: str, right: str) -> bool:
    if left.replace(".", "").isdigit() and right.replace(".", "").isdigit():
        return True
    group = _tables().group
    return left in group and group.get(left) == group.get(right)
