"""Golden scores: what the shipped weights say of texts written here, for a test on every machine (CAN-15)."""

import json
from pathlib import Path
from typing import Any

import yaml

from muniment.language.readers import Readers
from training.manifest import open_readers

_TEXTS = Path(__file__).parent / "golden.yaml"
# More digits than the margin needs, fewer than machines differ in.
_DIGITS = 4


def write_golden(folder: Path, out: Path) -> None:
    """Read the texts of `golden.yaml` with the weights of a folder and write what they score."""
    texts: dict[str, list[Any]] = yaml.safe_load(_TEXTS.read_text(encoding="utf-8"))
    document = golden(open_readers(folder), texts)
    out.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def golden(readers: Readers, texts: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the scores of pairs and texts, with the version of the readers and the hashes of their files."""
    loaded = readers.load()
    pairs = [(a, b, loaded.pairs.read(a, b)) for a, b in texts["pairs"]]
    guarded = [(text, loaded.guard.read(text)) for text in texts["guard"]]
    tagged = [(text, loaded.tagger.read(text)) for text in texts["tagger"]]
    return {
        "version": readers.version,
        "files": readers.weights.digests,
        "pairs": [{"a": a, "b": b, **_rounded(scores._asdict())} for a, b, scores in pairs],
        "guard": [{"text": text, **_rounded(scores._asdict())} for text, scores in guarded],
        "tagger": [{"text": text, "tags": [_rounded(tag._asdict()) for tag in tags]} for text, tags in tagged],
    }


def _rounded(scores: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, _DIGITS) if isinstance(value, float) else value for name, value in scores.items()}
