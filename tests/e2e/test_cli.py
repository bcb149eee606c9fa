"""The command line as a user has it: programs in processes of their own, against a running product."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from palimpsest.cli.exits import Exit
from tests.e2e.up_process import UpProcess, clean_environment, program

pytestmark = pytest.mark.milvus


@dataclass(frozen=True, slots=True)
class Terminal:
    """A user's shell: the environment in which commands run."""

    environment: dict[str, str]
    folder: Path

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [program("palimpsest"), *arguments],
            input=stdin,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def text(self, *arguments: str, stdin: str = "") -> str:
        """What a command prints; it must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "--json"))


@pytest.fixture
def terminal(running: UpProcess, tmp_path: Path) -> Terminal:
    """A shell that knows the operator's key, in an empty folder beside the data folder of the product."""
    settings = {"PALIMPSEST_OPERATOR_KEY": running.operator_key, "PALIMPSEST_DATA_DIR": str(running.data_dir)}
    return Terminal(clean_environment(settings), tmp_path)


def test_from_nothing_to_a_dated_answer(terminal: Terminal) -> None:
    """Everything a newcomer types, in order. The server is found by its file in the data folder."""
    terminal.text("tenant", "create", "cli", "--name", "Command line")
    terminal.environment["PALIMPSEST_KEY"] = terminal.text("key", "create", "cli", "--scope", "erase").strip()
    assert terminal.json("grant", "cli", "1.5")["balance"]["availableMicros"] == "1500000"

    terminal.text("graph", "create", "g", "--user-name", "Ana")
    added = terminal.text("add", "g", "I live in Graz.", "--said", "2025-03-31", "--wait")
    assert "succeeded" in added
    assert "engine: offline" in added
    answer = terminal.text("recall", "g", "Where does Ana live?")
    assert "(Ana) --[lives_in]--> (Graz)  since 2025-03-31" in answer
    assert "engine offline" in answer

    terminal.text("add", "g", "-", "--said", "2026-02-01", "--wait", stdin="I moved to Vienna.\n")
    timeline = terminal.text("timeline", "g", "Ana", "lives_in")
    marks = [line.split()[:4] for line in timeline.splitlines() if "Graz" in line or "Vienna" in line]
    assert marks == [["✗", "Graz", "2025-03-31", "2026-02-01"], ["●", "Vienna", "2026-02-01", "revision"]]
    past = terminal.json("recall", "g", "Where does Ana live?", "--as-of", "2025-06-01")
    held = [fact["statement"]["object"]["entity"]["name"] for fact in past["facts"] if fact.get("current")]
    assert held == ["Graz"]
    graph = terminal.json("graph", "show", "g")["graph"]
    assert graph["counts"]["statements"] == "2"
    assert graph["revision"]["revision"] == "2"
    assert graph["revision"]["time"] > graph["createdAt"]


def test_money_is_told_to_the_micro(running: UpProcess, terminal: Terminal) -> None:
    terminal.environment["PALIMPSEST_KEY"] = running.tenant(credits_micros=1_000_000).key
    quote = terminal.json("add", "g", "Wen maintains Study.", "--validate-only")["quote"]
    assert int(quote["creditsMicros"]) > 0
    assert terminal.json("balance")["balance"]["availableMicros"] == "1000000"
    job = terminal.json("add", "g", "Wen maintains Study.")["job"]["jobId"]
    terminal.text("job", "watch", job)
    shown = terminal.json("job", "show", job)["job"]
    spent = int(shown["credits"]["spentMicros"])
    assert spent > 0
    assert int(terminal.json("balance")["balance"]["availableMicros"]) == 1_000_000 - spent
    entries = terminal.json("ledger", "--job", job)["entries"]
    kinds = {entry["kind"].removeprefix("LEDGER_ENTRY_KIND_") for entry in entries}
    assert {"HOLD", "SETTLE"} <= kinds


def test_small_talk_costs_nothing(running: UpProcess, terminal: Terminal) -> None:
    terminal.environment["PALIMPSEST_KEY"] = running.tenant(credits_micros=1_000_000).key
    said = terminal.text("add", "g", "ok thanks!", "--wait")
    assert "small talk" in said
    assert terminal.json("balance")["balance"]["availableMicros"] == "1000000"


