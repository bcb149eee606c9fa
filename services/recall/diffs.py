"""Diffs: what changed in a graph between two dates, or between two beliefs, page by page."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from palimpsest.internal.v1 import recall_diff_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.changes import Change, ChangeKind, belief_change, world_change
from services.domain.errors import ValidationFailed, Violation
from services.domain.graph import Span
from services.domain.ids import Revision, StatementId, VoiceId
from services.domain.instants import BEGINNING, Instant, Interval
from services.domain.memory import VoiceAspect
from services.domain.scope import Scope
from services.domain.voice import held
from services.recall.describe import describe
from services.recall.messages import voice_out
from services.recall.parts import Parts
from services.recall.readings import Readings, shown_as
from services.recall.revisions import Revisions
from services.stores.graph.port import AsOf, StatementFilter, StatementView
from services.stores.memory.port import VoiceFilter
from services.stores.paging import Page

MAX_PAGE = 500
DEFAULT_PAGE = 50
READ_PAGE = 500
"""Statements, or sentences, read at a time."""
DIFFS_KEPT = 4
"""Diffs whose order is kept for their further pages; each is as long as what changed."""

Place = tuple[bool, str, str, int, str]
"""Where a change stands: whether it is of the voice, subject, predicate, date, id. No text, which may go."""


@dataclass(frozen=True, slots=True)
class Points:
    """`earlier` and `later` are revisions; with `dates` both are the same, and the dates are compared."""

    earlier: Revision
    later: Revision
    dates: tuple[Instant, Instant] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """When a sentence of the voice holds."""

    valid_at: Instant | None
    invalid_at: Instant | None


@dataclass(frozen=True, slots=True)
class _Changed:
    """A change of a statement (`span`), or of a sentence of the voice (`held`)."""

    place: Place
    id: str
    span: Change[Span] | None = None
    held: Change[Held] | None = None


class Diffs:
    """Compares. A diff reads all that is believed in the graph once; its further pages come from memory.

    What was published reads the same for ever, so a diff that is kept can't be out of date. It holds ids and
    dates; texts are read anew for each page.
    """

    def __init__(self, parts: Parts, revisions: Revisions, readings: Readings) -> None:
        self._parts = parts
        self._revisions = revisions
        self._readings = readings
        self._kept: OrderedDict[tuple[Scope, Points], Sequence[_Changed]] = OrderedDict()

    def drop(self, scope: Scope) -> None:
        """Forgets what is kept of a graph."""
        for key in [key for key in self._kept if key[0] == scope]:
            del self._kept[key]

    async def page(self, scope: Scope, request: pb.DiffRequest) -> pb.DiffResponse:
        """Raises ValidationFailed, RevisionNotReady, StoreUnavailable."""
        points = await self._points(scope, request)
        after = _place_in(request.after) if request.after else None
        size = min(request.page_size, MAX_PAGE) if request.page_size > 0 else DEFAULT_PAGE
        every = await self._changes(scope, points)
        later = [one for one in every if after is None or one.place > after]
        shown = later[:size]
        return pb.DiffResponse(
            changes=await self._shown(scope, points, shown),
            after=json.dumps(shown[-1].place) if len(later) > size else "",
            revision=points.later,
        )

    async def _points(self, scope: Scope, request: pb.DiffRequest) -> Points:
        if request.HasField("system"):
            earlier = await self._revisions.known(scope, request.system.before)
            later = await self._revisions.known(scope, request.system.after)
            if earlier.at > later.at:
                raise ValidationFailed(Violation("system.before", "must not be after the later point"))
            return Points(earlier.at, later.at)
        dates = Instant(request.world.before), Instant(request.world.after)
        if dates[0] > dates[1]:
            raise ValidationFailed(Violation("world.before", "must not be after the later date"))
        known = await self._revisions.known(scope, request.known_at)
        return Points(known.at, known.at, dates)

    async def _changes(self, scope: Scope, points: Points) -> Sequence[_Changed]:
        kept = self._kept.get((scope, points))
        if kept is None:
            found = [
                *await self._of_statements(scope, points),
                *await self._of_voice(scope, points),
            ]
            kept = self._kept[scope, points] = sorted(found, key=lambda one: one.place)
        self._kept.move_to_end((scope, points))
        while len(self._kept) > DIFFS_KEPT:
            self._kept.popitem(last=False)
        return kept

    async def _of_statements(self, scope: Scope, points: Points) -> list[_Changed]:
        if points.dates is None:
            changes, views = await self._between_beliefs(scope, points)
        else:
            changes, views = await self._between_dates(scope, points.later, *points.dates)
        reads = await self._readings.of(scope, points.later)
        shown = await shown_as(self._parts.graph, scope, views, reads)
        return [_placed(view, changes[view.statement.id]) for view in shown]

    async def _between_dates(
        self, scope: Scope, known_at: Revision, before: Instant, after: Instant
    ) -> tuple[dict[StatementId, Change[Span]], Sequence[StatementView]]:
        met = await self._believed(scope, AsOf(known_at, since=before, until=Instant(after + 1)))
        maybe = [id for id, view in met.items() if world_change(view.spans, before, after)]
        views: list[StatementView] = []
        changes: dict[StatementId, Change[Span]] = {}
        # With all their spans: what held earlier still is a restoration.
        for view in await self._parts.graph.views(scope, maybe, AsOf(known_at)):
            change = world_change(view.spans, before, after)
            if change is not None:
                changes[view.statement.id] = change
                views.append(view)
        return changes, views

    async def _between_beliefs(
        self, scope: Scope, points: Points
    ) -> tuple[dict[StatementId, Change[Span]], Sequence[StatementView]]:
        if points.earlier == points.later:
            return {}, ()
        before = await self._believed(scope, AsOf(points.earlier))
        after = await self._believed(scope, AsOf(points.later))
        new = [id for id in after if id not in before]
        spans = (await self._parts.graph.records(scope, new)).spans if new else ()
        earlier = {span.statement for span in spans if span.known_from < points.earlier}
        changes: dict[StatementId, Change[Span]] = {}
        for id in dict.fromkeys([*before, *after]):
            then = before[id].spans if id in before else ()
            now = after[id].spans if id in after else ()
            change = belief_change(then, now, id in earlier)
            if change is not None:
                changes[id] = change
        return changes, [after.get(id) or before[id] for id in changes]

    async def _believed(self, scope: Scope, at: AsOf) -> dict[StatementId, StatementView]:
        """Every statement with a span as asked."""
        found: dict[StatementId, StatementView] = {}
        where, after = StatementFilter(include_ended=True), ""
        while True:
            listed = await self._parts.graph.list_statements(scope, where, at, Page(READ_PAGE, after))
            found |= {view.statement.id: view for view in listed.items}
            after = listed.after
            if not after:
                return found

    async def _of_voice(self, scope: Scope, points: Points) -> list[_Changed]:
        found: list[_Changed] = []
        for aspect in await self._voices(scope, points):
            then, now = (_held(aspect, at) for at in (points.earlier, points.later))
            if points.dates is not None:
                change = world_change(now, *points.dates)
            else:
                change = belief_change(then, now, _known_before(aspect, points.earlier))
            if change is not None:
                place: Place = (True, "", aspect.kind, _date(change.at), aspect.id)
                found.append(_Changed(place, aspect.id, held=change))
        return found

    async def _voices(self, scope: Scope, points: Points) -> list[VoiceAspect]:
        ids: dict[VoiceId, None] = {}
        for at in dict.fromkeys((points.earlier, points.later)):
            after = ""
            while True:
                page = Page(READ_PAGE, after)
                listed = await self._parts.voice.list_held(scope, VoiceFilter(), at, page)
                ids |= dict.fromkeys(aspect.id for aspect in listed.items)
                after = listed.after
                if not after:
                    break
        return list(await self._parts.voice.aspects(scope, list(ids)))

    async def _shown(self, scope: Scope, points: Points, changed: Sequence[_Changed]) -> list[pb.Change]:
        statements = await self._statements(scope, points, [one for one in changed if one.span])
        voices = await self._sentences(scope, points, [one for one in changed if one.held])
        return [statements[one.id] if one.span else voices[one.id] for one in changed]

    async def _statements(
        self, scope: Scope, points: Points, changed: Sequence[_Changed]
    ) -> dict[str, pb.Change]:
        expired = [one for one in changed if one.span and one.span.kind is ChangeKind.EXPIRED]
        found: dict[str, pb.Change] = {}
        for some, at in (
            ([one for one in changed if one not in expired], points.later),
            (expired, points.earlier),
        ):
            if not some:
                continue
            graph, log, archive = self._parts.graph, self._parts.revisions, self._parts.archive
            ids = [StatementId(one.id) for one in some]
            views = await graph.views(scope, ids, AsOf(at))
            reads = await self._readings.of(scope, at)
            shown = await shown_as(graph, scope, views, reads)
            described = await describe(graph, log, archive, scope, shown, at, past=True, reads=reads)
            # Of what is believed no more, the later point knows since when.
            known = await describe(graph, log, archive, scope, shown, points.later, past=True, reads=reads)
            by_id = {view.statement.id: view for view in shown}
            for one in some:
                assert one.span is not None, "a change of a statement"
                before, after = one.span.before, one.span.after
                found[one.id] = pb.Change(
                    kind=one.span.kind,
                    statement=described.statement(by_id[StatementId(one.id)]),
                    before=known.span(known.current(before)) if before else None,
                    after=known.span(known.current(after)) if after else None,
                )
        return found

    async def _sentences(
        self, scope: Scope, points: Points, changed: Sequence[_Changed]
    ) -> dict[str, pb.Change]:
        aspects = await self._parts.voice.aspects(scope, [VoiceId(one.id) for one in changed])
        by_id = {aspect.id: aspect for aspect in aspects}
        found: dict[str, pb.Change] = {}
        for one in changed:
            assert one.held is not None, "a change of a sentence"
            at = points.earlier if one.held.kind is ChangeKind.EXPIRED else points.later
            found[one.id] = pb.Change(
                kind=one.held.kind,
                voice=voice_out(by_id[VoiceId(one.id)], at),
                before=_stretch(one.held.before),
                after=_stretch(one.held.after),
            )
        return found


def _placed(view: StatementView, change: Change[Span]) -> _Changed:
    place: Place = (False, view.subject.id, view.predicate.id, _date(change.at), view.statement.id)
    return _Changed(place, view.statement.id, span=change)


def _date(at: Instant | None) -> int:
    return BEGINNING - 1 if at is None else at


def _held(aspect: VoiceAspect, known_at: Revision) -> Sequence[Held]:
    interval: Interval | None = held(aspect, known_at)
    return () if interval is None else (Held(interval.start, interval.end),)


def _known_before(aspect: VoiceAspect, revision: Revision) -> bool:
    """Whether a claim of it counted at some time before a revision."""
    return any(
        claim.recorded_at < revision and (claim.revoked_at is None or claim.recorded_at < claim.revoked_at)
        for claim in aspect.claims
    )


def _stretch(held: Held | None) -> values.Span | None:
    if held is None:
        return None
    return values.Span(valid_at=held.valid_at, invalid_at=held.invalid_at)


def _place_in(token: str) -> Place:
    """Raises ValidationFailed for one that no page gave."""
    kinds: Iterable[type] = (bool, str, str, int, str)
    try:
        place = json.loads(token)
    except ValueError:
        place = None
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds):
        raise ValidationFailed(Violation("page_token", "not a token of this list"))
    voice, subject, predicate, at, target = place
    return voice, subject, predicate, at, target
