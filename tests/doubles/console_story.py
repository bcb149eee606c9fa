"""Something to look at: the texts that the demo ships, told to a server without the demo's prints."""

import io

from rich.console import Console

from gateway.demo import changes, conversation, handbook, money
from gateway.demo.stage import Stage, said
from palimpsest.connection import Connection, new_request_id
from palimpsest.v1 import entity_pb2, memory_ingest_pb2

GRAPHS = (conversation.GRAPH, changes.GRAPH, handbook.GRAPH)
WAVERING = ("MySQL 8.0", "PostgreSQL 16", "MySQL 8.0")
"""What the primary database of Mirror is said to be, a month apart."""


async def tell(connection: Connection) -> None:
    """Everything: the conversation, facts that change, both versions of the handbook, a slot that wavers."""
    stage = Stage(connection, Console(file=io.StringIO()))
    await conversation.play(stage, conversation.shipped())
    await handbook.play(stage)
    await changes.play(stage)
    await money.play(stage)
    for month, database in enumerate(WAVERING, start=1):
        await stage.add(
            said(changes.GRAPH, f"The primary database of Mirror is {database}.", f"2026-0{month}-15")
        )
    assert not stage.broken, stage.broken


async def employ(connection: Connection, graph: str, *jobs: tuple[str, str, str]) -> list[int]:
    """Records (person, employer, since) as triples, one call each; returns the revisions that hold them."""
    revisions = []
    for person, employer, since in jobs:
        request = memory_ingest_pb2.AssertTriplesRequest(graph_id=graph, request_id=new_request_id())
        claim = request.claims.add(
            subject=entity_pb2.EntityRef(name=person, type=entity_pb2.ENTITY_TYPE_PERSON),
            predicate="works_at",
            object=entity_pb2.ObjectRef(
                entity=entity_pb2.EntityRef(name=employer, type=entity_pb2.ENTITY_TYPE_ORGANIZATION)
            ),
        )
        claim.valid_at.FromJsonString(f"{since}T00:00:00Z")
        claim.reference_time.FromJsonString(f"{since}T12:00:00Z")
        answer = await connection.call(connection.memory.AssertTriples, request)
        revisions.append(answer.revision)
    return revisions
