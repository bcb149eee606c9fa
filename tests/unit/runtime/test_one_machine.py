"""Staying on one machine: addresses, the handover of settings, HAProxy's configuration."""

import stat
import subprocess
from itertools import count
from pathlib import Path

import pytest
from pydantic import SecretStr

from services.llm.settings import ModelSettings
from services.runtime import haproxy
from services.runtime.handover import hand_over, taken_over
from services.runtime.loopback import on_loopback
from services.runtime.names import ServiceName
from services.runtime.ray_settings import RaySettings
from services.runtime.settings import ServiceSettings


@pytest.mark.parametrize("anywhere", ["[::]:80", "0.0.0.0:80", "*:80", ":80"])
def test_an_address_that_is_everywhere_becomes_loopback(anywhere: str) -> None:
    assert on_loopback(anywhere) == "127.0.0.1:80"


@pytest.mark.parametrize("named", ["127.0.0.1:80", "10.1.2.3:80", "[::1]:80", "unix:/run/x:0"])
def test_an_address_that_names_an_interface_stays(named: str) -> None:
    assert on_loopback(named) == named


def test_settings_are_handed_over_whole_to_their_user_alone(tmp_path: Path) -> None:
    settings = ServiceSettings(
        data_dir=tmp_path,
        vectors_token=SecretStr("root:Milvus"),
        engine="openai",
        model=ModelSettings(
            base_url="http://127.0.0.1:1/v1", api_key=SecretStr("sk-1"), medium_model="m", max_attempts=7
        ),
        assertion_secret=SecretStr("0123456789abcdef"),
    )
    file = hand_over(settings, tmp_path / "run")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert taken_over(str(file)) == settings


def test_a_handover_beats_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = hand_over(ServiceSettings(data_dir=tmp_path, vectors_uri="http://127.0.0.1:1"), tmp_path)
    monkeypatch.setenv("PALIMPSEST_VECTORS_URI", "http://127.0.0.1:2")
    assert taken_over(str(file)).vectors_uri == "http://127.0.0.1:1"
    assert taken_over("").vectors_uri == "http://127.0.0.1:2"


@pytest.mark.parametrize(
    ("address", "here"),
    [("", True), ("127.0.0.1:6379", True), ("localhost:6379", True), ("10.0.0.7:6379", False)],
)
def test_only_a_cluster_on_other_machines_is_left_open_and_sets_its_own_settings(
    address: str, here: bool
) -> None:
    settings = RaySettings(address=address)
    assert settings.on_loopback is here
    assert settings.replicas_have_settings is not here


def test_a_cluster_of_its_own_starts_one_replica_of_each() -> None:
    assert {RaySettings().scale_of(name).min_replicas for name in ServiceName} == {1}
    assert RaySettings(address="10.0.0.7:6379").scale_of(ServiceName.RECALL).min_replicas == 2


def test_haproxy_is_given_a_configuration_on_loopback(tmp_path: Path) -> None:
    ports = count(5000)
    told = haproxy.environment(tmp_path, True, lambda: next(ports))
    config = tmp_path / "haproxy.cfg"
    config.write_text(
        "frontend f\n    bind 127.0.0.1:1\nfrontend p\n    bind :2\nlisten s\n  bind *:3\n  bind [::]:4 x\n"
    )
    program = told["RAY_SERVE_HAPROXY_BINARY_PATH"]
    # Checks the configuration and ends: it is the real one that is started.
    done = subprocess.run(
        [program, "-db", "-f", str(config), "-c"], capture_output=True, text=True, check=False
    )
    assert "HAProxy" in done.stderr + done.stdout or "haproxy" in done.stderr + done.stdout
    bound = [line.split()[1] for line in config.read_text().splitlines() if "bind" in line]
    assert bound == ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"]
    assert len({told[name] for name in told if name.endswith("_PORT")}) == 4
