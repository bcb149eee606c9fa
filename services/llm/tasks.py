"""What engines are asked and what they answer: one input and one output type a task."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from services.domain.facts import NothingReason, Turn, VoiceFact, WorldFact
from services.domain.graph import EntityType, GraphAspect
from services.domain.instants import Instant
from services.domain.memory import EpisodeKind, VoiceKind
from services.domain.records import VerdictKind

UNNAMED_USER = "User"
"""What "I" in a user's turn is called while the user's name is not known."""


class Profile(StrEnum):
    """How thoroughly a chunk is understood: a call for each step, or steps combined into few calls."""

    FULL = "full"
    ECONOMY = "economy"


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact of this graph shown as context or as a candidate: its sentence and when it holds."""

    fact: str
    valid_at: Instant | None = None
    invalid_at: Instant | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds a chunk. Everything in it belongs to the chunk's own graph.

    `reference_time` is when the text was said; `time_zone` an IANA name; `rules` the tenant's ingestion rules
    for this source; `recent` the session's latest episodes, `similar` neighbours of the chunk's passages.
    `known_names` are other names in the text, each with that of `known_entities` which it means.
    `medium_model` and `low_model` are the graph's own models, "" for the operator's; no model is told them,
    nor the profile.
    """

    kind: EpisodeKind
    reference_time: Instant
    time_zone: str = "UTC"
    user_name: str = ""
    languages: Sequence[str] = ()
    source: str = ""
    heading: Sequence[str] = ()
    rules: Sequence[str] = ()
    recent: Sequence[str] = ()
    similar: Sequence[str] = ()
    known_facts: Sequence[KnownFact] = ()
    known_entities: Sequence[str] = ()
    known_predicates: Sequence[str] = ()
    known_names: Sequence[tuple[str, str]] = ()
    medium_model: str = ""
    low_model: str = ""
    profile: Profile = Profile.FULL

    @property
    def user(self) -> str:
        """What "I" in a user's turn is called: the user's name, or `User` while it is not known."""
        return self.user_name.strip() or UNNAMED_USER


@dataclass(frozen=True, slots=True)
class Normalise:
    """Turn raw turns into a third-person narrative."""

    turns: Sequence[Turn]
    setting: Setting


@dataclass(frozen=True, slots=True)
class Normalised:
    """The narrative, or why there is nothing to remember; exactly one of the two is set."""

    narrative: str = ""
    nothing: NothingReason | None = None


@dataclass(frozen=True, slots=True)
class Extract:
    """Draw facts from the narrative, each with a quote from a raw turn."""

    turns: Sequence[Turn]
    narrative: str
    setting: Setting


@dataclass(frozen=True, slots=True)
class WorldFacts:
    facts: Sequence[WorldFact]


@dataclass(frozen=True, slots=True)
class VoiceFacts:
    facts: Sequence[VoiceFact]


@dataclass(frozen=True, slots=True)
class Reflect:
    """Drop session noise."""

    narrative: str
    world: Sequence[WorldFact]
    voice: Sequence[VoiceFact]
    setting: Setting


@dataclass(frozen=True, slots=True)
class Kept:
    """Positions of the facts that last."""

    world: Sequence[int]
    voice: Sequence[int]


@dataclass(frozen=True, slots=True)
class Classify:
    world: Sequence[WorldFact]
    voice: Sequence[VoiceFact]
    setting: Setting


@dataclass(frozen=True, slots=True)
class Classified:
    """One entry for each fact sent, in order. None: unclassified (world: kept; voice: dropped)."""

    world: Sequence[tuple[GraphAspect | None, Instant | None]]
    voice: Sequence[VoiceKind | None]


@dataclass(frozen=True, slots=True)
class Understand:
    """Draw classified facts from raw turns at once: what Normalise, Extract and Classify do in steps."""

    turns: Sequence[Turn]
    setting: Setting


@dataclass(frozen=True, slots=True)
class Understood:
    """Facts with their aspects, each with a quote from a raw turn; or why there are none."""

    world: Sequence[WorldFact] = ()
    voice: Sequence[VoiceFact] = ()
    nothing: NothingReason | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A new fact and a candidate, by their positions in `JudgeStatements`."""

    new: int
    candidate: int


@dataclass(frozen=True, slots=True)
class NamedPredicate:
    """A predicate shown to be told from others: its name, other names of it, and a fact that uses it."""

    name: str
    aliases: Sequence[str] = ()
    fact: str = ""


