"""What full verbs say that holds: states ("works at"), beginnings ("joined"), and verbs at large."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from services.domain.facts import FactKind, Mention
from services.domain.graph import EntityType
from services.llm.offline.clauses import Clause, Tense, Turn
from services.llm.offline.drafts import HEDGED, LIKELY, TOLD, Context, Draft, Nature, framed, snake
from services.llm.offline.lexicon import Frame, lexicon, third_person
from services.llm.offline.phrases import Phrase, Reference, is_proper

if TYPE_CHECKING:
    from spacy.tokens import Token

_NOW = frozenset({Tense.PRESENT, Tense.PROGRESSIVE})
_DONE = frozenset({Tense.PAST, Tense.PERFECT})
_TASTES = frozenset({"likes", "loves", "hates", "dislikes"})
_LIVED = frozenset(
    {"lives_in", "works_at", "works_on", "uses", "owns", "studies_at", "leads", "manages", "plays"}
)
"""States worth telling in the past; a taste told in the past is of one occasion."""
_ONGOING = frozenset(
    {"lives_in", "works_at", "works_on", "works_in", "uses", "studies_at", "studies", "dating", "leads",
     "manages", "maintains", "teaches", "reads", "runs_on", "volunteers_at", "job_title", "works_with"}
)  # fmt: skip
"""States that "is doing" tells as well as "does"."""
_NAMED_ONLY = frozenset(
    {"knows", "reads", "supports", "needs", "requires", "contains", "stores", "implements", "provides",
     "serves", "follows", "costs", "weighs", "drives", "studies", "works_with", "related_to", "works_in",
     "depends_on"}
)  # fmt: skip
"""Verbs of chat ("I need a break"): outside documents their object must have a name."""


def keyed(clause: Clause) -> Iterator[tuple[str, tuple["Token", ...]]]:
    """The clause's verb with each preposition, longest first, then with its object."""
    for name, tokens in sorted(clause.links, key=lambda link: -len(link[0])):
        yield f"{clause.lemma} {name}", tokens
    if clause.objects:
        yield clause.lemma, clause.objects


def draft_state(clause: Clause, context: Context) -> list[Draft]:
    """What a clause with a full verb tells to begin or to hold."""
    for draft_some in (_job_taken, _beginning, _state):
        if drafts := draft_some(clause, context):
            return drafts
    return []


def targets_of(clause: Clause, context: Context, tokens: tuple["Token", ...]) -> list[tuple[Phrase, Mention]]:
    found: list[tuple[Phrase, Mention]] = []
    for item in context.phrases(tokens):
        target = context.thing(item)
        if target is not None and target.name and item.reference is not Reference.YOU:
            found.append((item, target))
    return found


def _state(clause: Clause, context: Context) -> list[Draft]:
    found: dict[str, list[Draft]] = {}
    for key, tokens in keyed(clause):
        frame = lexicon().states.get(key)
        if key == "work as":  # "works as a nurse at X", with X hung on the nurse
            tokens_at = tuple(token for noun in tokens for token in governed(noun, "at", "for"))
            found |= _employed(clause, context, tokens_at)
        if frame is None or not _tense_fits(clause, frame, context):
            continue
        targets = targets_of(clause, context, tokens)
        subjects = context.subjects(clause)
        if clause.passive and key.endswith(" by"):
            continue
        if (
            clause.objects
            and not clause.passive
            and key != clause.lemma
            and frame.predicate.split("_")[0].endswith("ed")
        ):
            continue  # "Quill stores files in S3" does not say that Quill is stored there
        drafts = [
            draft
            for subject, who in subjects
            for item, target in targets
            if _worth(clause, frame, item, context) and _may(subject, frame, context)
            for draft in told(framed(frame, _topical(who, clause, frame, context), target, clause), context)
        ]
        drafts += _instead(clause, context, drafts)
        if drafts and frame.predicate not in found:  # "works as a nurse at St. Mary's" tells two things
            found[frame.predicate] = drafts
    return [draft for drafts in found.values() for draft in drafts] or _tasted(clause, context)


