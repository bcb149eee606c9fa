"""Cassettes: what was recorded is answered again without the endpoint; what was not is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.openai_embedder import OpenAIEmbedder
from services.llm.openai_engine import OpenAIEngine
from services.llm.openai_engine.cassettes import BadCassette, Cassette, UnknownRecording, key_of
from services.llm.port import ModelMisconfigured, ModelUnavailable
from services.llm.settings import EmbeddingSettings, ModelSettings
from tests.doubles import model_replies as replies
from tests.doubles.model_replies import Rule
from tests.doubles.model_server import ModelServer
from tests.unit.llm.helpers import SCOPE, engine_on, extract, normalise

NOBODY = "http://127.0.0.1:9/v1"
OK = replies.text("<output>Bob joined the team.</output>")


def replaying(file: Path, **changes: Any) -> OpenAIEngine:
    """An engine whose endpoint is not there."""
    given_ = {"base_url": NOBODY, "medium_model": "test-medium", "cassette": file, "max_attempts": 1}
    return OpenAIEngine(ModelSettings.model_validate(given_ | changes))


async def recorded(file: Path, *rules: Rule, **server: Any) -> int:
    """Asks two tasks of a server and keeps the answers; how many calls it took."""
    with ModelServer(*rules, **server) as running:
        async with engine_on(running, cassette=file, cassette_mode="record") as engine:
            await engine.normalise(SCOPE, normalise("Bob joined the team."))
            await engine.extract_world(SCOPE, extract("Bob joined the team."))
        return len(running.asked)


async def test_what_was_recorded_replays_without_the_endpoint(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "cassette.jsonl"
    assert await recorded(file, lacks=["json_schema"]) == 3, "one refusal of the ladder's top"
    engine = replaying(file)
    said = await engine.normalise(SCOPE, normalise("Bob joined the team."))
    drawn = await engine.extract_world(SCOPE, extract("Bob joined the team."))
    await engine.aclose()
    assert said.value.narrative
    assert drawn.value.facts
    assert drawn.receipt.calls == 2, "the refusal is replayed as well"
    assert drawn.receipt.tokens_in > 0


async def test_an_unknown_request_names_itself_and_no_text(tmp_path: Path) -> None:
    file = tmp_path / "cassette.jsonl"
    await recorded(file)
    engine = replaying(file, max_attempts=4)
    with pytest.raises(UnknownRecording) as told:
        await engine.normalise(SCOPE, normalise("Canary joined the team."))
    await engine.aclose()
    assert isinstance(told.value, ModelMisconfigured), "asked again it is not known either"
    message = str(told.value)
    assert "normalise 1 for test-medium" in message
    assert "cassette.jsonl" in message
    assert "Canary" not in message
    asked = [one["key"] for one in Cassette(file).exchanges]
    assert not [key for key in asked if key in message]
    assert told.value.receipt is not None
    assert told.value.receipt.calls == 1


async def test_recording_goes_on_where_it_stopped_and_keeps_the_first_answer(tmp_path: Path) -> None:
    file = tmp_path / "cassette.jsonl"
    calls = await recorded(file)
    before = file.read_bytes()
    assert await recorded(file) == 0, "what is known is not asked again"
    assert file.read_bytes() == before
    assert len(Cassette(file).exchanges) == calls == 2


async def test_what_passes_is_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "cassette.jsonl"
    down = [Rule("", "", reply, 1) for reply in (replies.failing(503), replies.rate_limited(0))]
    page = Rule("", "", replies.Reply(body=b"<html>busy</html>"), 1)
    with ModelServer(*down, page, Rule("", "", OK)) as server:
        async with engine_on(server, cassette=file, cassette_mode="record", max_attempts=4) as engine:
            await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert [one["status"] for one in Cassette(file).exchanges] == [200]


async def test_vectors_are_recorded_too(tmp_path: Path) -> None:
    file = tmp_path / "cassette.jsonl"
    with ModelServer() as server:
        settings = server.embedding_settings(cassette=file, cassette_mode="record", batch_size=2)
        embedder = OpenAIEmbedder(settings)
        vectors = await embedder.passages(["one", "two", "three"])
        await embedder.aclose()
    away = {"base_url": NOBODY, "cassette_mode": "replay"}
    again = OpenAIEmbedder(EmbeddingSettings.model_validate(settings.model_dump() | away))
    assert (await again.passages(["one", "two", "three"]) == vectors).all()
    await again.aclose()


async def test_without_a_cassette_an_endpoint_that_is_away_is_unavailable() -> None:
    engine = replaying(Path("none"), cassette=None)
    with pytest.raises(ModelUnavailable):
        await engine.normalise(SCOPE, normalise("Bob joined the team."))
    await engine.aclose()


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"status": 200}', "7"])
def test_a_file_that_is_no_cassette_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cassette.jsonl"
    file.write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(BadCassette, match="line 1"):
        Cassette(file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.booleans())
def test_a_key_is_of_what_is_asked_not_of_how_it_is_written(body: Any, ascii_only: bool) -> None:
    again = json.loads(json.dumps(body, ensure_ascii=ascii_only, indent=2))
    assert key_of("/chat", again) == key_of("/chat", body)
    assert key_of("/chat", [body]) != key_of("/chat", body) != key_of("/embeddings", body)


def test_keys_do_not_depend_on_the_order_of_fields() -> None:
    assert key_of("/c", {"a": 1, "b": [1, 2]}) == key_of("/c", {"b": [1, 2], "a": 1})
    assert key_of("/c", {"a": [1, 2]}) != key_of("/c", {"a": [2, 1]})
