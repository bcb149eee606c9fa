"""Imports that stay until the process ends: nobody looks for garbage among them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """What is made within is no garbage, now or later; looking for some is a seventh of a server's start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
