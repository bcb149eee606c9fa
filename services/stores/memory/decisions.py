"""The log of decisions, a part of the memory port: what was decided on a graph, by whom and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.paging import Listed, Page


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided on a graph, by whom and why: an audit event.

    `target`, and `other` where two things are meant, are ids. `actor`: model, rule, upkeep, call, or `key:`
    and the id of an API key. `why` is a word of ours, or the reason that a caller gave: text that goes when
    its target's text goes (`forget_text`), or the graph. Never a model's reason, which may quote: that is
    with the record that it is for. `request` names the call, "" without one.
    """

    id: str
    revision: Revision
    at: Instant
    action: str
    target: str
    actor: str
    why: str = ""
    model: str = ""
    prompt_version: str = ""
    other: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions are wanted. "" and None don't filter. `target` meets either side of a pair.

    `since` and `until` are clock times, half-open. `after`: only what a list by time, newest first, has after
    a decision of this time and id.
    """

    action: str = ""
    target: str = ""
    since: Instant | None = None
    until: Instant | None = None
    after: tuple[Instant, str] | None = None


class DecisionLog(Protocol):
    async def record(self, scope: Scope, decisions: Sequence[Decision]) -> None:
        """Adds decisions; those there already are left as they are. Raises UnstorableText."""
        ...

    async def list_decisions(self, scope: Scope, target: str | None, page: Page) -> Listed[Decision]:
        """Newest revision first."""
        ...

    async def find(self, scope: Scope, where: DecisionFilter, limit: int) -> Sequence[Decision]:
        """The newest by time, then by id, at most `limit`."""
        ...

    async def forget_text(self, scope: Scope, targets: Sequence[str]) -> None:
        """Empties `why` of decisions on these, on either side. Idempotent."""
        ...
