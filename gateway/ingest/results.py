"""Results of jobs: what steps changed, told by ids and counts; and of several attempts, together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from palimpsest.internal.v1 import resolver_pb2
from palimpsest.v1 import job_pb2

if TYPE_CHECKING:
    from gateway.ingest.endings import Ended

MAX_IDS = 1000
"""Ids of one kind that a result lists; counts are always whole."""


def result_of(ended: "Ended", outcomes: Sequence[resolver_pb2.Outcome]) -> job_pb2.JobResult:
    def ids(name: str) -> list[str]:
        return list(dict.fromkeys(one for outcome in outcomes for one in getattr(outcome, name)))

    lists = {
        name: ids(name)
        for name in (
            "entities_added",
            "statements_added",
            "statements_ended",
            "statements_restored",
            "statements_expired",
            "voice_added",
            "voice_ended",
        )
    }
    return job_pb2.JobResult(
        counts=job_pb2.JobCounts(
            nothing_chunks=ended.nothing,
            entities_added=len(lists["entities_added"]),
            statements_added=len(lists["statements_added"]),
            statements_ended=len(lists["statements_ended"]),
            statements_restored=len(lists["statements_restored"]),
            claims_added=sum(outcome.claims for outcome in outcomes),
            ends_added=sum(outcome.ends for outcome in outcomes),
            denials_added=sum(outcome.denials for outcome in outcomes),
            voice_aspects_added=len(lists["voice_added"]),
            voice_aspects_ended=len(lists["voice_ended"]),
            tokens_saved=ended.saved,
            statements_expired=len(lists["statements_expired"]),
            **ended.deleted,
        ),
        episode_ids=ended.episodes[:MAX_IDS],
        added_statement_ids=lists["statements_added"][:MAX_IDS],
        ended_statement_ids=lists["statements_ended"][:MAX_IDS],
        restored_statement_ids=lists["statements_restored"][:MAX_IDS],
        expired_statement_ids=lists["statements_expired"][:MAX_IDS],
        added_entity_ids=lists["entities_added"][:MAX_IDS],
        added_voice_aspect_ids=lists["voice_added"][:MAX_IDS],
        ended_voice_aspect_ids=lists["voice_ended"][:MAX_IDS],
        document_id=ended.document,
        rebuilt=ended.rebuilt,
        document_version=ended.version,
        ids_truncated=any(len(found) > MAX_IDS for found in (*lists.values(), ended.episodes)),
    )


def merged_result(before: job_pb2.JobResult, now: job_pb2.JobResult) -> job_pb2.JobResult:
    """What a job changed in the attempts before and in this one. Document and episodes are the first's."""
    total = job_pb2.JobResult()
    total.CopyFrom(before)
    for count, _ in now.counts.ListFields():
        setattr(
            total.counts, count.name, getattr(before.counts, count.name) + getattr(now.counts, count.name)
        )
    for field, _ in now.ListFields():
        if field.is_repeated and field.name != "episode_ids":
            ids = list(dict.fromkeys([*getattr(before, field.name), *getattr(now, field.name)]))
            getattr(total, field.name)[:] = ids[:MAX_IDS]
            total.ids_truncated |= len(ids) > MAX_IDS
    total.ids_truncated |= now.ids_truncated
    return total