def _instead(clause: Clause, context: Context, drafts: list[Draft]) -> list[Draft]:
    """What is over in "uses PostgreSQL instead of MySQL"."""
    tokens = [
        child
        for token in clause.verb.subtree
        if token.lower_ == "of" and token.i > 0 and token.nbor(-1).lower_ == "instead"
        for child in token.children
        if child.dep_ == "pobj"
    ]
    named = [
        target
        for item, target in targets_of(clause, context, tuple(tokens))
        if item.reference is Reference.NAME
    ]
    claims = [draft for draft in drafts[:1] if draft.kind is FactKind.CLAIM and not clause.negated]
    return [replace(draft, kind=FactKind.END, object=target) for draft in claims for target in named]


def governed(noun: "Token", *words: str) -> Iterator["Token"]:
    """What these prepositions of a noun govern."""
    for child in noun.children:
        if child.dep_ == "prep" and child.lower_ in words:
            yield from (token for token in child.children if token.dep_ == "pobj")


def _employed(clause: Clause, context: Context, tokens: tuple["Token", ...]) -> dict[str, list[Draft]]:
    frame = lexicon().states["work at"]
    drafts = [
        draft
        for _, who in context.subjects(clause)
        for item, target in targets_of(clause, context, tokens)
        if item.reference is Reference.NAME and _tense_fits(clause, frame, context)
        for draft in told(framed(frame, who, target, clause), context)
    ]
    return {frame.predicate: drafts} if drafts else {}


def _may(subject: Phrase, frame: Frame, context: Context) -> bool:
    """In talk "the kids" are nobody in particular, where "the gateway" is mostly one thing."""
    unnamed = subject.reference in {Reference.DEFINITE, Reference.COMMON} and subject.owner is None
    if subject.reference is Reference.COMMON and unnamed and frame.subject is EntityType.PERSON:
        return False
    return context.speaking.document or not unnamed or frame.subject is not EntityType.PERSON


def _topical(who: Mention, clause: Clause, frame: Frame, context: Context) -> Mention:
    """The subject: "we stay on PostgreSQL", in answer to a question about Atlas, is about Atlas."""
    is_we = any(token.lower_ == "we" for token in clause.subjects)
    if is_we and frame.predicate in {"uses", "runs_on"} and context.speaking.topic is not None:
        return context.speaking.topic
    return who


def _tense_fits(clause: Clause, frame: Frame, context: Context) -> bool:
    if clause.turn in {Turn.STOPPED, Turn.FORMERLY} or clause.no_longer:
        return True
    match clause.tense:
        case Tense.PRESENT:
            return True
        case Tense.PROGRESSIVE:
            return frame.predicate in _ONGOING or clause.passive
        case Tense.PERFECT:
            return context.is_dated(clause) or clause.passive or clause.never
        case Tense.PAST:
            return (
                clause.negated or frame.predicate in _LIVED or (clause.passive and context.is_dated(clause))
            )
        case Tense.FUTURE:
            return context.is_dated(clause) or clause.negated


def _worth(clause: Clause, frame: Frame, item: Phrase, context: Context) -> bool:
    if (
        frame.predicate in _TASTES
        and _has_article(item)
        and not (is_proper(item.head) and item.name[:1].isupper())
    ):
        return False  # "I love the idea" praises; "I love sushi" tells a taste
    if item.reference in {Reference.NAME, Reference.PERSON, Reference.THING}:
        return True
    if item.head.pos_ == "ADJ" or (clause.lemma in {"stay", "stick"}):
        return False
    if item.reference is Reference.DEFINITE and frame.subject is EntityType.PERSON and item.owner is None:
        return context.speaking.document
    if frame.predicate in _NAMED_ONLY and not context.speaking.document:
        return False
    if frame.predicate in _TASTES:
        return item.reference is Reference.COMMON and item.owner is None
    if frame.predicate == "works_on" and item.owner is None:
        return " " in item.name
    if frame.object in {EntityType.PLACE, EntityType.ORGANIZATION} and not context.speaking.document:
        return item.reference is Reference.COMMON and item.owner is None and frame.predicate != "lives_in"
    return item.owner is None or item.owner.reference in {Reference.I, Reference.WE, Reference.NAME}


def _has_article(item: Phrase) -> bool:
    head = item.head.head if item.head.dep_ == "conj" else item.head
    return any(
        child.dep_ in {"det", "poss", "relcl", "acl"} for at in (head, item.head) for child in at.children
    )


