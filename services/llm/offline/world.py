"""World facts of a chunk: who may speak, sentence by sentence, from clause to dated fact."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from services.domain.facts import FactKind, Mention, Turn, WorldFact
from services.domain.graph import EntityType
from services.domain.memory import Role
from services.llm.offline.changes import draft_change, draft_ending
from services.llm.offline.chinese import facts_of_sentence
from services.llm.offline.clauses import Clause, clauses
from services.llm.offline.copula import draft_copula, draft_role
from services.llm.offline.drafts import TOLD, Context, Draft, sentence
from services.llm.offline.events import draft_dated, draft_event, draft_having, draft_occasion
from services.llm.offline.lexicon import lexicon
from services.llm.offline.phrases import Marks, Phrase, Reference, phrase
from services.llm.offline.script import is_chinese
from services.llm.offline.sentences import Sentence, Talk, affirms, is_inverted, is_small_word
from services.llm.offline.speaking import Speaking, topics
from services.llm.offline.states import draft_general, draft_state
from services.llm.offline.timing import Times, times_of, when
from services.llm.tasks import Setting

if TYPE_CHECKING:
    from spacy.tokens import Doc


@dataclass(frozen=True, slots=True)
class Parsed:
    """A turn with its sentences and their parses; what is not English has none."""

    turn: Turn
    sentences: Sequence[tuple[Sentence, "Doc | None"]]


def confirmations(turns: Sequence[Turn]) -> dict[int, int]:
    """Positions of assistant's turns, each with that of the user's next turn which confirms it."""
    found: dict[int, int] = {}
    for turn, following in pairwise(turns):
        if turn.role is Role.ASSISTANT and following.role is not Role.ASSISTANT and affirms(following.text):
            found[turn.position] = following.position
    return found


def world_facts(chunk: Sequence[Parsed], setting: Setting) -> list[WorldFact]:
    """The facts of a chunk, in the order of its text."""
    projects = {name for parsed in chunk for name in _PROJECT.findall(parsed.turn.text)}
    speaking = Speaking(setting.user, names=_capitals(chunk, setting), projects=frozenset(projects))
    confirmed = confirmations([parsed.turn for parsed in chunk])
    facts: list[WorldFact] = []
    for parsed in chunk:
        turn = parsed.turn
        if turn.role is Role.SYSTEM:
            continue
        speaking.begin_turn(turn, setting)
        counts = turn.role is not Role.ASSISTANT or turn.position in confirmed
        for text, doc in parsed.sentences:
            if text.talk is Talk.QUESTION and not (turn.position in confirmed and not is_inverted(text.text)):
                speaking.topic = (topics(_names(doc, speaking)) if doc else None) or speaking.topic
            elif counts and text.talk in {Talk.STATEMENT, Talk.QUESTION}:
                confirmed_by = confirmed.get(turn.position)
                if is_chinese(text.text):
                    facts += facts_of_sentence(turn, text, speaking, setting, confirmed_by)
                elif doc:
                    facts += _of_sentence(turn, text, doc, speaking, setting, confirmed_by)
    return facts


def _capitals(chunk: Sequence[Parsed], setting: Setting) -> frozenset[str]:
    """Words (lower case) that stand as names elsewhere: inside sentences of the chunk, or in the graph."""
    inside = (
        token.lower_
        for parsed in chunk
        for _, doc in parsed.sentences
        for token in doc or ()
        if token.i > 0
        and token.text[:1].isupper()
        and token.text != "I"
        and token.tag_ in {"NNP", "NN", "NNPS"}
    )
    known = (name.lower() for name in setting.known_entities if name[:1].isupper() and " " not in name)
    return frozenset(inside) | frozenset(known)


_ASKING = frozenset({"should", "does", "do", "did", "will", "can", "could", "is", "must", "shall", "would"})
_PROJECT = re.compile(r"\b[Pp]roject ([A-Z][\w-]*[a-z][\w-]*)")


def prepared(text: str) -> str:
    """A sentence as it is parsed: without "please note that", without the kind in "from project Alpha"."""
    return _BARE_PROJECT.sub(r"\1 ", _LEAD_IN.sub("", text))


_LEAD_IN = re.compile(
    r"^(?:(?:please )?(?:remember|note|keep in mind|know)(?: that|:)|fyi,?|btw,?|by the way,|for the record,|"
    r"just so you know,?) (?=I\b|I'm|my |our |we |[A-Z])",
    re.IGNORECASE,
)
_BARE_PROJECT = re.compile(r"\b(on|from|to|off|onto|for|joined|left) [Pp]roject (?=[A-Z][\w-]*[a-z])")


def _names(doc: "Doc", speaking: Speaking) -> list[Mention]:
    """The named subjects and owners of a question: what the answer is about."""
    found: list[Mention] = []
    for token in doc:
        asked = token.i > 0 and token.nbor(-1).lower_ in _ASKING and token.tag_ in {"NNP", "NN"}
        if asked or (token.dep_ in {"nsubj", "nsubjpass", "poss"} and token.tag_ not in {"WP", "WDT", "WP$"}):
            item = phrase(token, Marks(names=speaking.names))
            if item is not None and item.reference is Reference.NAME and item.owner is None:
                mention = speaking.who(item)
                found += [mention] if mention is not None else []
    return found


def _of_sentence(
    turn: Turn, text: Sentence, doc: "Doc", speaking: Speaking, setting: Setting, confirmed_by: int | None
) -> list[WorldFact]:
    said_at = turn.said_at if turn.said_at is not None else setting.reference_time
    told = clauses(doc)
    times = times_of(doc, told, said_at, setting.time_zone)
    context = Context(
        speaking, Marks(times.tokens, speaking.names), times.dated(told), setting.known_facts, times.of_token
    )
    drafts: list[Draft] = []
    for clause in told:
        drafts += _relations(clause, context)
        drafts += draft_change(clause, context) or draft_ending(clause, context) or _plain(clause, context)
    kept = [draft for draft in drafts if _is_sound(draft)]
    speaking.told(_mentions(kept, told, context))
    return [_fact(draft, times, turn, text, confirmed_by) for draft in kept]


_PLAIN = (
    draft_copula,
    draft_having,
    draft_state,
    draft_event,
    draft_occasion,
    draft_general,
    draft_dated,
)
"""From the particular to the general; the first that says anything is taken."""


def _plain(clause: Clause, context: Context) -> list[Draft]:
    for draft_some in _PLAIN:
        if drafts := draft_some(clause, context):
            return drafts
    return []


def _relations(clause: Clause, context: Context) -> Iterator[Draft]:
    """What appositions tell besides: "my sister Anna"."""
    heads = [*clause.subjects, *clause.objects, *(token for _, tokens in clause.links for token in tokens)]
    for item in context.phrases(heads):
        relation = item.relation
        if relation is None or relation.owner is None:
            continue
        owner, named = context.speaking.who(relation.owner), context.speaking.who(item)
        if owner is not None and named is not None:
            context.speaking.relatives[owner.name, relation.role] = named.name
            for draft in draft_role(clause, owner, relation.role, named, TOLD):
                yield replace(draft, timeless=True)


_MAX_WORDS = 8
"""Words of a name that a rule may take; longer ones are misparsed."""


def _is_sound(draft: Draft) -> bool:
    names = [draft.subject.name] + ([draft.object.name] if isinstance(draft.object, Mention) else [])
    if len(names) == 2 and names[0].casefold() == names[1].casefold():
        return False
    return all(_is_name(name) for name in names) and draft.predicate.isascii() and bool(draft.predicate)


def _is_name(name: str) -> bool:
    words = name.split()
    if not words or len(words) > _MAX_WORDS or not any(letter.isalnum() for letter in name):
        return False
    return lexicon().is_technology(name) or not all(is_small_word(word) for word in words)


def _mentions(drafts: Iterable[Draft], told: Iterable[Clause], context: Context) -> list[Mention]:
    """What a sentence was about: the ends of its facts, else its named subjects."""
    found: list[Mention] = []
    for draft in drafts:
        found.append(draft.subject)
        if isinstance(draft.object, Mention):
            found.append(draft.object)
    if not found:
        subjects: list[Phrase] = [item for clause in told for item in context.phrases(clause.subjects)]
        for item in subjects:
            mention = context.speaking.who(item) if item.reference is Reference.NAME else None
            if mention is not None:
                person = mention.type is EntityType.UNKNOWN and item.head.ent_type_ == "PERSON"
                found.append(Mention(mention.name, EntityType.PERSON) if person else mention)
    return found


def _fact(draft: Draft, times: Times, turn: Turn, text: Sentence, confirmed_by: int | None) -> WorldFact:
    dated = when(draft, times)
    return WorldFact(
        kind=draft.kind,
        subject=draft.subject,
        predicate=draft.predicate,
        object=draft.object,
        fact=sentence(draft),
        turn=turn.position,
        quote=text.text,
        start=None if draft.kind is FactKind.END else dated.start,
        end=dated.end,
        seen=dated.seen if draft.kind is FactKind.CLAIM else None,
        confidence=draft.confidence,
        confirmed_by=confirmed_by,
    )
