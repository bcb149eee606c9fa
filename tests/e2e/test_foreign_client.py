"""A client written against the protos alone, in another process: it adds an episode, watches, recalls."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from grpc_tools import protoc

from scripts.protos import SOURCES, VALIDATE, sources, third_party
from tests.e2e.up_process import UpProcess

pytestmark = pytest.mark.milvus

CLIENT = Path(__file__).with_name("foreign_client.py")


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python stubs of the public protos, made by protoc as any client would make them."""
    folder = tmp_path_factory.mktemp("stubs")
    foreign = folder / "third_party.binpb"
    foreign.write_bytes(third_party().SerializeToString())
    public = [name for name in sources() if "/internal/" not in name]
    arguments = [
        "protoc",
        f"--descriptor_set_in={foreign}",
        f"--proto_path={SOURCES}",
        f"--python_out={folder}",
        f"--grpc_python_out={folder}",
    ]
    assert protoc.main([*arguments, *public]) == 0
    assert protoc.main([arguments[0], arguments[1], f"--python_out={folder}", VALIDATE]) == 0
    for package in ("palimpsest", "palimpsest/v1", "buf", "buf/validate"):
        (folder / package / "__init__.py").touch()
    return folder


def run(stubs: Path, target: str, key: str, text: str, question: str) -> dict[str, Any]:
    """Runs the client where nothing of ours but its own file and the stubs can be imported."""
    script = stubs / CLIENT.name
    script.write_text(CLIENT.read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), target, text, question],
        cwd=stubs,
        env={"PATH": "", "FOREIGN_KEY": key},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_it_adds_an_episode_watches_its_job_and_recalls(running: UpProcess, stubs: Path) -> None:
    tenant = running.tenant()
    told = run(stubs, running.target, tenant.key, "I moved to New York last January.", "Where do I live?")
    assert Path(told["stubs"]).is_relative_to(stubs)
    assert told["ours"] == []
    assert told["states"][-1] == "JOB_STATE_SUCCEEDED"
    assert set(told["states"][:-1]) <= {"JOB_STATE_QUEUED", "JOB_STATE_RUNNING"}
    assert told["stages"][-1] == "CHUNK_STAGE_RESOLVED"
    assert told["spent_micros"] > 0
    assert told["facts"] == [["User", "lives_in", "New York"]]
    assert "- (User) --[lives_in]--> (New York)  since 2026-01 [e1]" in told["context"]
