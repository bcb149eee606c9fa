"""Chats: conversations as files hold them, lines of JSON or a chat export, read into requests.

Lines of JSON, each of one of these shapes:

    {"role": "user", "content": "I moved to Linz.", "time": "2025-06-02T09:00:00Z", "session": "s1"}
    {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}], "session": "s1"}
    {"text": "I moved to Linz.", "sessionId": "s1", "referenceTime": "2025-06-02T00:00:00Z"}

The first two are messages; `text` may stand for `content`, `name` or `speaker` says who spoke, `id` names a
message or a conversation; those without a session belong to the file's own. The third has the fields of
AddEpisode. An export is the `conversations.json` of ChatGPT: a list of conversations, each a tree of messages
of which the branch that was last shown is taken.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf import json_format

from palimpsest.v1 import episode_pb2, memory_ingest_pb2

Request = memory_ingest_pb2.AddEpisodeRequest
Message = memory_ingest_pb2.EpisodeMessage

MOST_MESSAGES = 1_000
MOST_BYTES = 1024 * 1024
"""Of one request; a longer conversation is several requests of one session."""

_ROLES = {
    "user": episode_pb2.MESSAGE_ROLE_USER,
    "human": episode_pb2.MESSAGE_ROLE_USER,
    "assistant": episode_pb2.MESSAGE_ROLE_ASSISTANT,
    "ai": episode_pb2.MESSAGE_ROLE_ASSISTANT,
    "bot": episode_pb2.MESSAGE_ROLE_ASSISTANT,
    "model": episode_pb2.MESSAGE_ROLE_ASSISTANT,
    "system": episode_pb2.MESSAGE_ROLE_SYSTEM,
    "developer": episode_pb2.MESSAGE_ROLE_SYSTEM,
    "tool": episode_pb2.MESSAGE_ROLE_TOOL,
    "function": episode_pb2.MESSAGE_ROLE_TOOL,
}
_SPOKEN = frozenset({"text", "multimodal_text"})
"""Contents of an export that somebody said; others are code, searches and thoughts of the model."""


class Unreadable(ValueError):
    """A part of a file that is not what it should be; the text says what, without quoting it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a file: its request, or why there is none. `name` tells it from the others of the file."""

    name: str
    request: Request | None = None
    why: str = ""


def lines_of(text: str, session: str) -> Iterator[Part]:
    """Requests of lines of JSON. Messages of one session that follow one another are one request."""
    gathered: dict[str, list[Message]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        name = f"line {number}"
        try:
            read = _object(line)
            if isinstance(read.get("messages"), list):
                own = str(
                    read.get("session") or read.get("session_id") or read.get("id") or f"{session}:{number}"
                )
                said = [_message(one, own, at) for at, one in enumerate(read["messages"])]
                yield from parts_of(name, own, [one for one in said if one is not None])
            elif "role" in read:
                own = str(read.get("session") or read.get("session_id") or session)
                messages = gathered.setdefault(own, [])
                message = _message(read, own, len(messages))
                messages += [message] if message is not None else []
            else:
                yield Part(name, _request(line))
        except Unreadable as error:
            yield Part(name, why=str(error))
    for own, messages in gathered.items():
        yield from parts_of(f"session {own}", own, messages)


def export_of(text: str) -> Iterator[Part]:
    """Requests of a ChatGPT export. Raises Unreadable for what is none."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("not JSON") from error
    listed = read if isinstance(read, list) else [read]
    if not listed or not all(
        isinstance(one, dict) and isinstance(one.get("mapping"), dict) for one in listed
    ):
        raise Unreadable("JSON, but no chat export: a list of conversations with `mapping` was expected")
    for number, conversation in enumerate(listed, 1):
        session = str(
            conversation.get("conversation_id") or conversation.get("id") or f"conversation-{number}"
        )
        title = " ".join(str(conversation.get("title") or "").split())[:200]
        name = f"conversation {number}"
        try:
            said = _branch(conversation, session)
        except Unreadable as error:
            yield Part(name, why=str(error))
            continue
        yield from parts_of(name, session, said, title, _time(conversation.get("create_time")))


def parts_of(
    name: str, session: str, messages: Sequence[Message], title: str = "", at: datetime | None = None
) -> Iterator[Part]:
    """A conversation as requests of one session, each small enough for a call."""
    if not messages:
        yield Part(name, why="nothing was said in it")
    for number, some in enumerate(_cut(messages), 1):
        request = Request(
            kind=episode_pb2.EPISODE_KIND_CONVERSATION,
            session_id=chosen_id(session),
            title=title,
            messages=memory_ingest_pb2.EpisodeMessages(messages=some),
        )
        said = [one.time for one in some if one.HasField("time")]
        if said:
            request.reference_time.CopyFrom(said[-1])
        elif at is not None:
            request.reference_time.FromDatetime(at)
        yield Part(name if number == 1 else f"{name}, part {number}", request)


def chosen_id(name: str) -> str:
    """A name as the API takes ids: one that is too long, or has control characters, ends with its hash."""
    plain = "".join(" " if ord(letter) < 32 or 127 <= ord(letter) < 160 else letter for letter in name)
    if plain == name and len(name.encode()) <= 256:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{plain.encode()[:200].decode(errors='ignore')}~{digest}"


