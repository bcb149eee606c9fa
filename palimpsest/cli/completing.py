"""What a shell completes besides commands, options and choices: names of graphs, as the server has them."""

import asyncio
import os

from palimpsest import local
from palimpsest.client import Client, Patience
from palimpsest.errors import CallError
from palimpsest.tls import Tls, TlsUnusable
from palimpsest.v1 import graph_pb2

SECONDS = 2.0
"""Who waits for a completion waits no longer."""
MOST = 1_000


def graphs(incomplete: str) -> list[str]:
    """Graphs whose names begin so; none without a server or a key, as a prompt is no place for errors."""
    try:
        return [name for name in asyncio.run(_names()) if name.startswith(incomplete)]
    except (CallError, TlsUnusable):
        return []


async def _names() -> list[str]:
    target, key = (os.environ.get(f"PALIMPSEST_{name}", "") for name in ("TARGET", "KEY"))
    patience = Patience(attempts=1)
    async with Client(
        local.find(target)[0], key, Tls.of(), timeout_seconds=SECONDS, patience=patience
    ) as client:
        request = graph_pb2.ListGraphsRequest(page_size=MOST)
        return [graph.graph_id for graph in (await client.call(client.graphs.ListGraphs, request)).graphs]
