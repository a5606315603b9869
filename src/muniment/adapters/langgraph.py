"""LangGraph: a store whose items are governed memories, tools and a node (ADP-1).

    store = MunimentStore.open(user="ann")
    agent = create_agent(model, tools=memory_tools(store), store=store)

A `put` is a proposal: where the pack lets policy promote it the item can be read at once, otherwise it is `pending`
until a person decides, and `get` returns the value before it. A second `put` on a key is a proposal that supersedes
the first. `delete` is a retraction, by the person themselves or by request. Reading never extends a term.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast
from uuid import uuid4

from muniment.extras import require_framework

require_framework("langgraph")

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)

from muniment.adapters.kept_items import KeptItems, PutRefused
from muniment.client import Client
from muniment.errors import InvalidInput
from muniment.items.rules import begins_with, ends_with
from muniment.model import item as model
from muniment.model.context import Principal, RunContext
from muniment.sync import Fabric

__all__ = ["MunimentStore", "PutRefused", "memory_tools", "recall_node"]

TOOL = "langgraph"
# Namespaces that are read to match conditions on them, and that one call gives.
_MOST_NAMESPACES = 1000
MEMORIES = ("memories",)
_LONGEST_QUERY = 2000


class MunimentItem(SearchItem):
    """An item with what Muniment knows of it in `metadata`."""

    __slots__ = ("metadata",)

    def __init__(self, found: model.Item, score: float | None = None) -> None:
        super().__init__(found.namespace, found.key, found.value, found.created_at, found.updated_at, score)
        self.metadata: dict[str, Any] = {
            "memory_id": found.memory_id,
            "pending": found.pending,
            "conflicts": list(found.conflicts),
            "classification": found.classification,
            "confidence": found.confidence,
            "valid_until": found.valid_until,
        }

    def dict(self) -> dict[str, Any]:
        """Return it as a dictionary, with its metadata."""
        return super().dict() | {"metadata": self.metadata}


class MunimentStore(BaseStore):
    """A LangGraph store over a fabric, or over a server by its client.

    `run` says in which tenant, for which user and as which agent; items of a run with a user are that user's alone.
    With `user_part` a part of the namespace names the user instead, such as 1 in `("memories", "ann")`. `person` is
    the user, where this program may act for them: only then `delete` takes effect at once. `wait` is how many seconds
    a `put` waits for its promotion. `fields` are the paths of the values that are searched, by default all strings.
    """

    supports_ttl = True

    def __init__(
        self,
        fabric: Fabric | Client,
        run: RunContext,
        *,
        person: Principal | None = None,
        user_part: int | None = None,
        wait: float = 0.0,
        classification: str = "INTERNAL",
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        tool: str = TOOL,
        items: KeptItems | None = None,
    ) -> None:
        self.items = items or KeptItems(
            fabric, run, tool=tool, person=person, classification=classification, wait=wait, user_part=user_part
        )
        self.fields = fields
        self.ttl_config = ttl

    @classmethod
    def open(
        cls,
        user: str,
        *,
        profile: str = "personal",
        home: str | Path | None = None,
        wait: float = 0.0,
        classification: str = "INTERNAL",
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """Open a store in a home of one user (MUNIMENT_HOME, else ./.muniment); close it, or use it with `with`."""
        items = KeptItems.open(user, tool=TOOL, profile=profile, home=home, wait=wait, classification=classification)
        return cls(items.fabric, items.run, fields=fields, ttl=ttl, items=items)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the fabric, if `open` opened it."""
        self.items.close()

    # ---- the interface of a store ----

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first all that read, then what is put; of several on one key the last counts.

        Raises `PutRefused` after all were tried, if a gate refused one; `InvalidNamespaceError`.
        """
        every = list(ops)
        for op in every:
            _check_labels(op)
        results = [None if isinstance(op, PutOp) else self._read(op) for op in every]
        puts = {(op.namespace, op.key): op for op in every if isinstance(op, PutOp)}
        refused: PutRefused | None = None
        for op in puts.values():
            try:
                self._write(op)
            except PutRefused as error:
                refused = refused or error
        if refused is not None:
            raise refused
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations as `batch` does, without blocking the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
        wait: float | None = None,
    ) -> None:
        """Propose a value for a key; waits `wait` seconds at most for its promotion. Raises `PutRefused`."""
        term = (self.ttl_config or {}).get("default_ttl") if isinstance(ttl, NotProvided) else ttl
        op = PutOp(namespace, str(key), dict(value), index, ttl=term)
        _check_labels(op)
        if not namespace or namespace[0] == "langgraph":
            raise InvalidNamespaceError(f"Namespace must not be empty or begin with 'langgraph'. Got: {namespace}")
        self._write(op, wait)

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
        wait: float | None = None,
    ) -> None:
        """Propose a value for a key, as `put` does, without blocking the event loop."""
        await asyncio.to_thread(self.put, namespace, key, value, index, ttl=ttl, wait=wait)

    def pending(self, namespace: Sequence[str] = (), key: str | None = None) -> list[model.ItemWaiting]:
        """List what was put there, or asked to be deleted, that waits for a person (ADP-2)."""
        return self.items.pending(namespace, key)

    # ---- one operation ----

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self.items.get(op.namespace, op.key)
            return MunimentItem(found) if found is not None else None
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise InvalidInput(f"is an operation that this store does not know: {type(op).__name__}", field="ops")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = self.items.search(
            op.namespace_prefix, query=op.query, where=op.filter, limit=op.limit, offset=max(op.offset, 0)
        )
        scored = op.query is not None and op.query.strip() != ""
        return [MunimentItem(one, one.score.get("total") if scored else None) for one in found.items]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        prefixes, suffixes = _paths(conditions, "prefix"), _paths(conditions, "suffix")
        first = prefixes[0] if prefixes else ()
        found = self.items.fabric.items.namespaces(
            self.items.run_for(() if "*" in first else first),
            prefix=first,
            suffix=suffixes[0] if suffixes else (),
            limit=_MOST_NAMESPACES,
        ).namespaces
        every = {
            one[: op.max_depth]
            for one in found
            if all(begins_with(one, path) for path in prefixes) and all(ends_with(one, path) for path in suffixes)
        }
        return sorted(every)[op.offset : op.offset + op.limit]

    def _write(self, op: PutOp, wait: float | None = None) -> None:
        if op.value is None:
            self.items.delete(op.namespace, op.key)
            return
        value = dict(op.value)
        seconds = op.ttl * 60 if op.ttl is not None else None
        text = self._text(op.key, value, op.index)
        self.items.put(op.namespace, op.key, value, text=text, seconds=seconds, wait=wait)

    def _text(self, key: str, value: dict[str, Any], index: Literal[False] | list[str] | None) -> str | None:
        """Return what the item is found by: the fields that are named, or nothing of the value; None is all strings."""
        if index is False:
            return f"item {key}"
        if (paths := index or self.fields) is None or list(paths) == ["$"]:
            return None
        found = [text for path in paths for text in get_text_at_path(value, tokenize_path(path))]
        return "\n".join(found) or f"item {key}"


def _paths(conditions: Iterable[MatchCondition], match_type: str) -> list[tuple[str, ...]]:
    return [tuple(one.path) for one in conditions if one.match_type == match_type]


def _check_labels(op: Op) -> None:
    """Refuse labels as LangGraph's own stores do, also in operations that were given to `batch` directly."""
    if isinstance(op, ListNamespacesOp):
        paths = [tuple(one.path) for one in op.match_conditions or ()]
    else:
        paths = [op.namespace_prefix if isinstance(op, SearchOp) else op.namespace]
    for label in (label for path in paths for label in path):
        if not isinstance(label, str) or not label or "." in label or "\x00" in label:
            raise InvalidNamespaceError(
                f"Namespace labels must be strings that are not empty, without '.' and NUL. Got: {label!r}"
            )