def told(draft: Draft, context: Context) -> list[Draft]:
    """The draft as the clause's tense and negation tell it: a claim, an end, a denial."""
    clause = draft.clause
    if clause.turn is Turn.STOPPED or clause.no_longer:
        return [replace(draft, kind=FactKind.END)]
    if clause.turn is Turn.FORMERLY:
        return [replace(draft, kind=FactKind.END, confidence=LIKELY)]
    if clause.negated:
        denial = replace(draft, kind=FactKind.DENIAL)
        if draft.predicate in {"likes", "loves"} and clause.tense is Tense.PRESENT:
            return [denial, replace(draft, predicate="dislikes")]
        return [denial]
    if clause.turn is Turn.BEGAN:
        return [replace(draft, nature=Nature.BEGINNING)]
    if clause.tense is Tense.PAST and not context.is_dated(clause):
        if draft.predicate not in {"lives_in", "works_at", "studies_at"}:
            return []
        return [replace(draft, kind=FactKind.END, confidence=HEDGED)]
    return [draft]


def _tasted(clause: Clause, context: Context) -> list[Draft]:
    """Reads "I like eating apples": the thing liked is doing it."""
    frame = lexicon().states.get(clause.lemma)
    if frame is None or frame.predicate not in _TASTES or clause.tense is not Tense.PRESENT or clause.objects:
        return []
    doing = next(
        (child for child in clause.verb.children if child.dep_ == "xcomp" and child.tag_ == "VBG"), None
    )
    if doing is None:
        return []
    name = _doing(doing)
    if not name:
        return []
    made = Mention(name, EntityType.CONCEPT)
    return [
        draft
        for _, who in context.subjects(clause)
        for draft in told(framed(frame, who, made, clause), context)
    ]


def _doing(verb: "Token") -> str:
    """Reads "playing the violin": a gerund with its short object."""
    if verb.lemma_ in {"be", "have", "do", "get", "see", "know", "hear"}:
        return ""
    objects = [child for child in verb.children if child.dep_ in {"dobj", "prt"}]
    if any(
        child.dep_ not in {"dobj", "prt", "punct", "prep", "npadvmod", "advmod", "conj", "cc"}
        for child in verb.children
    ):
        return ""
    last = max([token.i for child in objects for token in child.subtree], default=verb.i)
    span = verb.doc[verb.i : last + 1]
    vague = any(token.lower_ in lexicon().words["vague"] or token.pos_ == "PRON" for token in span)
    if vague or len(span) > 4 or (not objects and any(child.dep_ == "prep" for child in verb.children)):
        return ""
    return span.text.strip()


_JOB_TAKEN = frozenset({"get", "land", "accept", "take", "start", "find"})


def _job_taken(clause: Clause, context: Context) -> list[Draft]:
    """Reads "got a new job at Stripe"."""
    if clause.lemma not in _JOB_TAKEN or clause.tense not in {Tense.PAST, Tense.PERFECT} or clause.negated:
        return []
    tokens = tuple(
        token
        for noun in clause.objects
        if noun.lower_ in {"job", "role", "position", "internship"}
        for token in (*governed(noun, "at", "with"), *clause.link("at", "with"))
    )
    frame = lexicon().states["work at"]
    return [
        framed(frame, who, target, clause, nature=Nature.BEGINNING)
        for _, who in context.subjects(clause)
        for item, target in targets_of(clause, context, tokens)
        if item.reference is Reference.NAME
    ]


def _beginning(clause: Clause, context: Context) -> list[Draft]:
    if clause.tense is Tense.FUTURE and not context.is_dated(clause) and not clause.negated:
        return []
    if clause.tense is Tense.PRESENT and not clause.negated:
        return []
    if clause.tense is Tense.PROGRESSIVE and not context.is_dated(clause):
        return []
    for key, tokens in keyed(clause):
        frame = lexicon().beginnings.get(key)
        if frame is None:
            continue
        drafts = [
            framed(chosen, _topical(who, clause, chosen, context), target, clause, nature=Nature.BEGINNING)
            for _, who in context.subjects(clause)
            for item, target in targets_of(clause, context, tokens)
            for chosen in [_fitted(clause, frame, item)]
            if chosen is not None
        ]
        if drafts and clause.negated:
            return [replace(draft, kind=FactKind.DENIAL) for draft in drafts]
        if drafts:
            return drafts
    return []


