"""`session show`, `label list`, `persona …`: what they ask and what they show."""

from pathlib import Path

import pytest

from palimpsest.cli.exits import Exit
from palimpsest.v1 import recall_summaries_pb2 as pb
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted

SECTION = pb.PersonaSection(section_id="notes", title="Notes", text="Be brief.", protected=True)
PERSONA = pb.Persona(graph_id="g", sections=[SECTION], version=3)


@pytest.fixture(autouse=True)
def script(server: Scripted) -> None:
    sentence = pb.SummarySentence(text="Maya lives in Graz.", statement_ids=["st-1"])
    summary = pb.SessionSummary(session_id="s", title="Maya on home", labels=["Home"], sentences=[sentence])
    server.answers("GetSessionSummary", pb.GetSessionSummaryResponse(summary=summary))
    server.answers("ListLabels", pb.ListLabelsResponse(labels=[pb.Label(name="Home", session_count=2)]))
    server.answers("GetPersona", pb.GetPersonaResponse(persona=PERSONA))
    server.answers("UpdatePersona", pb.UpdatePersonaResponse(persona=PERSONA))


def test_a_session_is_shown_with_what_its_sentences_rest_on(server: Scripted, run: Run) -> None:
    shown = run("session", "show", "g", "s")
    assert (shown.exit_code, server.last.session_id) == (0, "s")
    assert all(text in shown.stdout for text in ("Maya on home", "Home", "Maya lives in Graz.", "st-1"))


def test_labels_are_listed(server: Scripted, run: Run) -> None:
    assert "Home" in run("label", "list", "g").stdout
    server.answers("ListLabels", pb.ListLabelsResponse())
    assert "no labels" in run("label", "list", "g").stdout


def test_a_persona_is_shown_set_and_released(server: Scripted, run: Run, tmp_path: Path) -> None:
    assert "Be brief." in run("persona", "show", "g").stdout
    assert run("persona", "set", "g", "notes", "Be brief.", "--version", "2").exit_code == 0
    (section,) = server.last.sections
    assert (section.text, section.title, section.protected) == ("Be brief.", "notes", True)
    assert server.last.expected_version == 2
    file = tmp_path / "notes.md"
    file.write_text("From a file.", encoding="utf-8")
    run("persona", "set", "g", "notes", f"@{file}", "--title", "Notes")
    assert (server.last.sections[0].text, server.last.sections[0].title) == ("From a file.", "Notes")
    assert run("persona", "set", "g", "notes", f"@{tmp_path / 'none'}").exit_code == Exit.USAGE
    assert run("persona", "release", "g", "notes").exit_code == 0
    assert not server.last.sections[0].protected
