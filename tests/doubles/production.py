"""Production's stores on this machine: PostgreSQL, the real Milvus server, graphd (a real one or its double).

Run as a module it starts them on loopback, prints one JSON object with the settings by which the product
finds them, and stops them when its standard input closes: `python -m tests.doubles.production`.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import psycopg

from tests.doubles.graphd import Graphd
from tests.doubles.milvus_server import MilvusServer, why_not
from tests.doubles.postgres_server import SERVER_ROLE, PostgresServer, as_server
from tests.fixtures_graphd import REAL_SERVER
from tests.machine import postgres_programs

PARTITIONS = 4
"""Of the space: one machine has one disk."""


class Lacking(Exception):
    """Something that these stores need is not on this machine."""


@dataclass(frozen=True, slots=True)
class Production:
    """The settings of a server, those by which its owner prepares the databases, and what all of it is."""

    server: Mapping[str, str]
    owner: Mapping[str, str]
    role: str
    told: Mapping[str, str]


def start(stack: ExitStack) -> Production:
    """Starts the three; `stack` stops them and removes their data. Raises Lacking."""
    programs = postgres_programs()
    if programs is None:
        raise Lacking("PostgreSQL's server programs are not installed (see `make doctor`)")
    if (reason := why_not()) is not None:
        raise Lacking(f"the Milvus server can't run: {reason}")
    url = _postgres(programs, stack)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="palimpsest-milvus-")))
    milvus = MilvusServer.start(folder)
    stack.callback(milvus.kill)  # nobody wants its data
    real = os.environ.get(REAL_SERVER)
    kind = "a real cluster" if real else "a double of its graphd, not the real one"
    graphd = real or stack.enter_context(Graphd()).address
    others = {
        "PALIMPSEST_VECTORS_URI": milvus.uri,
        "PALIMPSEST_GRAPH": "nebula",
        "PALIMPSEST_NEBULA__ADDRESSES": graphd,
        "PALIMPSEST_NEBULA__SPACE": f"demo_{uuid4().hex[:12]}",
        "PALIMPSEST_NEBULA__PARTITIONS": str(PARTITIONS),
    }
    return Production(
        server=_databases(as_server(url)) | others,
        owner=_databases(url) | others,
        role=SERVER_ROLE,
        told={
            "PostgreSQL": f"{url.rpartition('@')[2]}, by a role that owns nothing",
            "Milvus": f"{milvus.uri}, the real server",
            "NebulaGraph": f"{graphd}, {kind}",
        },
    )


def _postgres(programs: Path, stack: ExitStack) -> str:
    server = PostgresServer(programs)
    server.start()
    stack.callback(server.stop)
    url = stack.enter_context(server.database())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {SERVER_ROLE} LOGIN")
    return url


def _databases(url: str) -> dict[str, str]:
    names = ("LEDGER", "JOBS", "WORKFLOWS", "MEMORY", "GRAPH")
    return {f"PALIMPSEST_{name}_URL": url for name in names}


def main() -> int:
    with ExitStack() as stack:
        try:
            started = start(stack)
        except Lacking as error:
            sys.stderr.write(f"{error}\n")
            return 1
        sys.stdout.write(json.dumps(asdict(started)) + "\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
