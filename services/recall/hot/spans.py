"""HotSpans: when one graph's statements hold, and since when that is believed, as columns by place."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from services.domain.ids import StatementId
from services.recall.hot.packing import seen_between
from services.stores.graph.plain import OPEN, Row
from services.stores.graph.port import AsOf

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Columns = npt.NDArray[np.int64]
"""Place, start, end, known from, known to; shape (5, spans)."""

_SPAN_BYTES = 40


def columns_of(spans: Iterable[Row], places: Mapping[StatementId, int]) -> Columns:
    """The spans of statements that have a place, one a column; rows as in PlainRecords."""
    rows = [(place, *span[2:6]) for span in spans if (place := places.get(span[0])) is not None]
    return np.array(rows, dtype=np.int64).reshape(-1, 5).T


class HotSpans:
    """Every span, past beliefs too, in the order of places."""

    def __init__(self, columns: Columns | None = None) -> None:
        """`columns`: as another one holds them."""
        self._sorted: Columns = np.zeros((5, 0), dtype=np.int64) if columns is None else columns
        self._fresh: list[Columns] = []
        """What came since: sorted in when it is asked for, so that a load does so once."""

    @property
    def bytes(self) -> int:
        return sum(int(each.shape[1]) for each in (self._sorted, *self._fresh)) * _SPAN_BYTES

    @property
    def held(self) -> Columns:
        """All of them, in the order of places."""
        if self._fresh:
            held = np.concatenate([self._sorted, *self._fresh], axis=1)
            self._sorted = np.ascontiguousarray(held[:, np.argsort(held[0], kind="stable")])
            self._fresh.clear()
        return self._sorted

    def put(self, fresh: Columns, replaced: Places) -> None:
        """Adds spans, after those of replaced places are gone."""
        if len(replaced):
            self._sorted = self.held[:, ~np.isin(self.held[0], replaced)]
        self._fresh.append(fresh)

    def seen(self, count: int, at: AsOf, *, open_only: bool = False) -> Mask:
        """Which of `count` statements have a span as asked, one without an end if `open_only`."""
        mask = np.zeros(count, dtype=np.bool_)
        held = self.held
        mask[held[0][_seen(held, at, open_only=open_only)]] = True
        return mask

    def seen_of(self, places: Places, at: AsOf, *, open_only: bool = False) -> Mask:
        """The same of some statements; shape (places,). Costs what they are, not what the graph is."""
        held = self.held
        first = np.searchsorted(held[0], places, side="left")
        counts = np.searchsorted(held[0], places, side="right") - first
        owners = np.repeat(np.arange(len(places)), counts)
        before = np.cumsum(counts) - counts
        columns = np.arange(len(owners)) + (first - before)[owners]
        mask = np.zeros(len(places), dtype=np.bool_)
        mask[owners[_seen(held[:, columns], at, open_only=open_only)]] = True
        return mask


def _seen(spans: Columns, at: AsOf, *, open_only: bool) -> Mask:
    before, after = seen_between(at.valid_at, at.since, at.until)
    _, start, end, known_from, known_to = spans
    mask: Mask = (known_from <= at.known_at) & (known_to > at.known_at) & (start < before) & (end > after)
    return mask & (end == OPEN) if open_only else mask
