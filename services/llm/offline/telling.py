"""Telling: titles, labels, summaries and personas by rules, from resolved facts; equal facts, equal words."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from services.domain.instants import BEGINNING, Instant, moment
from services.domain.summaries import MAX_LABELS, TITLE_WORDS, words_in
from services.llm import tasks
from services.llm.offline.script import is_chinese

MAX_SENTENCES = 12
"""Of a summary: what a reader takes in at a glance."""
MAX_PORTRAIT = 60
"""Sentences of a persona."""

_END = re.compile(r"[.!?。！？…]+\s*$")
Names = tuple[str, str]
"""In English and in Chinese."""


@cache
def _topics() -> tuple[Mapping[str, Names], Mapping[str, Names]]:
    """Names by predicate, and by kind."""
    table = tomllib.loads(files(__package__).joinpath("topics.toml").read_text("utf-8"))
    by_predicate: dict[str, Names] = {}
    for topic in table["topics"].values():
        for predicate in topic["predicates"].split():
            by_predicate.setdefault(predicate, tuple(topic["names"]))
    return by_predicate, {kind: tuple(names) for kind, names in table["kinds"].items()}


def summarise(task: tasks.Summarise) -> tasks.Summarised:
    """Each fact as a sentence, as they began; what holds first where there are too many."""
    chinese = in_chinese(task.facts)
    labels = _labels(task.facts, chinese)
    chosen = sorted(range(len(task.facts)), key=lambda at: (task.facts[at].invalid_at is not None, at))
    told = sorted(chosen[:MAX_SENTENCES], key=lambda at: (_start(task.facts[at]), at))
    sentences = _told(task.facts, told, chinese)
    return tasks.Summarised(_title(task.facts, labels, chinese), labels, sentences)


def portray(task: tasks.Portray) -> tasks.Portrayed:
    """Each fact as a sentence, in the order given."""
    told = range(min(len(task.facts), MAX_PORTRAIT))
    return tasks.Portrayed(_told(task.facts, told, in_chinese(task.facts)))


def in_chinese(facts: Sequence[tasks.ToldFact]) -> bool:
    """Whether most of what is told is Chinese."""
    found = sum(is_chinese(fact.fact) for fact in facts)
    return 2 * found > len(facts)


def _told(
    facts: Sequence[tasks.ToldFact], positions: Sequence[int], chinese: bool
) -> list[tasks.ToldSentence]:
    """Facts that read alike are one sentence."""
    sentences: dict[str, list[int]] = {}
    for position in positions:
        sentences.setdefault(_sentence(facts[position], chinese), []).append(position)
    return [tasks.ToldSentence(text, found) for text, found in sentences.items()]


def _sentence(fact: tasks.ToldFact, chinese: bool) -> str:
    words = " ".join(fact.fact.split())
    if fact.invalid_at is not None:
        until = _day(fact.invalid_at)
        words = _END.sub("", words) + (f"（至 {until}）" if is_chinese(words) else f" (until {until})")
    if not _END.search(words):
        words += "。" if chinese and is_chinese(words) else "."
    return words[:1].upper() + words[1:]


def _labels(facts: Sequence[tasks.ToldFact], chinese: bool) -> list[str]:
    """The commonest topics; of equals, what was told first."""
    by_predicate, by_kind = _topics()
    counted: Counter[str] = Counter()
    for fact in facts:
        names = by_predicate.get(fact.predicate) or by_kind.get(fact.kind) or by_kind["Knowledge"]
        counted[names[chinese]] += 1
    return [name for name, _ in counted.most_common(MAX_LABELS)]


def _title(facts: Sequence[tasks.ToldFact], labels: Sequence[str], chinese: bool) -> str:
    """Whom it is about, and what: `Maya: work, home and travel`. Always of 3 to 8 words."""
    subjects = Counter(fact.subject for fact in facts if fact.subject)
    named = [name for name, _ in subjects.most_common(2) if words_in(name) in (1, 2)]
    about = [label if chinese else label.lower() for label in labels]
    for whom in (named, named[:1], []):
        for count in range(len(about), 0, -1):
            title = _chinese(whom, about[:count]) if chinese else _english(whom, about[:count])
            if TITLE_WORDS[0] <= words_in(title) <= TITLE_WORDS[1]:
                return title
    return "关于几件事情" if chinese else "Notes on several things"


def _english(whom: Sequence[str], about: Sequence[str]) -> str:
    topics = about[0] if len(about) == 1 else f"{', '.join(about[:-1])} and {about[-1]}"
    return f"{' and '.join(whom)} on {topics}" if whom else f"Notes on {topics}"


def _chinese(whom: Sequence[str], about: Sequence[str]) -> str:
    return f"{'和'.join(whom)}谈{'、'.join(about)}" if whom else f"谈谈{'、'.join(about)}"


def _start(fact: tasks.ToldFact) -> Instant:
    return BEGINNING if fact.valid_at is None else fact.valid_at


def _day(at: Instant) -> str:
    try:
        return f"{moment(at):%Y-%m-%d}"
    except OverflowError:
        return "?"
