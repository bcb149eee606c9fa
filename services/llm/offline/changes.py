"""Ends ("left Google") and changes ("moved Atlas from MySQL to PostgreSQL": an end and a claim)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.domain.facts import FactKind, Mention
from services.domain.graph import EntityType
from services.llm.offline.clauses import Clause, Tense, Turn
from services.llm.offline.drafts import TOLD, Context, Draft, Nature, framed, known_predicate, snake, typed
from services.llm.offline.lexicon import Frame, lexicon
from services.llm.offline.phrases import Phrase, Reference
from services.llm.offline.states import governed, keyed

if TYPE_CHECKING:
    from spacy.tokens import Token

_PLACES = frozenset({"GPE", "LOC"})
_TOLD_TENSES = frozenset({Tense.PAST, Tense.PERFECT})
_PERSONAL = frozenset(
    {"move", "transfer", "rotate", "reassign", "relocate", "switch", "change", "promote", "go"}
)
"""Verbs that people do from place to place, from work to work."""
_JOB = frozenset({"job", "role", "position", "post", "work", "internship"})


@dataclass(frozen=True, slots=True)
class _Slot:
    """What changed: a role of a thing, or a thing under a predicate."""

    subject: Mention
    predicate: str
    nominal: bool = False


def draft_change(clause: Clause, context: Context) -> list[Draft]:
    """An end of the old and a claim of the new, or a claim alone where the old is not named."""
    if clause.negated or clause.tense not in _TOLD_TENSES | {Tense.FUTURE} or clause.turn is not Turn.NONE:
        return []
    if clause.tense is Tense.FUTURE and not context.is_dated(clause):
        return []
    if clause.lemma == "replace" or (clause.lemma == "swap" and clause.objects):
        return _replaced(clause, context)
    if clause.lemma not in lexicon().changes:
        return []
    old, new = (
        _ends(context, clause.link("from", "off", "away from")),
        _ends(context, clause.link("to", "over to", "into", "onto")),
    )
    if not new:
        return []
    versions = _versions(clause, context, old), _versions(clause, context, new)
    if versions != (old, new):
        agents = context.subjects(clause)
        return (
            _pair(clause, _Slot(context.speaking.topic or agents[0][1], "uses"), *versions) if agents else []
        )
    slot = _slot(clause, context, old, new)
    if slot is None:
        return []
    return _pair(clause, slot, old, new)


def _ends(context: Context, tokens: Iterable["Token"]) -> list[tuple[Phrase, Mention]]:
    found: list[tuple[Phrase, Mention]] = []
    for item in context.phrases(list(tokens)):
        target = context.thing(item)
        if target is not None and item.reference not in {Reference.YOU, Reference.PERSON}:
            found.append((item, target))
    return found


def _pair(
    clause: Clause, slot: _Slot, old: list[tuple[Phrase, Mention]], new: list[tuple[Phrase, Mention]]
) -> list[Draft]:
    kind = {
        "lives_in": EntityType.PLACE,
        "works_on": EntityType.PROJECT,
        "works_at": EntityType.ORGANIZATION,
    }.get(slot.predicate, EntityType.UNKNOWN)
    drafts = [
        Draft(
            FactKind.END,
            slot.subject,
            slot.predicate,
            typed(target, kind),
            clause,
            Nature.BEGINNING,
            TOLD,
            slot.nominal,
        )
        for _, target in old
    ]
    return drafts + [
        Draft(
            FactKind.CLAIM,
            slot.subject,
            slot.predicate,
            typed(target, kind),
            clause,
            Nature.BEGINNING,
            TOLD,
            slot.nominal,
        )
        for _, target in new
    ]


def _slot(
    clause: Clause, context: Context, old: list[tuple[Phrase, Mention]], new: list[tuple[Phrase, Mention]]
) -> _Slot | None:
    changed = context.phrases(clause.subjects if clause.passive or not clause.objects else clause.objects)
    if not changed and clause.elided and not clause.objects:
        return (
            _Slot(Mention(context.speaking.speaker, EntityType.PERSON), "lives_in")
            if _at_place(old, new)
            else None
        )
    if not changed:
        return None
    item = changed[0]
    named = old + new
    if item.owner is not None:
        owner = context.speaking.who(item.owner)
        return None if owner is None else _Slot(owner, snake(item.role), nominal=True)
    if item.reference is Reference.DEFINITE and (clause.objects or clause.passive):
        return _of_topic(clause, context, item)
    who = context.speaking.who(item)
    if who is None or (not old and not clause.objects and not clause.passive):
        return None
    personal = (clause.passive or not clause.objects) and clause.lemma in _PERSONAL
    if item.reference in {Reference.WE, Reference.I} and any(
        end.type is EntityType.TECHNOLOGY for _, end in named
    ):
        return _Slot(context.speaking.topic or who if item.reference is Reference.WE else who, "uses")
    if not all(end.reference is Reference.NAME for end, _ in named):
        return None
    return _Slot(
        who, _predicate(clause, context, who, old, new) if personal else lexicon().changes[clause.lemma]
    )


def _of_topic(clause: Clause, context: Context, item: Phrase) -> _Slot | None:
    """Reads "We moved the database to X": the database of whatever the talk is about, else of the speaker."""
    agents = [] if clause.passive else context.subjects(clause)
    subject = context.speaking.topic or (agents[0][1] if agents else None)
    return None if subject is None else _Slot(subject, snake(item.name), nominal=True)


def _at_place(*ends: list[tuple[Phrase, Mention]]) -> bool:
    return any(item.head.ent_type_ in _PLACES for end in ends for item, _ in end)


def _predicate(
    clause: Clause,
    context: Context,
    who: Mention,
    old: list[tuple[Phrase, Mention]],
    new: list[tuple[Phrase, Mention]],
) -> str:
    """What changed for a person: as already known of the old, else by what the names are."""
    for _, target in old:
        if known := known_predicate(context.known, who.name, target.name):
            return known
    default = lexicon().changes[clause.lemma]
    if any(target.type is EntityType.TECHNOLOGY for _, target in old + new):
        return "uses"
    if any(target.type is EntityType.PROJECT for _, target in old + new):
        return "works_on"
    if clause.lemma in {"move", "relocate"} and _at_place(old, new):
        return "lives_in"
    return "works_on" if clause.lemma == "move" else default


def _versions(
    clause: Clause, context: Context, ends: list[tuple[Phrase, Mention]]
) -> list[tuple[Phrase, Mention]]:
    """Reads "upgraded PostgreSQL from 15 to 16": the ends are PostgreSQL 15 and PostgreSQL 16."""
    if not clause.objects or clause.lemma not in {"upgrade", "downgrade", "move", "migrate"}:
        return ends
    thing = next(iter(context.phrases(clause.objects)), None)
    if thing is None or thing.type is not EntityType.TECHNOLOGY:
        return ends
    return [
        (item, Mention(f"{thing.name} {target.name}", thing.type))
        if target.name[:1].isdigit()
        else (item, target)
        for item, target in ends
    ]


def _replaced(clause: Clause, context: Context) -> list[Draft]:
    """Reads "we replaced A with B", "B replaced A as the database of Atlas" and "A was replaced by B"."""
    second = _ends(context, clause.link("with", "by", "for"))
    first = _ends(context, clause.subjects if clause.passive else clause.objects)
    role = next((item for item in context.phrases(clause.link("as")) if item.owner is not None), None)
    if role is not None and role.owner is not None:
        owner = context.speaking.who(role.owner)
        new = second or ([] if clause.passive else _ends(context, clause.subjects))
        return (
            _pair(clause, _Slot(owner, snake(role.role), nominal=True), first, new) if owner and new else []
        )
    if not second or not first:
        return []
    item = first[0][0]
    if item.owner is not None:  # "replaced the primary database of Atlas with B": the old is not named
        owner = context.speaking.who(item.owner)
        return _pair(clause, _Slot(owner, snake(item.role), nominal=True), [], second) if owner else []
    where = _ends(context, clause.link("in", "at"))
    if clause.passive:
        subject = where[0][1] if where else context.speaking.topic
    else:
        agents = context.subjects(clause)
        subject = where[0][1] if where else (agents[0][1] if agents else None)
        if agents and agents[0][0].reference is Reference.WE and not where:
            subject = context.speaking.topic or subject
    if subject is None or not all(end.reference is Reference.NAME for end, _ in first + second):
        return []
    return _pair(clause, _Slot(subject, "uses"), first, second)


def draft_ending(clause: Clause, context: Context) -> list[Draft]:
    """Drafts of "left", "sold", "moved off" and the like."""
    if clause.negated or clause.turn is not Turn.NONE:
        return []
    if clause.tense not in _TOLD_TENSES and not context.is_dated(clause):
        return []
    for key, tokens in keyed(clause):
        frame = lexicon().endings.get(key)
        if frame is None:
            continue
        drafts = [
            framed(chosen, who, target, clause, kind=FactKind.END, nature=Nature.BEGINNING)
            for _, who in context.subjects(clause)
            for item in context.phrases(tokens)
            for chosen, target in _ended(clause, context, frame, item)
        ]
        if drafts:
            return drafts
    return []


def _ended(clause: Clause, context: Context, frame: Frame, item: Phrase) -> list[tuple[Frame, Mention]]:
    """What stopped, by the thing that was left, sold or dropped; nothing where it is not plain."""
    if item.head.lower_ in _JOB:
        tokens = [*governed(item.head, "at", "with", "for"), *clause.link("at", "with")]
        works = Frame("works_at", EntityType.PERSON, EntityType.ORGANIZATION)
        title = Frame("job_title", EntityType.PERSON, EntityType.CONCEPT)
        titles = [*governed(item.head, "as"), *clause.link("as")]
        return [
            (works, end) for inner, end in _ends(context, tokens) if inner.reference is Reference.NAME
        ] + [(title, end) for inner, end in _ends(context, titles) if inner.reference is Reference.COMMON]
    target = context.thing(item)
    if target is None or clause.lemma == "lose":
        return []
    named = item.reference is Reference.NAME
    if clause.lemma == "move" and frame.predicate == "lives_in" and item.head.ent_type_ not in _PLACES:
        return []
    owned = item.owner is not None and item.owner.reference in {Reference.I, Reference.WE, Reference.PERSON}
    match clause.lemma:
        case "leave" | "quit" | "resign" | "retire" | "depart":
            return _left(frame, item, target)
        case "sell" | "give":
            return [(frame, target)] if named or owned or item.reference is Reference.DEFINITE else []
        case "remove" | "get" | "phase" | "switch":
            return [(frame, target)] if named or (clause.lemma == "get" and owned) else []
        case "cancel":
            name = re.sub(r"\s+(?:subscription|membership|plan)$", "", target.name, flags=re.IGNORECASE)
            return [(frame, Mention(name, target.type))] if named else []
    return [(frame, target)] if named else []


def _left(frame: Frame, item: Phrase, target: Mention) -> list[tuple[Frame, Mention]]:
    if item.head.lemma_.lower() in lexicon().words["groups"] and item.reference is not Reference.COMMON:
        return [(Frame("member_of", EntityType.PERSON), target)]
    if item.reference is not Reference.NAME:
        return []
    if item.type is EntityType.PROJECT:
        return [(Frame("works_on", EntityType.PERSON, EntityType.PROJECT), target)]
    if frame.predicate == "works_at" and item.head.ent_type_ in _PLACES:
        return [(Frame("lives_in", EntityType.PERSON, EntityType.PLACE), target)]
    return [(frame, target)]
