"""Paths and pages: an id as a part of a path, a run as a header, one page of a list."""

from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import to_json

from muniment.client.asking import told
from muniment.client.transport import Transport
from muniment.errors import InvalidInput
from muniment.model.context import RUN_HEADER, RunContext
from muniment.verbs import arguments as checks

T = TypeVar("T")


def segment(value: Any, field: str) -> str:
    """An id as one part of a path; raises `InvalidInput` for what is none."""
    text = checks.name(value, field)
    if text in (".", ".."):
        raise InvalidInput("is no id", field=field)
    return quote(text, safe="@:")


def run_header(run: RunContext) -> dict[str, str]:
    """A run for a request that has no body; as ASCII, which is all that a header can hold."""
    return {RUN_HEADER: to_json(told(run), ensure_ascii=True).decode("ascii")}


class Page(BaseModel, Generic[T]):
    """One page of a list, as the server sends it."""

    # Each kind of page is built when the first of it comes: a program asks for few of them.
    model_config = ConfigDict(defer_build=True)

    items: list[T]


async def paged(wire: Transport, path: str, into: TypeAdapter[Page[T]], **params: Any) -> list[T]:
    """What is on one page of a list."""
    return (await wire.get(path, into, params)).items
