"""What happened once ("visited Rome"), and what people have ("a dog named Rex")."""

from typing import TYPE_CHECKING

from services.domain.facts import FactKind, Mention
from services.domain.graph import EntityType
from services.llm.offline.clauses import Clause, Tense, Turn
from services.llm.offline.drafts import LIKELY, TOLD, Context, Draft, Nature, framed, snake, typed
from services.llm.offline.lexicon import Frame, lexicon
from services.llm.offline.phrases import Phrase, Reference, is_proper
from services.llm.offline.states import keyed, targets_of

if TYPE_CHECKING:
    from spacy.tokens import Token

_DONE = frozenset({Tense.PAST, Tense.PERFECT})
_WEAK_PLACES = frozenset(
    {"home", "work", "school", "store", "gym", "bed", "mall", "doctor", "office", "bathroom"}
)
_PLACES = frozenset({"GPE", "LOC"})


def draft_having(clause: Clause, context: Context) -> list[Draft]:
    """Reads "I have a dog named Rex", "she has two sisters"."""
    if clause.lemma not in {"have", "get", "adopt"} or clause.negated:
        return []
    if clause.tense is not Tense.PRESENT and not (clause.lemma != "have" and clause.tense in _DONE):
        return []
    words = lexicon().words
    nature = Nature.STATE if clause.lemma == "have" else Nature.BEGINNING
    drafts: list[Draft] = []
    for _, who in context.subjects(clause):
        for item in context.phrases(clause.objects):
            kin = item.head.lemma_.lower()
            name = _given_name(item)
            if kin in words["pets"] and item.owner is None and (name or item.reference is Reference.COMMON):
                pet = Mention(name or item.name)
                drafts.append(
                    Draft(FactKind.CLAIM, typed(who, EntityType.PERSON), "has_pet", pet, clause, nature)
                )
                if name:
                    kind = Mention(kin, EntityType.CONCEPT)
                    drafts.append(Draft(FactKind.CLAIM, pet, "is_a", kind, clause, timeless=True))
            elif kin in words["family"] and name:
                relative = Mention(name, EntityType.PERSON)
                drafts.append(Draft(FactKind.CLAIM, who, kin, relative, clause, nominal=True))
    return drafts


def _given_name(item: Phrase) -> str:
    for child in item.head.children:
        if child.dep_ == "acl" and child.lower_ in {"named", "called"}:
            named = next((token for token in child.children if token.dep_ in {"oprd", "dobj", "attr"}), None)
            return named.text if named is not None else ""
        if child.dep_ == "appos" and is_proper(child):
            return child.text
    return ""


def draft_event(clause: Clause, context: Context) -> list[Draft]:
    if clause.negated or clause.turn is not Turn.NONE or clause.tense not in _DONE:
        return []
    for key, tokens in keyed(clause):
        frame = lexicon().events.get(key)
        if frame is None or (clause.passive and clause.lemma != "bear"):
            continue
        drafts = [
            framed(
                chosen,
                who,
                target,
                clause,
                nature=Nature.EVENT,
                confidence=TOLD if item.reference is Reference.NAME else LIKELY,
            )
            for _, who in context.subjects(clause)
            for item, target in targets_of(clause, context, tokens)
            for chosen in [_happened(frame, item, clause, context)]
            if chosen is not None
        ]
        if drafts:
            return drafts
    return []


def _happened(frame: Frame, item: Phrase, clause: Clause, context: Context) -> Frame | None:
    named = item.reference is Reference.NAME
    if item.reference in {Reference.PERSON, Reference.THING} or (
        clause.lemma == "go" and item.head.lower_ in _WEAK_PLACES
    ):
        return None
    achieved = clause.lemma in lexicon().words["achievements"]
    if not named and not context.is_dated(clause) and not context.speaking.document and not achieved:
        return None
    if (
        clause.lemma == "go"
        and named
        and item.head.ent_type_ not in {"ORG", "EVENT"}
        and is_proper(item.head)
    ):
        return Frame("visited", EntityType.PERSON, EntityType.PLACE)
    if clause.lemma == "meet" and not named:
        return None
    if item.owner is not None and item.owner.reference is Reference.YOU:
        return None
    return frame


def draft_occasion(clause: Clause, context: Context) -> list[Draft]:
    """Events without a verb of their own: "been to Rome", "took a trip to Rome", "went camping"."""
    if clause.negated or clause.tense not in _DONE or clause.turn is not Turn.NONE:
        return []
    visited = Frame("visited", EntityType.PERSON, EntityType.PLACE)
    if (clause.lemma == "be" and clause.tense is Tense.PERFECT) or _is_trip(clause):
        tokens = clause.link("to") or _of_objects(clause, "to")
        return _each(clause, context, visited, tokens, named=True)
    if not context.is_dated(clause):
        return []
    if clause.lemma == "go":
        doing = next(
            (child for child in clause.verb.children if child.tag_ == "VBG" and child.i > clause.verb.i), None
        )
        if doing is not None and doing.i == clause.verb.i + 1:
            activity = Mention(doing.lower_, EntityType.CONCEPT)
            return [_happening(clause, "went", who, activity) for _, who in context.subjects(clause)]
    if clause.lemma == "have":
        occasions = tuple(
            token for token in clause.objects if token.lemma_.lower() in lexicon().words["occasions"]
        )
        return _each(clause, context, Frame("had", EntityType.PERSON, EntityType.EVENT), occasions)
    return []


def draft_dated(clause: Clause, context: Context) -> list[Draft]:
    """Any other deed of a named person or the speaker, when it is dated: "planted a tree last week"."""
    plain = (
        clause.tense is Tense.PAST and not clause.negated and not clause.passive and clause.turn is Turn.NONE
    )
    if (
        not plain
        or not context.is_dated(clause)
        or clause.lemma in lexicon().words["empty_verbs"]
        or not clause.verb.is_alpha
    ):
        return []
    return _each(clause, context, Frame(snake(clause.verb.lower_)), clause.objects)


def _happening(clause: Clause, predicate: str, who: Mention, target: Mention) -> Draft:
    person = typed(who, EntityType.PERSON)
    return Draft(FactKind.CLAIM, person, predicate, target, clause, Nature.EVENT, LIKELY)


def _each(
    clause: Clause, context: Context, frame: Frame, tokens: tuple["Token", ...], *, named: bool = False
) -> list[Draft]:
    return [
        framed(frame, who, target, clause, nature=Nature.EVENT, confidence=LIKELY)
        for _, who in context.subjects(clause)
        for item, target in targets_of(clause, context, tokens)
        if item.reference not in {Reference.PERSON, Reference.THING}
        and (not named or (item.reference is Reference.NAME and item.head.ent_type_ in _PLACES))
    ]


def _is_trip(clause: Clause) -> bool:
    nouns = {token.lemma_.lower() for token in clause.objects}
    return clause.lemma in {"take", "make", "go"} and bool(
        nouns & {"trip", "vacation", "holiday", "flight", "journey"}
    )


def _of_objects(clause: Clause, word: str) -> tuple["Token", ...]:
    return tuple(
        token
        for noun in clause.objects
        for preposition in noun.children
        if preposition.dep_ == "prep" and preposition.lower_ == word
        for token in preposition.children
        if token.dep_ == "pobj"
    )
