"""An archive: only its owner can read it, and what can't be written is told as the archive's error."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.upkeep.archive import ArchiveIn, ArchiveOut, ArchiveUnwritable, Manifest


@pytest.fixture
def careless_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def manifest_of(archive: ArchiveOut) -> Manifest:
    return Manifest(0, "test", "none", 1, False, (), archive.files)


@pytest.mark.usefixtures("careless_umask")
def test_whatever_the_umask_nobody_else_reads_what_it_holds(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    with ArchiveOut(folder) as archive:
        archive.write("graphs/a/entities.jsonl", b"{}")
        during = (folder / "graphs/a/entities.jsonl").stat().st_mode & 0o777
        archive.finish(manifest_of(archive))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["entities.jsonl", "manifest.json"]
    assert {during, *(path.stat().st_mode & 0o777 for path in files)} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(ArchiveIn(folder).lines("graphs/a/entities.jsonl")) == [b"{}"]


def test_what_cannot_be_written_is_no_error_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArchiveUnwritable):
        ArchiveOut(tmp_path / "file" / "backup")
    with ArchiveOut(tmp_path / "backup") as archive:
        archive.write("one", b"")
        with pytest.raises(ArchiveUnwritable):
            archive.write("one/below", b"")
