"""Commit ids that others read off the log of revisions: of what a text said, at first or read anew."""

from services.domain.ids import EpisodeId

RESOLVE = "resolve:"


def first_reading(episode: EpisodeId) -> str:
    """Of what a text said when it was first resolved."""
    return f"{RESOLVE}{episode}"


def reading(episode: EpisodeId, commit: str) -> str:
    """Of what it said by a later reading, or says again, for a commit of its own."""
    return f"{first_reading(episode)}:{commit}"


def read_episode(commit_id: str) -> EpisodeId | None:
    """The episode of such an id, whichever reading it is; None for any other id."""
    if not commit_id.startswith(RESOLVE):
        return None
    return EpisodeId(commit_id.removeprefix(RESOLVE).partition(":")[0])
