"""Lists: one page of a list, with filters from the query and links to the first and the next page."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from muniment.console.sealed_words import FIND, Words
from muniment.console.urls import console_url, parse_time, query_fields
from muniment.console.visitors import error_text
from muniment.errors import HistoryCollected, InvalidInput, MunimentError, NotFound

PAGE_SIZE = 50
# The filters of a list that is narrowed to a range of time.
RANGE = ("since", "until")
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
    words: Words | None = None

    @property
    def address(self) -> dict[str, str]:
        """The filters as links carry them: words are sealed."""
        if self.words is None:
            return self.filters
        return {**self.filters, self.words.field: "", FIND: self.words.sealed}

    @property
    def filtered(self) -> bool:
        """Whether any filter is set."""
        return any(self.filters.values())

    @property
    def first_url(self) -> str:
        """The first page with the same filters."""
        return console_url(self.path, **self.address)

    @property
    def files(self) -> dict[str, str]:
        """The list as a file, with the same filters: by the name of each form."""
        forms = {"CSV": "csv", "JSON Lines": "jsonl"}
        return {name: console_url(f"{self.path}/export", **self.address, format=one) for name, one in forms.items()}

    @property
    def next_url(self) -> str | None:
        """The next page with the same filters; None on the last one."""
        return console_url(self.path, **self.address, after=self.next_after) if self.next_after else None


async def load_listing(
    request: Request,
    path: str,
    filters: Sequence[str],
    fetch: Callable[..., Awaitable[Sequence[Any]]],
    cursor: str,
    *,
    size: int | None = None,
    words: Words | None = None,
) -> Listing:
    """Fetch a page of a list: `fetch` takes `limit`, `after` and each filter, None where it is not set.

    `cursor` names the attribute of an item that the next page begins after; `words` are one of the filters, which its
    address has sealed. A wrong filter becomes the problem.
    """
    size = size or PAGE_SIZE
    typed, after = query_fields(request, *filters), request.query_params.get("after", "").strip()
    if words is not None:
        typed[words.field] = words.text
    try:
        if words is not None and words.problem is not None:
            raise words.problem
        found = await fetch(limit=size + 1, after=after or None, **filter_values(typed))
    except INPUT_ERRORS as error:
        return Listing(path, typed, after, (), problem=input_problem(error), words=words)
    next_after = getattr(found[size - 1], cursor) if len(found) > size else None
    return Listing(path, typed, after, found[:size], next_after, words=words)


def filter_values(typed: Mapping[str, str]) -> dict[str, Any]:
    """What was typed, as a list takes it: None for nothing, `since` and `until` as times; raises `InvalidInput`."""
    return {name: parse_time(value, name) if name in RANGE else value or None for name, value in typed.items()}


def input_problem(error: MunimentError) -> str:
    """An error to show beside a form, with a hint on how to write an entity."""
    return error_text(error) + ("; write an entity like customer:cus_77" if error.field == "entity" else "")
