"""The time kernel: what claims, ends and denials say of competing statements, as spans of world time.

Pure, and exactly the five rules of docs/adr/0005-time.md: evidence decides, never the order of arrival.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple, cast

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Instant, Precision
from services.domain.kernel.alone import alone
from services.domain.kernel.chapters import by_chapters
from services.domain.kernel.coarse import begun
from services.domain.kernel.held import Held
from services.domain.kernel.lives import Life
from services.domain.kernel.rivals import Contradicts, Rivals
from services.domain.kernel.stays import AFTER, BEFORE, Content, Denied, Stay
from services.domain.kernel.sweep import Sweep
from services.domain.kernel.unended import Unended, exact
from services.domain.kernel.unknown import unknown_starts
from services.domain.records import Claim, Denial, End

_INSTANT: Final = Precision.INSTANT


class DerivedSpan(NamedTuple):
    """A statement holds in `[valid_at, invalid_at)`; None is an unknown start, or that it still holds.

    `started_by` is the earliest attested record of this unbroken period; `ended_by` the end or denial that
    counts, or what another statement that took over was `started_by`; None while open. `assumed`: it starts
    where it was said, not where it is known to have begun. The precisions tell how fine a border is known.
    """

    statement: StatementId
    valid_at: Instant | None
    invalid_at: Instant | None
    started_by: RecordId
    ended_by: RecordId | None
    contested: bool = False
    start_precision: Precision = Precision.INSTANT
    end_precision: Precision = Precision.INSTANT
    assumed: bool = False


_span_of: Final = cast("Callable[[tuple[object, ...]], DerivedSpan]", partial(tuple.__new__, DerivedSpan))
"""A span of its fields in their order: see `stay_of`."""


def timeline(
    claims: Iterable[Claim],
    ends: Iterable[End],
    denials: Iterable[Denial],
    contradicts: Contradicts,
    content: Content = str,
) -> tuple[DerivedSpan, ...]:
    """The spans that follow, earliest first. No two of contradicting statements overlap.

    The records must all count (whoever calls leaves out what is revoked). `content` gives the text of a
    statement's object, by which ties are broken. Cost is near that of sorting the records; with a plain
    function for `contradicts`, one call for each pair of statements comes on top.
    """
    claimed, bounded, coarse = _told(claims)
    ended: dict[StatementId, list[End]] = {}
    for end in ends:
        ended.setdefault(end.statement, []).append(end)
    denied = Denied(denials)
    objects = [*claimed, *(object for object in ended if object not in claimed)]
    rivals = Rivals.among(objects, contradicts)
    stays: dict[StatementId, list[Stay]] = {}
    lives: dict[StatementId, Life] = {}
    unended: dict[StatementId, Unended] = {}
    for object in objects:
        if object in ended or object in bounded:
            lives[object] = Life(object, claimed.get(object, []), ended.get(object, ()))
            stays[object] = []
        elif object in coarse:
            unended[object] = Unended(claimed[object])
            stays[object] = unended[object].settled()
        else:
            stays[object] = exact(claimed[object])
    stays = _lived(stays, lives, rivals, denied)
    moved = begun({**lives, **unended}, stays, rivals, denied) if lives or unended else {}
    for object, periods in moved.items():
        if object in lives:
            lives[object] = Life(object, claimed[object], ended.get(object, ()), periods)
        else:
            stays[object] = unended[object].settled(periods)
    if moved:
        stays = _lived(stays, lives, rivals, denied)
    spans: list[DerivedSpan] = []
    for group in rivals.groups(object for object in objects if stays[object]):
        spans += _spans(_held([stays[object] for object in group], denied, rivals, content))
    starts = list(map(_start, spans))
    if any(after <= before for before, after in pairwise(starts)):
        spans.sort(key=lambda span: (_start(span), content(span.statement), span.statement))
    return tuple(spans)


def _told(
    claims: Iterable[Claim],
) -> tuple[dict[StatementId, list[Claim]], set[StatementId], set[StatementId]]:
    """The claims of each object; the objects of which one states an end; those that name a coarse start."""
    claimed: dict[StatementId, list[Claim]] = {}
    bounded: set[StatementId] = set()
    coarse: set[StatementId] = set()
    for claim in claims:
        claimed.setdefault(claim.statement, []).append(claim)
        if claim.end is not None:
            bounded.add(claim.statement)
        elif claim.start_precision is not _INSTANT and claim.start is not None:
            coarse.add(claim.statement)
    return claimed, bounded, coarse


def _held(group: Sequence[Sequence[Stay]], denied: Denied, rivals: Rivals, content: Content) -> list[Held]:
    """What holds when of some objects' stays."""
    if len(group) == 1:
        return alone(group[0], denied)
    stays = [stay for of_object in group for stay in of_object]
    objects = [of_object[0].object for of_object in group]
    if rivals.all_contradict(objects):
        return by_chapters(stays, denied, content)
    return Sweep(stays, denied, rivals, content).run()


def _lived(
    stays: Mapping[StatementId, list[Stay]], lives: Mapping[StatementId, Life], rivals: Rivals, denied: Denied
) -> dict[StatementId, list[Stay]]:
    """The stays of all objects, once those of the lives are worked out."""
    if not lives:
        return dict(stays)
    found = dict(stays)
    for object, life in lives.items():
        found[object] = life.settled()
    if any(life.loose or life.past or life.overruled for life in lives.values()):
        for stay in unknown_starts(lives, found, rivals, denied):
            found[stay.object].append(stay)
    return found


def _start(span: DerivedSpan) -> int:
    return BEFORE if span.valid_at is None else span.valid_at


def _spans(held: Iterable[Held]) -> list[DerivedSpan]:
    spans = []
    for each in held:
        struck = each.struck_by
        spans.append(
            _span_of(
                (
                    each.object,
                    None if each.start == BEFORE else each.start,
                    None if each.end == AFTER else each.end,
                    each.started_by,
                    each.ended_by if struck is None else struck.started_by,
                    False,
                    each.precision,
                    each.end_precision if struck is None else struck.precision,
                    each.assumed,
                )
            )
        )
    return spans
