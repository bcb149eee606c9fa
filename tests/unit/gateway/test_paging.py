"""Page tokens: opaque, and bound to tenant, call and filters."""

import pytest

from gateway.errors import ValidationFailed
from gateway.paging import MAX_SIZE, opened, page_of, sealed, token_of
from palimpsest.v1.credits_pb2 import ListLedgerEntriesRequest
from palimpsest.v1.jobs_pb2 import ListJobsRequest, WatchJobRequest
from services.domain.scope import TenantId
from services.stores.paging import Page

ACME = TenantId("acme")


def test_a_first_page_has_the_default_size() -> None:
    assert page_of(ACME, ListLedgerEntriesRequest()) == Page(50, "")
    assert page_of(ACME, ListLedgerEntriesRequest(page_size=MAX_SIZE)) == Page(1000, "")


def test_the_last_page_has_no_token() -> None:
    assert token_of(ACME, ListLedgerEntriesRequest(), "") == ""


def test_a_token_goes_on_whatever_the_size() -> None:
    token = token_of(ACME, ListLedgerEntriesRequest(job_id="j", page_size=2), "17")
    assert page_of(ACME, ListLedgerEntriesRequest(job_id="j", page_size=9, page_token=token)) == Page(9, "17")


@pytest.mark.parametrize(
    ("tenant", "request_"),
    [
        (TenantId("globex"), ListLedgerEntriesRequest(job_id="j")),
        (ACME, ListLedgerEntriesRequest(job_id="k")),
        (ACME, ListJobsRequest(graph_id="j")),
    ],
)
def test_a_token_of_another_request_is_refused(
    tenant: TenantId, request_: ListLedgerEntriesRequest | ListJobsRequest
) -> None:
    request_.page_token = token_of(ACME, ListLedgerEntriesRequest(job_id="j"), "17")
    with pytest.raises(ValidationFailed) as refusal:
        page_of(tenant, request_)
    assert [violation.field for violation in refusal.value.violations] == ["page_token"]


@pytest.mark.parametrize("token", ["x", "====", "\N{SNOWMAN}", "AAAAAAAAAAAAAAAAAAAAAAAA", "//////"])
def test_a_made_up_token_is_refused(token: str) -> None:
    with pytest.raises(ValidationFailed):
        page_of(ACME, ListLedgerEntriesRequest(page_token=token))


def test_a_cursor_is_bound_to_its_job() -> None:
    cursor = sealed(ACME, WatchJobRequest(job_id="j"), "3.4")
    assert opened(ACME, WatchJobRequest(job_id="j", cursor=cursor), cursor, "cursor") == "3.4"
    with pytest.raises(ValidationFailed):
        opened(ACME, WatchJobRequest(job_id="k", cursor=cursor), cursor, "cursor")
