"""Clauses of a parsed sentence: a verb with its subject, objects, prepositions and tense.

What is asked, commanded, wished, supposed or reported is no clause here: only what a speaker asserts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from services.llm.offline.lexicon import lexicon

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


class Tense(Enum):
    """When an asserted clause plays."""

    PRESENT = "present"
    PROGRESSIVE = "progressive"
    PERFECT = "perfect"
    PAST = "past"
    FUTURE = "future"


class Turn(Enum):
    """A verb around the clause's own that begins, ends or looks back on what it tells."""

    NONE = "none"
    BEGAN = "began"
    STOPPED = "stopped"
    FORMERLY = "formerly"


@dataclass(frozen=True, slots=True)
class Clause:
    """One asserted clause. `links` are its prepositions and particles with what they govern."""

    verb: "Token"
    lemma: str
    subjects: tuple["Token", ...]
    objects: tuple["Token", ...]
    links: tuple[tuple[str, tuple["Token", ...]], ...]
    tense: Tense
    turn: Turn = Turn.NONE
    passive: bool = False
    negated: bool = False
    never: bool = False
    no_longer: bool = False
    elided: bool = False

    def link(self, *words: str) -> tuple["Token", ...]:
        """What the first of these prepositions governs."""
        return next((tokens for word in words for name, tokens in self.links if name == word and tokens), ())

    def child(self, *deps: str) -> "Token | None":
        return next((token for token in self.verb.children if token.dep_ in deps), None)


def _negations(verb: "Token") -> set[str]:
    """The words that deny the verb; "no longer" is one."""
    found = {child.lower_ for child in verb.children if child.dep_ == "neg" or child.lower_ == "never"}
    for child in verb.children:
        if child.lower_ == "longer" and child.i > 0 and child.nbor(-1).lower_ in {"no", "not"}:
            found.add("no longer")
    return found


def _anymore(verb: "Token") -> bool:
    return any(
        token.lower_ == "anymore" or (token.lower_ == "more" and token.nbor(-1).lower_ == "any")
        for token in verb.subtree
        if token.i > verb.i
    )


_BEGIN, _STOP, _KEEP = {"start", "begin"}, {"stop", "quit", "cease", "discontinue"}, {"keep", "continue"}
_TRANSPARENT = {"prep", "prt", "agent", "advmod", "dative"}
_CLAUSAL = {"ROOT", "conj", "relcl", "advcl", "xcomp", "parataxis"}


def clauses(doc: "Doc") -> list[Clause]:
    """The asserted clauses of one sentence, in order."""
    found: list[Clause] = []
    for token in doc:
        clause = (
            _clause(token) if token.pos_ in {"VERB", "AUX"} and _is_meant(token) else _misread_like(token)
        )
        if clause is not None:
            found.append(clause)
    return found


def _misread_like(token: "Token") -> Clause | None:
    """Reads "I like Apple", of which the parser makes a preposition."""
    if token.lower_ != "like" or token.dep_ not in {"prep", "intj"} or token.i == 0:
        return None
    before = token.nbor(-1)
    subject = before if before.lower_ in {"i", "we"} else None
    if subject is None and before.lower_ == "do" and before.i > 0 and before.nbor(-1).lower_ in {"i", "we"}:
        subject = before.nbor(-1)
    objects = _spread(child for child in token.children if child.dep_ in {"pobj", "dobj"})
    if subject is None or not objects:
        return None
    return Clause(token, "like", (subject,), objects, (), Tense.PRESENT)


def _is_meant(verb: "Token") -> bool:
    """False where the clause, or one above it, is supposed, wished, reported, asked or commanded."""
    words = lexicon().words
    at = verb
    while True:
        if at.pos_ in {"VERB", "AUX"}:
            lowers = {child.lower_ for child in at.children if child.dep_ in {"mark", "advmod"}}
            if lowers & words["hypothetical"] or any(
                child.tag_ == "MD" and child.lower_ in words["modals"] for child in at.children
            ):
                return False
            if any(_is_condition(child) for child in at.children):
                return False
        if at.dep_ == "ROOT" or _is_run_on(at):
            return _is_asserted_root(at)
        if at.dep_ not in _CLAUSAL and at.pos_ in {"VERB", "AUX"}:
            return False  # ccomp, csubj, acl, pcomp: reported or only named
        if at.dep_ == "xcomp" and not _passes_through(at):
            return False
        at = at.head


_SPEECH = frozenset(
    {
        "say",
        "tell",
        "write",
        "ask",
        "claim",
        "think",
        "believe",
        "guess",
        "suppose",
        "hope",
        "wish",
        "reply",
        "answer",
    }
)


