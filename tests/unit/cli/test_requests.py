"""What each command asks of the server."""

from pathlib import Path

import pytest

from palimpsest.cli.exits import Exit
from palimpsest.v1 import (
    admin_pb2,
    common_pb2,
    credits_pb2,
    entity_pb2,
    episode_pb2,
    graph_pb2,
    job_pb2,
    jobs_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    memory_voice_pb2,
    privacy_pb2,
    recall_pb2,
    statement_pb2,
)
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted


@pytest.fixture(autouse=True)
def script(server: Scripted) -> None:
    """An empty answer for every call."""
    server.answers("AddEpisode", memory_ingest_pb2.AddEpisodeResponse())
    server.answers("AssertTriples", memory_ingest_pb2.AssertTriplesResponse())
    server.answers("Recall", recall_pb2.RecallResponse())
    server.answers("GetTimeline", memory_statements_pb2.GetTimelineResponse())
    server.answers("GetStatement", memory_statements_pb2.GetStatementResponse())
    server.answers("GetEpisode", memory_episodes_pb2.GetEpisodeResponse())
    server.answers("DeleteEpisode", memory_episodes_pb2.DeleteEpisodeResponse())
    server.answers("MergeEntities", memory_entities_pb2.MergeEntitiesResponse())
    server.answers("SplitEntity", memory_entities_pb2.SplitEntityResponse())
    server.answers("CreateGraph", graph_pb2.CreateGraphResponse())
    server.answers("GetGraph", graph_pb2.GetGraphResponse())
    server.answers("GrantCredits", admin_pb2.GrantCreditsResponse())
    server.answers("CreateApiKey", admin_pb2.CreateApiKeyResponse(secret="pk_live_new"))
    server.answers("EndStatement", memory_statements_pb2.EndStatementResponse())
    server.answers("DenyStatement", memory_statements_pb2.DenyStatementResponse())
    server.answers("RestoreStatement", memory_statements_pb2.RestoreStatementResponse())
    server.answers("JudgePair", memory_statements_pb2.JudgePairResponse())
    server.answers("EndVoiceAspect", memory_voice_pb2.EndVoiceAspectResponse())
    server.answers("RestoreVoiceAspect", memory_voice_pb2.RestoreVoiceAspectResponse())
    server.answers("ListAuditEvents", privacy_pb2.ListAuditEventsResponse())
    server.answers("ListLedgerEntries", credits_pb2.ListLedgerEntriesResponse())
    server.answers("SuspendTenant", admin_pb2.SuspendTenantResponse())
    server.answers("SetLimits", admin_pb2.SetLimitsResponse())
    server.answers("GetUsage", admin_pb2.GetUsageResponse(spent_micros=1_500_000, calls={"AddEpisode": 12}))
    server.answers("ListApiKeys", admin_pb2.ListApiKeysResponse(api_keys=[admin_pb2.ApiKey(key_id="k1")]))
    server.answers("RevokeApiKey", admin_pb2.RevokeApiKeyResponse())
    server.answers("UpdateGraph", graph_pb2.UpdateGraphResponse())
    listed = graph_pb2.Graph(graph_id="g", settings=graph_pb2.GraphSettings(user_name="Ana"))
    declared = entity_pb2.Predicate(name="works_at", cardinality=entity_pb2.CARDINALITY_SINGLE, declared=True)
    server.answers("DeclarePredicate", graph_pb2.DeclarePredicateResponse(predicate=declared, revision=3))
    server.answers("ListPredicates", graph_pb2.ListPredicatesResponse(predicates=[declared]))
    server.answers("ListGraphs", graph_pb2.ListGraphsResponse(graphs=[listed]))


def test_a_text_is_a_conversation(server: Scripted, run: Run) -> None:
    arguments = ["add", "g", "I live in Graz.", "--session", "s", "--source", "slack", "--said", "2025-03-31"]
    assert run(*arguments).exit_code == 0
    request = server.last
    assert (request.graph_id, request.text, request.session_id) == ("g", "I live in Graz.", "s")
    assert (request.kind, request.source) == (episode_pb2.EPISODE_KIND_CONVERSATION, "slack")
    assert request.reference_time.ToJsonString() == "2025-03-31T00:00:00Z"
    assert not request.HasField("max_credits_micros")


