"""Logs: one JSON object a line, in a file. What a call carried is never in them, in exceptions neither."""

import logging
from pathlib import Path

import structlog
from structlog.processors import ExceptionRenderer
from structlog.tracebacks import ExceptionDictTransformer

FOLDER = "logs"
FILE = "palimpsest.log"


def log_to(folder: Path) -> Path:
    """Sends all logs of this process to a file in `folder`; returns the file.

    Exceptions are told with their frames, without the frames' variables: those hold texts and secrets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
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
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return file
