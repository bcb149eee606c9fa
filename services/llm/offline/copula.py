"""What "to be" says: roles, kinds, names, adjectives, places."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from services.domain.dates import TimeExpression
from services.domain.facts import FactKind, Mention
from services.domain.graph import EntityType, Literal, LiteralKind
from services.domain.instants import Precision, moment
from services.llm.offline.clauses import Clause, Tense, is_misread_name
from services.llm.offline.drafts import (
    LIKELY,
    TOLD,
    Context,
    Draft,
    Nature,
    framed,
    known_predicate,
    snake,
    typed,
)
from services.llm.offline.lexicon import Frame, lexicon
from services.llm.offline.phrases import Phrase, Reference, is_proper

if TYPE_CHECKING:
    from spacy.tokens import Token

_PEOPLE = frozenset({Reference.I, Reference.PERSON, Reference.NAME})
_LASTING = frozenset({Tense.PRESENT, Tense.PERFECT})


def draft_copula(clause: Clause, context: Context) -> list[Draft]:
    """Drafts of a clause whose verb is "be", and of "is called"."""
    if clause.lemma in {"call", "name"} and clause.passive:
        return _called(clause, context)
    became = clause.lemma == "become" and clause.tense in {Tense.PAST, Tense.PERFECT}
    if not became and (
        clause.lemma != "be" or (clause.tense not in _LASTING and not context.is_dated(clause))
    ):
        return []
    drafts: list[Draft] = []
    for subject, who in context.subjects(clause):
        values = _values(clause)
        for value in values:
            if value.dep_ == "acomp" or (value.dep_ == "conj" and value.pos_ == "ADJ"):
                drafts += _adjective(clause, context, subject, who, value)
            elif value.i in context.times:
                drafts += _date(clause, context, subject, context.times[value.i])
            elif phrases := context.phrases([value]):
                drafts += _attribute(clause, context, subject, who, phrases)
        drafts += [] if values else _place(clause, context, subject, who)
    if became:
        return [replace(draft, nature=Nature.BEGINNING) for draft in drafts if not clause.negated]
    if clause.no_longer:
        return [replace(draft, kind=FactKind.END) for draft in drafts]
    return [replace(draft, kind=FactKind.DENIAL) for draft in drafts] if clause.negated else drafts


def _values(clause: Clause) -> list["Token"]:
    """What the subject is said to be, with what is joined to it: "vegan and allergic to nuts"."""
    found = [
        token
        for token in clause.verb.children
        if token.dep_ in {"attr", "acomp"} or (is_misread_name(token) and token.i > clause.verb.i)
    ]
    for token in found[:1]:
        found += [
            child
            for child in token.children
            if child.dep_ == "conj" and child.pos_ in {"ADJ", "NOUN", "PROPN"}
        ]
    return found


def draft_role(
    clause: Clause, owner: Mention, role: str, target: Mention | Literal, confidence: float
) -> list[Draft]:
    words = lexicon().words
    last = role.split(" ")[-1].lower()
    if last in words["vague"]:
        return []
    if isinstance(target, Mention) and last in words["family"] | words["people"]:
        target = typed(target, EntityType.PERSON)
        owner = typed(owner, EntityType.PERSON) if last in words["family"] else owner
    if last in words["pets"] and isinstance(target, Mention):
        return [
            Draft(FactKind.CLAIM, owner, "has_pet", target, clause, confidence=confidence),
            Draft(
                FactKind.CLAIM,
                target,
                "is_a",
                Mention(last, EntityType.CONCEPT),
                clause,
                confidence=confidence,
            ),
        ]
    return [Draft(FactKind.CLAIM, owner, snake(role), target, clause, confidence=confidence, nominal=True)]


_WITH_YEAR = re.compile(r"\b(?:19|20|21)\d\d\b")


def _date(clause: Clause, context: Context, subject: Phrase, time: TimeExpression) -> list[Draft]:
    """Reads "the deadline is 3 March 2026"; a day without a year ("my birthday is May 7") stays text."""
    owner = context.speaking.who(subject.owner) if subject.owner is not None else None
    if owner is None:
        return []
    exact = time.precision is Precision.DAY and time.start is not None and _WITH_YEAR.search(time.text)
    if exact and time.start is not None:
        value = Literal(LiteralKind.TIME, f"{moment(time.start):%Y-%m-%d}")
    else:
        value = Literal(LiteralKind.STRING, time.text)
    return [replace(draft, timeless=True) for draft in draft_role(clause, owner, subject.role, value, TOLD)]


def _attribute(
    clause: Clause, context: Context, subject: Phrase, who: Mention, attributes: list[Phrase]
) -> list[Draft]:
    value = attributes[0]
    articles = {child.lower_ for child in value.head.children if child.dep_ == "det"}
    if value.owner is not None and subject.owner is None and subject.reference is not Reference.COMMON:
        owner = context.speaking.who(value.owner)
        if owner is None or owner == who or not _is_post(value, context):
            return []
        return draft_role(clause, owner, value.role, who, TOLD)
    if subject.owner is not None and not articles & {"a", "an"}:
        owner = context.speaking.who(subject.owner)
        if owner is None:
            return []
        favourite = _favourite(subject)
        if favourite and value.reference is not Reference.NOTHING:
            made = Mention(value.name, value.type)
            return [
                Draft(FactKind.CLAIM, owner, f"favorite_{snake(subject.role)}", made, clause, nominal=True)
            ]
        if value.head.like_num and value.head.pos_ == "NUM":
            number = Literal(LiteralKind.NUMBER, value.name)
            return draft_role(clause, owner, subject.role, number, TOLD)
        if value.head.like_email or value.head.like_url:
            return draft_role(clause, owner, subject.role, Literal(LiteralKind.STRING, value.head.text), TOLD)
        if value.reference is Reference.NAME and subject.role.lower() == "name":
            return _named(clause, context, subject.owner, value)
        if value.reference is Reference.NAME:
            target = context.speaking.who(value)
            return draft_role(clause, owner, subject.role, target, TOLD) if target else []
        return []
    if articles & {"a", "an"} or value.name.lower() in lexicon().words["dietary"]:
        return _kind(clause, context, subject, who, value)
    if (
        value.head.like_num
        and _is_age(value)
        and subject.reference in {Reference.I, Reference.PERSON, Reference.NAME}
    ):
        return [_age(clause, who, value.head.text)]
    return []


def _is_post(value: Phrase, context: Context) -> bool:
    """Reads "Tom is my manager", "Canberra is the capital of Australia"; not "dance is my escape"."""
    last, words = value.role.split(" ")[-1].lower(), lexicon().words
    if last in words["family"] | words["people"] | words["pets"] or context.speaking.document:
        return True
    return value.owner is not None and value.owner.reference is Reference.NAME


def _named(clause: Clause, context: Context, owner: Phrase, value: Phrase) -> list[Draft]:
    """Reads "My wife's name is Elena"; one's own name is a setting of the graph, no fact."""
    if owner.owner is None:
        return []
    whose = context.speaking.who(owner.owner)
    return draft_role(clause, whose, owner.role, Mention(value.name), TOLD) if whose is not None else []


