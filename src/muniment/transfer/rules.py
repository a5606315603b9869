"""Rules of imports: what a capture is made of an item, and by what an item is known again (IMP-2). Pure."""

from typing import Any

from pydantic_core import to_json

from muniment.model.capture import CaptureInput, Claims, TypedFact
from muniment.model.fields import build
from muniment.model.imports import ImportItem
from muniment.model.speakers import IMPORT
from muniment.pack import Pack

# What a capture takes of an item as it is.
_CIRCUMSTANCES = (
    *("subject", "user_id", "session_id", "recall_id", "intent_id", "workflow_id", "decision_key"),
    *("qualifiers", "evidence_refs", "valid_from", "valid_until"),
)
_OF_FACT = ("entity", "predicate", "value", "text")


def capture_of_item(item: ImportItem, system: str, import_id: str, pack: Pack) -> CaptureInput:
    """Return the capture that an item becomes; raises `InvalidInput`.

    Its origin is the system, its run the import. The item's time is when the fact was observed; author, time and all
    else that the other system says are claims, and sealed.
    """
    fields: dict[str, Any] = {name: getattr(item, name) for name in _CIRCUMSTANCES}
    fields |= {
        "kind": item.kind,
        "classification": item.classification or pack.default_label,
        "origin": f"{IMPORT}{system}",
        "run_id": import_id,
        "observed_at": item.observed_at or item.claimed_at,
        "claims": Claims(
            system=system,
            item_id=item.id,
            claimed_author=item.claimed_author,
            claimed_at=item.claimed_at,
            metadata=item.metadata,
        ),
    }
    if item.is_fact:
        fields["fact"] = _fact(item, pack)
    else:
        fields |= {"text": item.text, "payload": item.payload}
    return build(CaptureInput, fields)


def _fact(item: ImportItem, pack: Pack) -> TypedFact:
    stated = item.confidence if item.confidence is not None else pack.memory_layer.imports.confidence
    own = {name: getattr(item, name) for name in _OF_FACT}
    return build(TypedFact, {"write_class": item.write_class or "statement", "confidence": stated, **own})


def identity(item_id: str) -> bytes:
    """Return what the id of an item is known by, to be hashed."""
    return b"import\0" + item_id.encode()


def content(item: ImportItem) -> bytes:
    """Return everything that an item says, as canonical bytes: an item that changed there is brought in again."""
    return to_json(item.model_dump(mode="json", exclude_none=True))


def key_of(mark: str, revision: int) -> str:
    """Return the key under which a revision of an item is kept."""
    return mark if revision == 1 else f"{mark}#{revision}"
