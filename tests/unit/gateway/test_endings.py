"""What an ingest's step results come to, whichever chunks fail or say nothing."""

import asyncio
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st

from gateway.ingest.endings import Ended, _error, _state
from gateway.ingest.patience import Patience, status_in
from gateway.store.job_values import JobState
from services.domain.errors import ModelDown, ServiceError, StoreDown
from services.domain.ids import JobId, Revision
from services.runtime.status import error_of_status, status_of


def failed(error: ServiceError) -> dict[str, Any]:
    """The result of a step that gave up."""

    async def work() -> dict[str, Any]:
        raise error

    return asyncio.run(Patience(attempts=1).attempt(JobId("j"), "step", work))


KINDS = ("known", "nothing", "not understood", "not resolved", "resolved")


def prepared(kinds: list[str], nothing: str = "") -> dict[str, Any]:
    chunks = [
        {"episode": f"e{at}", "tokens": 10**at, "nothing": "RECALLED_TEXT" if kind == "known" else ""}
        for at, kind in enumerate(kinds)
    ]
    return {"chunks": chunks, "nothing": nothing, "saved": 0, "document": "", "version": 0}


def ended(kinds: list[str], unsupported: dict[str, Any] | None = None) -> Ended:
    understood: dict[int, Any] = {}
    resolved: dict[int, Any] = {}
    for at, kind in enumerate(kinds):
        if kind == "nothing":
            understood[at] = {"nothing": "SMALL_TALK", "dropped": {}}
        elif kind == "not understood":
            understood[at] = failed(ModelDown())
        elif kind != "known":
            understood[at] = {"nothing": "", "dropped": {}}
            resolved[at] = {"revision": at + 1} if kind == "resolved" else failed(StoreDown("graph"))
    return Ended.of_ingest(prepared(kinds), understood, resolved, unsupported)


@given(st.lists(st.sampled_from(KINDS), max_size=8))
def test_each_chunk_is_paid_for_by_what_became_of_it(kinds: list[str]) -> None:
    end = ended(kinds)
    assert end.earned_tokens == [10**at for at, kind in enumerate(kinds) if kind == "resolved"]
    assert end.nothing_tokens == [10**at for at, kind in enumerate(kinds) if kind == "nothing"]
    assert (end.failed, end.nothing) == (
        sum(kind.startswith("not ") for kind in kinds),
        sum(kind in ("known", "nothing") for kind in kinds),
    )
    last = max((at + 1 for at, kind in enumerate(kinds) if kind == "resolved"), default=0)
    assert end.revision == Revision(last)
    good = len(kinds) - end.failed
    state = JobState.SUCCEEDED if not end.failed else JobState.PARTIAL if good else JobState.FAILED
    assert _state(end) is state
    assert (_error(end, state) is None) == (not end.failed)


def test_a_text_of_one_chunk_fails_for_its_own_reason() -> None:
    error = _error(ended(["not understood"]), JobState.FAILED)
    assert error == status_of(ModelDown())


def test_some_of_several_chunks_that_fail_are_counted() -> None:
    error = _error(ended(["resolved", "not resolved", "not understood"]), JobState.PARTIAL)
    assert isinstance(error, Status)
    assert error_of_status(error).metadata == {"failed": "2", "chunks": "3"}


@pytest.mark.parametrize(("kinds", "state"), [([], JobState.FAILED), (["resolved"], JobState.PARTIAL)])
def test_what_a_document_no_longer_says_may_fail_by_itself(kinds: list[str], state: JobState) -> None:
    end = ended(kinds, failed(StoreDown("graph")))
    assert (_state(end), end.failed) == (state, 0)
    assert _error(end, state) == status_of(StoreDown("graph"))
    assert ended(kinds, {"revision": 9}).revision == 9
    assert status_in(failed(StoreDown("graph"))) == status_of(StoreDown("graph"))
