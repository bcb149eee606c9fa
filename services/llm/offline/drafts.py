"""Drafts: triples as a clause gives them, before their times and quotes are added."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from services.domain.dates import TimeExpression
from services.domain.facts import FactKind, Mention
from services.domain.graph import EntityType, Literal
from services.llm.offline.clauses import Clause
from services.llm.offline.lexicon import Frame
from services.llm.offline.phrases import Marks, Phrase, Reference, phrase
from services.llm.offline.speaking import Speaking
from services.llm.tasks import KnownFact

if TYPE_CHECKING:
    from spacy.tokens import Token

TOLD, LIKELY, HEDGED = 0.9, 0.7, 0.5
"""Confidence in what a rule made for the words says, what a general rule says, and what is implied."""


class Nature(Enum):
    """How a draft stands in time."""

    STATE = "state"
    BEGINNING = "beginning"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Draft:
    """A triple without its times. `nominal` predicates are roles: "Atlas's primary database is ..."."""

    kind: FactKind
    subject: Mention
    predicate: str
    object: Mention | Literal
    clause: Clause
    nature: Nature = Nature.STATE
    confidence: float = TOLD
    nominal: bool = False
    timeless: bool = False
    """Told in passing; the clause's time is not its own: "my daughter Emma was born in 2019"."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules may know beside the clause itself.

    `dated`: the verbs that have a time. `times`: the times that tokens tell.
    """

    speaking: Speaking
    marks: Marks
    dated: frozenset[int]
    known: Sequence[KnownFact] = ()
    times: Mapping[int, TimeExpression] = field(default_factory=dict)

    def phrases(self, heads: Sequence["Token"]) -> list[Phrase]:
        found = (phrase(head, self.marks) for head in heads)
        return [item for item in found if item is not None]

    def subjects(self, clause: Clause) -> list[tuple[Phrase, Mention]]:
        """The clause's subjects that are plain. An elided one ("Moved to Berlin.") is the speaker."""
        if clause.elided:
            if self.speaking.document or self.speaking.assistant:
                return []
            return [
                (
                    Phrase(clause.verb, self.speaking.speaker, Reference.I),
                    Mention(self.speaking.speaker, EntityType.PERSON),
                )
            ]
        found = []
        for item in self.phrases(clause.subjects):
            who = self.speaking.who(item)
            plain = item.reference is not Reference.COMMON or item.owner is not None
            if who is not None and (plain or (self.speaking.document and item.plural)):
                found.append((item, who))
        return found

    def is_dated(self, clause: Clause) -> bool:
        return clause.verb.i in self.dated

    def thing(self, item: Phrase) -> Mention | None:
        """An object: what the speaker owns goes by its own name ("my car" is a car)."""
        if item.owner is not None and item.owner.reference in {Reference.I, Reference.WE}:
            return Mention(item.role, item.type)
        return self.speaking.who(item)


def typed(mention: Mention, given: EntityType) -> Mention:
    """The mention with the type its predicate asks for, unless its own is known."""
    if given is EntityType.UNKNOWN or mention.type is not EntityType.UNKNOWN:
        return mention
    return Mention(mention.name, given)


def framed(
    frame: Frame, subject: Mention, target: Mention | Literal, clause: Clause, *,
    kind: FactKind = FactKind.CLAIM, nature: Nature = Nature.STATE, confidence: float = TOLD,
) -> Draft:  # fmt: skip
    """A draft whose ends have the types of the frame."""
    made = typed(target, frame.object) if isinstance(target, Mention) else target
    if isinstance(made, Mention) and frame.object is EntityType.CONCEPT:
        made = Mention(made.name, EntityType.CONCEPT)  # "promoted to manager": the post, not a person
    return Draft(kind, typed(subject, frame.subject), frame.predicate, made, clause, nature, confidence)


def snake(words: str) -> str:
    """A role or verb as a predicate: `Primary database` is `primary_database`."""
    kept = "".join(letter if letter.isalnum() else " " for letter in words.lower())
    return "_".join(kept.split())


def known_predicate(known: Iterable[KnownFact], subject: str, target: str) -> str:
    """The verb between two names in a known fact's sentence, as a predicate; "" if none tells of both."""
    pattern = re.compile(
        rf"^{re.escape(subject)} ((?:[a-z]+ ){{1,3}}?)(?:project )?{re.escape(target)}\b", re.IGNORECASE
    )
    for fact in known:
        if match := pattern.match(fact.fact):
            return snake(match.group(1))
    return ""


_BE_BEFORE = frozenset(
    {"built", "written", "married", "engaged", "allergic", "interested", "afraid", "fluent", "responsible",
     "compatible", "dating", "related"}
)  # fmt: skip
_ROLES = frozenset({"job_title", "diet", "age", "marital_status"})


def sentence(draft: Draft) -> str:
    """The fact as a sentence that stands alone, in the form that holds."""
    subject = draft.subject.name
    target = draft.object.text if isinstance(draft.object, Literal) else draft.object.name
    words = draft.predicate.replace("_", " ")
    if draft.nominal:
        return f"{subject}'s {words} is {target}."
    if draft.predicate in _ROLES:
        return f"{subject}'s {words} is {target}."
    if draft.predicate == "has_pet":
        return f"{subject} has a pet, {target}."
    if draft.predicate == "member_of":
        return f"{subject} is a member of {target}."
    if draft.predicate == "is_a":
        article = "an" if target[:1].lower() in set("aeiou") else "a"
        return f"{subject} is {article} {target}."
    first = words.split(" ", 1)[0]
    if first == "born":
        words = f"was {words}"
    elif draft.nature is not Nature.EVENT and (
        first in _BE_BEFORE or (first.endswith("ed") and first != words)
    ):
        words = f"is {words}"
    return f"{subject} {words} {target}."
