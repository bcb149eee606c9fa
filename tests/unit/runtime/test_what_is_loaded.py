"""A replica loads what it runs: settings are read without the clients of stores and models."""

import subprocess
import sys

import pytest

HEAVY = {"pymilvus", "pandas", "sqlalchemy", "nebula3", "openai", "ray", "spacy", "dbos"}


@pytest.mark.parametrize("module", ["services.runtime.settings", "services.runtime.catalogue", "palimpsest"])
def test_a_module_loads_no_client_of_a_store_or_model(module: str) -> None:
    assert not loaded_with(module) & HEAVY


def test_clients_of_what_settings_choose_are_loaded_when_it_is_opened() -> None:
    chosen = HEAVY - {"sqlalchemy", "nebula3"}
    assert not loaded_with("services.runtime.resources") & chosen


def loaded_with(module: str) -> set[str]:
    script = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
