"""What these tests share: texts in, facts in short form out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from services.domain.facts import FactKind, Mention, NothingReason, StatedTime, Turn, VoiceFact, WorldFact
from services.domain.instants import Instant, instant, moment
from services.domain.memory import EpisodeKind, Role
from services.domain.scope import GraphId, Scope, TenantId
from services.llm import tasks
from services.llm.offline import OfflineEngine

SCOPE = Scope(TenantId("acme"), GraphId("notes"))
USER, ASSISTANT = Role.USER, Role.ASSISTANT


def day(text: str) -> Instant:
    return instant(datetime.fromisoformat(text).replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Understood:
    """Everything that the engine says of one chunk."""

    nothing: NothingReason | None
    world: Sequence[WorldFact]
    voice: Sequence[VoiceFact]

    @property
    def triples(self) -> set[tuple[str, str, str, str]]:
        return {short(fact) for fact in self.world}

    def of(self, kind: FactKind) -> list[WorldFact]:
        return [fact for fact in self.world if fact.kind is kind]


def short(fact: WorldFact) -> tuple[str, str, str, str]:
    target = fact.object.name if isinstance(fact.object, Mention) else fact.object.text
    return fact.kind.value, fact.subject.name, fact.predicate, target


def shown(time: StatedTime | None) -> str:
    """`2026-01-01/MONTH`, or "" where nothing is stated."""
    return "" if time is None or time.at is None else f"{moment(time.at):%Y-%m-%d}/{time.precision.name}"


def turns(*texts: str | tuple[Role, str] | tuple[Role, str, str], said: str = "2026-06-30") -> list[Turn]:
    """Turns of the user, or of the role (and speaker) that is given."""
    made = []
    for position, text in enumerate(texts):
        role, words, speaker = (USER, text, "") if isinstance(text, str) else (*text, "")[:3]
        made.append(Turn(position, words, speaker, role, day(said)))
    return made


async def understand(
    *texts: str | tuple[Role, str] | tuple[Role, str, str],
    said: str = "2026-06-30",
    user: str = "Ana",
    kind: EpisodeKind = EpisodeKind.CONVERSATION,
    known: Sequence[str] = (),
    entities: Sequence[str] = (),
) -> Understood:
    """Runs the tasks of a chunk as the extractor does."""
    engine, chunk = OfflineEngine(), turns(*texts, said=said)
    facts = [tasks.KnownFact(fact) for fact in known]
    setting = tasks.Setting(kind, day(said), "UTC", user, known_facts=facts, known_entities=entities)
    normalised = (await engine.normalise(SCOPE, tasks.Normalise(chunk, setting))).value
    assert (normalised.nothing is None) == bool(normalised.narrative.strip())
    if normalised.nothing is not None:
        return Understood(normalised.nothing, (), ())
    task = tasks.Extract(chunk, normalised.narrative, setting)
    world = (await engine.extract_world(SCOPE, task)).value.facts
    voice = (await engine.extract_voice(SCOPE, task)).value.facts
    quotes = [(fact.turn, fact.quote) for fact in world] + [(fact.turn, fact.quote) for fact in voice]
    for turn, quote in quotes:
        assert quote in chunk[turn].text
    return Understood(None, world, voice)
