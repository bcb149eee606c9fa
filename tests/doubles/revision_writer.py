"""A process of writers that each publish one revision of a graph, racing those of other processes.

Run: python -m tests.doubles.revision_writer DATABASE-URL TENANT GRAPH NAME WRITERS
"""

import asyncio
import sys

from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.errors import WriteConflict
from services.stores.memory.port import RevisionLog
from services.stores.memory.sql import SqlMemory
from services.stores.sql.engine import engine_for


async def publish_one(log: RevisionLog, scope: Scope, commit_id: str) -> None:
    """Does as every writer must: tries until its revision is begun, completing what others left begun."""
    while True:
        after = await log.current(scope)
        try:
            mine = await log.begin(scope, after, commit_id, Instant(1), commit_id.encode(), commit_id)
        except WriteConflict:
            left = await log.pending(scope)
            if left is not None:
                await log.publish(scope, left.revision)
        else:
            await log.publish(scope, mine.revision)
            return


async def main(url: str, tenant: str, graph: str, name: str, writers: str) -> None:
    memory = await SqlMemory.open(engine_for(url))
    scope = Scope(TenantId(tenant), GraphId(graph))
    try:
        commits = [f"{name}-{number}" for number in range(int(writers))]
        await asyncio.gather(*(publish_one(memory.revisions, scope, commit) for commit in commits))
    finally:
        await memory.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
