"""Logs tell what went wrong and where, and nothing of what was carried."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from gateway.logs import log_to
from services.runtime.assertion import Signer
from services.runtime.resources import clock
from services.stores.errors import StoreUnavailable


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Gives the root logger and structlog back as they were."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def fails(text: str) -> None:
    raise ValueError(f"a text of {len(text)} characters")


def test_an_exception_is_told_without_the_variables_of_its_frames(tmp_path: Path) -> None:
    file = log_to(tmp_path / "logs")
    said = "my cat is called Miso"
    try:
        fails(said)
    except ValueError:
        structlog.get_logger("test").exception("step failed", step="extract")
    line = json.loads(file.read_text(encoding="utf-8"))
    assert (line["event"], line["step"], line["level"]) == ("step failed", "extract", "error")
    (told,) = line["exception"]
    assert told["exc_type"] == "ValueError"
    assert told["frames"][-1]["name"] == "fails"
    assert said not in file.read_text(encoding="utf-8")


def test_the_text_of_a_librarys_exception_is_left_out_however_deep(tmp_path: Path) -> None:
    file = log_to(tmp_path / "logs")
    said = "my cat is called Miso"
    try:
        try:
            raise LookupError(said)
        except LookupError as error:
            inner = ExceptionGroup(said, [ValueError(said), StoreUnavailable("graph")])
            inner.add_note(said)
            raise inner from error
    except ExceptionGroup:
        structlog.get_logger("test").exception("step failed")
    text = file.read_text(encoding="utf-8")
    assert said not in text
    assert all(name in text for name in ("StoreUnavailable", "LookupError", "ValueError"))
    ours = StoreUnavailable("graph")
    structlog.get_logger("test").error("step failed", exc_info=ours)
    assert str(ours) in file.read_text(encoding="utf-8")


def test_logs_of_libraries_are_json_too(tmp_path: Path) -> None:
    file = log_to(tmp_path / "logs")
    logging.getLogger("library").warning("slow %s", "query")
    assert json.loads(file.read_text(encoding="utf-8"))["event"] == "slow query"


def test_a_signer_does_not_show_its_secret() -> None:
    assert "0123456789abcdef" not in repr(Signer(b"0123456789abcdef", clock))
