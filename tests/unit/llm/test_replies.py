"""Replies of models: what is found in messy text, and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from services.llm.replies import json_values, read_model, strict_schema, without_thoughts


class Item(BaseModel):
    number: int
    word: str = ""


class Output(BaseModel):
    items: list[Item]


VALUES = st.dictionaries(st.text(max_size=5), st.recursive(st.integers() | st.text(), st.lists, max_leaves=8))
PROSE = st.text('abc {}[]",:\n', max_size=40)


@given(VALUES)
def test_json_is_read_as_it_is(value: dict[str, object]) -> None:
    assert list(json_values(json.dumps(value))) == [value]


@given(
    st.lists(st.integers(0, 9), min_size=1), PROSE.map(lambda text: text.replace("{", "").replace("[", ""))
)
def test_an_answer_is_found_behind_prose_and_in_fences(numbers: list[int], prose: str) -> None:
    value = {"items": [{"number": number, "word": ""} for number in numbers]}
    prose = prose.replace('"', "")
    for text in (
        f"{prose} {json.dumps(value)} {prose}",
        f"{prose}\n```json\n{json.dumps(value)}\n```\n{prose}",
    ):
        assert read_model(Output, text).value == Output.model_validate(value)


@given(st.text(max_size=200) | PROSE)
def test_any_text_is_read_without_an_error(text: str) -> None:
    read_model(Output, text)
    without_thoughts(text)


def test_a_draft_in_the_reasoning_is_not_the_answer() -> None:
    draft, final = '{"items": [{"number": 1}]}', '{"items": [{"number": 2}]}'
    for text in (f"<think>{draft}</think>{final}", f"{draft}</think>{final}", f"{final}\n<think>{draft}"):
        assert read_model(Output, text).value == Output(items=[Item(number=2)])


def test_of_several_objects_the_last_that_fits_counts() -> None:
    text = '{"items": [{"number": 1}]} No, rather {"items": [{"number": 2}]}, as in {"example": true}.'
    assert read_model(Output, text).value == Output(items=[Item(number=2)])


def test_a_bare_list_is_the_only_list() -> None:
    assert read_model(Output, '[{"number": 1}]').value == Output(items=[Item(number=1)])


def test_a_trailing_comma_is_forgiven_outside_of_strings() -> None:
    read = read_model(Output, '{"items": [{"number": 1, "word": "a,]"},],}')
    assert read.value == Output(items=[Item(number=1, word="a,]")])


@pytest.mark.parametrize("end", range(1, 40))
def test_what_was_cut_off_is_never_completed(end: int) -> None:
    whole = '{"items": [{"number": 1}, {"number": 2}]}'
    read = read_model(Output, whole[:end])
    assert read.value is None
    assert read.problems


def test_elements_that_do_not_fit_are_left_out_and_named() -> None:
    read = read_model(Output, '{"items": [{"number": 1}, {"word": "x"}, {"number": "many"}, {"number": 4}]}')
    assert read.value == Output(items=[Item(number=1), Item(number=4)])
    assert [problem.split(":")[0] for problem in read.problems] == ["items[1].number", "items[2].number"]


@pytest.mark.parametrize(
    "text", ["", "no", '{"facts": []}', '{"items": 3}', "null", '"items"', "NaN", "[NaN]"]
)
def test_another_shape_is_refused_with_a_reason(text: str) -> None:
    read = read_model(Output, text)
    assert read.value is None
    assert read.problems


def test_problems_do_not_repeat_the_reply() -> None:
    read = read_model(Output, '{"items": [{"number": "SECRET"}]}')
    assert "SECRET" not in str(read.problems)


def test_deep_nesting_and_noise_cost_little() -> None:
    assert read_model(Output, "[" * 100_000).value is None
    assert read_model(Output, "{[ 1, 2 " * 50_000).value is None


def test_strict_schemas_require_every_key_and_allow_no_other() -> None:
    schema = strict_schema(Output)
    item = schema["$defs"]["Item"]
    assert schema["additionalProperties"] is item["additionalProperties"] is False
    assert item["required"] == ["number", "word"]
    assert "default" not in json.dumps(schema)


def test_prose_of_real_models_is_never_taken_for_an_answer(shared: Path) -> None:
    lines = (shared / "data/model-replies/replies.jsonl").read_text("utf-8").splitlines()
    replies = [json.loads(line)["response"] for line in lines]
    assert len(replies) > 900
    assert not [reply for reply in replies if read_model(Output, reply).value is not None]
