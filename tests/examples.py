"""How many examples a law gets whose every example is a whole store, or many durable writes."""

from hypothesis import settings


def one_in(share: int) -> int:
    """One in `share` of the examples that other laws get in this run; never fewer than five."""
    return max(5, settings().max_examples // share)
