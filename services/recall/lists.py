"""Lists: statements by filters, page by page, and walks from seeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.errors import EntityNotFound, ValidationFailed, Violation
from services.domain.graph import Entity, EntityType, GraphAspect, Literal
from services.domain.ids import EntityId, EpisodeId, Revision, SessionId, StatementId
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.recall.describe import describe
from services.recall.hot.reads import Clocks, FactReads, GraphReads
from services.recall.messages import entity_out
from services.recall.parts import Parts
from services.recall.predicates import Predicates
from services.recall.question import MAX_HOPS
from services.recall.readings import AS_THEMSELVES, ReadAs, Readings, shown_as, steps_as
from services.recall.revisions import Known, Revisions
from services.recall.seeds import Names
from services.stores.graph.port import AsOf, StatementFilter, StatementView, Step
from services.stores.paging import Listed, Page
from services.wire.fields import entity_type, maybe

MAX_PAGE = 500
DEFAULT_PAGE = 50
EPISODES_PAGE = 500
MAX_READ = 20
"""Pages read to fill one where a filter can't be asked of the store; a page may come back short of items."""
_AND, _DONE = "|", "-"
"""Between the positions of several filters; the position of one that has no more."""
DEFAULT_PER_LEVEL = 50
MAX_PER_LEVEL = 2_000


@dataclass(frozen=True, slots=True)
class _Asked:
    """Filters for the store, of which one must be met, and what only a look at each statement tells."""

    where: Sequence[StatementFilter]
    at: AsOf
    fits: Callable[[StatementView], bool] | None = None