def _is_run_on(verb: "Token") -> bool:
    """True for the first of "I ran a race last week, it was hard": it is as much asserted as the second."""
    before = verb.dep_ == "ccomp" and verb.i < verb.head.i and verb.head.pos_ in {"VERB", "AUX"}
    return (
        before
        and verb.head.lemma_ not in _SPEECH
        and not any(child.dep_ == "mark" for child in verb.children)
    )


def _is_condition(token: "Token") -> bool:
    return token.dep_ == "advcl" and any(
        child.dep_ == "mark" and child.lower_ in {"if", "unless"} for child in token.children
    )


def _is_asserted_root(root: "Token") -> bool:
    if root.pos_ not in {"VERB", "AUX"} or (root.tag_ in {"VBG"} and not _aux(root)):
        return root.pos_ not in {"VERB", "AUX"}
    if subjects_of(root):
        return True
    return root.tag_ in {"VBD", "VBN"} and root.i <= _first_word(root) and not _aux(root)


def _first_word(token: "Token") -> int:
    return next(
        (word.i for word in token.doc if not word.is_punct and word.dep_ not in {"intj", "cc", "advmod"}), 0
    )


def _passes_through(verb: "Token") -> bool:
    """True when the head verb only says that this one begins, stops, goes on or is to come."""
    head = verb.head
    if head.lemma_ in _BEGIN | _STOP | _KEEP:
        return True
    if head.lemma_ == "use" and head.tag_ == "VBD":
        return True
    return head.lemma_ == "go" and head.tag_ == "VBG" and verb.tag_ == "VB"


def _clause(verb: "Token") -> Clause | None:
    if any(child.dep_ == "xcomp" and _passes_through(child) for child in verb.children):
        return None  # told by the inner verb
    subjects, carrier = _subjects(verb)
    tense = _tense(verb)
    if tense is None:
        return None
    negations = _negations(verb) | (_negations(carrier) if verb.dep_ == "xcomp" else set())
    no_longer = bool(negations & {"no longer"}) or (bool(negations) and _anymore(verb))
    return Clause(
        verb=verb,
        lemma=verb.lemma_.lower(),
        subjects=subjects,
        objects=_objects(verb),
        links=tuple(_links(verb)),
        tense=tense,
        turn=_turn(verb),
        passive=any(child.dep_ in {"auxpass", "nsubjpass"} for child in verb.children),
        negated=bool(negations) and not no_longer,
        never="never" in negations,
        no_longer=no_longer,
        elided=not subjects,
    )


def subjects_of(verb: "Token") -> tuple["Token", ...]:
    """The subjects that stand at this verb itself."""
    found = _spread(child for child in verb.children if child.dep_ in {"nsubj", "nsubjpass"})
    if found or verb.i == 0:
        return found
    first = verb.doc[0]  # a name that the parser took for an adverb: "Tom and Lea live in Vienna"
    misread = (
        first.head == verb
        and first.dep_ in {"npadvmod", "advmod", "dep", "compound", "nmod", "amod"}
        and first.text[:1].isupper()
    )
    if misread and (first.tag_ in {"NNP", "NN", "NNPS"} or lexicon().is_technology(first.text)):
        return _spread(iter([first]))
    return ()


def _subjects(verb: "Token") -> tuple[tuple["Token", ...], "Token"]:
    """The subjects and the verb they stand at: that of the clause above for "and joined Meta"."""
    at = verb
    while True:
        own = subjects_of(at)
        if own:
            if (at.dep_ == "relcl" and own[0].tag_ in {"WP", "WDT"}) or (
                own[0].lower_ == "that" and at.dep_ == "relcl"
            ):
                return (at.head,), at
            return own, at
        if at.dep_ == "relcl" or at.dep_ not in {"conj", "xcomp", "advcl"}:
            return (), at
        at = at.head


def _objects(verb: "Token") -> tuple["Token", ...]:
    """The objects, with a technology that was taken for a verb: "I use Python and Go"."""
    misread = [
        child
        for child in verb.children
        if child.dep_ in {"xcomp", "advmod"}
        and child.text[:1].isupper()
        and lexicon().is_technology(child.text)
        if child.i > verb.i
    ]
    return _spread(
        child
        for child in verb.children
        if child.dep_ in {"dobj", "obj"} or (is_misread_name(child) and child.nbor(-1).pos_ != "ADP")
    ) + tuple(misread)


def is_name_shaped(token: "Token") -> bool:
    return token.text[:1].isupper() and token.tag_ in {"NNP", "NNPS", "NN"}


def is_misread_name(token: "Token") -> bool:
    """A name in odd capitals that was taken for a mark: RabbitMQ, gRPC."""
    return token.dep_ == "punct" and token.text.isalnum() and token.i > 0


