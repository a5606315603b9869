"""The base encoder in the form that training starts from: its word table in int8, everything else in half precision.

The word table stays as it is here: training does not change it, so all readers share one.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, load_file, save_file

from training.inputs import encoder_file

_TABLE = "embeddings.word_embeddings.weight"
WORDS_FILE, TRUNK_FILE = "words.safetensors", "trunk.safetensors"


def prepare_base(encoder: Path, out: Path) -> None:
    """Write the word table and the trunk of the pinned encoder to a folder."""
    weights = load(encoder_file(encoder, "model.safetensors"))
    table = weights.pop(_TABLE).astype(np.float32)
    scales = (np.abs(table).max(axis=1) / 127).astype(np.float16)
    rows = np.rint(table / np.maximum(scales.astype(np.float32), 1e-8)[:, None]).clip(-127, 127).astype(np.int8)
    out.mkdir(parents=True, exist_ok=True)
    save_file({"rows": rows, "scales": scales}, out / WORDS_FILE)
    trunk = {name: value.astype(np.float16) for name, value in weights.items() if value.dtype == np.float32}
    save_file(trunk, out / TRUNK_FILE)
    (out / "tokenizer.json").write_bytes(encoder_file(encoder, "tokenizer.json"))


def word_table(base: Path) -> NDArray[np.float32]:
    """Return the shared word table as every reader sees it."""
    table = load_file(base / WORDS_FILE)
    return table["rows"].astype(np.float32) * table["scales"].astype(np.float32)[:, None]
