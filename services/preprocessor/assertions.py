"""Asserted triples as text: one episode for each time at which some were said, one passage a triple."""

from collections.abc import Sequence

from palimpsest.internal.v1 import preprocessor_pb2 as pb
from services.domain.ids import EpisodeId, JobId, PassageId, derive_id
from services.domain.instants import Instant
from services.domain.memory import Episode, EpisodeKind, Passage
from services.domain.scope import Scope
from services.llm import tokens
from services.preprocessor.source import digest


def assertion_episode(
    scope: Scope, request: pb.RecordAssertionsRequest, position: int, now: Instant
) -> tuple[Episode, list[Passage]]:
    """The episode of one group, and its passages in the order of the lines."""
    group = request.groups[position]
    job = JobId(request.job_id)
    said_at = Instant(group.reference_time)
    id = EpisodeId(derive_id(scope, "episode", job, position))
    text = "\n".join(group.lines)
    episode = Episode(
        id=id,
        job=job,
        kind=EpisodeKind.ASSERTION,
        text=text,
        reference_time=said_at,
        created_at=now,
        tokens=tokens.count(text),
        position=position,
        source=request.source,
    )
    return episode, _passages(scope, id, group.lines, said_at)


def _passages(scope: Scope, episode: EpisodeId, lines: Sequence[str], said_at: Instant) -> list[Passage]:
    passages: list[Passage] = []
    start = 0
    for position, line in enumerate(lines):
        passages.append(
            Passage(
                id=PassageId(derive_id(scope, "passage", episode, position)),
                episode=episode,
                position=position,
                text=line,
                start=start,
                end=start + len(line),
                hash=digest("", line, said_at),
                said_at=said_at,
            )
        )
        start += len(line) + 1
    return passages
