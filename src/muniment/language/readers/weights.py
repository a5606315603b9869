"""The files of the trained readers: the manifest that names them, and the check of their hashes."""

import json
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from muniment.errors import ReadersUnavailable

PACKAGE, RUNTIME = "muniment_models", "onnxruntime"
MANIFEST = "manifest.json"
_DIGITS = 12


@dataclass(frozen=True)
class ReaderFile:
    """One reader in the manifest: its graph, its labels, and the measured thresholds with their margin."""

    file: str
    labels: tuple[str, ...]
    thresholds: dict[str, float]
    margin: float
    max_tokens: int


@dataclass(frozen=True)
class Weights:
    """The readers' files in a folder, as their manifest describes them; `version` names them by the manifest's hash."""

    folder: Path
    version: str
    digests: dict[str, str]
    readers: dict[str, ReaderFile]
    tokenizer: str
    words: str

    @classmethod
    def read(cls, folder: Path) -> "Weights":
        """Read the manifest of a folder; raises `ReadersUnavailable` where there is none, or not a whole one."""
        try:
            content = (folder / MANIFEST).read_bytes()
            said = cast("dict[str, Any]", json.loads(content))
            files = cast("dict[str, dict[str, Any]]", said["files"])
            readers = cast("dict[str, dict[str, Any]]", said["readers"])
            return cls(
                folder,
                f"readers-{sha256(content).hexdigest()[:_DIGITS]}",
                {name: str(one["sha256"]) for name, one in files.items()},
                {name: _reader(one) for name, one in readers.items()},
                str(said["tokenizer"]),
                next(name for name in files if name.startswith("words.")),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
            raise ReadersUnavailable(f"the readers' manifest cannot be read: {type(error).__name__}") from error

    def content(self, name: str) -> bytes:
        """Return the bytes of a file; raises `ReadersUnavailable` where they do not match the manifest's hash."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError as error:
            raise ReadersUnavailable(f"the readers' file {name} cannot be read: {type(error).__name__}") from error
        if sha256(content).hexdigest() != self.digests.get(name):
            raise ReadersUnavailable(f"the readers' file {name} does not match its hash in the manifest")
        return content

    def check(self) -> None:
        """Check the hash of every file; raises `ReadersUnavailable`."""
        for name in {self.tokenizer, self.words, *(one.file for one in self.readers.values())}:
            self.content(name)


def _reader(said: dict[str, Any]) -> ReaderFile:
    return ReaderFile(
        file=str(said["file"]),
        labels=tuple(map(str, said["labels"])),
        thresholds={str(name): float(value) for name, value in said["thresholds"].items()},
        margin=float(said["margin"]),
        max_tokens=int(said["max_tokens"]),
    )


def installed_weights() -> Weights | None:
    """Return the weights of the package muniment-models; None where it is not installed, or holds no weights.

    Raises `ReadersUnavailable` where it holds weights that cannot be used: without a manifest that can be read, or
    without onnxruntime.
    """
    if find_spec(PACKAGE) is None:
        return None
    try:
        folder = cast("Path", import_module(PACKAGE).weights())
        # A source tree from which the weights were left out has an empty package.
        if not folder.is_dir() or not any(folder.iterdir()):
            return None
    except Exception as error:
        raise ReadersUnavailable(f"the package muniment-models cannot be used: {type(error).__name__}") from error
    if find_spec(RUNTIME) is None:
        raise ReadersUnavailable("muniment-models is installed without the package onnxruntime, which runs it")
    return Weights.read(folder)
