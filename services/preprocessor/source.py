"""What a job brings, read from the wire and checked."""

import hashlib
from dataclasses import dataclass

from palimpsest.internal.v1 import preprocessor_pb2 as pb
from services.domain.errors import ValidationFailed, Violation
from services.domain.ids import DocumentId, SessionId, derive_id
from services.domain.instants import Instant
from services.domain.memory import EpisodeKind, Role
from services.domain.scope import Scope
from services.wire.fields import maybe


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. `said_at` is the source's reference time where the message has none."""

    text: str
    speaker: str
    role: Role
    message_id: str
    said_at: Instant


@dataclass(frozen=True, slots=True)
class Source:
    """A text, or the messages of a conversation; never both."""

    kind: EpisodeKind
    text: str
    messages: tuple[Message, ...]
    session: SessionId | None
    document: DocumentId | None
    title: str
    source: str
    reference_time: Instant
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def role(self) -> Role:
        """Whose words a text without messages is: the user's in a conversation, else nobody's."""
        return Role.USER if self.kind is EpisodeKind.CONVERSATION else Role.NONE


def read_source(scope: Scope, message: pb.Source) -> Source:
    """Raises ValidationFailed for a kind or a role that is none."""
    kinds = (EpisodeKind.CONVERSATION, EpisodeKind.DOCUMENT, EpisodeKind.COMPACTED_SESSION)
    if message.kind not in kinds:
        raise ValidationFailed(Violation("source.kind", f"one of {', '.join(kinds)}", "enum"))
    kind = EpisodeKind(message.kind)
    session = SessionId(message.session_id) if message.session_id else None
    document = DocumentId(message.document_id) if message.document_id else None
    if kind is EpisodeKind.CONVERSATION:
        document = None
    elif kind is EpisodeKind.COMPACTED_SESSION and document is None and session is not None:
        document = summary_document(scope, session)
    reference_time = Instant(message.reference_time)
    messages = tuple(_message(turn, index, reference_time) for index, turn in enumerate(message.messages))
    text = "" if messages else message.text
    if messages and kind is not EpisodeKind.CONVERSATION:
        text, messages = "\n\n".join(one.text for one in messages), ()
    return Source(
        kind=kind,
        text=text,
        messages=messages,
        session=session,
        document=document,
        title=message.title,
        source=message.source,
        reference_time=reference_time,
        metadata=tuple(sorted(message.metadata.items())),
    )


def summary_document(scope: Scope, session: SessionId) -> DocumentId:
    """The document whose versions are the running summaries of a session."""
    return DocumentId(derive_id(scope, "session-summary", session))


def digest(*parts: str | int) -> str:
    """SHA-256, in hex, of parts that no choice of text can make collide."""
    framed = "".join(f"{len(str(part))}:{part}" for part in parts)
    return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()


def text_hash(text: str) -> str:
    """SHA-256, in hex, of a text as it stands."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _message(message: pb.SourceMessage, index: int, reference_time: Instant) -> Message:
    roles = tuple(Role)
    if message.role not in roles:
        raise ValidationFailed(
            Violation(f"source.messages[{index}].role", "one of user, assistant, system", "enum")
        )
    said_at = maybe(message, "said_at")
    return Message(
        text=message.text,
        speaker=" ".join(message.speaker.split()),
        role=Role(message.role),
        message_id=message.message_id,
        said_at=reference_time if said_at is None else said_at,
    )
