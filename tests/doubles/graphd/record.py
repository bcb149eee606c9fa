"""Records what a real server answers to the scenarios: the golden data that the double is held to.

By hand: `PALIMPSEST_TEST_NEBULA=host:port python -m tests.doubles.graphd.record [scenario …]`. A space of
that server is dropped and made anew for each scenario.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict

from tests.doubles.graphd.client import Answer, Client, Step
from tests.doubles.graphd.scenarios import OPENING, cluster_dependent, scenarios
from tests.fixtures_graphd import REAL_SERVER
from tests.machine import ROOT

GOLDEN = ROOT / "tests" / "golden" / "nebula"
_PROPAGATION_SECONDS = 4.0
"""Two heartbeats of a server that has one a second, and as much again."""


def main(names: list[str]) -> int:
    address = os.environ[REAL_SERVER]
    for name, steps in scenarios().items():
        if not names or name in names:
            with Client(address) as client:
                recorded = [_told(step, answer) for step, answer in _play(client, steps)]
            text = json.dumps({"steps": recorded}, ensure_ascii=False, indent=1)
            (GOLDEN / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
            sys.stdout.write(f"{name}: {len(recorded)} steps\n")
    return 0


def _play(client: Client, steps: tuple[Step, ...]) -> Iterator[tuple[Step, Answer]]:
    for step in OPENING:
        opened = client.take(step)
        while opened.code and step.statement.startswith("USE"):
            time.sleep(0.2)
            opened = client.take(step)
    declared = True
    for step in steps:
        if declared and not step.statement.startswith(("CREATE", "DESCRIBE", "SHOW")):
            time.sleep(_PROPAGATION_SECONDS)
            declared = False
        yield step, client.take(step)


def _told(step: Step, answer: Answer) -> dict[str, object]:
    rows = [] if cluster_dependent(step.statement) else answer.rows
    return {**asdict(step), **asdict(answer), "rows": rows}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
