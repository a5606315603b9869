"""A model of sentence-transformers: loaded only from its folder, and named by its contents."""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding import Embedder
from muniment.language.embedding.sentence import SentenceTransformerEmbedder
from tests.language.embedding_model import TheirModel, model, theirs
from tests.language.embedding_texts import unit

__all__ = ["model", "theirs"]  # fixtures


def test_without_the_package_the_error_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderUnavailable, match=r"pip install 'muniment\[sentence-transformers\]'"):
        SentenceTransformerEmbedder(model)


def test_a_model_is_loaded_from_its_folder_and_nothing_from_the_network(model: Path, theirs: type[TheirModel]) -> None:
    embedder: Embedder = SentenceTransformerEmbedder(model)
    assert theirs.made == [(str(model), {"local_files_only": True, "trust_remote_code": False})]
    assert embedder.dimensions == 3
    assert embedder.embed(["ab", "", "abc"]) == pytest.approx(np.array([unit("ab"), [0, 0, 0], unit("abc")]), abs=1e-6)


@pytest.mark.parametrize(
    "path", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all MiniLM/config.json"]
)
def test_what_is_no_folder_is_refused_and_not_looked_for_elsewhere(
    path: str, model: Path, theirs: type[TheirModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    with pytest.raises(InvalidInput, match="no folder") as raised:
        SentenceTransformerEmbedder(path)
    assert raised.value.field == "path"
    assert theirs.made == []


@pytest.mark.usefixtures("theirs")
def test_the_name_is_the_folders_with_eight_digits_and_wherever_the_folder_lies_the_digits_are_the_same(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title, _, digits = SentenceTransformerEmbedder(model).name.partition("@")
    assert (title, len(digits)) == ("all-MiniLM", 8)
    monkeypatch.chdir(model)
    assert SentenceTransformerEmbedder(".").name == f"{title}@{digits}"
    model.rename(model.parent / "other")
    assert SentenceTransformerEmbedder(model.parent / "other", name="BAAI/mini").name == f"BAAI/mini@{digits}"


@pytest.mark.usefixtures("theirs")
def test_a_name_given_with_a_version_is_refused(model: Path) -> None:
    with pytest.raises(InvalidInput) as raised:
        SentenceTransformerEmbedder(model, name="mini@1")
    assert raised.value.field == "name"


def _write(place: str, at: int, what: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with (folder / place).open("r+b") as file:
            file.seek(at)
            file.write(what)

    return change


@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize(
    "change",
    [
        _write("config.json", 0, b"["),
        _write("1_Pooling/config.json", 0, b"["),
        _write("model.safetensors", 0, b"x"),
        _write("model.safetensors", (8 << 20) - 1, b"x"),
        _write("model.safetensors", 8 << 20, b"\0"),
        _write("model.safetensors", 3 << 20, b"x" * (2 << 20)),
        lambda folder: (folder / "vocab.txt").write_text("a"),
        lambda folder: (folder / "config.json").rename(folder / "configuration.json"),
    ],
    ids=["config", "config below", "first byte", "last byte", "longer", "layers in between", "new file", "renamed"],
)
@pytest.mark.rule("JOB-11")
def test_another_model_in_the_same_folder_has_another_name(model: Path, change: Callable[[Path], None]) -> None:
    before = SentenceTransformerEmbedder(model).name
    change(model)
    assert SentenceTransformerEmbedder(model).name != before


@pytest.mark.usefixtures("theirs")
def test_a_large_vocabulary_that_differs_in_one_letter_has_another_name(model: Path) -> None:
    (model / "tokenizer.json").write_bytes(b"a" * (8 << 20))
    before = SentenceTransformerEmbedder(model).name
    _write("tokenizer.json", (4 << 20) + 50_000, b"b")(model)
    assert SentenceTransformerEmbedder(model).name != before


@pytest.mark.usefixtures("theirs")
def test_what_no_vector_depends_on_does_not_change_the_name(model: Path) -> None:
    before = SentenceTransformerEmbedder(model).name
    for place in ("README.md", ".git/HEAD", "onnx/config.json", "__pycache__/a.pyc", "model.onnx"):
        (model / place).parent.mkdir(exist_ok=True)
        (model / place).write_text("x")
    os.utime(model / "config.json", (0, 0))
    assert SentenceTransformerEmbedder(model).name == before


@pytest.mark.usefixtures("theirs")
def test_only_a_little_of_large_weights_is_read(model: Path) -> None:
    with (model / "model.safetensors").open("r+b") as file:
        file.truncate(1 << 40)  # a hole: a terabyte that takes no place, and no time if it is not read
    assert SentenceTransformerEmbedder(model).name.startswith("all-MiniLM@")


@pytest.mark.usefixtures("theirs")
def test_a_model_that_cannot_be_loaded_or_fails_is_unavailable(model: Path) -> None:
    embedder = SentenceTransformerEmbedder(model)
    with pytest.raises(EmbedderUnavailable, match="RuntimeError"):
        embedder.embed(["boom"])
    (model / "broken").touch()
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded: OSError"):
        SentenceTransformerEmbedder(model)


def test_a_model_with_vectors_of_no_length_is_refused(
    model: Path, theirs: type[TheirModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theirs, "length", 0)
    with pytest.raises(InvalidInput, match="from 1 to 4000"):
        SentenceTransformerEmbedder(model)


@pytest.mark.usefixtures("theirs")
def test_only_one_thread_at_a_time_is_in_the_model(model: Path) -> None:
    embedder = SentenceTransformerEmbedder(model)
    texts = ["x" * number for number in range(1, 17)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    assert np.array(found) == pytest.approx(np.array([unit(text) for text in texts]), abs=1e-6)
