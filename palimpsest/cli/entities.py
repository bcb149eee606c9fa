"""`entity show` and `entity list`; what merges and splits is in merging.py."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import erasing, merging, words
from palimpsest.cli.dates import shown
from palimpsest.cli.facts import GraphId, KnownAt
from palimpsest.cli.pages import whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import entity_pb2, memory_entities_pb2

Named = Annotated[str, typer.Argument(metavar="ENTITY", help="A name of it, or with --id its id.")]
TYPES = {name.removeprefix("ENTITY_TYPE_").lower(): number for name, number in entity_pb2.EntityType.items()}


def read_type(text: str) -> entity_pb2.EntityType.ValueType:
    """A type by its name in any case. Raises typer.BadParameter."""
    number = TYPES.get(text.strip().lower())
    if not number:
        raise typer.BadParameter(f"{text!r} is no type; one of {', '.join(sorted(TYPES)[:-1])}")
    return number


def app() -> typer.Typer:
    entities = typer.Typer(no_args_is_help=True, help="Entities: what facts are about.")
    command(entities, "show")(show)
    command(entities, "list")(list_)
    merging.add_to(entities)
    erasing.add_to_entities(entities)
    return entities


async def show(
    shell: Shell,
    graph: GraphId,
    entity: Named,
    by_id: Annotated[bool, typer.Option("--id", help="ENTITY is an id.")] = False,
    kind: Annotated[
        int | None, typer.Option("--type", parser=read_type, metavar="TYPE", help="Which of several.")
    ] = None,
    known_at: KnownAt = None,
) -> None:
    """Shows an entity: its names, what reads as it, and how many facts that hold name it."""
    ref = entity_pb2.EntityRef(type=entity_pb2.EntityType.ValueType(kind or 0))
    if by_id:
        ref.entity_id = entity
    else:
        ref.name = entity
    request = memory_entities_pb2.GetEntityRequest(graph_id=graph, entity=ref, known_at=known_at)
    response = await shell.connection.call(shell.connection.memory.GetEntity, request)
    shell.show(response, lambda answer: entity_of(answer.entity))


def entity_of(entity: entity_pb2.Entity) -> RenderableType:
    revision = entity.created_revision
    return words.pairs(
        [
            ("name", entity.name),
            ("entity", entity.entity_id),
            ("type", type_of(entity)),
            ("also", ", ".join(entity.aliases)),
            ("reads as", entity.merged_into),
            ("merged into it", ", ".join(entity.merged_entity_ids)),
            ("facts that hold", f"{entity.statement_count:,}"),
            ("first known", f"{shown(entity.created_at)}, revision {revision.revision}"),
        ]
    )


def type_of(entity: entity_pb2.Entity) -> str:
    return words.word(entity_pb2.EntityType.Name, entity.type, "ENTITY_TYPE_") if entity.type else ""


async def list_(
    shell: Shell,
    graph: GraphId,
    prefix: Annotated[str, typer.Option(help="Only with a name that begins so.")] = "",
    kind: Annotated[
        list[int] | None,
        typer.Option("--type", parser=read_type, metavar="TYPE", help="Only of this type; repeatable."),
    ] = None,
    merged: Annotated[bool, typer.Option("--merged", help="Also those that read as others.")] = False,
) -> None:
    """Lists entities in the order of their names."""
    request = memory_entities_pb2.ListEntitiesRequest(
        graph_id=graph,
        name_prefix=prefix,
        types=[entity_pb2.EntityType.ValueType(number) for number in kind or ()],
        include_merged=merged,
    )
    listed = await whole(shell, shell.connection.memory.ListEntities, request, "entities")
    shell.show(listed, entities_of)


def entities_of(response: memory_entities_pb2.ListEntitiesResponse) -> RenderableType:
    table = words.listing("name", "type", "facts", "also", "entity")
    for entity in response.entities:
        row = [
            entity.name,
            type_of(entity),
            f"{entity.statement_count:,}",
            ", ".join(entity.aliases),
            entity.entity_id + (f" reads as {entity.merged_into}" if entity.merged_into else ""),
        ]
        table.add_row(*map(escape, row))
    return Group(table, f"[dim]revision {response.revision}[/]")