def _favourite(subject: Phrase) -> bool:
    return any(child.lower_ in {"favorite", "favourite", "fave"} for child in subject.head.children)


def _is_age(value: Phrase) -> bool:
    return (
        value.head.text.isdigit() and 0 < int(value.head.text) < 120 and len(list(value.head.children)) == 0
    )


def _age(clause: Clause, who: Mention, number: str) -> Draft:
    person = typed(who, EntityType.PERSON)
    return Draft(FactKind.CLAIM, person, "age", Literal(LiteralKind.NUMBER, number), clause, nominal=True)


def _kind(clause: Clause, context: Context, subject: Phrase, who: Mention, value: Phrase) -> list[Draft]:
    """Reads "X is a Y": for people only what they do or are for long; moods and praise are no kinds."""
    head, words = value.head.lower_, lexicon().words
    of = _preposition(value.head, "of", context)
    if head == "fan" and of:
        return [
            framed(Frame("likes", EntityType.PERSON), who, target, clause, confidence=LIKELY) for target in of
        ]
    if head == "member" and of:
        return [framed(Frame("member_of"), who, target, clause) for target in of]
    if value.reference is Reference.NOTHING or value.head.pos_ not in {"NOUN", "PROPN", "ADJ"}:
        return []
    lasting = head.endswith(tuple(words["occupations"])) and head not in words["not_occupations"]
    if head in words["dietary"]:
        return [framed(Frame("diet", EntityType.PERSON, EntityType.CONCEPT), who, Mention(head), clause)]
    lasting = lasting and (subject.reference in _PEOPLE or who.type is EntityType.PERSON)
    contracted = clause.verb.lower_.startswith(("'", "’"))
    named = subject.reference is Reference.NAME and clause.tense is Tense.PRESENT and not contracted
    if not lasting and not (named or context.speaking.document):
        return []
    drafts = [
        framed(
            Frame("is_a", EntityType.UNKNOWN, EntityType.CONCEPT),
            typed(
                who,
                EntityType.PERSON
                if lasting and subject.reference is not Reference.THING
                else EntityType.UNKNOWN,
            )
            if not named
            else who,
            Mention(value.name),
            clause,
            confidence=TOLD if lasting else LIKELY,
        )
    ]
    if lasting:
        works = Frame("works_at", EntityType.PERSON, EntityType.ORGANIZATION)
        drafts += [framed(works, who, target, clause) for target in _preposition(value.head, "at", context)]
    return drafts


