"""Milestones: the points between the effects of a job, told to whoever watches.

Nothing of the product watches them. A test's process dies, or sleeps, at one, to show that what comes after
makes of it what would have been made without.
"""

from collections.abc import Callable
from enum import StrEnum


class Milestone(StrEnum):
    """Each comes after the effect that it names, and before the next."""

    ACCEPTED = "accepted"
    """Job, hold and text are kept; the engine doesn't know."""
    ENQUEUED = "enqueued"
    """The engine has the job; the outbox doesn't say so."""
    CLAIMED = "claimed"
    """A run of the job has begun."""
    PREPROCESSED = "preprocessed"
    """Episodes and passages are saved; the job doesn't show them."""
    ANSWERED = "answered"
    """The models have answered; nothing of it is kept."""
    KEPT = "kept"
    """Their answers are kept; nothing is staged."""
    STAGED = "staged"
    """The facts are staged; the chunk doesn't show it."""
    RESOLVED = "resolved"
    """The revision is published; it isn't paid for."""
    PAID = "paid"
    """It is paid for; the chunk doesn't show it."""
    UNSUPPORTED_ENDED = "unsupported ended"
    """What a document no longer says has ended; the job doesn't show it."""
    ASSERTED = "asserted"
    """Triples are recorded; they aren't paid for."""
    RETRACTED = "retracted"
    """A part of a source is deleted; the job doesn't show it."""
    ARCHIVED = "archived"
    """A page of a graph is archived; the job doesn't know."""
    TAKEN_UP = "taken up"
    """Failed chunks count as known again; the job doesn't show it."""
    IMPORTING = "importing"
    """An import has its place; the next lines aren't written."""
    ERASING = "erasing"
    """An erasure knows which generation of the graph it is about; nothing of this round is gone."""
    EMPTIED = "emptied"
    """Nothing of it is in the stores; the graph is not open again."""
    ERASED = "erased"
    """All is done; the erasure has no tombstone."""
    SETTLING = "settling"
    """All is done; the job hasn't ended."""
    SETTLED = "settled"
    """The job has ended; the engine doesn't know."""


Reached = Callable[[Milestone], None]


def unwatched(_: Milestone) -> None:
    """Nobody watches."""
