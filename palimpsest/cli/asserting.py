"""`assert`: records a claim, an end or a denial as given, without a model."""

import math
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import RenderableType

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.facts import GraphId
from palimpsest.cli.operating import RequestId
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import common_pb2, entity_pb2, memory_ingest_pb2


def _date(*names: str, says: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(*names, parser=read_date, metavar="DATE", help=says)
    return option


Since = Annotated[Dated | None, _date("--since", "--from", says="When it began to hold.")]
Until = Annotated[Dated | None, _date("--until", says="When it stops, if the source says so.")]
End = Annotated[Dated | None, _date("--end", says="Record that it stopped then, instead of a claim.")]
Seen = Annotated[Dated | None, _date("--seen", says="Last instant the source vouches for (default: --said).")]
ReferenceTime = Annotated[
    Dated | None, _date("--said", "--reference-time", says=f"When it was said: {FORMS}.")
]
Deny = Annotated[
    bool,
    typer.Option("--deny", help="Record that it did not hold from --since until --until; ever without."),
]
IsLiteral = Annotated[
    bool, typer.Option("--literal", help="OBJECT is a value (number, true, false, text), no entity.")
]


class Type(StrEnum):
    """What an entity is."""

    PERSON = "person"
    ORGANIZATION = "organization"
    PLACE = "place"
    EVENT = "event"
    PROJECT = "project"
    TASK = "task"
    TECHNOLOGY = "technology"
    PRODUCT = "product"
    STANDARD = "standard"
    CONCEPT = "concept"


def add_to(app: typer.Typer) -> None:
    command(app, "assert", panel="Memory")(assert_)


async def assert_(
    shell: Shell,
    graph: GraphId,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Name of the subject.")],
    predicate: Annotated[
        str, typer.Argument(metavar="PREDICATE", help="Name of the predicate, such as works_at.")
    ],
    object: Annotated[str, typer.Argument(metavar="OBJECT", help="Name of the object.")],
    since: Since = None,
    until: Until = None,
    end: End = None,
    deny: Deny = False,
    reference_time: ReferenceTime = None,
    seen: Seen = None,
    literal: IsLiteral = False,
    subject_type: Annotated[Type | None, typer.Option(help="What the subject is.")] = None,
    object_type: Annotated[Type | None, typer.Option(help="What the object is.")] = None,
    quote: Annotated[str, typer.Option(help="Literal words that say it.")] = "",
    confidence: Annotated[float | None, typer.Option(min=0, max=1, help="How sure (default: 1).")] = None,
    source: Annotated[str, typer.Option(help="Where it comes from, such as crm.")] = "",
    request_id: RequestId = "",
) -> None:
    """Records that a fact holds; with --end that it stopped, with --deny that it did not hold."""
    if (end is not None) + deny + bool(seen) > 1 or (end is not None and (since or until)):
        raise complain("--end stands alone, without --since, --until, --deny or --seen", Exit.USAGE)
    request = memory_ingest_pb2.AssertTriplesRequest(
        graph_id=graph,
        request_id=request_id or new_request_id(),
        source=source,
        reference_time=reference_time.timestamp if reference_time else None,
    )
    who = _entity(subject, subject_type)
    what = _object(object, object_type, literal)
    if end is not None:
        request.ends.add(
            subject=who, predicate=predicate, object=what, quote=quote, confidence=confidence,
            ended_at=end.timestamp, ended_at_precision=end.precision,
        )  # fmt: skip
    elif deny:
        request.denials.add(
            subject=who, predicate=predicate, object=what, quote=quote, confidence=confidence,
            denied_from=since.timestamp if since else None, denied_until=until.timestamp if until else None,
        )  # fmt: skip
    else:
        request.claims.add(
            subject=who, predicate=predicate, object=what, quote=quote, confidence=confidence,
            valid_at=since.timestamp if since else None, valid_at_precision=_precision(since),
            invalid_at=until.timestamp if until else None, invalid_at_precision=_precision(until),
            seen=seen.timestamp if seen else None,
        )  # fmt: skip
    response = await shell.connection.call(shell.connection.memory.AssertTriples, request)
    shell.show(response, asserted)


def _precision(date: Dated | None) -> common_pb2.Precision.ValueType:
    return date.precision if date else common_pb2.PRECISION_UNSPECIFIED


def _entity(name: str, kind: Type | None) -> entity_pb2.EntityRef:
    number = entity_pb2.EntityType.Value(f"ENTITY_TYPE_{kind.name if kind else 'UNSPECIFIED'}")
    return entity_pb2.EntityRef(name=name, type=number)


def _object(text: str, kind: Type | None, literal: bool) -> entity_pb2.ObjectRef:
    if literal:
        return entity_pb2.ObjectRef(literal=read_literal(text))
    return entity_pb2.ObjectRef(entity=_entity(text, kind))


def read_literal(text: str) -> entity_pb2.Literal:
    """A number, `true` or `false`; anything else is text."""
    if text in {"true", "false"}:
        return entity_pb2.Literal(bool_value=text == "true")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return entity_pb2.Literal(number_value=number)
    return entity_pb2.Literal(string_value=text)


def asserted(response: memory_ingest_pb2.AssertTriplesResponse) -> RenderableType:
    """What was recorded, and the revision that holds it."""
    records = [*response.claims, *response.ends, *response.denials]
    return words.pairs(
        [
            ("recorded", "1 claim" if response.claims else "1 end" if response.ends else "1 denial"),
            ("statement", ", ".join(record.statement_id for record in records)),
            ("episode", ", ".join(record.episode_id for record in records)),
            (
                "revision",
                str(response.revision) if response.revision else f"not yet: job {response.job.job_id}",
            ),
            ("credits", words.amount(response.job.credits.spent_micros)),
            ("replayed", "yes: this request id was known" if response.replayed else ""),
        ]
    )
