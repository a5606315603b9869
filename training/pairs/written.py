"""Pairs that were written by hand, one file for each field of life, in `written/`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# A written pair teaches more than a generated one, and there are few of them.
WEIGHT = 3.0


def written() -> Iterator[dict[str, Any]]:
    """Return the written pairs, each in both orders."""
    for path in sorted((Path(__file__).parent / "written").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                pair = json.loads(line)
                yield from _both_orders(pair["a"], pair["b"], pair["label"], f"written_{path.stem}")


def _both_orders(a: str, b: str, label: str, name: str) -> Iterator[dict[str, Any]]:
    forth, back = {
        "contradicts": ("contradicts", "contradicts"),
        "same": ("entails", "entails"),
        "neither": ("neither", "neither"),
        # Whether the more general statement leaves the other open is known; that it does not contradict it, too.
        "a_entails_b": ("entails", "not_contradiction"),
    }[label]
    yield {"a": a, "b": b, "label": forth, "set": name, "weight": WEIGHT}
    yield {"a": b, "b": a, "label": back, "set": name, "weight": WEIGHT}
