"""A circuit breaker: after failures in a row, calls fail at once; later one is let through to see."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from services.llm.port import EngineError, ModelUnavailable


class BreakerOpen(ModelUnavailable):
    """The endpoint failed too often just now; nothing was sent."""


class CircuitBreaker:
    """Closed, open, or half open with one probe under way. `clock` counts seconds and never goes back."""

    def __init__(self, failures: int, open_seconds: float, clock: Callable[[], float]) -> None:
        self._limit = failures
        self._open_seconds = open_seconds
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None and self._clock() < self._opened_at + self._open_seconds

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Around one call. Raises BreakerOpen; counts ModelUnavailable as failure.

        Any other EngineError is an answer of a living endpoint; a cancelled call says nothing.
        """
        if self.is_open or self._probing:
            raise BreakerOpen("the model endpoint failed too often just now")
        probe = self._probing = self._opened_at is not None
        try:
            yield
        except ModelUnavailable:
            self._failures += 1
            if probe or self._failures >= self._limit:
                self._opened_at = self._clock()
            raise
        except EngineError:
            self._close()
            raise
        else:
            self._close()
        finally:
            if probe:
                self._probing = False

    def _close(self) -> None:
        self._failures = 0
        self._opened_at = None