def _preposition(head: "Token", word: str, context: Context) -> list[Mention]:
    found: list[Mention] = []
    for child in head.children:
        if child.dep_ == "prep" and child.lower_ == word:
            items = context.phrases([token for token in child.children if token.dep_ == "pobj"])
            mentions = (
                context.speaking.who(item)
                for item in items
                if item.reference is Reference.NAME or word == "of"
            )
            found += [mention for mention in mentions if mention is not None]
    return found


def _adjective(
    clause: Clause, context: Context, subject: Phrase, who: Mention, adjective: "Token"
) -> list[Draft]:
    word, words = adjective.lower_, lexicon().words
    if word == "old":
        number = next(
            (token.text for token in clause.verb.doc if token.text.isdigit() and token.i < adjective.i), ""
        )
        return [_age(clause, who, number)] if number and "years" in clause.verb.doc.text.lower() else []
    if subject.owner is not None and _favourite(subject):
        owner = context.speaking.who(subject.owner)
        made = Mention(adjective.text, EntityType.CONCEPT)
        return (
            [Draft(FactKind.CLAIM, owner, f"favorite_{snake(subject.role)}", made, clause, nominal=True)]
            if owner
            else []
        )
    if subject.owner is not None and is_proper(adjective):  # "the primary database is postgres"
        owner = context.speaking.who(subject.owner)
        return draft_role(clause, owner, subject.role, Mention(adjective.text), LIKELY) if owner else []
    person = (
        subject.reference in {Reference.I, Reference.PERSON, Reference.NAME} or who.type is EntityType.PERSON
    )
    bare = not any(child.dep_ == "prep" for child in adjective.children)
    if person and bare and word in words["marital"]:
        return [
            Draft(
                FactKind.CLAIM,
                typed(who, EntityType.PERSON),
                "marital_status",
                Mention(word, EntityType.CONCEPT),
                clause,
                nominal=True,
            )
        ]
    if person and bare and word in words["dietary"]:
        return [framed(Frame("diet", EntityType.PERSON, EntityType.CONCEPT), who, Mention(word), clause)]
    drafts: list[Draft] = []
    for child in adjective.children:
        frame = lexicon().adjectives.get(f"{word} {child.lower_}")
        if child.dep_ == "prep" and frame is not None:
            items = context.phrases([token for token in child.children if token.dep_ == "pobj"])
            targets = (context.thing(item) for item in items)
            drafts += [framed(frame, who, target, clause) for target in targets if target is not None]
    return drafts


_BE_PLACES = {"from": Frame("comes_from", EntityType.PERSON, EntityType.PLACE)}


def _place(clause: Clause, context: Context, subject: Phrase, who: Mention) -> list[Draft]:
    drafts: list[Draft] = []
    for word, tokens in clause.links:
        for item in context.phrases(tokens):
            target = context.speaking.who(item)
            if target is None or item.reference is not Reference.NAME:
                continue
            if word == "from" and item.head.ent_type_ in {"GPE", "LOC", "NORP"}:
                drafts.append(framed(_BE_PLACES["from"], who, target, clause))
            elif word == "in" and item.head.ent_type_ == "GPE" and subject.reference is not Reference.I:
                if subject.reference is not Reference.PERSON and who.type is not EntityType.PERSON:
                    drafts.append(
                        framed(Frame("located_in", who.type, EntityType.PLACE), who, target, clause)
                    )
            elif word == "on" and target.type is EntityType.TECHNOLOGY:
                drafts.append(framed(Frame("runs_on"), who, target, clause, confidence=LIKELY))
            elif word == "on" and (
                target.type is EntityType.PROJECT
                or known_predicate(context.known, who.name, target.name) == "works_on"
            ):
                drafts.append(framed(Frame("works_on", EntityType.PERSON), who, target, clause))
    return drafts


def _called(clause: Clause, context: Context) -> list[Draft]:
    """Reads "my cat is called Miso"."""
    name = clause.child("oprd", "attr", "dobj", "npadvmod")
    if name is None or clause.tense not in _LASTING:
        return []
    value = context.phrases([name])
    drafts: list[Draft] = []
    for subject in context.phrases(clause.subjects):
        if not value or subject.owner is None:
            continue
        owner = context.speaking.who(subject.owner)
        if owner is not None:
            drafts += draft_role(clause, owner, subject.role, Mention(value[0].name), TOLD)
    return drafts
