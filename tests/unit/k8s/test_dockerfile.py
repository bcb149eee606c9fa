"""The image's Dockerfile parses, keeps hadolint's rules and ours. It is not built: that needs a daemon."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings import GatewaySettings

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def told(text: str) -> str:
    """What hadolint and our rules say; empty when nothing."""
    linter = Path(sys.executable).with_name("hadolint")
    run = subprocess.run([linter, "--no-color", "-"], input=text, capture_output=True, text=True, check=False)
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    users = [line[1] for line in lines if line[0] == "USER"]
    bases = [line[1] for line in lines if line[0] == "FROM"]
    found = [run.stdout + run.stderr]
    if not users or users[-1].partition(":")[0] in {"0", "root"}:
        found.append("runs as root")
    if any(base != "${PYTHON}" for base in bases) or "ARG PYTHON\n" not in text:
        found.append("a base that is not given by digest")
    if "--require-hashes" not in text:
        found.append("packages that no hash pins")
    if len(bases) < 2:
        found.append("what builds stays in the image")
    return "".join(found)


def test_it_has_no_fault() -> None:
    assert told(DOCKERFILE) == ""


@pytest.mark.parametrize(
    "mistake",
    [
        lambda text: text.replace("USER 10001:10001\n", ""),
        lambda text: text.replace("USER 10001:10001", "USER root"),
        lambda text: text.replace("FROM ${PYTHON} AS run", "FROM python:latest AS run"),
        lambda text: text.replace("--require-hashes ", ""),
        lambda text: text.replace("COPY gateway gateway", "ADD gateway gateway"),
        lambda text: text.replace("WORKDIR /data", "WORKDIR data"),
        lambda text: text.replace("COPY gateway", "COPI gateway"),
    ],
)
def test_a_mistake_is_found(mistake: Callable[[str], str]) -> None:
    wrong = mistake(DOCKERFILE)
    assert wrong != DOCKERFILE
    assert told(wrong)


def test_what_it_copies_is_there_and_not_left_out() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[0] == "!"}
    copied = {
        name
        for line in DOCKERFILE.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for name in line.split()[1:-1]
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_its_packages_are_those_that_are_tested() -> None:
    servers, every = (
        {line.partition(" ")[0] for line in (ROOT / name).read_text("utf-8").splitlines() if "==" in line}
        for name in ("constraints-server.txt", "constraints.txt")
    )
    assert servers
    assert servers <= every


def test_its_port_is_the_gateways() -> None:
    assert f"EXPOSE {GatewaySettings().gateway_port}" in DOCKERFILE
