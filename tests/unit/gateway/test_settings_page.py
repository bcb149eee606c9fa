"""docs/configuration.md is the settings models, read; what is printed holds no secret."""

from typing import Literal

import pytest
from pydantic import BaseModel, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from gateway.configured import BadSettings, read_settings
from gateway.settings import GatewaySettings
from gateway.settings_page import PROCESSES, Setting, in_use, page, settings_of
from services.runtime.settings import ServiceSettings
from tests.machine import ROOT


class Inner(BaseModel):
    name: str = Field(min_length=1)
    token: SecretStr = SecretStr("")


class Outer(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="X_", env_nested_delimiter="__", use_attribute_docstrings=True
    )

    mode: Literal["a", "b"] = "a"
    """How."""
    wait_seconds: float = Field(default=1.5, gt=0, le=9)
    """How
    long."""
    inner: Inner | None = None
    url: str = ""


def test_the_page_is_current() -> None:
    current = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert current == page(), "palimpsest-admin settings --markdown > docs/configuration.md"


def test_every_setting_says_what_it_is() -> None:
    silent = [
        setting.name for _, model in PROCESSES for setting in settings_of(model) if not setting.description
    ]
    assert not silent


def test_parts_of_settings_are_variables_of_their_own() -> None:
    assert settings_of(Outer) == [
        Setting("X_MODE", "`a` or `b`", "a", "How."),
        Setting("X_WAIT_SECONDS", "number, more than 0, at most 9", "1.5", "How long."),
        Setting("X_INNER__NAME", "text", None, ""),
        Setting("X_INNER__TOKEN", "secret", "", ""),
        Setting("X_URL", "text", "", ""),
    ]


def test_what_is_in_use_is_shown_without_secrets() -> None:
    outer = Outer(
        inner=Inner(name="n", token=SecretStr("hunter2")), url="postgresql://someone:hunter2@db/ledger"
    )
    shown = in_use([outer])
    assert shown["X_INNER__NAME"] == "n"
    assert shown["X_URL"] == "postgresql://someone:***@db/ledger"
    assert "hunter2" not in str(shown)


def test_the_names_that_are_documented_are_the_names_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    documented = {setting.name: setting for setting in settings_of(ServiceSettings)}
    assert "PALIMPSEST_LOCAL_EMBEDDER__WORKERS" in documented
    monkeypatch.setenv("PALIMPSEST_LOCAL_EMBEDDER__WORKERS", "7")
    assert in_use([ServiceSettings()])["PALIMPSEST_LOCAL_EMBEDDER__WORKERS"] == "7"


def test_bad_settings_are_told_by_variable_and_without_their_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_GATEWAY_PORT", "hunter2")
    monkeypatch.setenv("PALIMPSEST_DRAIN_SECONDS", "-1")
    with pytest.raises(BadSettings) as told:
        read_settings(GatewaySettings)
    lines = str(told.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "PALIMPSEST_GATEWAY_PORT",
        "PALIMPSEST_DRAIN_SECONDS",
    ]
    assert "hunter2" not in str(told.value)


def test_settings_that_do_not_go_together_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_ENGINE", "openai")
    with pytest.raises(BadSettings, match="PALIMPSEST_MODEL__BASE_URL"):
        read_settings(ServiceSettings)
