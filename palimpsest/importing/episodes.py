"""Episodes of Graphiti as texts: messages where they are written as `name: words`, else one text."""

import re
from collections.abc import Mapping
from typing import Any

from palimpsest.chats import MOST_BYTES, MOST_MESSAGES, Unreadable, chosen_id
from palimpsest.dates import timestamp
from palimpsest.importing import fitting
from palimpsest.importing.values import Said, Words
from palimpsest.v1 import episode_pb2, memory_ingest_pb2

_SPEAKER = re.compile(r"([^\W\d][\w .'’-]{0,60}?)\s*(?:\((\w+)\))?:\s+(\S.*)")
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "model"})


def words_of(value: Mapping[str, Any], said: Said, session: str) -> Words:
    """An episode as a request. Raises Unreadable."""
    text = fitting.text_of(value.get("content"), "content")
    if not fitting.has_words(text):
        raise Unreadable("`content` is missing")
    if len(text.encode()) > MOST_BYTES:
        raise Unreadable(f"`content` is larger than {MOST_BYTES >> 10} KiB")
    uuid = fitting.text_of(value.get("uuid"), "uuid")
    request = memory_ingest_pb2.AddEpisodeRequest(
        title=fitting.line_of(value.get("name"), "name"),
        source="graphiti",
        reference_time=timestamp(said.at),
        metadata={"graphiti_uuid": uuid[:500]} if uuid else {},
    )
    described = fitting.line_of(value.get("source_description"), "source_description")
    if described:
        request.metadata["graphiti_source"] = described
    kind = fitting.text_of(value.get("source"), "source")
    messages = _messages(text) if kind == "message" else []
    if kind == "message":
        request.kind = episode_pb2.EPISODE_KIND_CONVERSATION
        request.session_id = session
    else:
        request.kind = episode_pb2.EPISODE_KIND_DOCUMENT
        request.document_id = chosen_id(f"graphiti/{uuid}" if uuid else "")
    if messages and len(messages) <= MOST_MESSAGES:
        request.messages.messages.extend(messages)
    else:
        request.text = text
    return Words(request, said)


def _messages(text: str) -> list[memory_ingest_pb2.EpisodeMessage]:
    """What was said, by whom; nothing where the text does not begin with who speaks."""
    messages: list[memory_ingest_pb2.EpisodeMessage] = []
    for line in text.splitlines():
        match = _SPEAKER.fullmatch(line.strip())
        if match:
            role = (match[2] or match[1]).lower()
            assistant = role in _ASSISTANTS
            messages.append(
                memory_ingest_pb2.EpisodeMessage(
                    role=episode_pb2.MESSAGE_ROLE_ASSISTANT if assistant else episode_pb2.MESSAGE_ROLE_USER,
                    speaker="" if match[1].lower() in {"user", *_ASSISTANTS} else match[1],
                    text=match[3],
                )
            )
        elif line.strip() and messages:
            messages[-1].text += f"\n{line.strip()}"
        elif line.strip():
            return []
    return messages
