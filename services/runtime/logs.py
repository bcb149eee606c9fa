"""Logs: one JSON object a line, in files. What a call carried is never in them, in exceptions neither."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import structlog
from structlog.processors import ExceptionRenderer
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, ExcInfo

LOGS = "logs"
"""The folder, in the data folder."""

_OURS = ("services.", "gateway.", "palimpsest.")


class _Discreet:
    """Exceptions as types and frames, without variables; with their text only where it is one of ours.

    Of a library's exception the text may hold a query and what somebody wrote.
    """

    def __init__(self) -> None:
        self._told = ExceptionDictTransformer(show_locals=False)

    def __call__(self, exc_info: ExcInfo) -> list[dict[str, Any]]:
        chain = list(_chain(exc_info[1]))
        ours = {type(one).__name__ for one in chain if type(one).__module__.startswith(_OURS)}
        ours -= {type(one).__name__ for one in chain if not type(one).__module__.startswith(_OURS)}
        return [_without_texts(told, ours) for told in self._told(exc_info)]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, what it came of, and those in it."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _without_texts(told: dict[str, Any], ours: set[str]) -> dict[str, Any]:
    kept = dict(told, exc_notes=[], syntax_error=None)
    if told["exc_type"] not in ours:
        kept["exc_value"] = ""
    kept["exceptions"] = [
        [_without_texts(one, ours) for one in inner] for inner in told.get("exceptions", [])
    ]
    return kept


def log_to(folder: Path | None, file: str) -> None:
    """Sends all logs of this process to a file in `folder`; with no folder, to standard error.

    Several processes may share a file: a line is one write at its end. Of exceptions frames are told,
    without their variables: those hold texts and secrets.
    """
    handler: logging.Handler = logging.StreamHandler()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(folder / file, encoding="utf-8")
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                _process,
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                ExceptionRenderer(_Discreet()),
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _process,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _process(_logger: object, _method: str, event: EventDict) -> EventDict:
    event["pid"] = os.getpid()
    return event