def _cut(messages: Sequence[Message]) -> Iterator[list[Message]]:
    some: list[Message] = []
    size = 0
    for message in messages:
        bytes_ = message.ByteSize()
        if some and (len(some) == MOST_MESSAGES or size + bytes_ > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(message)
        size += bytes_
    if some:
        yield some


def _object(line: str) -> dict[str, Any]:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable("not JSON") from error
    if not isinstance(read, dict):
        raise Unreadable("JSON, but no object")
    return read


def _request(line: str) -> Request:
    request = Request(kind=episode_pb2.EPISODE_KIND_CONVERSATION)
    try:
        request.MergeFrom(json_format.Parse(line, Request()))
    except json_format.ParseError as error:
        raise Unreadable(f"neither a message nor a text of AddEpisode: {error}") from error
    if not request.text.strip() and not request.messages.messages:
        raise Unreadable("it has neither `text` nor `messages`")
    return request


def _message(read: Any, session: str, place: int) -> Message | None:
    """None where nothing is said. Raises Unreadable."""
    if not isinstance(read, dict):
        raise Unreadable("a message that is no object")
    role = _ROLES.get(str(read.get("role")).lower())
    if role is None:
        raise Unreadable("a message whose `role` is none of " + ", ".join(_ROLES))
    text = _words(read.get("content", read.get("text")))
    if not text.strip():
        return None
    return _said(
        session,
        place,
        role,
        text,
        str(read.get("speaker") or read.get("name") or ""),
        str(read.get("id") or read.get("message_id") or ""),
        _time(next((read[key] for key in ("time", "timestamp", "created_at") if read.get(key)), None)),
    )


def _said(
    session: str,
    place: int,
    role: episode_pb2.MessageRole.ValueType,
    text: str,
    speaker: str = "",
    id: str = "",
    at: datetime | None = None,
) -> Message:
    """A message. Without an id it has one of its place and words, so that said again it adds nothing."""
    own = hashlib.sha256(f"{session}\0{place}\0{role}\0{text}".encode()).hexdigest()[:32]
    message = Message(
        message_id=chosen_id(id) if id else own, role=role, text=text, speaker=" ".join(speaker.split())[:200]
    )
    if at is not None:
        message.time.FromDatetime(at)
    return message


def _words(content: Any) -> str:
    """A content that is text, or a list of parts of which some are. Raises Unreadable."""
    if isinstance(content, str):
        return content.replace("\0", "")
    if isinstance(content, list):
        texts = [
            one if isinstance(one, str) else one.get("text") for one in content if isinstance(one, str | dict)
        ]
        return "\n\n".join(text.replace("\0", "") for text in texts if isinstance(text, str) and text.strip())
    raise Unreadable("a message without `content`")


def _branch(conversation: Mapping[str, Any], session: str) -> list[Message]:
    """What was said on the branch that ends at the current node; without one, at the newest leaf."""
    mapping: Mapping[str, Any] = conversation["mapping"]
    node = conversation.get("current_node")
    if node not in mapping:
        leaves = [id for id, one in mapping.items() if isinstance(one, dict) and not one.get("children")]
        node = max(leaves, key=lambda id: _created(mapping[id]), default=None)
    path: list[Any] = []
    seen: set[Any] = set()
    while node is not None and node not in seen:
        seen.add(node)
        found = mapping.get(node)
        if not isinstance(found, dict):
            raise Unreadable("a conversation whose messages don't hang together")
        path.append(found.get("message"))
        node = found.get("parent")
    said: list[Message] = []
    for message in reversed(path):
        spoken = _spoken(message, session, len(said))
        said += [spoken] if spoken is not None else []
    return said


def _created(node: Any) -> float:
    message = node.get("message") if isinstance(node, dict) else None
    created = message.get("create_time") if isinstance(message, dict) else None
    return float(created) if isinstance(created, int | float) else 0.0


def _spoken(message: Any, session: str, place: int) -> Message | None:
    """A message of the user or the assistant in words; None for all else that an export holds."""
    if not isinstance(message, dict):
        return None
    author, content = message.get("author"), message.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict):
        return None
    role = _ROLES.get(str(author.get("role")))
    if role not in (episode_pb2.MESSAGE_ROLE_USER, episode_pb2.MESSAGE_ROLE_ASSISTANT):
        return None
    if content.get("content_type") not in _SPOKEN or not isinstance(content.get("parts"), list):
        return None
    text = _words(content["parts"])
    if not text.strip():
        return None
    return _said(
        session, place, role, text, "", str(message.get("id") or ""), _time(message.get("create_time"))
    )


def _time(given: Any) -> datetime | None:
    """ISO 8601, or seconds since 1970; without an offset it is UTC. Raises Unreadable."""
    if given is None or given == "":
        return None
    try:
        if isinstance(given, int | float):
            return datetime.fromtimestamp(given, UTC)
        read = datetime.fromisoformat(str(given).replace("Z", "+00:00"))
    except (ValueError, OverflowError, OSError) as error:
        raise Unreadable("a time that is neither ISO 8601 nor seconds since 1970") from error
    return read if read.tzinfo else read.replace(tzinfo=UTC)