def test_a_file_is_a_document(server: Scripted, run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_bytes("# Ä\r\n".encode())
    options = [
        "--document",
        "notes",
        "--title",
        "Notes",
        "--time-zone",
        "Europe/Vienna",
        "--max-credits",
        "0.5",
    ]
    assert run("add", "g", "--file", "notes.md", *options).exit_code == 0
    request = server.last
    assert (request.text, request.kind) == ("# Ä\r\n", episode_pb2.EPISODE_KIND_DOCUMENT)
    assert (request.document_id, request.title, request.time_zone) == ("notes", "Notes", "Europe/Vienna")
    assert request.max_credits_micros == 500_000


def test_a_kind_that_is_said_counts(server: Scripted, run: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_text("hi", encoding="utf-8")
    run("add", "g", "-f", "talk.txt", "--kind", "compacted-session", "--session", "s")
    assert server.last.kind == episode_pb2.EPISODE_KIND_COMPACTED_SESSION


def test_a_dash_is_standard_input(server: Scripted, run: Run) -> None:
    run("add", "g", "-", "--validate-only", stdin="主数据库是什么\n".encode())
    assert (server.last.text, server.last.validate_only) == ("主数据库是什么\n", True)


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        ([], b"", "give the text"),
        (["text", "--file", "x"], b"", "give the text"),
        (["--file", "absent"], b"", "absent: No such file"),
        (["--file", "."], b"", "Is a directory"),
        (["-"], b"\xff", "standard input is not UTF-8"),
    ],
)
def test_no_text_or_two_is_refused_without_a_call(
    server: Scripted, run: Run, arguments: list[str], stdin: bytes, says: str
) -> None:
    result = run("add", "g", *arguments, stdin=stdin)
    assert result.exit_code == Exit.USAGE
    assert says in result.stderr
    assert not server.asked


def test_every_call_that_changes_something_has_a_request_id_of_its_own(server: Scripted, run: Run) -> None:
    commands = [
        ["add", "g", "x"],
        ["assert", "g", "a", "b", "c"],
        ["episode", "delete", "g", "e"],
        ["grant", "acme", "1"],
        ["end", "g", "s"],
        ["deny", "g", "s"],
        ["restore", "g", "s"],
        ["judge", "g", "s", "compatible", "t"],
        ["voice", "end", "g", "v"],
        ["voice", "restore", "g", "v"],
    ]
    for command in commands * 2:
        assert run(*command).exit_code == 0
    ids = [request.request_id for request in server.asked]  # type: ignore[attr-defined]  # each has one
    assert len(set(ids)) == len(ids) == 2 * len(commands)
    assert all(1 <= len(id) <= 64 for id in ids)
    for command in commands:
        run(*command, "--request-id", "mine")
    assert {request.request_id for request in server.asked[len(ids) :]} == {"mine"}  # type: ignore[attr-defined]


def test_a_claim(server: Scripted, run: Run) -> None:
    arguments = ["assert", "g", "John", "works_at", "Google", "--since", "2024-02", "--until", "2026"]
    options = ["--said", "2024-02-03", "--seen", "2024-02-01", "--object-type", "organization"]
    assert run(*arguments, *options, "--quote", "I work at Google", "--confidence", "0.5").exit_code == 0
    (claim,) = server.last.claims
    assert (claim.subject.name, claim.predicate, claim.object.entity.name) == ("John", "works_at", "Google")
    assert (claim.valid_at_precision, claim.invalid_at_precision) == (
        common_pb2.PRECISION_MONTH,
        common_pb2.PRECISION_YEAR,
    )
    assert claim.object.entity.type == entity_pb2.ENTITY_TYPE_ORGANIZATION
    assert claim.subject.type == entity_pb2.ENTITY_TYPE_UNSPECIFIED
    assert claim.seen.ToJsonString() == "2024-02-01T00:00:00Z"
    assert (claim.quote, claim.confidence) == ("I work at Google", 0.5)
    assert server.last.reference_time.ToJsonString() == "2024-02-03T00:00:00Z"


