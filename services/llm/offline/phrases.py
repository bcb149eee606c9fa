"""Noun phrases as names: what a subject or an object is called, whose it is, and what kind of thing."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from services.domain.graph import EntityType
from services.llm.offline.lexicon import lexicon

if TYPE_CHECKING:
    from spacy.tokens import Token


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known of a sentence's words beside their grammar.

    `skip`: positions of tokens that tell a time. `names`: words (lower case) that the chunk or the graph uses
    as names.
    """

    skip: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()


PLAIN = Marks()


class Reference(Enum):
    """How a phrase points at its thing."""

    I = "i"  # noqa: E741  (the English word)
    WE = "we"
    YOU = "you"
    PERSON = "he or she"
    THING = "it"
    NOTHING = "nothing"
    """A pronoun or a word too vague to follow."""
    NAME = "name"
    DEFINITE = "definite"
    COMMON = "common"


@dataclass(frozen=True, slots=True)
class Phrase:
    """One noun phrase. A relational one ("Ana's sister", "the capital of Peru") has an owner and a role.

    `relation` is what an apposition tells besides: of "my sister Anna" the phrase is Anna, the relation "my
    sister".
    """

    head: "Token"
    name: str
    reference: Reference
    type: EntityType = EntityType.UNKNOWN
    plural: bool = False
    owner: "Phrase | None" = None
    role: str = ""
    relation: "Phrase | None" = None


_PRONOUNS = {
    "i": Reference.I, "me": Reference.I, "my": Reference.I, "mine": Reference.I, "myself": Reference.I,
    "we": Reference.WE, "us": Reference.WE, "our": Reference.WE, "ours": Reference.WE,
    "you": Reference.YOU, "your": Reference.YOU, "yours": Reference.YOU,
    "he": Reference.PERSON, "him": Reference.PERSON, "his": Reference.PERSON,
    "she": Reference.PERSON, "her": Reference.PERSON, "hers": Reference.PERSON,
    "it": Reference.THING, "its": Reference.THING,
}  # fmt: skip
_KIND_TYPES = {
    "project": EntityType.PROJECT, "company": EntityType.ORGANIZATION, "city": EntityType.PLACE,
    "firm": EntityType.ORGANIZATION, "startup": EntityType.ORGANIZATION, "band": EntityType.ORGANIZATION,
    "town": EntityType.PLACE, "village": EntityType.PLACE, "country": EntityType.PLACE,
    "database": EntityType.TECHNOLOGY, "library": EntityType.TECHNOLOGY, "framework": EntityType.TECHNOLOGY,
    "fruit": EntityType.PRODUCT, "person": EntityType.PERSON,
}  # fmt: skip


def phrase(head: "Token", marks: Marks = PLAIN) -> Phrase | None:
    """The phrase around a head; None if it is a time or no noun."""
    if head.i in marks.skip or _is_version_of_name(head, marks):
        return None
    if head.pos_ == "PRON" or head.lower_ in _PRONOUNS:
        return Phrase(head, head.text, _PRONOUNS.get(head.lower_, Reference.NOTHING))
    capital = any(letter.isupper() for letter in head.text) or lexicon().is_technology(head.text)
    if head.pos_ not in {"NOUN", "PROPN", "NUM", "ADJ", "X", "SYM"} and not capital:
        return None
    whole = _named_whole(head)
    owner = None if whole else _owner(head, marks)
    tokens = whole or _kept(head, marks)
    kind, tokens = _without_kind(tokens, marks)
    name = _joined(tokens)
    vague = bool({name.lower(), head.lower_} & lexicon().words["vague"]) and not lexicon().is_technology(name)
    if not name or name.startswith("-") or vague:
        return Phrase(head, name, Reference.NOTHING)
    made = Phrase(
        head, name, _reference(head, tokens, marks), _type(head, name, kind), head.tag_ in {"NNS", "NNPS"}
    )
    if named := _apposed(head, marks):
        return replace(named, relation=replace(made, owner=owner, role=name) if owner else None)
    if owner is not None:
        return _owned(made, owner, tokens, marks)
    return made


