"""Graphiti and Zep: facts on edges of a graph, with the times at which they held, and their episodes. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from muniment.errors import InvalidInput
from muniment.transfer.sources.found import Found, fields_of, objects, rest, text_of, time_of, without_none

_TAKEN = (
    *("uuid", "uuid_", "id", "fact", "group_id", "user_id", "created_at", "valid_at", "invalid_at", "fact_embedding"),
    *("score", "relevance"),
)
Episodes = Mapping[str, Mapping[str, Any]]


def of_document(document: Any) -> tuple[list[Any], dict[str, Mapping[str, Any]]]:
    """Return the edges of a document, and its episodes by their id; raises `InvalidInput`.

    Edges are a list, or stand under `edges`, `facts` or `relevant_facts`, as Graphiti's models and Zep's API have them.
    """
    edges = objects(document, "edges", "facts", "relevant_facts", "entity_edges")
    named = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    listed: list[Any] = named["episodes"] if isinstance(named.get("episodes"), list) else []
    found = [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]
    return edges, {str(one.get("uuid") or one.get("uuid_")): one for one in found}


def user_of(document: Any) -> str | None:
    """Return the user that a whole document is about, if it says so."""
    named = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    found = named.get("user_id")
    return found if isinstance(found, str) else None


def items(
    edges: Iterable[Any], episodes: Episodes, *, groups_are_users: bool, user: str | None = None
) -> Iterator[Found]:
    """Yield an item for each edge that states a fact; `groups_are_users` takes its group for the user."""
    for number, one in enumerate(edges, 1):
        yield Found(f"edge {number}", _item(one, episodes, groups_are_users, user))


def _item(one: Any, episodes: Episodes, groups_are_users: bool, user: str | None) -> dict[str, Any] | InvalidInput:
    fields = fields_of(one)
    if isinstance(fields, InvalidInput):
        return fields
    text = text_of(fields, "fact")
    if isinstance(text, InvalidInput):
        return text
    edge_id = fields.get("uuid") or fields.get("uuid_") or fields.get("id")
    if not isinstance(edge_id, str):
        return InvalidInput("is required: the id of the edge", field="uuid")
    told = [episodes[name] for name in _names(fields.get("episodes")) if name in episodes]
    seen = time_of(told[0].get("valid_at") or told[0].get("created_at")) if told else None
    created = time_of(fields.get("created_at"))
    group = fields.get("group_id") if groups_are_users else None
    kept = rest(fields, _TAKEN) or {}
    if told:
        kept["told_in"] = [without_none(name=one.get("name"), source=one.get("source_description")) for one in told]
    if fields.get("group_id") and not groups_are_users:
        kept["group_id"] = fields["group_id"]
    return without_none(
        id=edge_id,
        text=text,
        user_id=fields.get("user_id") or group or user,
        claimed_author=_speaker(told),
        claimed_at=created,
        observed_at=seen or created,
        valid_from=time_of(fields.get("valid_at")),
        valid_until=time_of(fields.get("invalid_at")),
        evidence_refs=[f"episode:{name}" for name in _names(fields.get("episodes"))][:16] or None,
        metadata=kept or None,
    )


def _names(value: Any) -> list[str]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [one for one in listed if isinstance(one, str) and 0 < len(one) <= 128]


def _speaker(told: list[Mapping[str, Any]]) -> str | None:
    """Return who told it, where the episode is one message of one speaker: `name: text`."""
    if len(told) != 1 or told[0].get("source") != "message":
        return None
    content = told[0].get("content")
    name, colon, _ = content.partition(":") if isinstance(content, str) else ("", "", "")
    return name.strip() if colon and 0 < len(name.strip()) <= 64 and "\n" not in name else None
