"""The folder of the package muniment-models: the readers' files and the manifest that names them.

The manifest also says what the readers were made of: the pinned inputs, the rows and the plan of each training, and on
which development data the thresholds were chosen.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muniment.language.readers import Readers, Weights
from muniment.language.readers.pairs import RELATED
from muniment.language.readers.readers import PREFILTER
from muniment.language.readers.weights import MANIFEST
from training.answers import READERS, Reader
from training.base import WORDS_FILE
from training.inputs import DIGESTS, ENCODER_DIGESTS
from training.record import TOKENIZER_FILE, Record, digest, read_record
from training.tagger.labels import CATEGORIES, LABELS

# The largest file, in bytes.
LARGEST = 15_000_000
# How far the score of a text may differ between two processors.
MARGIN = 0.02
# Thresholds until `thresholds` has chosen them.
_FIRST = {
    "pairs": {"contradicts": 0.85, "same": 0.55},
    "prefilter": {"related": 0.0},
    "guard": {"attack": 0.3, "worth": 0.8},
    "tagger": dict.fromkeys(LABELS, 0.5) | dict.fromkeys(CATEGORIES, 0.85),
}
# Seconds that eight texts may take here, where nobody waits for them.
_PATIENCE = 600.0

Manifest = dict[str, Any]


class NotWhole(Exception):
    """What was trained does not make a whole set of readers."""


def build(base: Path, trained: Sequence[Path], out: Path, margin: float = MARGIN) -> Readers:
    """Write the weights' folder from the base and the folders of the trainings, and return its readers.

    Each reader's graph must be in exactly one of the folders, with its record, and trained on this base. Raises
    `NotWhole` otherwise, and where a file is larger than `LARGEST`.
    """
    sources = {WORDS_FILE: base / WORDS_FILE, TOKENIZER_FILE: base / TOKENIZER_FILE}
    records: dict[str, Record] = {}
    for name in READERS:
        folder = _only(name, [one for one in trained if (one / _graph(name)).is_file()])
        sources[_graph(name)] = folder / _graph(name)
        records[name] = _checked(name, read_record(folder, name), base)
    for name, path in sources.items():
        if path.stat().st_size > LARGEST:
            raise NotWhole(f"{name} has {path.stat().st_size} bytes, more than {LARGEST}")
    out.mkdir(parents=True, exist_ok=True)
    for name, path in sources.items():
        shutil.copyfile(path, out / name)
    write_manifest(out, _manifest(out, list(sources), records, margin))
    return open_readers(out)


def open_readers(folder: Path, *, judge_reads_all: bool = False) -> Readers:
    """Return the readers of a weights' folder, loaded; with `judge_reads_all` the prefilter leaves no pair out.

    Raises `ReadersUnavailable`.
    """
    weights = Weights.read(folder)
    if judge_reads_all:
        open_filter = replace(weights.readers[PREFILTER], thresholds={RELATED: 0.0})
        weights = replace(weights, readers=weights.readers | {PREFILTER: open_filter})
    readers = Readers(weights, seconds=_PATIENCE)
    readers.load()
    return readers


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a weights' folder."""
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest; its bytes name the version of the readers."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def set_thresholds(folder: Path, chosen: Mapping[str, Mapping[str, float]], measured: Mapping[str, Any]) -> None:
    """Write the thresholds of each reader to the manifest, and the development figures that they were chosen by."""
    manifest = read_manifest(folder)
    for reader, thresholds in chosen.items():
        manifest["readers"][reader]["thresholds"] = dict(thresholds)
    manifest.setdefault("training", {})["thresholds"] = dict(measured)
    write_manifest(folder, manifest)


def _manifest(folder: Path, files: Sequence[str], records: Mapping[str, Record], margin: float) -> Manifest:
    return {
        "files": {
            name: {"sha256": digest(folder / name), "bytes": (folder / name).stat().st_size} for name in sorted(files)
        },
        "tokenizer": TOKENIZER_FILE,
        "readers": {name: _reader(reader, margin) for name, reader in READERS.items()},
        "training": {"encoder": ENCODER_DIGESTS, "inputs": DIGESTS, "readers": dict(records)},
    }


def _reader(reader: Reader, margin: float) -> dict[str, Any]:
    return {
        "file": _graph(reader.name),
        "labels": list(reader.labels),
        "max_tokens": reader.most_tokens,
        "thresholds": _FIRST[reader.name],
        "margin": margin,
    }


def _graph(reader: str) -> str:
    return f"{reader}.onnx"


def _only(reader: str, folders: Sequence[Path]) -> Path:
    if len(folders) != 1:
        raise NotWhole(f"expected {_graph(reader)} in one of the folders, found it in {len(folders)}")
    return folders[0]


def _checked(reader: str, record: Record, base: Path) -> Record:
    for name in (WORDS_FILE, TOKENIZER_FILE):
        if record["base"][name] != digest(base / name):
            raise NotWhole(f"the reader {reader} was trained with another {name}")
    return record
