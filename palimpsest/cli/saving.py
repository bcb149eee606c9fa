"""Options of a graph that save model calls, and how they are told."""

from enum import StrEnum
from typing import Annotated

import typer

from palimpsest.v1 import graph_pb2


class Profiled(StrEnum):
    """How thoroughly texts are understood."""

    FULL = "full"
    ECONOMY = "economy"


class Saved(StrEnum):
    """Whether something is done that saves model calls."""

    ON = "on"
    OFF = "off"
    DEFAULT = "default"


_SAVINGS = {
    Saved.ON: graph_pb2.SAVING_ON,
    Saved.OFF: graph_pb2.SAVING_OFF,
    Saved.DEFAULT: graph_pb2.SAVING_UNSPECIFIED,
}
_PROFILES = {
    Profiled.FULL: graph_pb2.EXTRACTION_PROFILE_FULL,
    Profiled.ECONOMY: graph_pb2.EXTRACTION_PROFILE_ECONOMY,
}
Profile = Annotated[
    Profiled | None, typer.Option(help="How texts are understood: a model call a step, or few calls.")
]
Gate = Annotated[
    Saved | None, typer.Option(help="Whether plain small talk is kept from the model; by default on.")
]
Batching = Annotated[
    Saved | None,
    typer.Option(help="Whether short messages of a session that wait are read in one go; default: economy."),
]


def save(
    settings: graph_pb2.GraphSettings, profile: Profiled | None, gate: Saved | None, batching: Saved | None
) -> None:
    """Sets what is given."""
    if profile is not None:
        settings.extraction_profile = _PROFILES[profile]
    if gate is not None:
        settings.relevance_gate = _SAVINGS[gate]
    if batching is not None:
        settings.batching = _SAVINGS[batching]


def savings(settings: graph_pb2.GraphSettings) -> str:
    """How it is understood, where that is not the default: `economy · gate off`."""
    parts = ["economy"] if settings.extraction_profile == graph_pb2.EXTRACTION_PROFILE_ECONOMY else []
    for name, saving in (("gate", settings.relevance_gate), ("batching", settings.batching)):
        parts += [f"{name} {word.value}" for word, value in _SAVINGS.items() if value == saving and value]
    return " · ".join(parts)
