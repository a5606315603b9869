"""Letta: the memory blocks and archival passages of an agent file (.af), or of its API. Pure."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, cast

from muniment.errors import InvalidInput
from muniment.transfer.sources.found import Found, fields_of, rest, text_of, time_of, without_none

_BLOCK = ("id", "label", "value", "limit", "created_at", "updated_at", "created_by_id", "last_updated_by_id")
_PASSAGE = ("id", "text", "created_at", "updated_at", "created_by_id", "embedding", "embedding_config")


def items(document: Any) -> Iterator[Found]:
    """Yield an item for each line of a block and for each passage; raises `InvalidInput` if there are neither.

    A block is edited as one text and states one thing a line: each line is known by its words, so that a block that
    was changed there brings in its new lines only.
    """
    blocks, passages = list(_listed(document, "blocks", "core_memory")), list(_listed(document, "passages"))
    if isinstance(document, list):
        listed = cast("list[Any]", document)
        blocks, passages = [one for one in listed if _is_block(one)], [one for one in listed if not _is_block(one)]
    if not blocks and not passages:
        raise InvalidInput("expected an agent file with blocks or passages, or a list of them", field="file")
    for number, one in enumerate(blocks, 1):
        yield from _lines(f"block {number}", one)
    for number, one in enumerate(passages, 1):
        yield Found(f"passage {number}", _passage(one))


def _is_block(one: Any) -> bool:
    return isinstance(one, dict) and "value" in one


def _listed(document: Any, *names: str) -> Iterator[Any]:
    """Yield the objects under these names, in the file itself and in its agents."""
    if not isinstance(document, dict):
        return
    named = cast("dict[str, Any]", document)
    agents = cast("list[Any]", named["agents"]) if isinstance(named.get("agents"), list) else []
    for holder in (named, *(cast("dict[str, Any]", one) for one in agents if isinstance(one, dict))):
        for name in names:
            if isinstance(holder.get(name), list):
                yield from holder[name]


def _lines(place: str, one: Any) -> Iterator[Found]:
    fields = fields_of(one)
    if isinstance(fields, InvalidInput):
        yield Found(place, fields)
        return
    value, label = fields.get("value"), str(fields.get("label") or "block")
    if not isinstance(value, str):
        yield Found(f"{place} ({label})", InvalidInput("is required: the text of the block", field="value"))
        return
    owner = str(fields.get("id") or label)
    seen: set[str] = set()
    for number, line in enumerate(value.splitlines(), 1):
        text = line.strip().removeprefix("-").removeprefix("*").strip()
        if text and text not in seen:
            seen.add(text)
            mark = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            kept = {"block": label, **(rest(fields, _BLOCK) or {})}
            yield Found(f"{place} ({label}), line {number}", _item(fields, f"{owner}#{mark}", text, kept))


def _passage(one: Any) -> dict[str, Any] | InvalidInput:
    fields = fields_of(one)
    if isinstance(fields, InvalidInput):
        return fields
    text = text_of(fields, "text")
    if isinstance(text, InvalidInput):
        return text
    mark = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _item(fields, str(fields.get("id") or f"passage#{mark}"), text, rest(fields, _PASSAGE))


def _item(fields: Mapping[str, Any], item_id: str, text: str, metadata: dict[str, Any] | None) -> dict[str, Any]:
    created, updated = time_of(fields.get("created_at")), time_of(fields.get("updated_at"))
    author = fields.get("last_updated_by_id") or fields.get("created_by_id")
    return without_none(
        id=item_id,
        text=text,
        claimed_author=author if isinstance(author, str) else None,
        claimed_at=created or updated,
        observed_at=updated or created,
        metadata=metadata,
    )