def is_proper(token: "Token", marks: Marks = PLAIN) -> bool:
    """True for what is written as a name: capitals or digits inside, wherever the tagger puts it."""
    text = token.text
    if token.lower_ in lexicon().words["people"]:  # "the CEO"
        return False
    if text[:1].isupper() and token.lower_ in marks.names:
        return True
    if token.tag_ in {"NNP", "NNPS"}:
        return text[:1].isupper() or any(letter.isupper() or letter.isdigit() for letter in text)
    if lexicon().is_technology(text):
        return True
    if not text[:1].isupper():
        return any(letter.isupper() for letter in text[1:]) and text[:1].isalpha()  # gRPC
    return (
        token.i > 0
        or any(letter.isupper() for letter in text[1:])
        or token.ent_type_ != ""
        or _is_bare(token)
    )


def _is_bare(token: "Token") -> bool:
    """A first word without an article before a verb that names do: "Study runs on Linux"."""
    alone = token.tag_ == "NN" and not token.lower_.endswith("ing") and not list(token.children)
    return alone and token.dep_ in {"nsubj", "nsubjpass"} and token.head.lemma_ in lexicon().words["of_names"]


def _reference(head: "Token", tokens: list["Token"], marks: Marks) -> Reference:
    if any(is_proper(token, marks) for token in tokens if token.pos_ != "ADJ" or token is head):
        return Reference.NAME
    articles = {child.lower_ for child in head.children if child.dep_ in {"det", "poss"}}
    return Reference.DEFINITE if articles & {"the", "this", "that", "these", "those"} else Reference.COMMON


def _kept(head: "Token", marks: Marks) -> list["Token"]:
    """The tokens that make the name, in order."""
    kept = [token for child in head.lefts for token in _before(head, child, marks)]
    kept.append(head)
    following = head.i + 1
    beside = head.nbor() if following < len(head.doc) else head
    if (
        beside.head == head.head
        and beside.dep_ == head.dep_
        and _is_version(beside)
        and is_proper(head, marks)
    ):
        kept.append(beside)  # "PostgreSQL 16", of which the parser makes two objects
    colon = any(child.text == ":" and child.i == following for child in head.children)
    for child in head.rights:
        if child.i in marks.skip:
            continue
        if child.dep_ in {"nummod", "appos", "npadvmod"} and child.i == following and _is_version(child):
            kept.append(child)
            following = child.i + 1
        elif colon and (child.text == ":" or child.dep_ == "appos"):  # "KV: GUESTBOOK"
            kept += list(child.subtree)
        elif child.dep_ == "prep" and child.lower_ == "of" and is_proper(head, marks):
            kept += [token for token in child.subtree if token.i not in marks.skip]
    return sorted(kept, key=lambda token: token.i)


def _named_whole(head: "Token") -> list["Token"]:
    """A name with a possessor inside: "St. Mary's Hospital"."""
    inside = [
        child
        for child in head.children
        if child.dep_ == "poss" and child.ent_type_ in {"FAC", "ORG", "WORK_OF_ART"}
    ]
    span = next((ent for ent in head.doc.ents if ent.start <= head.i < ent.end), None)
    if not inside or span is None or not span.start <= inside[0].i:
        return []
    return [token for token in span if token.dep_ != "det" or token.i > span.start]


def _before(head: "Token", child: "Token", marks: Marks) -> list["Token"]:
    """What of a token before the head, with all that hangs on it, belongs to the name."""
    light = lexicon().words["light"]
    if child.dep_ not in {"compound", "amod", "nmod", "nummod"} or child.i in marks.skip:
        return []
    if child.lower_ in light and not (child.text[:1].isupper() and child.i > 0):
        return []
    if child.dep_ == "nummod" and head.tag_ == "NNS":
        return []
    hyphened = any(token.text == "-" for token in child.subtree)  # "community-driven"
    inner = (token for token in child.subtree if token.i < head.i and token.i not in marks.skip)
    return [
        token
        for token in inner
        if token == child
        or hyphened
        or (token.dep_ not in {"det", "poss", "case", "cc", "advmod"} and token.lower_ not in light)
    ]


def _is_version(token: "Token") -> bool:
    return (
        token.like_num
        or token.text[:1].isdigit()
        or (token.text[:1].lower() == "v" and token.text[1:2].isdigit())
    )


