"""mem0: memories as `get_all`, an export or its vector store holds them, with their history. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from muniment.errors import InvalidInput
from muniment.transfer.sources.found import Found, fields_of, objects, rest, text_of, time_of, without_none

# What is taken of a memory by a field of its own; everything else is metadata.
_TAKEN = (
    *("id", "memory", "data", "text", "user_id", "run_id", "created_at", "updated_at", "expiration_date"),
    *("actor_id", "role", "hash", "text_lemmatized", "score"),
)
History = Mapping[str, Sequence[Mapping[str, Any]]]


def of_document(document: Any) -> list[Any]:
    """Return the memories of a document: the result of `get_all`, or an export; raises `InvalidInput`."""
    return objects(document, "results", "memories", "data")


def items(memories: Iterable[Any], history: History | None = None) -> Iterator[Found]:
    """Yield an item for each memory; earlier versions that the history knows are kept with it as metadata."""
    for number, one in enumerate(memories, 1):
        yield Found(f"memory {number}", _item(one, history or {}))


def of_point(point_id: Any, payload: Any) -> dict[str, Any]:
    """Return a memory as `get_all` does, from a point of its vector store: the text is under `data` there."""
    held = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    return {**held, "id": str(point_id)}


def _item(one: Any, history: History) -> dict[str, Any] | InvalidInput:
    fields = fields_of(one)
    if isinstance(fields, InvalidInput):
        return fields
    text = text_of(fields, "memory", "data", "text")
    if isinstance(text, InvalidInput):
        return text
    memory_id = fields.get("id")
    if not isinstance(memory_id, str) or not memory_id:
        return InvalidInput("is required: the id of the memory", field="id")
    created, updated = time_of(fields.get("created_at")), time_of(fields.get("updated_at"))
    told = history.get(memory_id, ())
    return without_none(
        id=memory_id,
        text=text,
        user_id=fields.get("user_id"),
        session_id=fields.get("run_id"),
        claimed_author=_author(fields, told),
        claimed_at=created or updated,
        observed_at=updated or created,
        valid_until=time_of(fields.get("expiration_date")),
        metadata=_metadata(fields, told),
    )


def _author(fields: Mapping[str, Any], told: Sequence[Mapping[str, Any]]) -> str | None:
    """Return who said it: the actor's name, else the user or the agent by the role of the message."""
    named = fields.get("actor_id") or next((one["actor_id"] for one in reversed(told) if one.get("actor_id")), None)
    if isinstance(named, str):
        return named
    role = fields.get("role") or next((one["role"] for one in told if one.get("role")), None)
    by_role = {"user": fields.get("user_id"), "assistant": fields.get("agent_id")}
    found = by_role.get(str(role)) or role
    return found if isinstance(found, str) else None


def _metadata(fields: Mapping[str, Any], told: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    kept = rest(fields, _TAKEN) or {}
    earlier = [
        without_none(
            event=one.get("event"),
            text=one.get("new_memory"),
            at=time_of(one.get("updated_at") or one.get("created_at")),
            by=one.get("actor_id"),
        )
        for one in told[:-1]
    ]
    run = {"run_id": fields["run_id"]} if fields.get("run_id") else {}
    return {**kept, **run, **({"earlier": earlier} if earlier else {})} or None
