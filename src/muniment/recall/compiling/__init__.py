"""Compile: recalled memories as a prompt's memory section, within a token budget, as data that stays data (REC-11)."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from muniment.errors import InvalidInput
from muniment.model.compiled import BudgetReport, Compiled, Format, Manifest, WriteNotice
from muniment.model.recall import ConflictSet, Record
from muniment.recall.compiling.blocks import entries
from muniment.recall.compiling.budget import Tokens, fill
from muniment.recall.compiling.formats import layout

__all__ = ["Tokens", "compile_memory"]

# Raised with every change of what is written for the same memories: an old hash is then not expected to be met.
_VERSION = 2


def compile_memory(
    records: Sequence[Record],
    low_confidence: Sequence[Record],
    conflicts: Sequence[ConflictSet],
    *,
    token_budget: int,
    tokens: Tokens,
    format: Format,  # noqa: A002 (the word of the specification, in every interface)
    notices: tuple[WriteNotice, ...] = (),
) -> Compiled:
    """The memories as text of at most `token_budget` tokens; the same for the same, on any machine.

    Conflicts come first, then plain records, then those of low confidence, each as ranked. What does not fit is left
    out, and what is behind it may still fit; a plain record may be shortened, a conflict set never is. Nothing in a
    memory can leave its block. Raises `InvalidInput` for a negative budget or an unknown format.
    """
    if token_budget < 0:
        raise InvalidInput("must not be negative", field="token_budget")
    form = layout(format)
    room, used = fill(form, tokens, token_budget, entries(records, low_confidence, conflicts))
    blocks = tuple(placed.as_block() for placed in room.placed)
    shown = [block.content for block in blocks]
    text = form.text(shown) if shown else ""
    manifest = Manifest(entries=tuple(placed.in_manifest() for placed in room.placed), write_notices=notices)
    decided: dict[str, Any] = {
        "version": _VERSION,
        "format": format,
        "tokenizer": tokens.name,
        "token_budget": token_budget,
        "text": text,
        "blocks": [block.model_dump(mode="json") for block in blocks],
        "manifest": manifest.model_dump(mode="json"),
        "left_out": [left.model_dump(mode="json") for left in room.left_out],
    }
    return Compiled(
        format=format,
        tokenizer=tokens.name,
        text=text,
        messages=form.messages(shown) if shown else (),
        blocks=blocks,
        manifest=manifest,
        budget=BudgetReport(
            token_budget=token_budget,
            used=used,
            frame=room.frame,
            blocks={placed.entry.id: placed.tokens for placed in room.placed},
            left_out=tuple(room.left_out),
        ),
        digest=_digest(decided),
    )


def _digest(decided: dict[str, Any]) -> str:
    """SHA-256, in hex, over canonical JSON: sorted keys, no spaces, ASCII."""
    canonical = json.dumps(decided, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
