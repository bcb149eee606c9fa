"""Changes: what revisions changed, by id, as the log of revisions tells it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from services.domain.ids import EntityId, Revision, StatementId, VoiceId
from services.domain.scope import Scope
from services.stores.memory.port import RevisionEntry, RevisionLog

MOST = 500
"""Revisions that are followed one by one; who is farther behind loads anew."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything of a graph that may read otherwise since a revision."""

    statements: set[StatementId] = field(default_factory=set)
    entities: set[EntityId] = field(default_factory=set)
    voice: set[VoiceId] = field(default_factory=set)


async def changes_since(log: RevisionLog, scope: Scope, since: Revision, until: Revision) -> Changes | None:
    """What the revisions after `since`, up to `until`, changed; None where that can't be told.

    Raises StoreUnavailable.
    """
    if until - since > MOST:
        return None
    entries = await log.between(scope, since, until)
    # An import may have left out what nobody needs; it is no gap for a reader who was there.
    if [entry.revision for entry in entries] != list(range(since + 1, until + 1)):
        return None
    return _told(entries)


def _told(entries: Iterable[RevisionEntry]) -> Changes | None:
    found = Changes()
    for entry in entries:
        summary = json.loads(entry.summary) if entry.summary else {}
        touched = summary.get("touched")
        if touched is None:  # written before this was told
            return None
        found.statements.update(touched["statements"], summary.get("statements_added", ()))
        found.entities.update(touched["entities"], summary.get("entities_added", ()))
        found.voice.update(touched["voice"], summary.get("voice_added", ()), summary.get("voice_ended", ()))
    return found
