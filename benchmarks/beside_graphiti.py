"""Graphiti beside us on the same generated facts: milliseconds and CPU of a question, now and as of a date.

Both in one run on one machine: ours by the public API of the whole product, Graphiti's by its hybrid search
of facts (words and vectors, reciprocal rank fusion) on its embedded FalkorDB. That needs Python 3.12, so it
runs in a Python of its own:

    python3.12 -m venv graphiti && graphiti/bin/pip install graphiti-core falkordblite httpx

Run: python -m benchmarks.beside_graphiti --python graphiti/bin/python [--facts 5000] [--questions 100]
"""

import argparse
import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.filled import FACTS_A_PERSON, batches
from benchmarks.product import DIMENSION
from benchmarks.recall_latency import PAST, measure_public, quiet
from services.domain.graph import EntityType, Literal
from services.domain.scope import GraphId, Scope, TenantId

_NEEDS = ("graphiti_core", "redislite.async_falkordb_client")
_SIDE = Path(__file__).with_name("graphiti_side.py")


def _told(facts: int, questions: int) -> dict[str, Any]:
    """Facts, names and questions as Graphiti's side reads them; vectors are random, as ours are."""
    chance = np.random.default_rng(7)

    def vector() -> list[float]:
        row = chance.standard_normal(DIMENSION)
        return [round(float(one), 6) for one in row / np.linalg.norm(row)]

    names: dict[str, list[float]] = {}
    told: list[dict[str, Any]] = []
    for _, commit, _, _ in batches(Scope(TenantId("bench"), GraphId("big")), facts):
        nodes = {one.id: one for one in commit.entities}
        spans = {span.statement: span for span in commit.opened}
        for one in commit.statements:
            assert not isinstance(one.object, Literal), "generated facts are of two entities"
            ends = nodes[one.subject], nodes[one.object]
            for node in ends:
                assert node.type is not EntityType.PREDICATE
                names.setdefault(node.name, vector())
            told.append(
                {
                    "subject": ends[0].name,
                    "object": ends[1].name,
                    "predicate": nodes[one.predicate].name,
                    "fact": one.fact,
                    "vector": vector(),
                    "start": spans[one.id].valid_at,
                    "end": spans[one.id].invalid_at,
                }
            )
    people = max(1, facts // FACTS_A_PERSON)
    asked = [
        f"Which tool does Person {number % people} use, and where do they live?"
        for number in range(questions)
    ]
    return {
        "names": names,
        "facts": told,
        "questions": [{"text": text, "vector": vector()} for text in asked],
        "as_of": PAST,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the Python that has Graphiti")
    parser.add_argument("--facts", type=int, default=5_000)
    parser.add_argument("--questions", type=int, default=100)
    arguments = parser.parse_args()
    imports = [arguments.python, "-c", "; ".join(f"import {name}" for name in _NEEDS)]
    if subprocess.run(imports, capture_output=True, check=False).returncode:
        print(f"skipped: graphiti-core and falkordblite are not installed in {arguments.python}")
        return
    told = json.dumps(_told(arguments.facts, arguments.questions))
    run = subprocess.run(
        [arguments.python, str(_SIDE)], input=told, capture_output=True, text=True, check=False
    )
    if run.returncode:
        sys.exit(run.stderr)
    quiet()
    theirs = json.loads(run.stdout.splitlines()[-1])
    ours = asyncio.run(measure_public(arguments.facts, arguments.questions))
    print(f"{arguments.facts} facts; p50, p95 and CPU of a question, in milliseconds")
    for name, mine in ours.items():
        other = theirs[name]
        print(
            f"  {name:6} ours {mine.p50:7.1f} {mine.p95:7.1f} {mine.cpu:7.1f}   "
            f"Graphiti {other['p50']:7.1f} {other['p95']:7.1f} {other['cpu']:7.1f}   "
            f"p50 x {other['p50'] / mine.p50:.1f}, CPU x {other['cpu'] / mine.cpu:.1f}"
        )


if __name__ == "__main__":
    main()
