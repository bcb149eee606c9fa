"""Move: a graph from one set of stores into another, under the same ids; the first stays as it is.

Nobody may write to the graph meanwhile. That is checked before, in its log, and afterwards by the log again.
"""

from dataclasses import dataclass, replace

from services.domain.ids import Revision
from services.domain.instants import FOREVER
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.stores.memory.port import LogState
from services.upkeep.backup import NotTheSame, WritersActive, check_empty
from services.upkeep.differences import Report
from services.upkeep.export import Disturbed, Export
from services.upkeep.intake import Intake, Into
from services.upkeep.items import Point
from services.upkeep.parts import Stores
from services.upkeep.verify import Patience, Verifier


@dataclass(frozen=True, slots=True)
class Moved:
    """A graph that is in the target as it is in the source."""

    scope: Scope
    revision: Revision
    items: int
    report: Report


class Move:
    """Moves graphs between two sets of stores. `into`: the stores that are others in the target.

    A store that both sets share is read, and not written.
    """

    def __init__(
        self,
        source: Stores,
        target: Stores,
        into: frozenset[Into],
        vocabulary: Vocabulary,
        patience: Patience | None = None,
    ) -> None:
        same = (source.embedder.name, source.embedder.dimension) == (
            target.embedder.name,
            target.embedder.dimension,
        )
        self._keep_vectors = same
        self._source = source
        self._target = target
        self._into = into
        self._vocabulary = vocabulary
        self._patience = patience

    async def __call__(self, scope: Scope, *, resume: bool = False) -> Moved:
        """Copies a graph, verifies the copy, and checks that the source is still what was copied.

        `resume` goes on where a move stopped: what is in the target already stays as it is.
        Raises WritersActive, StoresNotEmpty, NotTheSame, StoreUnavailable, EngineError.
        """
        before = await self._quiet(scope)
        if not resume:
            await check_empty(self._target, scope, self._into)
        point = Point(before.current, FOREVER)
        intake = Intake(self._target, scope, point, self._into, self._keep_vectors)
        try:
            async for item in Export(self._source, scope, point).items():
                await intake.take(item)
        except Disturbed as error:
            raise self._written(scope) from error
        await intake.flush()
        await self._target.vectors.flush()
        verifier = Verifier(self._target, self._vocabulary, None, self._patience)
        report = await verifier.verify(scope)
        if report.differences:
            kinds = sorted({difference.kind.value for difference in report.differences})
            name = f"{scope.tenant}/{scope.graph}"
            raise NotTheSame(f"the copy of {name} has differences: {', '.join(kinds)}")
        counted = [
            await stores.graph.counts(scope, before.current) for stores in (self._source, self._target)
        ]
        if counted[0] != counted[1]:
            raise NotTheSame(f"the copy of {scope.tenant}/{scope.graph} has other counts")
        told = [await stores.text.count_episodes(scope) for stores in (self._source, self._target)]
        if await self._quiet(scope) != before or told[0] != told[1]:
            raise self._written(scope)
        return Moved(scope, before.current, intake.taken, report)

    async def _quiet(self, scope: Scope) -> LogState:
        state = await self._source.revisions.state(scope, "")
        if state.pending is not None:
            raise WritersActive(
                f"a revision of {scope.tenant}/{scope.graph} is under way; "
                "`palimpsest-admin verify --repair` ends one that was left"
            )
        return replace(state, done=None)

    @staticmethod
    def _written(scope: Scope) -> WritersActive:
        return WritersActive(f"{scope.tenant}/{scope.graph} was written to while it was copied")
