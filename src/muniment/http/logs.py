"""Logs: one JSON object a line, or a plain line on a terminal. Ids, routes, times; no content, no secret, no token."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from pydantic_core import to_json

Form = Literal["json", "text"]

_OURS = ("muniment", "procrastinate", "uvicorn.error", "mcp")
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def set_up(form: Form | None = None, *, stream: TextIO | None = None) -> None:
    """Send what the server and the worker have to say to one place; without a form, by what that place is."""
    out = stream or sys.stderr
    chosen: Form = form or ("text" if out.isatty() else "json")
    handler = logging.StreamHandler(out)
    handler.setFormatter(_Json() if chosen == "json" else _Plain())
    # What other libraries warn of comes in the same form.
    logging.getLogger().handlers = [handler]
    for name in _OURS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        # Jobs are told of by our own lines.
        logger.setLevel("INFO" if name == "muniment" else "WARNING")


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD}


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _said(record),
            **_extra(record),
        }
        return to_json(line, fallback=str).decode()


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        told = " ".join(f"{name}={value}" for name, value in _extra(record).items() if value is not None)
        return f"{at} {record.levelname.lower():7} {_said(record)} {told}".rstrip()


def _said(record: logging.LogRecord) -> str:
    """The line itself; of an error only its kind: its words may quote what a caller sent."""
    said = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        said = f"{said} ({record.exc_info[0].__name__})"
    return said