class Lists:
    """Lists and walks, as known at a revision."""

    def __init__(
        self,
        parts: Parts,
        revisions: Revisions,
        names: Names,
        predicates: Predicates,
        readings: Readings,
        reads: FactReads,
    ) -> None:
        """`reads`: walks are answered from memory where it can."""
        self._reads = reads
        self._parts = parts
        self._revisions = revisions
        self._names = names
        self._predicates = predicates
        self._readings = readings

    async def statements(self, scope: Scope, request: pb.ListStatementsRequest) -> pb.ListStatementsResponse:
        """A name that nothing has here gives an empty list. Raises ValidationFailed, RevisionNotReady."""
        known = await self._revisions.known(scope, request.known_at, request.min_revision)
        reads = await self._readings.of(scope, known.at)
        asked = await self._asked(scope, request, known, reads)
        size = min(request.page_size, MAX_PAGE) if request.page_size > 0 else DEFAULT_PAGE
        listed = await self._page(scope, asked, Page(size, request.after)) if asked else Listed([])
        views = await shown_as(self._parts.graph, scope, listed.items, reads)
        described = await describe(
            self._parts.graph,
            self._parts.revisions,
            self._parts.archive,
            scope,
            views,
            known.at,
            reads=reads,
        )
        return pb.ListStatementsResponse(
            statements=[described.statement(view) for view in views],
            after=listed.after,
            revision=known.at,
        )

    async def walk(self, scope: Scope, request: pb.WalkRequest) -> pb.WalkResponse:
        """Raises EntityNotFound for a seed that is not here, RevisionNotReady, StoreUnavailable."""
        known = await self._revisions.known(scope, request.known_at, request.min_revision)
        found: dict[EntityId, Entity] = {}
        for named in dict.fromkeys(request.seeds):
            entities = await self._names.entities(scope, named, known.at)
            if not entities:
                raise EntityNotFound(named)
            found |= {entity.id: entity for entity in entities}
        seeds = list(found.values())
        at = AsOf(known.at) if request.include_ended else AsOf(known.at, _as_of(request))
        per_level = min(request.per_level, MAX_PER_LEVEL) if request.per_level > 0 else DEFAULT_PER_LEVEL
        hops = min(max(request.max_hops, 0), MAX_HOPS)
        steps: Sequence[Step] = ()
        reads = AS_THEMSELVES
        # Nobody has brought forward what is held.
        held = self._reads.reached(scope, known.current)
        graph: GraphReads = self._reads if held else self._parts.graph
        clocks: Clocks = self._reads if held else self._parts.revisions
        if seeds and hops:
            reads = await self._readings.of(scope, known.at)
            met = await graph.walk(scope, [seed.id for seed in seeds], at, hops, per_level, reads.together)
            steps = await steps_as(graph, scope, met, reads)
        described = await describe(
            graph,
            clocks,
            self._parts.archive,
            scope,
            [step.view for step in steps],
            known.at,
            reads=reads,
        )
        return pb.WalkResponse(
            seeds=[entity_out(seed) for seed in seeds],
            steps=[
                pb.WalkStep(statement=described.statement(step.view), hop=step.hop, via=step.via)
                for step in steps
            ],
            revision=known.at,
        )

    async def _asked(
        self, scope: Scope, request: pb.ListStatementsRequest, known: Known, reads: ReadAs
    ) -> _Asked | None:
        """None when a filter names what is not here."""
        subjects = await self._ids(scope, request.subject, request.subject_type, known.at)
        meant = (
            await self._predicates.meant(scope, request.predicate, known.at) if request.predicate else None
        )
        objects = await self._ids(scope, request.object, request.object_type, known.at)
        episodes = await self._episodes(scope, request)
        if (request.subject and not subjects) or (request.predicate and meant is None) or episodes is None:
            return None
        aspects = [_aspect(name) for name in request.aspects if name]
        literal = request.object if request.object and not objects else ""
        where = StatementFilter(
            subjects=reads.spread(subjects),
            predicates=meant.near if meant else (),
            objects=reads.spread(objects),
            # An unclassified statement can't be asked of the store.
            aspects=() if "" in request.aspects else aspects,
            episodes=episodes,
            invalidated_by=EpisodeId(request.invalidated_by) if request.invalidated_by else None,
            contested=request.contested if request.HasField("contested") else None,
            include_ended=request.include_ended,
        )
        ended = request.include_ended or bool(request.invalidated_by)
        at = AsOf(known.at, maybe(request, "valid_at") if ended else _valid_at(request))
        wanted = {*aspects, None} if "" in request.aspects else None
        fits = _fits(literal, wanted)
        if meant is None or not meant.far or literal:
            return _Asked([where], at, fits)
        turned = replace(where, subjects=where.objects, predicates=meant.far, objects=where.subjects)
        return _Asked([where, turned] if meant.near else [turned], at, fits)

    async def _ids(self, scope: Scope, named: str, type: str, known_at: Revision) -> list[EntityId]:
        if not named:
            return []
        wanted = entity_type(type) if type else EntityType.UNKNOWN
        return [one.id for one in await self._names.entities(scope, named, known_at, wanted)]

    async def _episodes(self, scope: Scope, request: pb.ListStatementsRequest) -> list[EpisodeId] | None:
        """Episodes that must claim; empty for any, None when there can be none."""
        asked = [EpisodeId(id) for id in dict.fromkeys(request.episode_ids)]
        if not request.session_id:
            return asked
        found: list[EpisodeId] = []
        after = ""
        while True:
            listed = await self._parts.text.list_episodes(
                scope, SessionId(request.session_id), None, Page(EPISODES_PAGE, after)
            )
            found += [episode.id for episode in listed.items]
            after = listed.after
            if not after:
                break
        both = [id for id in found if not asked or id in set(asked)]
        return both or None

    async def _page(self, scope: Scope, asked: _Asked, page: Page) -> Listed[StatementView]:
        try:
            if asked.fits is None:
                return await self._either(scope, asked, page)
            return await self._sifted(scope, asked, asked.fits, page)
        except ValueError as error:
            raise ValidationFailed(Violation("page_token", "not a token of this list")) from error

    async def _either(self, scope: Scope, asked: _Asked, page: Page) -> Listed[StatementView]:
        """A page of what meets any of the filters, in the store's order; the position has one for each."""
        if len(asked.where) == 1:
            return await self._parts.graph.list_statements(scope, asked.where[0], asked.at, page)
        starts = page.after.split(_AND) if page.after else [""] * len(asked.where)
        if len(starts) != len(asked.where):
            raise ValueError("not a position in this list")
        found: dict[StatementId, StatementView] = {}
        legs: list[Listed[StatementView]] = []
        for where, start in zip(asked.where, starts, strict=True):
            leg: Listed[StatementView] = Listed([])
            if start != _DONE:
                leg = await self._parts.graph.list_statements(scope, where, asked.at, Page(page.size, start))
            legs.append(leg)
            found |= {view.statement.id: view for view in leg.items}
        items = sorted(found.values(), key=_order)[: page.size]
        taken = {view.statement.id for view in items}
        after: list[str] = []
        for where, start, leg in zip(asked.where, starts, legs, strict=True):
            count = sum(view.statement.id in taken for view in leg.items)
            if count == len(leg.items):
                after.append(leg.after or _DONE)
            elif count == 0:
                after.append(start)
            else:
                # The position after the last one that was taken is told by a page that ends there.
                again = Page(count, start)
                after.append((await self._parts.graph.list_statements(scope, where, asked.at, again)).after)
        return Listed(items, "" if set(after) == {_DONE} else _AND.join(after))

    async def _sifted(
        self, scope: Scope, asked: _Asked, fits: Callable[[StatementView], bool], page: Page
    ) -> Listed[StatementView]:
        """Pages of the store of at most what is still wanted, so that its position is always ours."""
        found: list[StatementView] = []
        after = page.after
        for _ in range(MAX_READ):
            listed = await self._either(scope, asked, Page(page.size - len(found), after))
            found += [view for view in listed.items if fits(view)]
            after = listed.after
            if not after or len(found) >= page.size:
                break
        return Listed(found, after)


def _order(view: StatementView) -> tuple[int, str]:
    return view.statement.created_at, view.statement.id


def _as_of(request: pb.WalkRequest) -> Instant:
    as_of = maybe(request, "as_of")
    return Instant(request.now) if as_of is None else as_of


def _valid_at(request: pb.ListStatementsRequest) -> Instant:
    valid_at = maybe(request, "valid_at")
    return Instant(request.now) if valid_at is None else valid_at


def _aspect(name: str) -> GraphAspect:
    try:
        return GraphAspect(name)
    except ValueError as error:
        raise ValidationFailed(Violation("aspects", "not a name of an aspect")) from error


def _fits(literal: str, aspects: set[GraphAspect | None] | None) -> Callable[[StatementView], bool] | None:
    if not literal and aspects is None:
        return None
    text = " ".join(literal.split()).casefold()

    def fits(view: StatementView) -> bool:
        target = view.statement.object
        if literal and not (isinstance(target, Literal) and target.text.casefold() == text):
            return False
        return aspects is None or view.statement.aspect in aspects

    return fits
