"""Which stores a move writes to: those that a file of settings names otherwise than the ones in use."""

from pathlib import Path

import pytest

from gateway.admin_commands.move import others, target_settings
from gateway.configured import BadSettings
from services.runtime.settings import ServiceSettings
from services.upkeep.intake import EVERYTHING, Into

LINES = {
    "PALIMPSEST_GRAPH_URL=postgresql://x/y": {Into.GRAPH},
    "PALIMPSEST_MEMORY_URL=postgresql://x/y\nPALIMPSEST_GRAPH_URL=postgresql://x/y": {
        Into.GRAPH,
        Into.MEMORY,
    },
    "PALIMPSEST_VECTORS_URI=http://x:19530": {Into.VECTORS},
    "PALIMPSEST_GRAPH=nebula\nPALIMPSEST_NEBULA__ADDRESSES=x:9669": {Into.GRAPH},
    "PALIMPSEST_DATA_DIR=elsewhere": EVERYTHING,
    "PALIMPSEST_ENGINE=offline": set(),
    "PALIMPSEST_VECTORS_TOKEN=other": set(),
    "": set(),
}


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA_DIR", "GRAPH", "GRAPH_URL", "MEMORY_URL", "VECTORS_URI", "NEBULA__ADDRESSES"):
        monkeypatch.delenv(f"PALIMPSEST_{name}", raising=False)


def written(folder: Path, lines: str) -> Path:
    file = folder / "new.env"
    file.write_text(lines)
    return file


@pytest.mark.parametrize("lines", LINES)
def test_stores_that_are_named_otherwise_are_others(tmp_path: Path, lines: str) -> None:
    source = ServiceSettings(data_dir=tmp_path / "here")
    target = target_settings(source, written(tmp_path, lines))
    assert others(source, target) == LINES[lines]


def test_the_file_says_more_than_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_GRAPH_URL", "postgresql://x/old")
    monkeypatch.setenv("PALIMPSEST_DATA_DIR", str(tmp_path / "of the environment"))
    source = ServiceSettings(data_dir=tmp_path / "given")
    target = target_settings(source, written(tmp_path, "PALIMPSEST_GRAPH_URL=postgresql://x/new"))
    assert (target.graph_url, target.data_dir) == ("postgresql://x/new", tmp_path / "given")
    assert others(source, target) == {Into.GRAPH}
    unchanged = target_settings(source, written(tmp_path, ""))
    assert others(source, unchanged) == set()


def test_the_same_cluster_is_the_same_however_it_is_used(tmp_path: Path) -> None:
    lines = "PALIMPSEST_GRAPH=nebula\nPALIMPSEST_NEBULA__ADDRESSES=x:9669\n"
    source = ServiceSettings(data_dir=tmp_path)
    one = target_settings(source, written(tmp_path, lines))
    two = target_settings(source, written(tmp_path, f"{lines}PALIMPSEST_NEBULA__SESSIONS=3"))
    three = target_settings(source, written(tmp_path, f"{lines}PALIMPSEST_NEBULA__SPACE=another"))
    assert others(one, two) == set()
    assert others(one, three) == {Into.GRAPH}


def test_settings_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="PALIMPSEST_ENGINE"):
        target_settings(ServiceSettings(data_dir=tmp_path), written(tmp_path, "PALIMPSEST_ENGINE=other"))