def test_a_claim_without_dates_has_none(server: Scripted, run: Run) -> None:
    run("assert", "g", "a", "b", "c")
    (claim,) = server.last.claims
    set_fields = {field.name for field, _ in claim.ListFields()}
    assert set_fields == {"subject", "predicate", "object"}
    assert not server.last.HasField("reference_time")


def test_an_end_and_a_denial(server: Scripted, run: Run) -> None:
    run("assert", "g", "John", "works_at", "Google", "--end", "2026-05")
    (end,) = server.last.ends
    assert (end.ended_at.ToJsonString(), end.ended_at_precision) == (
        "2026-05-01T00:00:00Z",
        common_pb2.PRECISION_MONTH,
    )
    run("assert", "g", "John", "lives_in", "Rome", "--deny", "--until", "2020")
    (denial,) = server.last.denials
    assert not denial.HasField("denied_from")
    assert denial.denied_until.ToJsonString() == "2020-01-01T00:00:00Z"
    assert not server.last.claims


@pytest.mark.parametrize(
    "options",
    [
        ["--end", "2026", "--deny"],
        ["--end", "2026", "--since", "2025"],
        ["--end", "2026", "--until", "2027"],
        ["--deny", "--seen", "2025"],
    ],
)
def test_what_excludes_each_other_is_refused_without_a_call(
    server: Scripted, run: Run, options: list[str]
) -> None:
    assert run("assert", "g", "a", "b", "c", *options).exit_code == Exit.USAGE
    assert not server.asked


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("42", entity_pb2.Literal(number_value=42)),
        ("-0.5", entity_pb2.Literal(number_value=-0.5)),
        ("true", entity_pb2.Literal(bool_value=True)),
        ("False", entity_pb2.Literal(string_value="False")),
        ("nan", entity_pb2.Literal(string_value="nan")),
        ("blue", entity_pb2.Literal(string_value="blue")),
    ],
)
def test_literals(server: Scripted, run: Run, text: str, literal: entity_pb2.Literal) -> None:
    assert run("assert", "g", "--literal", "--", "a", "b", text).exit_code == 0
    assert server.last.claims[0].object.literal == literal


def test_a_question(server: Scripted, run: Run) -> None:
    options = ["--as-of", "2025-03", "--known-at", "7", "--budget", "300", "--max-facts", "0", "--explain"]
    result = run("recall", "g", "Where?", *options, "--entity", "Wen", "--min-revision", "3", "--graph", "h")
    assert result.exit_code == 0
    request = server.last
    assert (list(request.graph_ids), request.query, request.explain) == (["g", "h"], "Where?", True)
    assert request.as_of.ToJsonString() == "2025-03-01T00:00:00Z"
    assert request.known_at == common_pb2.KnownAt(revision=7)
    assert (request.token_budget, request.max_facts, request.min_revision) == (300, 0, 3)
    assert not request.HasField("max_passages")
    assert [hint.name for hint in request.entity_hints] == ["Wen"]


def test_merging_and_splitting(server: Scripted, run: Run) -> None:
    options = ["--reason", "one", "--request-id", "r"]
    assert run("entity", "merge", "g", "e1", "e2", "e3", *options).exit_code == 0
    asked = server.last
    assert (asked.graph_id, asked.into_entity_id, list(asked.entity_ids)) == ("g", "e1", ["e2", "e3"])
    assert (asked.reason, asked.request_id) == ("one", "r")
    assert run("entity", "split", "g", "e2").exit_code == 0
    assert (server.last.graph_id, server.last.entity_id, server.last.reason) == ("g", "e2", "")
    assert server.last.request_id


def test_reads_of_facts(server: Scripted, run: Run) -> None:
    run("timeline", "g", "John", "works_at", "--known-at", "2025-01-01", "--past-beliefs")
    timeline = server.last
    assert (timeline.subject.name, timeline.predicate.name) == ("John", "works_at")
    assert timeline.include_past_beliefs
    assert timeline.known_at.time.ToJsonString() == "2025-01-01T00:00:00Z"
    run("statement", "g", "s1")
    assert (server.last.statement_id, server.last.include_past_beliefs) == ("s1", False)
    run("episode", "show", "g", "e1")
    assert server.last.episode_id == "e1"