# ---- for agents: two tools, and a node ----


def memory_tools(store: MunimentStore, namespace: Sequence[str] = MEMORIES) -> list[BaseTool]:
    """Return the tools `remember` and `search_memory` of an agent, on one namespace of a store.

    `remember` says what became of the text: kept, waiting for a person, or refused and why.
    """
    place = tuple(namespace)

    def remember(text: str, key: str | None = None) -> str:
        """Remember something for later conversations. Give the same key again to replace what was remembered by it."""
        try:
            done = store.items.put(place, key or uuid4().hex, {"text": text})
        except PutRefused as error:
            return f"Not remembered: {error.message}"
        if done.status == "pending":
            return "Not remembered yet: a person has to approve it. Do not rely on it until then."
        return "Remembered."

    def search_memory(query: str) -> str:
        """Search what was remembered in earlier conversations."""
        found = store.items.search(place, query=query).items
        return "\n".join(f"- {_shown(one.value)}" for one in found) or "Nothing is remembered about that."

    return [StructuredTool.from_function(remember), StructuredTool.from_function(search_memory)]


def _shown(value: Any) -> str:
    text = cast("dict[str, Any]", value).get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else json.dumps(value, ensure_ascii=False)


def recall_node(store: MunimentStore, *, tokens: int = 500) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a node that puts what bears on the last message of the user before the model, as data (REC-11).

    It adds one system message, of one id: the memory of an earlier turn is replaced by it.
    """

    def recall(state: Mapping[str, Any]) -> dict[str, Any]:
        messages = cast("Sequence[BaseMessage]", state["messages"])
        asked = next((one for one in reversed(messages) if isinstance(one, HumanMessage)), None)
        if asked is None or not (query := str(asked.text).strip()):
            return {"messages": []}
        compiled = store.items.fabric.compile(store.items.run, query[:_LONGEST_QUERY], token_budget=tokens)
        if not compiled.memory_ids:
            return {"messages": []}
        return {"messages": [SystemMessage(str(compiled.text), id="muniment-memory")]}

    return recall
