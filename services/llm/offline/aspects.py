"""What facts are about: graph aspects by predicate, the date of an event, and voice kinds by wording."""

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from services.domain.facts import FactKind, VoiceFact, WorldFact
from services.domain.graph import GraphAspect
from services.domain.instants import Instant
from services.domain.memory import VoiceKind
from services.llm.offline.lexicon import lexicon
from services.llm.offline.voice import voice_kind


@cache
def _by_predicate() -> dict[str, GraphAspect]:
    table = tomllib.loads(files(__package__).joinpath("aspects.toml").read_text("utf-8"))["predicates"]
    return {predicate: GraphAspect(aspect) for aspect, words in table.items() for predicate in words.split()}


def aspect_of(predicate: str) -> GraphAspect:
    """What a fact under this predicate is about. Kinship and posts are relations; the rest is knowledge."""
    known = _by_predicate().get(predicate)
    if known is not None:
        return known
    words = lexicon().words
    last = predicate.rsplit("_", 1)[-1]
    if last in words["family"] or last in words["people"]:
        return GraphAspect.RELATIONSHIP
    return GraphAspect.IDENTITY if predicate.startswith("favorite_") else GraphAspect.KNOWLEDGE


def classify_world(facts: Sequence[WorldFact]) -> list[tuple[GraphAspect | None, Instant | None]]:
    """Aspect and, for an event, its date: the start that is stated."""
    found: list[tuple[GraphAspect | None, Instant | None]] = []
    for fact in facts:
        aspect = fact.aspect or aspect_of(fact.predicate)
        dated = aspect is GraphAspect.EVENT and fact.kind is FactKind.CLAIM and fact.start is not None
        found.append((aspect, fact.start.at if dated and fact.start else fact.event_at))
    return found


def classify_voice(facts: Sequence[VoiceFact]) -> list[VoiceKind | None]:
    """The kind that the extraction gave, else what the wording tells."""
    return [fact.kind or voice_kind(fact.text) for fact in facts]