def test_all_pages_of_a_timeline_are_one_answer(server: Scripted, run: Run) -> None:
    entry = memory_statements_pb2.TimelineEntry(fact="x")
    pages = [
        memory_statements_pb2.GetTimelineResponse(entries=[entry], next_page_token="more"),
        memory_statements_pb2.GetTimelineResponse(entries=[entry, entry]),
    ]
    server.answers("GetTimeline", *pages)
    result = run("timeline", "g", "a", "b", "--json")
    assert result.stdout.count('"fact"') == 3
    assert "nextPageToken" not in result.stdout
    assert server.last.page_token == "more"


def test_the_ledger_reads_pages_up_to_its_limit(server: Scripted, run: Run) -> None:
    page = credits_pb2.ListLedgerEntriesResponse(
        entries=[credits_pb2.LedgerEntry(entry_id="e")] * 2, next_page_token="more"
    )
    server.answers("EndStatement", memory_statements_pb2.EndStatementResponse())
    server.answers("DenyStatement", memory_statements_pb2.DenyStatementResponse())
    server.answers("RestoreStatement", memory_statements_pb2.RestoreStatementResponse())
    server.answers("JudgePair", memory_statements_pb2.JudgePairResponse())
    server.answers("ListAuditEvents", privacy_pb2.ListAuditEventsResponse())
    server.answers("ListLedgerEntries", page)
    result = run("ledger", "--limit", "4", "--job", "j", "--json")
    assert result.stdout.count("entryId") == 4
    assert [request.page_size for request in server.asked] == [4, 2]  # type: ignore[attr-defined]
    assert server.last.job_id == "j"


def test_operators_calls(server: Scripted, run: Run) -> None:
    run("grant", "acme", "0.25", "--reason", "welcome")
    assert (server.last.amount_micros, server.last.reason) == (250_000, "welcome")
    result = run("key", "create", "acme", "--scope", "read", "--scope", "erase", "--expires", "2030")
    assert result.stdout == "pk_live_new\n"  # alone, so that a script can take it
    assert "not shown again" in result.stderr
    assert list(server.last.scopes) == [admin_pb2.API_KEY_SCOPE_READ, admin_pb2.API_KEY_SCOPE_ERASE]
    assert server.last.expires_at.ToJsonString() == "2030-01-01T00:00:00Z"
    run("key", "create", "--scope", "operator")
    assert server.last.tenant_id == ""


def test_a_list_is_read_page_by_page(server: Scripted, run: Run) -> None:
    page = jobs_pb2.ListJobsResponse(
        jobs=[job_pb2.Job(job_id=f"j{n}") for n in range(2)], next_page_token="t"
    )
    server.answers("ListJobs", page)
    result = run("job", "list", "--graph", "g", "--state", "failed", "--limit", "4", "--json")
    assert result.stdout.count("jobId") == 4
    assert [request.page_size for request in server.asked] == [4, 2]  # type: ignore[attr-defined]
    assert (server.last.graph_id, list(server.last.states)) == ("g", [job_pb2.JOB_STATE_FAILED])


def test_operators_keep_tenants_and_keys(server: Scripted, run: Run) -> None:
    run("tenant", "suspend", "acme", "--reason", "unpaid")
    assert (server.last.tenant_id, server.last.lift, server.last.reason) == ("acme", False, "unpaid")
    run("tenant", "suspend", "acme", "--lift")
    assert server.last.lift
    run("tenant", "limits", "acme", "--max-jobs", "3", "--goodwill", "0.5")
    limits = admin_pb2.TenantLimits(max_jobs=3, goodwill_micros_per_day=500_000)
    assert server.last.limits == limits
    assert "k1" in run("key", "list", "acme").stdout
    assert server.last.tenant_id == "acme"
    run("key", "revoke", "k1")
    assert server.last.key_id == "k1"
    shown = run("tenant", "usage", "acme", "--since", "2026-07-01").stdout
    assert server.last.used_from.ToJsonString() == "2026-07-01T00:00:00Z"
    assert not server.last.HasField("used_until")
    assert {("spent", "1.5"), ("AddEpisode", "12")} <= {tuple(line.split()) for line in shown.splitlines()}


