"""`document show`, `document delete`, and what is said of sources: `source retract` and their rules."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import rules, words
from palimpsest.cli.dates import shown
from palimpsest.cli.facts import GraphId
from palimpsest.cli.jobs import finish, follow, job_of
from palimpsest.cli.operating import RequestId
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import memory_episodes_pb2

DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT", help="Id of the document.")]


def app() -> typer.Typer:
    documents = typer.Typer(no_args_is_help=True, help="Documents: texts that have versions.")
    command(documents, "show")(show)
    command(documents, "delete")(delete)
    return documents


def sources() -> typer.Typer:
    listed = typer.Typer(no_args_is_help=True, help="Sources: what episodes say they come from.")
    command(listed, "retract")(retract)
    rules.add_to(listed)
    return listed


async def show(
    shell: Shell,
    graph: GraphId,
    document: DocumentId,
    version: Annotated[int, typer.Option(min=0, help="Which version; 0 is the newest.")] = 0,
) -> None:
    """Shows a version of a document with its text, and which versions there are."""
    request = memory_episodes_pb2.GetDocumentRequest(graph_id=graph, document_id=document, version=version)
    response = await shell.connection.call(shell.connection.memory.GetDocument, request)
    shell.show(response, document_of)


def document_of(response: memory_episodes_pb2.GetDocumentResponse) -> RenderableType:
    document = response.document
    head = words.pairs(
        [
            ("document", document.document_id),
            ("version", str(response.version.version)),
            ("title", document.title),
            ("source", document.source),
        ]
    )
    table = words.listing("version", "said", "bytes", "tokens", "saved", "job")
    for one in document.versions:
        table.add_row(
            str(one.version),
            shown(one.reference_time),
            f"{one.size_bytes:,}",
            f"{one.token_count:,}",
            f"{one.tokens_saved:,}",
            escape(one.job_id),
        )
    return Group(head, table, "", escape(response.text))


async def delete(
    shell: Shell,
    graph: GraphId,
    document: DocumentId,
    version: Annotated[int, typer.Option(min=0, help="Which version; 0 is the whole document.")] = 0,
    request_id: RequestId = "",
) -> None:
    """Deletes a document or a version; what it had struck out holds again. Needs a key that may erase."""
    request = memory_episodes_pb2.DeleteDocumentRequest(
        graph_id=graph, document_id=document, version=version, request_id=request_id or new_request_id()
    )
    response = await shell.connection.call(shell.connection.memory.DeleteDocument, request)
    shell.show(response, deleted)


def deleted(response: memory_episodes_pb2.DeleteDocumentResponse) -> RenderableType:
    done = " · ".join(words.counted(value, field.name) for field, value in response.counts.ListFields())
    return words.pairs([("deleted", done or "nothing was left of it"), ("revision", str(response.revision))])


async def retract(
    shell: Shell,
    graph: GraphId,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="As it was given with its episodes.")],
    request_id: RequestId = "",
    wait: Annotated[bool, typer.Option(help="Watch the job until it ends.")] = True,
) -> None:
    """Deletes all that a source gave, as a job. Needs a key that may erase."""
    request = memory_episodes_pb2.RetractSourceRequest(
        graph_id=graph, source=source, request_id=request_id or new_request_id()
    )
    response = await shell.connection.call(shell.connection.memory.RetractSource, request)
    if wait:
        finish(await follow(shell, response.job.job_id), shell)
    else:
        shell.show(response, lambda answer: job_of(answer.job))