def test_what_was_asserted_can_be_read_and_deleted(running: UpProcess, terminal: Terminal) -> None:
    terminal.environment["PALIMPSEST_KEY"] = running.tenant().key
    john = ["assert", "g", "John", "works_at"]
    terminal.text(*john, "Google", "--since", "2024-02-01", "--said", "2024-02-03")
    meta = terminal.json(*john, "Meta", "--since", "2026-03-01", "--said", "2026-03-02")["claims"][0]
    statement = terminal.text("statement", "g", meta["statementId"])
    assert "John works at Meta" in statement
    assert "since 2026-03-01" in statement
    assert "2026-03-02" in terminal.text("episode", "show", "g", meta["episodeId"])
    deleted = terminal.json("episode", "delete", "g", meta["episodeId"])
    assert len(deleted["restoredStatementIds"]) == 1
    (entry,) = terminal.json("timeline", "g", "John", "works_at")["entries"]
    assert entry["object"]["entity"]["name"] == "Google"
    assert "invalidAt" not in entry["span"]


def test_a_request_id_that_is_repeated_takes_effect_once(running: UpProcess, terminal: Terminal) -> None:
    terminal.environment["PALIMPSEST_KEY"] = running.tenant(credits_micros=1_000_000).key
    first, again = (
        terminal.json("add", "g", "I live in Graz.", "--said", "2025-03-31", "--request-id", "once")
        for _ in range(2)
    )
    assert first["job"]["jobId"] == again["job"]["jobId"]
    assert again["replayed"] is True
    other = terminal.run("add", "g", "I live in Rome.", "--request-id", "once")
    assert other.returncode == Exit.FAILED
    assert "REQUEST_ID_REUSED" in other.stderr


def test_errors_are_a_line_and_a_code(running: UpProcess, terminal: Terminal) -> None:
    poor = running.tenant(credits_micros=0).key
    refused = {
        ("graph", "show", "absent", "--key", poor): (Exit.NOT_FOUND, "GRAPH_NOT_FOUND"),
        ("add", "g", "I live in Graz.", "--key", poor): (Exit.CREDITS, "INSUFFICIENT_CREDITS"),
        ("add", "g", " \n", "--key", poor): (Exit.USAGE, "VALIDATION_FAILED"),
        ("grant", "acme", "1", "--key", poor): (Exit.FORBIDDEN, "SCOPE_MISSING"),
        ("balance", "--key", "pk_nonsense"): (Exit.FORBIDDEN, "API_KEY_INVALID"),
        ("balance",): (Exit.FORBIDDEN, "no API key"),
        ("job", "show", "absent", "--key", poor): (Exit.NOT_FOUND, "JOB_NOT_FOUND"),
    }
    for arguments, (code, says) in refused.items():
        done = terminal.run(*arguments)
        assert (done.returncode, done.stdout) == (code, ""), arguments
        (line,) = done.stderr.splitlines()
        assert line.startswith("palimpsest: ")
        assert says in line


@pytest.mark.slow
def test_a_graph_goes_into_a_file_and_comes_back(terminal: Terminal) -> None:
    terminal.text("tenant", "create", "carrier")
    terminal.text("grant", "carrier", "1")
    terminal.environment["PALIMPSEST_KEY"] = terminal.text("key", "create", "carrier", "--scope", "erase")[
        :-1
    ]
    terminal.text("assert", "notes", "Ana", "lives_in", "Graz", "--since", "2024-01-01")
    assert "sha256" in terminal.text("graph", "export", "notes", "notes.jsonl")
    assert terminal.run("graph", "export", "notes", "notes.jsonl").returncode == Exit.FAILED
    assert "succeeded" in terminal.text("graph", "import", "copy", "notes.jsonl")
    assert terminal.text("timeline", "copy", "Ana", "lives_in") == terminal.text(
        "timeline", "notes", "Ana", "lives_in"
    )
    whole = (terminal.folder / "notes.jsonl").read_text(encoding="utf-8")
    (terminal.folder / "cut.jsonl").write_text(whole[: whole.rindex('{"part":"trailer"')], encoding="utf-8")
    assert terminal.run("graph", "import", "cut", "cut.jsonl").returncode == Exit.USAGE
    (terminal.folder / "garbled.jsonl").write_text(whole.replace("Graz", "Gras"), encoding="utf-8")
    assert terminal.run("graph", "import", "garbled", "garbled.jsonl").returncode == Exit.USAGE
    assert terminal.run("graph", "show", "garbled").returncode == Exit.NOT_FOUND