def test_a_graph_is_given_other_settings(server: Scripted, run: Run) -> None:
    assert run("graph", "update", "g", "--user-name", "Ana", "--time-zone", "").exit_code == 0
    assert list(server.last.update_mask.paths) == ["time_zone", "user_name"]
    assert server.last.settings == graph_pb2.GraphSettings(user_name="Ana")
    assert run("graph", "update", "g").exit_code == Exit.USAGE
    assert "Ana" in run("graph", "list").stdout


def test_a_graph_with_settings(server: Scripted, run: Run) -> None:
    options = ["--user-name", "Ana", "--time-zone", "Europe/Vienna", "--language", "en", "--language", "zh"]
    run("graph", "create", "g", *options)
    settings = server.last.settings
    assert (settings.user_name, settings.time_zone, list(settings.languages)) == (
        "Ana",
        "Europe/Vienna",
        ["en", "zh"],
    )


def test_deciding_about_facts(server: Scripted, run: Run) -> None:
    assert run("end", "g", "s", "--at", "2026-05", "--reason", "he said so").exit_code == 0
    ended = server.last
    assert (ended.graph_id, ended.statement_id, ended.reason) == ("g", "s", "he said so")
    assert (ended.ended_at.ToJsonString(), ended.ended_at_precision) == (
        "2026-05-01T00:00:00Z",
        common_pb2.PRECISION_MONTH,
    )
    assert run("end", "g", "s").exit_code == 0
    assert not server.last.HasField("ended_at")
    assert run("deny", "g", "s", "--since", "2025", "--until", "2026").exit_code == 0
    assert server.last.denied_from.ToJsonString() == "2025-01-01T00:00:00Z"
    assert server.last.denied_until.ToJsonString() == "2026-01-01T00:00:00Z"
    result = run("restore", "g", "s")
    assert (result.exit_code, server.last.statement_id) == (0, "s")
    assert "it held already" in result.stdout
    assert run("judge", "g", "s", "duplicate", "t").exit_code == 0
    assert (server.last.other_statement_id, server.last.verdict) == (
        "t",
        statement_pb2.VERDICT_KIND_DUPLICATE,
    )
    assert run("judge", "g", "s", "maybe", "t").exit_code == Exit.USAGE


def test_the_audit_reads_pages_up_to_its_limit(server: Scripted, run: Run) -> None:
    event = privacy_pb2.AuditEvent(event_id="e", action="EndStatement", reason="because")
    page = privacy_pb2.ListAuditEventsResponse(events=[event] * 2, next_page_token="more")
    server.answers("ListAuditEvents", page)
    result = run("audit", "--graph", "g", "--about", "s", "--since", "2026", "--limit", "4", "--json")
    assert result.stdout.count("eventId") == 4
    assert [request.page_size for request in server.asked] == [4, 2]  # type: ignore[attr-defined]
    asked = server.last
    assert (asked.graph_id, asked.target_id, asked.page_token) == ("g", "s", "more")
    assert asked.created_from.ToJsonString() == "2026-01-01T00:00:00Z"
    assert "because" in run("audit", "--limit", "2").stdout


def test_a_predicate_is_declared_and_listed(server: Scripted, run: Run) -> None:
    options = ["--single", "--alias", "toils at", "--alias", "is with", "--inverse", "employs"]
    done = run("predicate", "declare", "g", "works at", *options)
    assert done.exit_code == 0
    assert "works_at" in done.stdout
    request = server.last
    assert (request.graph_id, request.name, request.inverse) == ("g", "works at", "employs")
    assert (request.cardinality, list(request.aliases)) == (
        entity_pb2.CARDINALITY_SINGLE,
        ["toils at", "is with"],
    )
    assert run("predicate", "declare", "g", "works at").exit_code == Exit.USAGE
    listed = run("predicate", "list", "g", "--declared")
    assert (listed.exit_code, server.last.declared_only) == (0, True)
    assert "works_at" in listed.stdout
