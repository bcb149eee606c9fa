"""Who is meant: "I", "we", "you", "she", "it" and "my sister" at one point of a conversation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from services.domain.facts import Mention, Turn
from services.domain.graph import EntityType
from services.domain.memory import EpisodeKind, Role
from services.llm.offline.phrases import Phrase, Reference
from services.llm.tasks import Setting

_SELF_NAMES = frozenset({"user", "me", "human", "assistant", "system", "ai", "bot", "unknown", "speaker"})
_NOT_PEOPLE = frozenset(
    {
        EntityType.TECHNOLOGY,
        EntityType.PLACE,
        EntityType.ORGANIZATION,
        EntityType.PROJECT,
        EntityType.PRODUCT,
        EntityType.CONCEPT,
        EntityType.EVENT,
    }
)


def speaker_of(turn: Turn, setting: Setting) -> str:
    """What "I" means in a turn: the speaker's name where one is given, else the user's."""
    named = turn.speaker.strip()
    return named if named and named.lower() not in _SELF_NAMES else setting.user


@dataclass(slots=True)
class Speaking:
    """Follows one turn. `assistant` turns speak of the user as "you"; their own "I" is nobody."""

    speaker: str
    document: bool = False
    assistant: bool = False
    names: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    topic: Mention | None = None
    recent: list[list[Mention]] = field(default_factory=list)
    relatives: dict[tuple[str, str], str] = field(default_factory=dict)

    def begin_turn(self, turn: Turn, setting: Setting) -> None:
        self.speaker = speaker_of(turn, setting) if turn.role is not Role.ASSISTANT else setting.user
        self.assistant = turn.role is Role.ASSISTANT
        self.document = setting.kind is EpisodeKind.DOCUMENT
        self.recent = []

    def told(self, mentions: Iterable[Mention]) -> None:
        """What a sentence was about; pronouns of the next one may mean it."""
        distinct = {mention.name: mention for mention in mentions if mention.name != self.speaker}
        self.recent = [list(distinct.values()), *self.recent][:2]

    def who(self, phrase: Phrase) -> Mention | None:
        """The thing a phrase means, or None where that is not plain."""
        match phrase.reference:
            case Reference.I | Reference.WE:
                return None if self.assistant else Mention(self.speaker, EntityType.PERSON)
            case Reference.YOU:
                return Mention(self.speaker, EntityType.PERSON) if self.assistant else None
            case Reference.PERSON | Reference.THING:
                return self.antecedent(person=phrase.reference is Reference.PERSON)
            case Reference.NOTHING:
                return None
            case _:
                return self._named(phrase)

    def antecedent(self, *, person: bool) -> Mention | None:
        """The one person, or the one thing, that was lately spoken of."""
        for mentions in self.recent:
            fitting = [mention for mention in mentions if _fits(mention, person=person)]
            if fitting:
                return fitting[0] if len(fitting) == 1 else None
        return None

    def _named(self, phrase: Phrase) -> Mention | None:
        if phrase.owner is None:
            kind = EntityType.PROJECT if phrase.name in self.projects else phrase.type
            return Mention(phrase.name, kind) if len(phrase.name) <= _MAX_NAME else None
        owner = self.who(phrase.owner)
        if owner is None:
            return None
        known = self.relatives.get((owner.name, phrase.role))
        if known is not None:
            return Mention(known, phrase.type)
        if phrase.owner.reference is Reference.WE:
            return Mention(phrase.role, phrase.type)
        return Mention(f"{owner.name}'s {phrase.role}", phrase.type)


_MAX_NAME = 80
"""Characters of a name; longer ones are misread clauses."""


def _fits(mention: Mention, *, person: bool) -> bool:
    if person:
        return mention.type not in _NOT_PEOPLE
    return mention.type is not EntityType.PERSON


def topics(mentions: Sequence[Mention]) -> Mention | None:
    """The one thing that a question was about."""
    names = {mention.name: mention for mention in mentions if mention.type is not EntityType.PERSON}
    return next(iter(names.values())) if len(names) == 1 else None
