"""Chapters: a slot's life, cut where nothing from before matters any more (rules 2 to 4).

Where each object contradicts all others, and one begins at an instant at which nobody from before is asserted
any more, it holds from there, and what all others had said before only persisted and lapses for good. So the
next object that begins in this way writes on a clean page: a chapter is derived by itself, and is over where
the next begins. Most chapters of a long slot are of one object.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Final

from services.domain.ids import StatementId
from services.domain.kernel.alone import alone
from services.domain.kernel.held import Held
from services.domain.kernel.stays import Content, Denied, Stay
from services.domain.kernel.turns import Turns

_START: Final = attrgetter("start")
_LAST: Final = attrgetter("last")


def by_chapters(stays: Iterable[Stay], denied: Denied, content: Content) -> list[Held]:
    """What holds when, in order of time, of stays whose objects all contradict each other."""
    done: list[Held] = []
    for stays_of, of_one in _chapters([stay for stay in stays if stay.start < stay.end], denied):
        held = alone(stays_of, denied) if of_one else Turns(stays_of, denied, content).run()
        if done and done[-1].end > held[0].start:
            done[-1].struck_off_by(held[0])
        done += held
    return done


def _chapters(stays: list[Stay], denied: Denied) -> list[tuple[list[Stay], bool]]:
    """The stays by chapter, and of each chapter whether one object has it to itself."""
    stays.sort(key=_START)
    latest = accumulate(map(_LAST, stays), max)
    clean = [at for at, before in enumerate(latest, 1) if at == len(stays) or stays[at].start > before]
    found: list[tuple[list[Stay], bool]] = []
    holder: StatementId | None = None
    """Of all that was said before, only what was said of this one matters; None where that is not sure."""
    for first, after in pairwise([0, *clean]):
        page = stays[first:after]
        object = _only_object(page, denied)
        if not found or (object != holder and object is not None and holder is not None):
            found.append((page, object is not None))
        else:
            chapter, of_one = found[-1]
            chapter += page
            found[-1] = chapter, of_one and object == holder
        holder = object
    return found


def _only_object(page: Sequence[Stay], denied: Denied) -> StatementId | None:
    """The object that all of these are of, if it surely holds from their first instant on."""
    object = page[0].object
    if denied.any_of(object):
        return None
    for stay in page:
        if stay.object != object:
            return None
    return object