def _fitted(clause: Clause, frame: Frame, item: Phrase) -> Frame | None:
    """The frame that fits what is joined, bought or moved to; None where it is not worth telling."""
    words, head = lexicon().words, item.head
    match clause.lemma:
        case "join" | "rejoin" | "start" | "hire":
            if item.type is EntityType.PROJECT:
                return Frame("works_on", EntityType.PERSON, EntityType.PROJECT)
            if head.lemma_.lower() in words["groups"] or item.name.split(" ")[-1].lower() in words["groups"]:
                return Frame("member_of", EntityType.PERSON)
            return frame if item.reference is Reference.NAME else None
        case "move" | "relocate" | "settle" | "transfer":
            if item.type is EntityType.TECHNOLOGY:
                return None if clause.objects else Frame("uses", EntityType.UNKNOWN, EntityType.TECHNOLOGY)
            if item.type is EntityType.PROJECT:
                return Frame("works_on", EntityType.PERSON, EntityType.PROJECT)
            return frame if item.reference is Reference.NAME and not clause.objects else None
        case "adopt":
            if item.type is EntityType.TECHNOLOGY:
                return Frame("uses", EntityType.UNKNOWN, EntityType.TECHNOLOGY)
            return None
        case "buy" | "purchase" | "get" | "acquire":
            if frame.predicate == "married_to":
                return frame
            proper = item.reference is Reference.NAME and item.head.ent_type_ not in {"DATE", "TIME", "MONEY"}
            return frame if proper and clause.lemma != "get" else None
        case "marry" | "found" | "co-found":
            return frame if item.reference is Reference.NAME else None
    return frame if item.reference is not Reference.DEFINITE else None


def draft_general(clause: Clause, context: Context) -> list[Draft]:
    """Any verb, when named things are at both ends: "Wen maintains Study", "Study depends on Redis"."""
    if clause.elided or clause.turn is not Turn.NONE or not clause.verb.is_alpha:
        return []
    if clause.passive and clause.link("by"):
        return _by(clause, context)
    if clause.tense is not Tense.PRESENT or clause.lemma in {
        "be",
        "have",
        "do",
        "go",
        "get",
        "say",
        "let",
        "mean",
    }:
        return []
    drafts: list[Draft] = []
    for subject, who in context.subjects(clause):
        if not _is_third(subject, context):
            continue
        for key, tokens in keyed(clause):
            preposition = key[len(clause.lemma) + 1 :]
            if clause.passive and not preposition:
                continue
            verb = clause.verb.lower_ if clause.passive else third_person(clause.lemma)
            what = _object_words(clause, context) if preposition else ""
            for item, target in targets_of(clause, context, tokens):
                if item.reference is Reference.NAME or (context.speaking.document and item.owner is None):
                    frame = Frame(snake(f"{verb} {what} {preposition}"))
                    drafts += told(framed(frame, who, target, clause, confidence=LIKELY), context)
            if drafts and not preposition:
                break
    return drafts[:2]


def _object_words(clause: Clause, context: Context) -> str:
    """The files of "stores files in S3", which belong to the verb."""
    plain = [item for item in context.phrases(clause.objects) if item.reference is Reference.COMMON]
    return plain[0].name if plain and not clause.passive else ""


def _is_third(subject: Phrase, context: Context) -> bool:
    if subject.reference is Reference.NAME or subject.owner is not None:
        return True
    return context.speaking.document and subject.reference in {Reference.DEFINITE, Reference.THING}


def _by(clause: Clause, context: Context) -> list[Draft]:
    """Reads "Study is maintained by Wen" as Wen maintaining Study."""
    frame = lexicon().states.get(clause.lemma)
    if clause.tense is not Tense.PRESENT:
        return []
    made = frame or Frame(third_person(clause.lemma))
    return [
        draft
        for item, agent in targets_of(clause, context, clause.link("by"))
        for subject, who in context.subjects(clause)
        if item.reference is Reference.NAME and _is_third(subject, context)
        for draft in told(framed(made, agent, who, clause, confidence=TOLD if frame else LIKELY), context)
    ]
