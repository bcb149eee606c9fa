"""Ready: what the first question of a process would otherwise wait for."""

from services.domain.dates.resolver import find
from services.domain.instants import Instant
from services.llm.tokens import count


def make_ready() -> None:
    """Builds the ranks of tokens and the rules of dates: a third of a second, once a process. Idempotent."""
    count("")
    find("", Instant(0))