def _spread(heads: Iterator["Token"]) -> tuple["Token", ...]:
    """Each head and what is joined to it by "and"; "A instead of B" and "A but not B" give A alone."""
    found: list[Token] = []
    for head in heads:
        found.append(head)
        joined = head
        while True:
            nexts = [child for child in joined.children if child.dep_ == "conj"]
            ands = {child.lower_ for child in joined.children if child.dep_ == "cc"}
            if not nexts or ands & {"or", "but", "nor"}:
                break
            joined = nexts[0]
            if joined.pos_ in {"VERB", "AUX"}:
                break
            found.append(joined)
    return tuple(found)


def _links(verb: "Token") -> Iterator[tuple[str, tuple["Token", ...]]]:
    particles = [child.lower_ for child in verb.children if child.dep_ == "prt"]
    for child in verb.children:
        if child.lower_ == "married" and child.dep_ == "acomp":  # "got married to Luca"
            yield from _governed(child, "")
        if child.dep_ in _TRANSPARENT or (child.dep_ in {"acomp", "oprd", "amod"} and child.lower_ == "rid"):
            yield from _governed(child, "")
        if child.dep_ == "conj" and child.pos_ == "ADP":
            yield from _governed(child, "")
        if child.dep_ in {"prep", "agent"}:
            for particle in particles:
                yield from _governed(child, particle + " ")
    for particle in particles:
        yield particle, _spread(child for child in verb.children if child.dep_ == "dobj")


def _governed(word: "Token", before: str) -> Iterator[tuple[str, tuple["Token", ...]]]:
    name = before + word.lower_
    objects = _spread(child for child in word.children if child.dep_ == "pobj")
    if (
        not objects
        and word.i + 1 < len(word.doc)
        and word.nbor().dep_ == "npadvmod"
        and is_name_shaped(word.nbor())
    ):
        objects = (word.nbor(),)  # "moved off Alpha"
    if not objects and word.i + 1 < len(word.doc) and is_misread_name(word.nbor()):
        objects = (word.nbor(),)
    if objects:
        yield name, objects
    for child in word.children:
        if child.dep_ == "conj" and child.pos_ == "ADP":  # "off Alpha and onto Beta"
            yield from _governed(child, before)
        if child.dep_ in {"prep", "pcomp"} and child.pos_ in {"ADP", "SCONJ"}:
            yield from _governed(child, "" if objects else name + " ")
    if word.dep_ == "advmod":  # "moved away from", "moved back to": the preposition stands at the verb
        for sibling in word.head.children:
            if sibling.dep_ == "prep" and sibling.i == word.i + 1:
                yield from _governed(sibling, name + " ")


def _aux(verb: "Token") -> list["Token"]:
    return [child for child in verb.children if child.dep_ in {"aux", "auxpass"}]


def _tense(verb: "Token") -> Tense | None:
    """The tense that verb and auxiliaries show; None for a bare infinitive, an order, a participle."""
    if verb.dep_ == "xcomp" and _passes_through(verb):
        return Tense.FUTURE if verb.head.lemma_ == "go" else _tense(verb.head)
    helpers = _aux(verb)
    lowers = [helper.lower_ for helper in helpers]
    if any(word in {"will", "'ll", "wo", "shall"} for word in lowers):
        return Tense.FUTURE
    if any(helper.lemma_ == "have" or helper.lower_ in {"'ve", "has", "have"} for helper in helpers):
        return Tense.PAST if "had" in lowers else Tense.PERFECT
    for helper in helpers:
        if helper.dep_ == "auxpass" or helper.lemma_ == "be":
            past = helper.tag_ == "VBD"
            if verb.tag_ == "VBG":
                return Tense.PAST if past else Tense.PROGRESSIVE
            return Tense.PAST if past else Tense.PRESENT
        if helper.lemma_ == "do":
            return Tense.PAST if helper.lower_ == "did" else Tense.PRESENT
    if verb.tag_ in {"VBZ", "VBP"} or (verb.tag_ == "VB" and subjects_of(verb)):
        return Tense.PRESENT
    if verb.tag_ == "VBD":
        return Tense.PAST
    if verb.dep_ == "conj" and verb.tag_ in {"VB", "VBN", "VBG"}:
        return _tense(verb.head)
    first = verb.dep_ == "ROOT" and verb.i <= _first_word(verb)  # "Moved to Porto."
    return Tense.PAST if verb.tag_ == "VBN" and (first or subjects_of(verb)) else None


def _turn(verb: "Token") -> Turn:
    head = verb.head
    if verb.dep_ != "xcomp" or not _passes_through(verb):
        return _turn(head) if verb.dep_ == "conj" and head.dep_ == "xcomp" else Turn.NONE
    if head.lemma_ in _BEGIN:
        return Turn.BEGAN
    if head.lemma_ in _STOP:
        return Turn.STOPPED
    return Turn.FORMERLY if head.lemma_ == "use" else Turn.NONE
