"""The built-in embedder: the same bits for the same text, unit length, and no network at all."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.errors import EmbedderUnavailable
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, StaticEmbedder, builtin_embedder, static

TEXTS = ["The customer prefers email.", "Returns are accepted within 30 days.", "", "Grüße aus Zürich 🚀", " \n\t"]


def test_the_builtin_embedder_says_its_name_and_its_dimensions() -> None:
    embedder: Embedder = builtin_embedder()
    assert (embedder.name, embedder.dimensions) == (BUILTIN_EMBEDDER, 256)
    assert embedder.name == "wordllama-256@1"
    assert embedder.embed(TEXTS).shape == (len(TEXTS), 256)
    assert embedder.embed([]).shape == (0, 256)


def test_the_builtin_embedder_is_loaded_once_for_all_threads() -> None:
    first = builtin_embedder()
    with ThreadPoolExecutor(4) as pool:
        assert all(one is first for one in pool.map(lambda _: builtin_embedder(), range(8)))
        alone = first.embed(TEXTS).tobytes()
        assert {vectors.tobytes() for vectors in pool.map(lambda _: first.embed(TEXTS), range(32))} == {alone}


def test_a_second_loading_gives_the_same_bits() -> None:
    assert StaticEmbedder.load().embed(TEXTS).tobytes() == builtin_embedder().embed(TEXTS).tobytes()


def test_every_vector_has_unit_length_and_a_text_without_words_is_the_zero_vector() -> None:
    vectors = builtin_embedder().embed(TEXTS)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths[[0, 1, 3]] == pytest.approx(1, abs=1e-5)
    assert not vectors[2].any()
    assert not vectors[4].any()


@settings(deadline=None)
@given(st.lists(st.text(max_size=60), max_size=8))
def test_a_text_gives_the_same_bits_alone_and_in_a_batch(texts: list[str]) -> None:
    together = builtin_embedder().embed(texts)
    for text, vector in zip(texts, together, strict=True):
        assert builtin_embedder().embed([text])[0].tobytes() == vector.tobytes()


def test_long_texts_are_embedded_whole_and_do_not_disturb_their_batch() -> None:
    start = "The parcel was left with a neighbour. " * 860
    tail = "Quarterly invoices go to the finance team in Oslo. " * 400
    embedder = builtin_embedder()
    one, other, short = embedder.embed([start[:32_768], start[:12_768] + tail[:20_000], TEXTS[0]])
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-5)
    assert float(one @ other) < 0.9
    assert short.tobytes() == embedder.embed([TEXTS[0]])[0].tobytes()


def test_half_of_a_surrogate_pair_is_embedded_like_any_other_text() -> None:
    assert np.linalg.norm(builtin_embedder().embed(["price \ud83d list"])[0]) == pytest.approx(1, abs=1e-5)


def test_texts_that_mean_alike_are_nearer_than_texts_that_do_not() -> None:
    asked, near, far = builtin_embedder().embed(
        ["Refunds take two weeks.", "A refund is paid within two weeks.", "The violinist is asleep."]
    )
    assert float(asked @ near) > 0.5 > float(asked @ far)


def test_loading_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_named: Any) -> NoReturn:
        raise AssertionError("the embedder asked for the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert StaticEmbedder.load().embed(TEXTS).any()


def test_the_code_of_the_wheel_is_never_imported() -> None:
    program = (
        "import sys; from muniment.language.embedding import builtin_embedder; builtin_embedder().embed(['x']);"
        "sys.exit(any(name.split('.')[0] in ('wordllama', 'requests') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "WHEEL", "no_such_wheel")
    with pytest.raises(EmbedderUnavailable, match="the package no_such_wheel is missing"):
        StaticEmbedder.load()


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "WEIGHTS", "weights/none.safetensors")
    with pytest.raises(EmbedderUnavailable, match=r"weights/none\.safetensors is missing"):
        StaticEmbedder.load()


def test_a_broken_file_is_reported_without_its_insides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00" * 32)
    monkeypatch.setattr(static, "_file", lambda _name: broken)
    with pytest.raises(EmbedderUnavailable, match="cannot be read"):
        StaticEmbedder.load()


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.rule("ERA-2")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read off /proc")
def test_no_text_stays_in_memory_once_it_is_embedded() -> None:
    embedder = StaticEmbedder.load()
    embedder.embed([f"A first text, number {n}." for n in range(2000)])
    grown: list[int] = []
    for turn in range(3):
        before = _resident()
        for part in range(4):
            embedder.embed(
                [f"{turn}, {part} of {n}, which nobody has said before {n * part} times." for n in range(500)]
            )
        grown.append(_resident() - before)
    # Kept, they take 5 MB a turn. Others in this process may take some meanwhile, but not in every turn.
    assert min(grown) < 2 * 1024 * 1024
