"""Lists: one page of a list, with filters from the query and links to the first and the next page."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from muniment.console.urls import console_url, query_fields
from muniment.console.visitors import error_text
from muniment.errors import HistoryCollected, InvalidInput, MunimentError, NotFound

PAGE_SIZE = 50
# Errors that other input would avoid: a page shows them beside its form.
INPUT_ERRORS = (InvalidInput, NotFound, HistoryCollected)


@dataclass(frozen=True)
class Listing:
    """A page of a list; `filters` holds what was typed, empty where nothing was, `problem` what was wrong with it."""

    path: str
    filters: dict[str, str]
    after: str
    items: Sequence[Any]
    next_after: Any = None
    problem: str | None = None

    @property
    def filtered(self) -> bool:
        """Whether any filter is set."""
        return any(self.filters.values())

    @property
    def first_url(self) -> str:
        """The first page with the same filters."""
        return console_url(self.path, **self.filters)

    @property
    def next_url(self) -> str | None:
        """The next page with the same filters; None on the last one."""
        return console_url(self.path, **self.filters, after=self.next_after) if self.next_after else None


async def load_listing(
    request: Request,
    path: str,
    filters: Sequence[str],
    fetch: Callable[..., Awaitable[Sequence[Any]]],
    cursor: str,
    *,
    size: int | None = None,
) -> Listing:
    """Fetch a page of a list: `fetch` takes `limit`, `after` and each filter, None where it is not set.

    `cursor` names the attribute of an item that the next page begins after. A wrong filter becomes the problem.
    """
    size = size or PAGE_SIZE
    typed, after = query_fields(request, *filters), request.query_params.get("after", "").strip()
    values = {name: value or None for name, value in typed.items()}
    try:
        found = await fetch(limit=size + 1, after=after or None, **values)
    except INPUT_ERRORS as error:
        return Listing(path, typed, after, (), problem=input_problem(error))
    next_after = getattr(found[size - 1], cursor) if len(found) > size else None
    return Listing(path, typed, after, found[:size], next_after)


def input_problem(error: MunimentError) -> str:
    """An error to show beside a form, with a hint on how to write an entity."""
    return error_text(error) + ("; write an entity like customer:cus_77" if error.field == "entity" else "")
