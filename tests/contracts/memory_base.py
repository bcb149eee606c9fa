"""What the memory suites share: scopes, values with sensible defaults, and hostile text."""

from typing import Any

import pytest

from services.domain.ids import (
    DocumentId,
    EpisodeId,
    JobId,
    PassageId,
    RecordId,
    Revision,
    SessionId,
    VoiceId,
)
from services.domain.instants import Instant
from services.domain.memory import (
    DocumentVersion,
    Episode,
    EpisodeKind,
    Passage,
    Role,
    VoiceAspect,
    VoiceClaim,
    VoiceEnd,
    VoiceKind,
)
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.paging import Listed, Page

SCOPE = Scope(TenantId("t"), GraphId("g"))
TWINS = [Scope(TenantId("t"), GraphId("other")), Scope(TenantId("other"), GraphId("g"))]

NOW = Instant(9_000)
SESSION, DOCUMENT = SessionId("session"), DocumentId("document")

UNSTORABLE = ["a\x00b", "\x00", "lone \ud800 surrogate", "\udfff"]
STRANGE = [
    "",
    " ",
    "'; DROP TABLE memory_episodes; --",
    '"%s" %(x)s {y} :z ?',
    "\r\n\t\x01\x7f",
    "\u202eright to left\u202c \u0301 e\u0301 𝕏 👩‍👩‍👧",
    "\ufffe\uffff",
    "long " * 20_000,
]


def hostile(function: Any) -> Any:
    """Parametrizes a test by strange text that must come back unchanged."""
    return pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))(function)


def unstorable(function: Any) -> Any:
    return pytest.mark.parametrize("text", UNSTORABLE, ids=range(len(UNSTORABLE)))(function)


def episode(id: str, **columns: Any) -> Episode:
    values: dict[str, Any] = {
        "id": EpisodeId(id),
        "job": JobId("job"),
        "kind": EpisodeKind.CONVERSATION,
        "text": f"text of {id}",
        "reference_time": Instant(1_000),
        "created_at": Instant(2_000),
        "tokens": 3,
        "session": SessionId("session"),
    }
    return Episode(**(values | columns))


def full_episode(id: str = "e") -> Episode:
    return episode(
        id,
        kind=EpisodeKind.DOCUMENT,
        document=DOCUMENT,
        version=2,
        heading=("One", "Two"),
        title="Title",
        source="source",
        metadata=(("key", "value"), ("key", "again")),
        position=3,
        reference_time=Instant(-62_135_596_800_000_000),
    )


def passage(id: str, of: str, position: int = 0, **columns: Any) -> Passage:
    values: dict[str, Any] = {
        "id": PassageId(id),
        "episode": EpisodeId(of),
        "position": position,
        "text": f"passage {id}",
        "start": 0,
        "end": 9,
        "hash": f"hash-{id}",
    }
    return Passage(**(values | columns))


def whole_passage(id: str, of: str) -> Passage:
    """A passage with every field set to something telling."""
    return passage(
        id, of, 4, start=5, end=17, speaker="Maya", role=Role.USER, message_id="m-1", said_at=Instant(-7)
    )


def version(number: int, **columns: Any) -> DocumentVersion:
    values: dict[str, Any] = {
        "document": DocumentId("document"),
        "version": number,
        "hash": f"hash-{number}",
        "text": f"text of version {number}",
        "reference_time": Instant(1_000 + number),
        "created_at": Instant(2_000 + number),
        "job": JobId(f"job-{number}"),
        "title": "Title",
    }
    return DocumentVersion(**(values | columns))


def aspect(id: str, created: int = 1, text: str = "", kind: VoiceKind = VoiceKind.PREFERENCE) -> VoiceAspect:
    return VoiceAspect(VoiceId(id), kind, text or f"I like {id}.", created_at=Revision(created))


def claim(
    id: str, of: str, episode: str = "e", recorded: int = 1, quote: str = "I like it", at: int = 100
) -> VoiceClaim:
    return VoiceClaim(
        RecordId(id), VoiceId(of), EpisodeId(episode), PassageId("p"), quote, Instant(at), Revision(recorded)
    )


def end(id: str, of: str, recorded: int, by: str | None = None, episode: str | None = None) -> VoiceEnd:
    return VoiceEnd(
        RecordId(id),
        VoiceId(of),
        Instant(500),
        None if by is None else VoiceId(by),
        None if episode is None else EpisodeId(episode),
        "changed their mind",
        Revision(recorded),
    )


async def all_pages(list_page: Any, size: int) -> list[Any]:
    """Every item of a list, read in pages of `size`; no page is larger or empty in between."""
    items: list[Any] = []
    after = ""
    while True:
        listed: Listed[Any] = await list_page(Page(size, after))
        assert len(listed.items) <= size
        items += listed.items
        if not listed.after:
            return items
        assert len(listed.items) == size
        after = listed.after
