"""Options that say what becomes of texts and of what long ended, and the commands that undo and make anew."""

from palimpsest.cli.exits import Exit
from palimpsest.v1 import graph_pb2, job_pb2, jobs_pb2, memory_graph_pb2, statement_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted

DAY = 86_400


def answers(server: Scripted, settings: graph_pb2.GraphSettings) -> None:
    counts = graph_pb2.GraphCounts(statements=3, archived=2)
    graph = graph_pb2.Graph(graph_id="notes", settings=settings, counts=counts)
    server.answers("CreateGraph", graph_pb2.CreateGraphResponse(graph=graph, created=True))
    server.answers("UpdateGraph", graph_pb2.UpdateGraphResponse(graph=graph))
    server.answers("GetGraph", graph_pb2.GetGraphResponse(graph=graph))


def test_what_is_blacked_out_and_who_may_see_texts_is_sent(server: Scripted, run: Run) -> None:
    answers(server, graph_pb2.GraphSettings())
    told = ["--redact", "secrets", "--redact", "cards", "--redact-pattern", "EMP-[0-9]+"]
    assert run("graph", "create", "notes", *told, "--allow-provider", "ours").exit_code == 0
    settings = server.last.settings
    assert (settings.redaction.secrets, settings.redaction.card_numbers) == (True, True)
    assert list(settings.redaction.patterns) == ["EMP-[0-9]+"]
    assert list(settings.models.allowed_providers) == ["ours"]

    run("graph", "update", "notes", "--redact", "nothing", "--allow-provider", "")
    assert list(server.last.update_mask.paths) == [
        "models.allowed_providers",
        "redaction.card_numbers",
        "redaction.secrets",
    ]
    assert not server.last.settings.redaction.secrets
    assert not server.last.settings.models.allowed_providers
    run("graph", "update", "notes", "--redact-pattern", "")
    assert list(server.last.update_mask.paths) == ["redaction.patterns"]
    assert not server.last.settings.redaction.patterns


def test_retention_is_told_in_days_by_aspect(server: Scripted, run: Run) -> None:
    answers(server, graph_pb2.GraphSettings())
    assert (
        run("graph", "update", "notes", "--archive-after", "365", "--archive-after", "Event=30").exit_code
        == 0
    )
    rules = [(rule.aspect, rule.archive_after.seconds) for rule in server.last.settings.retention]
    assert rules == [(0, 365 * DAY), (statement_pb2.GRAPH_ASPECT_EVENT, 30 * DAY)]
    run("graph", "update", "notes", "--archive-after", "never")
    assert (list(server.last.update_mask.paths), len(server.last.settings.retention)) == (["retention"], 0)
    for wrong in ("soon", "mood=3", "event=", "-1"):
        result = run("graph", "update", "notes", "--archive-after", wrong)
        assert result.exit_code == Exit.USAGE, wrong


def test_a_graph_shows_its_rules(server: Scripted, run: Run) -> None:
    settings = graph_pb2.GraphSettings()
    settings.retention.add(aspect=statement_pb2.GRAPH_ASPECT_EVENT).archive_after.FromSeconds(30 * DAY)
    settings.retention.add().archive_after.FromSeconds(DAY)
    settings.redaction.secrets = True
    settings.redaction.patterns.extend(["a", "b"])
    answers(server, settings)
    shown = run("graph", "show", "notes").stdout
    for text in ("event after 30 days, others after 1 day", "secrets, 2 patterns", "2 archived"):
        assert text in shown


def test_archived_facts_come_back_all_or_some(server: Scripted, run: Run) -> None:
    done = memory_graph_pb2.RestoreArchivedResponse(restored_count=2, revision=7)
    server.answers("RestoreArchived", done)
    assert "2 statements came back (revision 7)" in run("graph", "restore-archived", "notes").stdout
    assert not server.last.statement_ids
    run("graph", "restore-archived", "notes", "s1", "s2", "--request-id", "r")
    assert (list(server.last.statement_ids), server.last.request_id) == (["s1", "s2"], "r")


def test_a_rebuild_is_begun_or_waited_for(server: Scripted, run: Run) -> None:
    report = job_pb2.RebuildReport(looked_at=12, vectors=5, repaired={"spans differ": 1})
    job = job_pb2.Job(
        job_id="j1",
        kind=job_pb2.JOB_KIND_REBUILD,
        state=job_pb2.JOB_STATE_SUCCEEDED,
        result=job_pb2.JobResult(rebuilt=report),
    )
    server.answers("RebuildGraph", memory_graph_pb2.RebuildGraphResponse(job=job))
    server.answers("WatchJob", [jobs_pb2.WatchJobResponse(job=job)])
    server.answers("GetJob", jobs_pb2.GetJobResponse(job=job))
    assert "j1" in run("graph", "rebuild", "notes", "--request-id", "r").stdout
    assert (server.last.graph_id, server.last.request_id) == ("notes", "r")
    assert run("graph", "rebuild", "notes", "--wait").exit_code == 0
    job.state = job_pb2.JOB_STATE_FAILED
    server.answers("WatchJob", [jobs_pb2.WatchJobResponse(job=job)])
    server.answers("GetJob", jobs_pb2.GetJobResponse(job=job))
    assert run("graph", "rebuild", "notes", "--wait").exit_code == Exit.JOB_FAILED


def test_texts_are_read_anew_or_only_quoted(server: Scripted, run: Run) -> None:
    quote = job_pb2.Quote(credits_micros=12_000, price_version="v1", token_count=1_200, chunk_count=3)
    server.answers("RebuildGraph", memory_graph_pb2.RebuildGraphResponse(quote=quote))
    shown = run(
        "graph", "rebuild", "notes", "--medium-model", "m", "--low-model", "l", "--validate-only"
    ).stdout
    assert "0.012 credits" in shown
    assert "1,200 in 3 chunks" in shown
    assert (server.last.medium_model, server.last.low_model) == ("m", "l")
    assert (server.last.validate_only, server.last.prompt_version) == (True, "")
    job = job_pb2.Job(job_id="j1", kind=job_pb2.JOB_KIND_REBUILD)
    server.answers("RebuildGraph", memory_graph_pb2.RebuildGraphResponse(job=job, quote=quote))
    assert "j1" in run("graph", "rebuild", "notes", "--read-anew", "--max-credits", "0.5").stdout
    assert (server.last.prompt_version, server.last.max_credits_micros) == ("current", 500_000)
    run("graph", "rebuild", "notes", "--undo", "j1")
    assert (server.last.undo_job_id, server.last.prompt_version) == ("j1", "")
