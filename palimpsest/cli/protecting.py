"""Options of `graph create` and `graph update` that say what becomes of texts and of what long ended."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from palimpsest.cli import words
from palimpsest.v1 import graph_pb2, statement_pb2


class Redacted(StrEnum):
    """What is blacked out of texts before they are stored."""

    SECRETS = "secrets"
    CARDS = "cards"
    NOTHING = "nothing"


Redact = Annotated[
    list[Redacted] | None,
    typer.Option(help="What to black out before anything is stored or read; repeatable; replaces all."),
]
RedactPattern = Annotated[
    list[str] | None,
    typer.Option(help='Regular expression to black out as well; repeatable; replaces all; "" for none.'),
]
AllowProvider = Annotated[
    list[str] | None,
    typer.Option(help='Model provider that may see texts; repeatable; replaces all; "" for every one.'),
]
ArchiveAfter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[ASPECT=]DAYS",
        help="Archive facts so many days after they ended; repeatable; replaces all; never: nothing.",
    ),
]
_ASPECT = "GRAPH_ASPECT_"
_DAY = 86_400
NEVER = "never"


def protect(
    settings: graph_pb2.GraphSettings,
    redact: Sequence[Redacted] | None,
    patterns: Sequence[str] | None,
    providers: Sequence[str] | None,
    archive_after: Sequence[str] | None,
) -> None:
    """Writes what is given into settings. Raises BadParameter."""
    if redact is not None:
        settings.redaction.secrets = Redacted.SECRETS in redact
        settings.redaction.card_numbers = Redacted.CARDS in redact
    if patterns is not None:
        settings.redaction.patterns.extend(filter(None, patterns))
    if providers is not None:
        settings.models.allowed_providers.extend(filter(None, providers))
    for text in archive_after or ():
        if text != NEVER:
            settings.retention.append(_rule(text))


def _rule(text: str) -> graph_pb2.RetentionRule:
    aspect, _, days = text.rpartition("=")
    names = {name.removeprefix(_ASPECT).lower() for name in statement_pb2.GraphAspect.keys()[1:]}
    if (aspect and aspect.lower() not in names) or not days.isdecimal():
        raise typer.BadParameter(f"{text!r} is not [ASPECT=]DAYS, an aspect being {', '.join(sorted(names))}")
    rule = graph_pb2.RetentionRule()
    if aspect:
        rule.aspect = statement_pb2.GraphAspect.Value(_ASPECT + aspect.upper())
    rule.archive_after.FromSeconds(int(days) * _DAY)
    return rule


def redacts(redaction: graph_pb2.RedactionSettings) -> str:
    """What is blacked out, as a line."""
    kinds = {Redacted.SECRETS: redaction.secrets, Redacted.CARDS: redaction.card_numbers}
    told = [kind.value for kind, chosen in kinds.items() if chosen]
    if redaction.patterns:
        told.append(words.counted(len(redaction.patterns), "patterns"))
    return ", ".join(told)


def archives(settings: graph_pb2.GraphSettings) -> str:
    """When facts are archived, as a line."""
    told = []
    for rule in settings.retention:
        aspect = words.word(statement_pb2.GraphAspect.Name, rule.aspect, _ASPECT) if rule.aspect else "others"
        days = words.counted(rule.archive_after.ToSeconds() // _DAY, "days")
        told.append(f"{aspect} after {days}")
    return ", ".join(told)
