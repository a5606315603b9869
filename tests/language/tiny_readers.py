"""Tiny readers for tests: real ONNX graphs of a few hundred bytes, whose answers follow from single words.

Each word of the vocabulary is one dimension of the word vectors. A score is the sigmoid or softmax of the sum of the
weights of the words that a text holds; `[CLS]` is in every text and carries the constant part. The graphs are written
as bytes here, so that the tests need nothing but onnxruntime.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from safetensors.numpy import save as save_tensors
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import muniment_models
from muniment.language.readers import Readers, Weights
from muniment.language.readers.tagger import OUTPUTS
from muniment.language.special import CATEGORIES

Words = Mapping[str, float]
_FLOAT, _INT64 = 1, 7
_SPECIAL = ("[UNK]", "[CLS]", "[SEP]")


# ---- the parts of a graph, in the wire format of ONNX ----


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _node(kind: str, inputs: Sequence[str], output: str, *attributes: bytes) -> bytes:
    parts = [_field(1, name) for name in inputs] + [_field(2, output), _field(4, kind)]
    return b"".join(parts + [_field(5, one) for one in attributes])


def _axes(*axes: int) -> bytes:
    return _field(1, "axes") + b"".join(_field(8, axis) for axis in axes) + _field(20, 7)


def _int(name: str, value: int) -> bytes:
    return _field(1, name) + _field(3, value) + _field(20, 2)


def _constant(name: str, values: np.ndarray) -> bytes:
    dims = b"".join(_field(1, size) for size in values.shape)
    return dims + _field(2, _FLOAT) + _field(8, name) + _field(9, values.astype("<f4").tobytes())


def _value(name: str, kind: int, *dims: str | int) -> bytes:
    shape = b"".join(_field(1, _field(2, dim) if isinstance(dim, str) else _field(1, dim)) for dim in dims)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _model(width: int, nodes: Sequence[bytes], constants: Sequence[bytes], outputs: Sequence[bytes]) -> bytes:
    inputs = [
        _value("words", _FLOAT, "batch", "tokens", width),
        _value("mask", _INT64, "batch", "tokens"),
        _value("types", _INT64, "batch", "tokens"),
    ]
    graph = b"".join(
        [_field(1, one) for one in nodes]
        + [_field(2, "tiny")]
        + [_field(5, one) for one in constants]
        + [_field(11, one) for one in inputs]
        + [_field(12, one) for one in outputs]
    )
    return _field(1, 8) + _field(8, _field(2, 17)) + _field(7, graph)


# ---- the readers ----


def _columns(vocabulary: Sequence[str], weights: Sequence[Words]) -> np.ndarray:
    return np.array([[column.get(word, 0.0) for column in weights] for word in vocabulary], dtype=np.float32)


def _whole_text(vocabulary: Sequence[str]) -> bytes:
    # The largest value of each dimension: 1 for every word that the text holds.
    return _node("ReduceMax", ["words"], "held", _axes(1), _int("keepdims", 0))


def _pairs(vocabulary: Sequence[str], contradicts: Words, entails: Words) -> bytes:
    nodes = [
        _whole_text(vocabulary),
        _node("MatMul", ["held", "weights"], "sums"),
        _node("Softmax", ["sums"], "scores", _int("axis", -1)),
    ]
    constant = _constant("weights", _columns(vocabulary, [contradicts, entails, {}]))
    return _model(len(vocabulary), nodes, [constant], [_value("scores", _FLOAT, "batch", 3)])


def _guard(vocabulary: Sequence[str], attack: Words, worth: Words) -> bytes:
    nodes = [_whole_text(vocabulary)]
    constants: list[bytes] = []
    for name, weights in (("attack", attack), ("worth", worth)):
        constants.append(_constant(f"{name}_weights", _columns(vocabulary, [weights])[:, 0]))
        nodes.append(_node("MatMul", ["held", f"{name}_weights"], f"{name}_sum"))
        nodes.append(_node("Sigmoid", [f"{name}_sum"], name))
    outputs = [_value(name, _FLOAT, "batch") for name in ("attack", "worth")]
    return _model(len(vocabulary), nodes, constants, outputs)


def _tagger(vocabulary: Sequence[str], layers: Sequence[Sequence[str]], tags: Mapping[str, str]) -> bytes:
    nodes: list[bytes] = []
    constants: list[bytes] = []
    outputs: list[bytes] = []
    for output, labels in zip(OUTPUTS, layers, strict=False):
        columns = [
            {word: 8.0 for word, label in tags.items() if label == one} | ({"[UNK]": 4.0} if one == "O" else {})
            for one in labels
        ]
        constants.append(_constant(f"{output}_weights", _columns(vocabulary, columns)))
        nodes.append(_node("MatMul", ["words", f"{output}_weights"], f"{output}_sums"))
        nodes.append(_node("Softmax", [f"{output}_sums"], output, _int("axis", -1)))
        outputs.append(_value(output, _FLOAT, "batch", "tokens", len(labels)))
    return _model(len(vocabulary), nodes, constants, outputs)


def write_weights(
    folder: Path,
    *,
    contradicts: Words | None = None,
    entails: Words | None = None,
    attack: Words | None = None,
    worth: Words | None = None,
    tags: Mapping[str, str] | None = None,
    unrelated: Words | None = None,
    margin: float = 0.05,
    max_tokens: int = 64,
    version: str = "1",
) -> Path:
    """Write the weights of tiny readers to a folder; each mapping gives the weights of words, `tags` their labels.

    The prefilter leaves out the pairs that hold a word of `unrelated`.
    """
    given = [contradicts or {}, entails or {}, attack or {}, worth or {}]
    vocabulary = [
        *_SPECIAL,
        *sorted({word for one in (*given, tags or {}, unrelated or {}) for word in one} - set(_SPECIAL)),
    ]
    given_labels = sorted(set((tags or {}).values()))
    special = [one for one in given_labels if one.partition("-")[0] in CATEGORIES]
    layers = [["O", *(one for one in given_labels if one not in special)], ["O", *special]]
    labels = [label for layer in layers for label in layer]
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.eye(len(vocabulary), dtype=np.int8) * 127
    scales = np.full(len(vocabulary), 1 / 127, dtype=np.float16)
    contents = {
        "tokenizer.json": _tokenizer(vocabulary).to_str().encode(),
        "words.safetensors": save_tensors({"rows": rows, "scales": scales}),
        "pairs.onnx": _pairs(vocabulary, given[0], given[1]),
        "prefilter.onnx": _pairs(vocabulary, *[{word: -weight for word, weight in (unrelated or {}).items()}] * 2),
        "guard.onnx": _guard(vocabulary, given[2], given[3]),
        "tagger.onnx": _tagger(vocabulary, layers, tags or {}),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    usual = {"margin": margin, "max_tokens": max_tokens}
    spans = {part: 0.5 for label in labels if label != "O" for part in label.split("-") if len(part) > 1}
    manifest = {
        "version": version,
        "files": {
            name: {"sha256": sha256(content).hexdigest(), "bytes": len(content)} for name, content in contents.items()
        },
        "readers": {
            "pairs": usual
            | {
                "file": "pairs.onnx",
                "labels": ["contradicts", "entails", "neither"],
                "thresholds": {"contradicts": 0.8, "same": 0.8},
            },
            "prefilter": usual
            | {
                "file": "prefilter.onnx",
                "labels": ["contradicts", "entails", "neither"],
                "thresholds": {"related": 0.6},
            },
            "guard": usual
            | {"file": "guard.onnx", "labels": ["attack", "worth"], "thresholds": {"attack": 0.8, "worth": 0.5}},
            "tagger": usual | {"file": "tagger.onnx", "labels": labels, "thresholds": spans},
        },
        "tokenizer": "tokenizer.json",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return folder


def _tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    made = Tokenizer(models.WordPiece({word: index for index, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def tiny_readers(folder: Path, **given: object) -> Readers:
    """Return readers with the tiny weights of `write_weights`."""
    return Readers(Weights.read(write_weights(folder, **given)))


def install_weights(folder: Path, **given: object) -> Path:
    """Write a package muniment_models with tiny weights to a folder, which PYTHONPATH is to name first."""
    package = folder / "muniment_models"
    write_weights(package / "weights", **given)
    (package / "__init__.py").write_text(Path(muniment_models.__file__).read_text())
    return folder
