"""Logs: one JSON object a line, in files. What a call carried is never in them, in exceptions neither."""

import logging
import os
from pathlib import Path

import structlog
from structlog.processors import ExceptionRenderer
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict

LOGS = "logs"
"""The folder, in the data folder."""


def log_to(folder: Path | None, file: str) -> None:
    """Sends all logs of this process to a file in `folder`; with no folder, to standard error.

    Several processes may share a file: a line is one write at its end. Exceptions are told with their frames,
    without the frames' variables: those hold texts and secrets.
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
                ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
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
