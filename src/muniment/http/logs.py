"""Logging: one JSON object a line, or plain lines on a terminal. Ids, routes, times; no content, secret or token."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from pydantic_core import to_json

Form = Literal["json", "text"]

_OURS = ("muniment", "procrastinate", "uvicorn.error", "mcp")
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def set_up(form: Form | None = None, *, stream: TextIO | None = None, process: int | None = None) -> None:
    """Log the server and the worker to one stream; without a form, plain text on a terminal and JSON elsewhere.

    `process` is the number of this process where there are several; it stands in every line.
    """
    out = stream or sys.stderr
    chosen: Form = form or ("text" if out.isatty() else "json")
    handler = logging.StreamHandler(out)
    handler.setFormatter((_Json if chosen == "json" else _Plain)(process))
    # Warnings of other libraries come in the same form.
    logging.getLogger().handlers = [handler]
    for name in _OURS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        # Our own lines report jobs.
        logger.setLevel("INFO" if name == "muniment" else "WARNING")


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD}


class _Lines(logging.Formatter):
    def __init__(self, process: int | None) -> None:
        super().__init__()
        self.number = process


class _Json(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **({"process": self.number} if self.number is not None else {}),
            **_extra(record),
        }
        return to_json(line, fallback=str).decode()


class _Plain(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        fields = " ".join(f"{name}={value}" for name, value in _extra(record).items() if value is not None)
        process = f"[{self.number}] " if self.number is not None else ""
        return f"{at} {process}{record.levelname.lower():7} {_message(record)} {fields}".rstrip()


def _message(record: logging.LogRecord) -> str:
    """The message, with the class of an error alone: its words may quote what a caller sent."""
    message = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        message = f"{message} ({record.exc_info[0].__name__})"
    return message
