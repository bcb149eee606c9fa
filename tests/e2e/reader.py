"""A reader who types what a page says, block by block, in one folder and one terminal."""

import contextlib
import io
import os
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.up_process import UpProcess, clean_environment, program
from tests.pages import RUNNABLE, Block, Page, shows

_ENVIRONMENT = "environment-of-the-reader"


class Reader:
    """What one block exports, writes or binds, the next ones find.

    Console blocks run in bash, as in a terminal that stops at the first failure. Python blocks run in this
    process, all in one namespace, as in one session of Python.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.printed: dict[int, str] = {}
        """What each block has printed, by its line."""
        self._names: dict[str, Any] = {"__name__": "__main__"}

    def read(self, page: Page, languages: Collection[str] = RUNNABLE) -> None:
        """Runs the page's examples in their order. Fails where one fails or prints what it does not show."""
        for block in page.blocks:
            if block.runs and block.language in languages:
                printed = self.python(block) if block.language == "python" else self.console(block.text)
                self.printed[block.line] = printed
                if block.output is not None:
                    assert shows(block.output, printed), f"{block} printed:\n{printed}"

    def console(self, commands: str) -> str:
        """What commands print. Fails with what they say when one fails."""
        script = f"{commands}\nenv -0 > {_ENVIRONMENT}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        kept = (self.folder / _ENVIRONMENT).read_text("utf-8").split("\0")
        self.environment = dict(pair.split("=", 1) for pair in kept if pair)
        return done.stdout

    def python(self, block: Block) -> str:
        """What a block prints."""
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                if name.startswith("PALIMPSEST_"):
                    patch.setenv(name, value)
            exec(compile(block.text, str(block), "exec"), self._names)
        return printed.getvalue()


def terminal(server: UpProcess) -> dict[str, str]:
    """What a terminal beside a running product has: its programs, and where it is."""
    clean = clean_environment(
        {"PALIMPSEST_DATA_DIR": str(server.data_dir), "PALIMPSEST_TARGET": server.target}
    )
    return clean | {"PATH": f"{Path(program('palimpsest')).parent}{os.pathsep}{clean['PATH']}"}
