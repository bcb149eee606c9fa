"""What the tests of the model side share: small tasks, and an engine on a server of ours."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from services.domain.facts import FactKind, Mention, Turn, VoiceFact, WorldFact
from services.domain.graph import EntityType
from services.domain.instants import instant
from services.domain.memory import EpisodeKind, Role
from services.domain.scope import GraphId, Scope, TenantId
from services.llm.openai_engine import OpenAIEngine
from services.llm.tasks import Extract, KnownFact, NamedEntity, Normalise, Setting
from tests.doubles.model_server import ModelServer

SCOPE = Scope(TenantId("acme"), GraphId("ana"))
REFERENCE = instant(datetime(2026, 6, 30, 9, 30, tzinfo=UTC))
SETTING = Setting(EpisodeKind.CONVERSATION, REFERENCE, user_name="Ana", languages=("en",), source="chat")


def turns(*said: str, role: Role = Role.USER) -> tuple[Turn, ...]:
    return tuple(Turn(at, text, "", role, REFERENCE) for at, text in enumerate(said))


def extract(*said: str, setting: Setting = SETTING) -> Extract:
    return Extract(turns(*said), " ".join(said), setting)


def normalise(*said: str) -> Normalise:
    return Normalise(turns(*said), SETTING)


def claim(subject: str, predicate: str, target: str, turn: int = 0) -> WorldFact:
    fact = f"{subject} {predicate} {target}."
    person = Mention(subject, EntityType.PERSON)
    return WorldFact(FactKind.CLAIM, person, predicate, Mention(target), fact, turn, fact)


def voice(text: str) -> VoiceFact:
    return VoiceFact(text, 0, text)


def known(*facts: str) -> Sequence[KnownFact]:
    return [KnownFact(fact) for fact in facts]


def entity(name: str, *facts: str, here: bool = False) -> NamedEntity:
    return NamedEntity(name, EntityType.UNKNOWN, known(*facts), here)


def fact(**changes: Any) -> dict[str, Any]:
    """A fact as a model writes it: Bob joined the team."""
    return {
        "kind": "claim",
        "subject": "Bob",
        "subject_type": "Person",
        "predicate": "member_of",
        "object": "the team",
        "object_type": "Organization",
        "fact": "Bob is a member of the team.",
        "turn": 0,
        "quote": "Bob joined the team.",
        "start": None,
        "end": None,
        "seen": None,
        "confidence": 0.9,
        "confirmed_by": None,
        **changes,
    }


@asynccontextmanager
async def engine_on(server: ModelServer, **settings: Any) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(server.settings(**settings))
    try:
        yield engine
    finally:
        await engine.aclose()
