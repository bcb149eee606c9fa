"""A scripted server, and the command line in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from palimpsest.cli.app import app
from tests.unit.cli.serving import Scripted, serving

Run = Callable[..., Result]

_BUILT = typer.main.get_command(app)


class _Once(TyperGroup):
    """Runs the program's commands, which were built already: the runner would build all for each run."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        return _BUILT.main(*arguments, **options)


_program = typer.Typer(cls=_Once, add_completion=False)
_program.callback()(lambda: None)


@pytest.fixture(scope="module")
def one_server() -> Iterator[Scripted]:
    with serving() as scripted:
        yield scripted


@pytest.fixture
def server(one_server: Scripted) -> Scripted:
    """A server on loopback; give it answers by `server.answers(rpc, …)`."""
    one_server.script.clear()
    one_server.asked.clear()
    one_server.keys.clear()
    return one_server


@pytest.fixture
def run(server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `palimpsest …` in an empty folder, against the scripted server, with a key."""
    monkeypatch.chdir(tmp_path)
    settings = {"PALIMPSEST_TARGET": server.target, "PALIMPSEST_KEY": "pk_test", "COLUMNS": "160"}
    for name in ("PALIMPSEST_OPERATOR_KEY", "PALIMPSEST_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    def invoke(*arguments: str, stdin: bytes | None = None, **environment: str) -> Result:
        return CliRunner().invoke(
            _program, arguments, input=stdin, env=settings | environment, prog_name="palimpsest"
        )

    return invoke
