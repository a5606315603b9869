"""Compile recalled memories into the memory section of a prompt, within a token budget and marked as data (REC-11)."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from muniment.errors import InvalidInput
from muniment.model.compiled import BudgetReport, Compiled, Format, Manifest, WriteNotice
from muniment.model.recall import ConflictSet, Record
from muniment.recall.compiling.blocks import order_entries
from muniment.recall.compiling.budget import Tokens, fill
from muniment.recall.compiling.formats import find_layout

__all__ = ["Tokens", "compile_memory"]

# Raise this with every change to the output for the same memories, so that new digests differ from old ones.
_VERSION = 3


def compile_memory(
    records: Sequence[Record],
    low_confidence: Sequence[Record],
    conflicts: Sequence[ConflictSet],
    *,
    token_budget: int,
    tokens: Tokens,
    format: Format,
    notices: tuple[WriteNotice, ...] = (),
) -> Compiled:
    """Write memories as text of at most `token_budget` tokens. Equal input gives equal output on any machine.

    Conflicts come first, then plain records, then records of low confidence, each in the order of their rank. An
    entry that does not fit is left out, and later ones are still tried. A plain record may be shortened, a conflict set
    never. The text of a memory cannot break out of its block. Raises `InvalidInput` for a negative budget or an unknown
    format.
    """
    if token_budget < 0:
        raise InvalidInput("must not be negative", field="token_budget")
    layout = find_layout(format)
    filled, used = fill(layout, tokens, token_budget, order_entries(records, low_confidence, conflicts))
    blocks = tuple(placed.as_block() for placed in filled.placed)
    contents = [block.content for block in blocks]
    text = layout.text(contents) if contents else ""
    manifest = Manifest(entries=tuple(placed.as_manifest_entry() for placed in filled.placed), write_notices=notices)
    hashed: dict[str, Any] = {
        "version": _VERSION,
        "format": format,
        "tokenizer": tokens.name,
        "token_budget": token_budget,
        "text": text,
        "blocks": [block.model_dump(mode="json") for block in blocks],
        "manifest": manifest.model_dump(mode="json"),
        "left_out": [left.model_dump(mode="json") for left in filled.left_out],
    }
    return Compiled(
        format=format,
        tokenizer=tokens.name,
        text=text,
        messages=layout.messages(contents) if contents else (),
        blocks=blocks,
        manifest=manifest,
        budget=BudgetReport(
            token_budget=token_budget,
            used=used,
            frame=filled.frame,
            blocks={placed.entry.id: placed.tokens for placed in filled.placed},
            left_out=tuple(filled.left_out),
        ),
        digest=_digest(hashed),
    )


def _digest(document: dict[str, Any]) -> str:
    """SHA-256, in hex, over canonical JSON: sorted keys, no spaces, ASCII."""
    canonical = json.dumps(document, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
