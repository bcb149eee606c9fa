"""Heap: what a server is made of is no garbage, and Python need not look through it again and again."""

import gc

_YOUNG = 20_000
"""Objects that come before the youngest are looked through; Python's 700 are one question's."""


def settle() -> None:
    """Once, when a server has started. A collection then looks through what came since: a question's own.

    Without, each full one looks through every module and class of the process, and all calls wait for it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)