def _is_version_of_name(token: "Token", marks: Marks) -> bool:
    before = token.nbor(-1) if token.i > 0 else token
    alike = before.head == token.head and before.dep_ == token.dep_
    return alike and before != token and _is_version(token) and is_proper(before, marks)


def _without_kind(tokens: list["Token"], marks: Marks) -> tuple[str, list["Token"]]:
    """Takes the noun off that only tells the kind: "project Alpha", "the Orion team"."""
    if len(tokens) < 2:
        return "", tokens
    first, last = tokens[0], tokens[-1]
    named = [token for token in tokens if is_proper(token, marks)]
    follower = tokens[1]
    lettered = len(follower.text) > 1 and follower.text[:1].isalpha() and is_proper(follower, marks)
    if first.lower_ in {"project", "company", "database", "city"} and lettered:
        return first.lower_, tokens[1:]
    if last.lower_ in {"project", "team", "company"} and last.text.islower() and named == tokens[:-1]:
        return last.lower_, tokens[:-1]
    return "", tokens


def _joined(tokens: list["Token"]) -> str:
    text = ""
    for position, token in enumerate(tokens):
        text += token.text
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        if following is not None and (token.whitespace_ or following.i > token.i + 1):
            text += " "
    return text.strip(" .,;:!?\"'“”()*_`")


def _type(head: "Token", name: str, kind: str) -> EntityType:
    if kind in _KIND_TYPES:
        return _KIND_TYPES[kind]
    if lexicon().is_technology(name):
        return EntityType.TECHNOLOGY
    for child in head.children:
        if child.dep_ == "appos" and child.lower_ in _KIND_TYPES:
            return _KIND_TYPES[child.lower_]
    words = lexicon().words
    if head.lower_ in words["family"] or head.lower_ in words["people"]:
        return EntityType.PERSON
    return EntityType.UNKNOWN


def _owner(head: "Token", marks: Marks) -> Phrase | None:
    """Whose the thing is: "Ana's ...", "my ...", "the ... of Atlas"."""
    for child in head.children:
        if child.dep_ == "poss":
            return _subject_before(child, marks) or phrase(child, marks)
    articles = {child.lower_ for child in head.children if child.dep_ == "det"}
    post = not articles and head.lower_ in lexicon().words["people"]  # "became CTO of Initech"
    if is_proper(head, marks) or not ("the" in articles or post):
        return None
    for child in head.children:
        if child.dep_ == "prep" and child.lower_ in {"of", "for"}:
            inner = next((token for token in child.children if token.dep_ == "pobj"), None)
            owner = phrase(inner, marks) if inner is not None else None
            if owner is not None and owner.reference in {Reference.NAME, Reference.WE, Reference.I}:
                return owner
    return None


def _subject_before(pronoun: "Token", marks: Marks) -> Phrase | None:
    """Atlas of "Atlas moved its database": the named subject of the clause that a possessive stands in."""
    if pronoun.lower_ not in {"its", "his", "her", "their"}:
        return None
    for above in pronoun.ancestors:
        for child in above.children:
            if child.dep_ in {"nsubj", "nsubjpass"} and child.i < pronoun.i and pronoun not in child.subtree:
                return phrase(child, marks) if is_proper(child, marks) else None
    return None


def _owned(made: Phrase, owner: Phrase, tokens: list["Token"], marks: Marks) -> Phrase:
    head = made.head
    words = lexicon().words
    relatives = words["family"] | words["people"] | words["pets"]
    if made.reference is Reference.NAME and is_proper(head, marks):
        before = [token for token in tokens if token.lower_ in relatives and not is_proper(token, marks)]
        if not before:  # "my Honda Civic": the owner is told by another sentence
            return made
        name = _joined([token for token in tokens if token not in before])
        relation = replace(made, name=before[-1].lower_, owner=owner, role=before[-1].lower_)
        return replace(made, name=name, relation=relation, type=EntityType.UNKNOWN)
    return replace(made, owner=owner, role=made.name)


def _apposed(head: "Token", marks: Marks) -> Phrase | None:
    """Anna of "my sister Anna"."""
    if is_proper(head, marks):
        return None
    for child in head.children:
        if (
            child.dep_ == "appos"
            and is_proper(child, marks)
            and child.i > head.i
            and child.doc[child.i - 1].text != ":"
        ):
            return phrase(child, marks)
    return None
