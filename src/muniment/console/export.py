"""Lists as files: whatever a page lists, whole, as CSV or JSON Lines, by the same filters and under the same rights."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from muniment.console.csv_lines import csv_line
from muniment.console.rendering import HEADERS
from muniment.console.visitors import Visitor
from muniment.model.fields import Artifact

# Entries that are read at once.
AT_ONCE = 500
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}


async def pages_of(
    fetch: Callable[..., Awaitable[Sequence[Any]]], cursor: str, values: Mapping[str, Any]
) -> AsyncGenerator[Sequence[Any]]:
    """Read a list to its end: `fetch` takes `limit`, `after` and the filters, `cursor` names what a page ends with."""
    after: Any = None
    while True:
        found = await fetch(limit=AT_ONCE, after=after, **values)
        yield found
        if len(found) < AT_ONCE:
            return
        after = getattr(found[-1], cursor)


async def file_of(
    request: Request, visitor: Visitor, name: str, columns: Mapping[str, str], pages: AsyncIterator[Sequence[Artifact]]
) -> Response:
    """Return a list as a file, page by page as it is read; `columns` are the heads of the CSV, each with its attribute.

    The first page is read before anything is sent, so that a wrong filter is an error and not half a file.
    """
    form = "jsonl" if request.query_params.get("format") == "jsonl" else "csv"
    first = await anext(pages, ())

    async def lines() -> AsyncGenerator[str]:
        if form == "csv":
            yield csv_line(*columns)
        for one in first:
            yield _line(one, form, columns)
        async for page in pages:
            for one in page:
                yield _line(one, form, columns)

    file = f"muniment-{name}-{visitor.fabric.access.now():%Y-%m-%d}.{form}"
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{file}"'}
    return StreamingResponse(lines(), media_type=_TYPES[form], headers=headers)


def _line(one: Artifact, form: str, columns: Mapping[str, str]) -> str:
    if form == "jsonl":
        # Many programs take these for line ends too, and a text that holds one for two entries.
        return one.model_dump_json().replace("\u2028", "\\u2028").replace("\u2029", "\\u2029") + "\n"
    return csv_line(*(_cell(getattr(one, attribute)) for attribute in columns.values()))


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case datetime():
            return value.isoformat()
        case _:
            return to_json(value).decode()
