"""What the commands that list and compare ask of the server, and what they show."""

import json

import pytest

from palimpsest.cli.exits import Exit
from palimpsest.v1 import (
    entity_pb2,
    episode_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_graph_pb2,
    memory_voice_pb2,
    statement_pb2,
    voice_pb2,
)
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted


def test_entities_of_all_pages(server: Scripted, run: Run) -> None:
    ada, ben = (entity_pb2.Entity(name=name, type=entity_pb2.ENTITY_TYPE_PERSON) for name in ("Ada", "Ben"))
    server.answers(
        "ListEntities",
        memory_entities_pb2.ListEntitiesResponse(entities=[ada], next_page_token="next"),
        memory_entities_pb2.ListEntitiesResponse(entities=[ben]),
    )
    done = run("entity", "list", "g", "--prefix", "a", "--type", "Person", "--merged", "--json")
    assert [one["name"] for one in json.loads(done.stdout)["entities"]] == ["Ada", "Ben"]
    assert (server.last.name_prefix, server.last.include_merged) == ("a", True)
    assert (list(server.last.types), server.last.page_token) == ([entity_pb2.ENTITY_TYPE_PERSON], "next")
    assert run("entity", "list", "g", "--type", "thing").exit_code == Exit.USAGE


def test_an_entity_by_name_or_id(server: Scripted, run: Run) -> None:
    shown = entity_pb2.Entity(name="Ada", aliases=["A. L."], statement_count=1200, merged_into="e9")
    server.answers("GetEntity", memory_entities_pb2.GetEntityResponse(entity=shown))
    done = run("entity", "show", "g", "ada", "--known-at", "7")
    assert (server.last.entity.name, server.last.known_at.revision) == ("ada", 7)
    assert all(text in done.stdout for text in ("A. L.", "1,200", "e9"))
    run("entity", "show", "g", "e1", "--id")
    assert server.last.entity.entity_id == "e1"


def test_sentences_of_the_voice(server: Scripted, run: Run) -> None:
    habit = voice_pb2.VoiceAspect(text="I run.", kind=voice_pb2.VOICE_ASPECT_KIND_HABIT)
    server.answers("ListVoiceAspects", memory_voice_pb2.ListVoiceAspectsResponse(voice_aspects=[habit]))
    done = run("voice", "list", "g", "--kind", "habit", "--ended")
    assert (list(server.last.kinds), server.last.include_ended) == ([voice_pb2.VOICE_ASPECT_KIND_HABIT], True)
    assert "I run." in done.stdout


def test_episodes_up_to_a_limit(server: Scripted, run: Run) -> None:
    page = [episode_pb2.Episode(episode_id=f"e{number}") for number in range(2)]
    server.answers(
        "ListEpisodes", memory_episodes_pb2.ListEpisodesResponse(episodes=page, next_page_token="next")
    )
    done = run("episode", "list", "g", "--limit", "3", "--source", "mail", "--from", "2025", "--json")
    assert len(json.loads(done.stdout)["episodes"]) == 3
    assert (server.last.source, server.last.page_size) == ("mail", 1)  # what is left
    assert server.last.reference_from.ToJsonString() == "2025-01-01T00:00:00Z"


@pytest.mark.parametrize("believed", [False, True])
def test_what_changed(server: Scripted, run: Run, believed: bool) -> None:
    change = memory_graph_pb2.GraphChange(
        kind=memory_graph_pb2.CHANGE_KIND_RESTORED,
        statement=statement_pb2.Statement(fact="Ada lives in Graz."),
        after=statement_pb2.Span(),
    )
    server.answers("DiffGraph", memory_graph_pb2.DiffGraphResponse(changes=[change], revision=9))
    done = run("diff", "g", "2025", "2026-03-01", *(["--believed"] if believed else []))
    assert "restored" in done.stdout
    assert "Ada lives in Graz." in done.stdout
    points = server.last.system if believed else server.last.world
    assert server.last.WhichOneof("points") == ("system" if believed else "world")
    if believed:
        assert points.before.revision == 2025
    else:
        assert points.before.ToJsonString() == "2025-01-01T00:00:00Z"
        assert points.after.ToJsonString() == "2026-03-01T00:00:00Z"
