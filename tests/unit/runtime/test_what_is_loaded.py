"""A replica loads what it runs: settings are read without the clients of stores and models."""

import subprocess
import sys

import pytest

HEAVY = {"pymilvus", "pandas", "sqlalchemy", "nebula3", "openai", "ray", "spacy", "dbos"}


@pytest.mark.parametrize("module", ["services.runtime.settings", "services.runtime.catalogue", "palimpsest"])
def test_a_module_loads_no_client_of_a_store_or_model(module: str) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & HEAVY
