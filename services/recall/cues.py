"""Cues: what the words of a question say of its kind: its intent, the aspects and predicates it is about."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.domain.graph import GraphAspect
from services.domain.ids import EntityId
from services.domain.memory import VoiceKind
from services.domain.predicates import Vocabulary
from services.recall.mentions import Named
from services.recall.terms import terms


class Intent(StrEnum):
    """What the question wants. Names as in the internal API."""

    ATTRIBUTE = "attribute"
    RELATIONSHIP = "relationship"
    TEMPORAL = "temporal"
    WHAT_CHANGED = "what_changed"
    PREFERENCES = "preferences"
    OPEN = "open"

    @property
    def looks_back(self) -> bool:
        """Whether what has ended may be the answer though no time is asked for."""
        return self in (Intent.TEMPORAL, Intent.WHAT_CHANGED)


def _any(words: str) -> re.Pattern[str]:
    """English words between borders, Chinese anywhere; parts in parentheses are patterns."""
    english = [word for word in words.split("|") if word.isascii()]
    chinese = [word for word in words.split("|") if not word.isascii()]
    return re.compile("|".join([rf"\b(?:{'|'.join(english)})\b", *chinese]), re.IGNORECASE)


# In order: the first that is met decides.
_INTENTS: Sequence[tuple[Intent, re.Pattern[str]]] = (
    (
        Intent.WHAT_CHANGED,
        _any(
            r"chang(?:e|es|ed|ing)|used to|no longer|any ?more|previous(?:ly)?|former(?:ly)?|history"
            r"|before(?=\W*$)|replaced?|switch(?:ed)?|migrated?|instead of"
            r"|变化|改变|变更|变了|换了|换成|以前|之前|从前|曾经|过去|不再|原来|历史"
        ),
    ),
    (
        Intent.TEMPORAL,
        _any(
            r"when|since when|how long|how many (?:days|weeks|months|years)|what (?:date|day|month|year|time)"
            r"|which (?:date|day|month|year)|how often|last time|first time"
            r"|什么时候|何时|哪天|哪年|哪一年|多久|几月|日期"
        ),
    ),
    (
        Intent.PREFERENCES,
        _any(
            r"prefer(?:s|red|ences?)?|favou?rites?|likes?|dislikes?|loves?|hates?|enjoys?|interests?|hobb(?:y|ies)"
            r"|should (?:you|i|we)|recommend|suggest|喜欢|偏好|爱好|讨厌|最爱|推荐|建议"
        ),
    ),
    (
        Intent.RELATIONSHIP,
        _any(
            r"relationship|related|relation|know each other|connected|connection|between|how do \w+ and \w+"
            r"|who is \w+ to|compar(?:e|es|ed|ing|ison)|differ(?:s|ent|ence|ences)?|versus|vs"
            r"|关系|认识|比较|区别|不同|相比"
        ),
    ),
    (
        Intent.ATTRIBUTE,
        _any(r"what|where|who|whose|which|how (?:old|tall|many|much)|什么|哪里|哪儿|谁|哪个|多少|几"),
    ),
)

_ASPECTS: Sequence[tuple[GraphAspect, re.Pattern[str]]] = (
    (
        GraphAspect.IDENTITY,
        _any(r"who|name|born|birthday|job|occupation|age|old|live|lives|lived|谁|名字|生日|职业|住"),
    ),
    (
        GraphAspect.EVENT,
        _any(r"happened|attend(?:ed)?|went|visit(?:ed)?|event|trip|party|发生|参加|活动|旅行"),
    ),
    (
        GraphAspect.RELATIONSHIP,
        _any(r"friends?|married|husband|wife|parents?|colleagues?|boss|manager|朋友|丈夫|妻子|同事"),
    ),
    (GraphAspect.DECISION, _any(r"decided?|decision|chose|chosen|why did|agreed|决定|选择")),
    (GraphAspect.PROBLEM, _any(r"problems?|issues?|bugs?|broken|wrong|fail(?:ed|s)?|errors?|问题|故障|错误")),
    (GraphAspect.TASK, _any(r"todo|to-do|tasks?|deadline|due|has to|needs? to|任务|待办|截止")),
)

_VOICE: Sequence[tuple[VoiceKind, re.Pattern[str]]] = (
    (VoiceKind.DIRECTIVE, _any(r"rules?|always|never|instructions?|should|must|规则|总是|必须|不要")),
    (
        VoiceKind.PREFERENCE,
        _any(r"prefer(?:s|red|ences?)?|favou?rites?|likes?|dislikes?|loves?|hates?|喜欢|偏好"),
    ),
    (VoiceKind.HABIT, _any(r"usually|habits?|routine|every (?:day|week|morning)|often|习惯|经常|每天")),
    (VoiceKind.BELIEF, _any(r"believes?|thinks?|opinions?|feels?|views?|认为|觉得|看法")),
    (VoiceKind.GOAL, _any(r"goals?|plans?|wants?|aims?|hopes?|dreams?|目标|计划|想要|希望")),
    (VoiceKind.TASK, _any(r"todo|to-do|tasks?|remind|任务|待办|提醒")),
)


@dataclass(frozen=True, slots=True)
class Cues:
    """What the words point to. They raise, they never hide."""

    intent: Intent
    aspects: tuple[GraphAspect, ...] = ()
    voice: tuple[VoiceKind, ...] = ()
    predicates: frozenset[EntityId] = frozenset()


class PredicateWords:
    """The telling words of each predicate's names ("works_at": work), found by any one of them."""

    def __init__(self, predicates: Iterable[Named], vocabulary: Vocabulary) -> None:
        others: dict[str, list[str]] = {}
        for alias, name in vocabulary.aliases.items():
            others.setdefault(name, []).append(alias)
        self._by_word: dict[str, list[tuple[frozenset[str], EntityId]]] = {}
        for named in predicates:
            for name in (named.name, *others.get(_canonical(named.name, vocabulary), ())):
                words = frozenset(terms(name.replace("_", " ")))
                if words:
                    self._by_word.setdefault(min(words), []).append((words, named.id))

    def cued(self, question: str) -> frozenset[EntityId]:
        """Predicates one of whose names has all its telling words in the question."""
        asked = set(terms(question))
        return frozenset(id for word in asked for words, id in self._by_word.get(word, ()) if words <= asked)


def read_cues(question: str, predicates: PredicateWords | None) -> Cues:
    """Reads the words of a question."""
    return Cues(
        intent=next((intent for intent, words in _INTENTS if words.search(question)), Intent.OPEN),
        aspects=tuple(aspect for aspect, words in _ASPECTS if words.search(question)),
        voice=tuple(kind for kind, words in _VOICE if words.search(question)),
        predicates=predicates.cued(question) if predicates else frozenset(),
    )


def _canonical(name: str, vocabulary: Vocabulary) -> str:
    try:
        return vocabulary.canonical(name)
    except ValueError:
        return ""