@dataclass(frozen=True, slots=True)
class JudgeStatements:
    """How new facts stand to what is already known. `pairs` lists what may be judged.

    Beside it, and of the same chunk: whether predicates that it uses first are other words for known ones.
    """

    new: Sequence[KnownFact]
    candidates: Sequence[KnownFact]
    pairs: Sequence[Pair]
    setting: Setting
    new_predicates: Sequence[NamedPredicate] = ()
    candidate_predicates: Sequence[NamedPredicate] = ()
    predicate_pairs: Sequence[Pair] = ()


@dataclass(frozen=True, slots=True)
class PairVerdict:
    new: int
    candidate: int
    kind: VerdictKind
    why: str = ""


@dataclass(frozen=True, slots=True)
class PredicateVerdict:
    """`same`: whoever says one of the two names could say the other; otherwise they mean two things."""

    new: int
    candidate: int
    same: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts on some of the pairs; a pair without one stands apart."""

    verdicts: Sequence[PairVerdict]
    predicates: Sequence[PredicateVerdict] = ()


@dataclass(frozen=True, slots=True)
class JudgeVoice:
    """How a chunk's new sentences stand to those already held. `pairs` lists what may be judged."""

    new: Sequence[VoiceFact]
    candidates: Sequence[KnownFact]
    pairs: Sequence[Pair]
    setting: Setting


@dataclass(frozen=True, slots=True)
class VoiceVerdict:
    """`duplicate`: the candidate says the same; otherwise the new sentence replaces it."""

    new: int
    candidate: int
    duplicate: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class JudgedVoice:
    verdicts: Sequence[VoiceVerdict] = field(default=())


@dataclass(frozen=True, slots=True)
class ToldFact:
    """A resolved fact to be written about: its sentence, its triple, when it holds.

    `kind` is a graph aspect or the kind of a sentence of the user's voice, which has no triple.
    """

    fact: str
    kind: str = ""
    valid_at: Instant | None = None
    invalid_at: Instant | None = None
    subject: str = ""
    predicate: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class ToldSentence:
    """A sentence with the facts that it rests on, by their positions; at least one."""

    text: str
    facts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Summarise:
    """Give a session a title, labels and a summary. `labels` are those that the graph has."""

    facts: Sequence[ToldFact]
    labels: Sequence[str]
    setting: Setting


@dataclass(frozen=True, slots=True)
class Summarised:
    """A title of 3 to 8 words, 1 to 3 labels, and at least one sentence."""

    title: str
    labels: Sequence[str]
    sentences: Sequence[ToldSentence]


@dataclass(frozen=True, slots=True)
class Portray:
    """Write the document about the user. `before`: what of it still stands; `gone`: sentences that do not."""

    facts: Sequence[ToldFact]
    before: Sequence[ToldSentence]
    gone: Sequence[str]
    setting: Setting


@dataclass(frozen=True, slots=True)
class Portrayed:
    """The sentences of the document. Those of one section rest on facts of that section alone."""

    sentences: Sequence[ToldSentence]


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity shown to be told from others: its name, what is known of it, whether the text names it."""

    name: str
    type: EntityType
    facts: Sequence[KnownFact] = ()
    here: bool = False


@dataclass(frozen=True, slots=True)
class JudgeEntities:
    """Whether entities that a chunk names first are among those known. `pairs` lists what may be judged.

    `said`: the chunk's passages that bear on them. A candidate may be of the same chunk.
    """

    new: Sequence[NamedEntity]
    candidates: Sequence[NamedEntity]
    pairs: Sequence[Pair]
    said: Sequence[str]
    setting: Setting


@dataclass(frozen=True, slots=True)
class EntityVerdict:
    """`same`: both names are one thing's; otherwise they are two things'."""

    new: int
    candidate: int
    same: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class JudgedEntities:
    """Verdicts on some of the pairs; a pair without one stays two."""

    verdicts: Sequence[EntityVerdict] = field(default=())


@dataclass(frozen=True, slots=True)
class Resolve:
    """All that is to be judged of one chunk, at once; with `reflect`, which facts are noise as well."""

    setting: Setting
    reflect: Reflect | None = None
    entities: JudgeEntities | None = None
    statements: JudgeStatements | None = None
    voice: JudgeVoice | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """Of each part that was asked its answer. `kept` is None where nothing was to be reflected on."""

    kept: Kept | None = None
    entities: JudgedEntities = JudgedEntities()
    statements: Judged = Judged(())
    voice: JudgedVoice = JudgedVoice()
