"""Bulk: what it does when the server has no room, takes too long, or says no for good."""

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from palimpsest.bulk import Bulk, Outcome
from palimpsest.connection import Connection
from palimpsest.texts import Request, Text
from palimpsest.v1 import job_pb2, memory_ingest_pb2
from tests.unit.cli.serving import Scripted, refusal

Response = memory_ingest_pb2.BatchAddEpisodesResponse
Result = memory_ingest_pb2.BatchAddEpisodesResult
LATE = refusal(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_TOO_SHORT")
AWAY = refusal(grpc.StatusCode.UNAVAILABLE, "OVERLOADED")
MANY = refusal(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "TOO_MANY_JOBS",
    "no",
    error_details_pb2.RetryInfo(retry_delay=Duration()),
)
POOR = refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS")
WRONG = refusal(grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")


def answer(*results: status_pb2.Status | None) -> Response:
    """One for each text of a call: refused, or taken and done."""
    done = memory_ingest_pb2.AddEpisodeResponse(job=job_pb2.Job(state=job_pb2.JOB_STATE_SUCCEEDED))
    return Response(results=[Result(error=one) if one else Result(response=done) for one in results])


async def sent(server: Scripted, texts: int, tries: int = 3) -> tuple[list[Outcome], Bulk]:
    async with Connection(server.target) as connection:
        bulk = Bulk(connection, "g", tries=tries, wait_seconds=0)
        told = [Text(str(n), Request(text=f"Ana has {n} cats."), 1) for n in range(texts)]
        return [outcome async for outcome in bulk.send(told)], bulk


def calls(server: Scripted) -> list[int]:
    return [len(one.requests) for one in server.asked]  # type: ignore[attr-defined]


async def test_what_is_refused_for_now_is_sent_again(server: Scripted) -> None:
    server.answers("BatchAddEpisodes", AWAY, answer(None, MANY, WRONG), answer(None))
    outcomes, bulk = await sent(server, 3)
    assert calls(server) == [3, 3, 1]
    errors = {outcome.text.name: outcome.error.reason for outcome in outcomes if outcome.error}
    assert (len(outcomes), errors, bulk.stopped) == (3, {"2": "VALIDATION_FAILED"}, None)


async def test_calls_that_take_too_long_become_smaller(server: Scripted) -> None:
    server.answers("BatchAddEpisodes", LATE, LATE, answer(None), answer(None), answer(None), answer(None))
    outcomes, _ = await sent(server, 4)
    assert calls(server) == [4, 2, 1, 1, 1, 1]
    assert not [outcome for outcome in outcomes if outcome.error]


async def test_a_server_that_stays_away_is_given_up(server: Scripted) -> None:
    server.answers("BatchAddEpisodes", AWAY)
    outcomes, bulk = await sent(server, 25)
    assert calls(server) == [20, 20, 20]
    assert bulk.stopped is not None
    assert bulk.stopped.reason == "OVERLOADED"
    assert len(outcomes) + bulk.unsent == 25


async def test_without_credits_nothing_more_is_sent(server: Scripted) -> None:
    server.answers("BatchAddEpisodes", answer(*[None] * 19, POOR))
    outcomes, bulk = await sent(server, 50)
    assert calls(server) == [20]
    assert (len(outcomes), bulk.unsent) == (20, 30)
    assert bulk.stopped is not None
