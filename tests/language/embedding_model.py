"""A stand-in for the package sentence-transformers, and the folder of a model."""

import sys
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest


class TheirModel:
    """As much of sentence-transformers' class as is used; fails when two threads are in it at once."""

    made: ClassVar[list[tuple[str, dict[str, Any]]]] = []
    length = 3

    def __init__(self, path: str, **options: Any) -> None:
        self.made.append((path, options))
        self.busy = False
        if (Path(path) / "broken").exists():
            raise OSError("no file named model.safetensors")

    def encode(self, sentences: list[str], **options: Any) -> Any:
        assert not self.busy, "Already borrowed"
        assert options["show_progress_bar"] is False
        self.busy = True
        Event().wait(0.002)  # lets another thread in, if it may
        self.busy = False
        if "boom" in sentences:
            raise RuntimeError("boom")
        return np.array([[float(len(one)), 1.0, 0.0][: self.length] for one in sentences], dtype=np.float32)


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> type[TheirModel]:
    package: Any = ModuleType("sentence_transformers")
    package.SentenceTransformer = TheirModel
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    monkeypatch.setattr(TheirModel, "made", [])
    return TheirModel


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "all MiniLM"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text('{"hidden_size": 3}')
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(8 << 20))
    return folder
