"""Collecting: what Python looks for in cycles, and when."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles meanwhile: for work that makes many small values, none of which is part of one.

    Python looks through all of them each time that some hundreds were made: a sixth of what a large slot
    costs. Whatever is in a cycle waits for a moment. Whoever turned it off, of several, turns it on again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
