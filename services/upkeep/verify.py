"""Verify: goes through a graph, and reports what is seen against one published revision, and again later."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.stores.memory.port import LogState
from services.upkeep.checks import Check, Looking, Seen
from services.upkeep.differences import Difference, Done, Kind, Report
from services.upkeep.parts import Mends, Stores
from services.upkeep.repairs import Repairs
from services.upkeep.text_checks import all_checks

_ROUNDS = 4
"""Repairs of one page: what others rest on first, then what could only be seen after that."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long what is on its way is waited for."""

    settled_seconds: float = 300.0
    """Age from which text must have its vectors, and a revision that was begun should have been published."""
    pause_seconds: float = 1.0
    """Before a difference is looked at again."""
    tries: int = 10
    """How often a moment is sought in which nobody writes to the graph."""


class Verifier:
    """Verifies graphs of one set of stores, in pages: bounded memory, no locks, no long transactions."""

    def __init__(
        self,
        stores: Stores,
        vocabulary: Vocabulary,
        mends: Mends | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Without `mends` it can only look."""
        self._stores = stores
        self._mends = mends
        self._checks = all_checks(Looking(stores, vocabulary))
        self._patience = patience or Patience()

    async def verify(self, scope: Scope, repair: bool = False) -> Report:
        """What differs in a graph; with `repair`, what came of mending it. A graph without data is whole.

        Raises StoreUnavailable, and with `repair` Conflict and EngineError as publishing does.
        """
        reports = [await self.verify_part(scope, part, repair) for part in range(self.parts)]
        found = [one for report in reports for one in report.differences]
        return Report(scope, _once(found), sum(report.looked_at for report in reports))

    @property
    def parts(self) -> int:
        """How many parts a verification has."""
        return len(self._checks)

    async def verify_part(self, scope: Scope, part: int, repair: bool = False) -> Report:
        """As `verify`, of one kind of thing; in the order of the parts, what others rest on comes first."""
        mends = self._mends if repair else None
        assert mends is not None or not repair, "repairs were asked for, and nothing that makes them given"
        found = await self._unpublished(scope, mends) if part == 0 else []
        looked_at = 0
        check = self._checks[part]
        async for units in check.pages(scope):
            looked_at += len(units)
            found += await self._page(check, scope, units, mends)
        return Report(scope, _once(found), looked_at)

    async def _unpublished(self, scope: Scope, mends: Mends | None) -> list[Difference]:
        state = await self._state(scope)
        if not self._is_stale(state):
            return []
        assert state.pending is not None, "only a revision that was begun is stale"
        revision = str(state.pending.revision)
        difference = Difference(Kind.REVISION_NOT_PUBLISHED, scope, revision, unit=revision)
        if mends is not None:
            await mends.settle(scope)
            difference = replace(difference, done=Done.REPAIRED)
        return [difference]

    async def _page(
        self, check: Check, scope: Scope, units: Sequence[str], mends: Mends | None
    ) -> list[Difference]:
        """Differences of one page, confirmed; mended in rounds, each looking again at what it mended."""
        told: dict[object, Difference] = {}
        found = await check.look(self._seen(scope, await self._state(scope)), units)
        for _ in range(_ROUNDS):
            if not found:
                break
            confirmed, undecided = await self._confirmed(check, scope, found)
            told |= {one.same: replace(one, done=Done.UNDECIDED) for one in undecided}
            told |= {one.same: one for one in confirmed}
            # Where the graph is ahead of its log, a new revision would take a number that is taken.
            ahead = any(one.kind is Kind.REVISION_NOT_IN_LOG for one in confirmed)
            mendable = [] if ahead else confirmed
            if mends is None or not mendable:
                break
            await Repairs(self._stores, mends).mend(self._seen(scope, await self._state(scope)), mendable)
            affected = sorted({one.unit for one in mendable})
            found = await check.look(self._seen(scope, await self._state(scope)), affected)
            still = {one.same for one in found}
            for one in mendable:
                done = Done.LEFT if one.same in still else Done.REPAIRED
                told[one.same] = replace(one, done=done)
        else:
            told |= {one.same: one for one in found if one.same not in told}
        return list(told.values())

    async def _confirmed(
        self, check: Check, scope: Scope, found: Sequence[Difference]
    ) -> tuple[list[Difference], list[Difference]]:
        """Those seen again while nobody wrote to the graph; those for which there was no such moment."""
        units = sorted({one.unit for one in found})
        for _ in range(self._patience.tries):
            await asyncio.sleep(self._patience.pause_seconds)
            before = await self._state(scope)
            if before.pending is not None and not self._is_stale(before):
                continue
            again = {one.same for one in await check.look(self._seen(scope, before), units)}
            if await self._state(scope) == before:
                return [one for one in found if one.same in again], []
        return [], list(found)

    async def _state(self, scope: Scope) -> LogState:
        return await self._stores.revisions.state(scope, "")

    def _is_stale(self, state: LogState) -> bool:
        return state.pending is not None and state.pending.at < self._settled()

    def _settled(self) -> Instant:
        return Instant(self._stores.now() - int(self._patience.settled_seconds * 1_000_000))

    def _seen(self, scope: Scope, state: LogState) -> Seen:
        begun = state.current if state.pending is None else state.pending.revision
        return Seen(scope, state.current, Revision(begun), self._settled())


def _once(differences: Sequence[Difference]) -> Sequence[Difference]:
    """Each difference once: an entity is met by many statements."""
    return tuple({one.same: one for one in differences}.values())
