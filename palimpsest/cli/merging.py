"""`entity merge` and `entity split`."""

from typing import Annotated

import typer
from rich.console import RenderableType

from palimpsest.cli import words
from palimpsest.cli.facts import GraphId
from palimpsest.cli.operating import RequestId
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import memory_entities_pb2

Reason = Annotated[str, typer.Option(help="Why, for the audit log.")]


def add_to(entities: typer.Typer) -> None:
    """Adds both to the commands about entities."""
    command(entities, "merge")(merge)
    command(entities, "split")(split)


async def merge(
    shell: Shell,
    graph: GraphId,
    into: Annotated[str, typer.Argument(metavar="INTO", help="Id of the entity that the others read as.")],
    entities: Annotated[list[str], typer.Argument(metavar="ENTITY...", help="Ids of the others.")],
    reason: Reason = "",
    request_id: RequestId = "",
) -> None:
    """Makes entities read as another from now on. Nothing is moved: `entity split` undoes it."""
    request = memory_entities_pb2.MergeEntitiesRequest(
        graph_id=graph,
        into_entity_id=into,
        entity_ids=entities,
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.memory.MergeEntities, request)
    shell.show(response, merged)


def merged(response: memory_entities_pb2.MergeEntitiesResponse) -> RenderableType:
    entity = response.entity
    return words.pairs(
        [
            ("reads as", entity.name),
            ("entity", entity.entity_id),
            ("also", ", ".join(entity.aliases)),
            ("merged into it", ", ".join(entity.merged_entity_ids)),
            ("revision", str(response.revision)),
        ]
    )


async def split(
    shell: Shell,
    graph: GraphId,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="Id of the merged entity.")],
    reason: Reason = "",
    request_id: RequestId = "",
) -> None:
    """Makes a merged entity read as itself again, and keeps it apart from what it read as."""
    request = memory_entities_pb2.SplitEntityRequest(
        graph_id=graph, entity_id=entity, reason=reason, request_id=request_id or new_request_id()
    )
    response = await shell.connection.call(shell.connection.memory.SplitEntity, request)
    shell.show(response, parted)


def parted(response: memory_entities_pb2.SplitEntityResponse) -> RenderableType:
    return words.pairs(
        [
            ("reads as itself", response.entity.name),
            ("entity", response.entity.entity_id),
            ("read before as", f"{response.former_entity.name} ({response.former_entity.entity_id})"),
            ("revision", str(response.revision)),
        ]
    )
