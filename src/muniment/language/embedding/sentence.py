"""Embeds texts with a sentence-transformers model from a local folder, never from the network."""

import re
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from numpy.typing import ArrayLike

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding.function import TITLE, CheckedEmbedder, check_dimensions, check_name

PACKAGE = "sentence_transformers"
EXTRA = "sentence-transformers"

# Read whole whatever their size, as a vocabulary can differ in one line.
_READ_WHOLE = {".json", ".txt", ".model", ".py"}
# Files that no vector depends on: documents, and the same weights for other engines.
_LEFT_OUT = {".md", ".png", ".jpg", ".svg", ".pdf", ".pyc", ".onnx", ".h5", ".msgpack", ".ot"}
_FOLDERS_LEFT_OUT = {"onnx", "openvino", "coreml", "__pycache__"}
_ENDS = 1 << 20
_SAMPLES, _SAMPLE = 64, 1 << 14


class SentenceTransformerEmbedder(CheckedEmbedder):
    """A sentence-transformers model; threads may share one, which serves one at a time.

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
        name = check_name(f"{title}@{_fingerprint(folder)}")
        # INVARIANT: one thread at a time, the model's tokenizer holds state while it works.
        self._lock = Lock()
        super().__init__(name, self._measure(name))

    def _encode(self, texts: list[str]) -> ArrayLike:
        with self._lock:
            return self._model.encode(texts, show_progress_bar=False, convert_to_numpy=True)

    def _measure(self, name: str) -> int:
        # By embedding a word, as the method for the dimensions changes its name between releases.
        try:
            (vector,) = self._model.encode(["one"], show_progress_bar=False, convert_to_numpy=True)
            length = len(vector)
        except Exception as error:
            raise EmbedderUnavailable(f"the model {name} gives no vectors: {type(error).__name__}") from error
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
    """Return eight digits of a hash over names, sizes and contents; of large files the ends and samples between."""
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
    # Layers that training leaves unchanged are often at both ends, so samples are taken in between.
    step = (size - 2 * _ENDS) // _SAMPLES
    yield from ((_ENDS + number * step, _SAMPLE) for number in range(_SAMPLES))
    yield size - _ENDS, _ENDS


def _add(found: Any, opened: BinaryIO, start: int, length: int) -> None:
    opened.seek(start)
    while length > 0 and (part := opened.read(min(length, _ENDS))):
        found.update(part)
        length -= len(part)
