"""Any function as an embedder: its answers are checked, its failures reported without the text."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding import Embedder
from muniment.language.embedding.function import FunctionEmbedder
from tests.language.embedding_texts import SECRET_TEXT, unit, vector


def _function(answer: Callable[[list[str]], Any]) -> FunctionEmbedder:
    return FunctionEmbedder(answer, name="mine@1", dimensions=3)


def _raising(error: Exception) -> Callable[[list[str]], Any]:
    def raise_it(_: list[str]) -> Any:
        raise error

    return raise_it


def test_what_a_function_gives_becomes_rows_of_unit_length_in_single_precision() -> None:
    embedder: Embedder = _function(lambda texts: [vector(text) for text in texts])
    vectors = embedder.embed(["a", "abc"])
    assert (vectors.dtype, vectors.shape) == (np.float32, (2, 3))
    assert vectors == pytest.approx(np.array([unit("a"), unit("abc")]), abs=1e-6)
    assert (embedder.name, embedder.dimensions) == ("mine@1", 3)
    assert embedder.embed([]).shape == (0, 3)


@pytest.mark.parametrize(
    "answer",
    [
        np.array([[3, 4, 0]], dtype=np.int64),
        np.array([[3, 4, 0]], dtype=np.float16),
        [np.array([3.0, 4.0, 0.0])],
        ((3, 4, 0),),
        [[3e300, 4e300, 0]],
        [[3e-320, 4e-320, 0]],
    ],
    ids=["integers", "half precision", "arrays in a list", "tuples", "very large", "very small"],
)
def test_any_rows_of_numbers_will_do(answer: Any) -> None:
    assert _function(lambda _: answer).embed(["a"])[0] == pytest.approx([0.6, 0.8, 0.0], abs=1e-3)


def test_a_blank_text_is_the_zero_vector_and_the_function_is_not_asked_about_it() -> None:
    asked: list[list[str]] = []

    def answer(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return [vector(text) for text in texts]

    vectors = _function(answer).embed(["", "ab", " \n\t", "abcd"])
    assert vectors.any(axis=1).tolist() == [False, True, False, True]
    assert vectors[3] == pytest.approx(unit("abcd"), abs=1e-6)
    assert not _function(answer).embed([" "]).any()
    assert asked == [["ab", "abcd"]]


def test_a_text_that_the_function_finds_nothing_in_stays_the_zero_vector() -> None:
    assert not _function(lambda _: [[0, 0, 0]]).embed(["x"]).any()


def test_a_lone_surrogate_does_not_reach_the_function() -> None:
    assert _function(lambda texts: [vector(texts[0].encode("utf-8").decode("utf-8"))]).embed(["a\ud800b"]).any()


def test_what_a_function_does_with_its_answer_later_does_not_change_the_vectors() -> None:
    kept = np.array([[1.0, 0.0, 0.0]], dtype=np.float32)
    vectors = _function(lambda _: kept).embed(["a"])
    kept[:] = 7
    assert vectors.tolist() == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([[1, 2, 3], [1, 2, 3]], "shape (2, 3), expected (1, 3)"),
        ([[1, 2]], "shape (1, 2), expected (1, 3)"),
        ([1, 2, 3], "shape (3,), expected (1, 3)"),
        ([], "shape (0,), expected (1, 3)"),
        ([[[1, 2, 3]]], "shape (1, 1, 3), expected (1, 3)"),
        ([[1, 2, 3], [1]], "rows of numbers"),
        ([["1", "2", "3"]], "rows of numbers"),
        ([[1, None, 3]], "rows of numbers"),
        ([[True, False, True]], "rows of numbers"),
        ([[1, 2j, 3]], "rows of numbers"),
        (None, "rows of numbers"),
        (iter([[1, 2, 3]]), "rows of numbers"),
        ([[10**400, 2, 3]], "rows of numbers"),
        ([[float("nan"), 2, 3]], "not finite"),
        ([[float("inf"), 2, 3]], "not finite"),
    ],
)
@pytest.mark.rule("ERR-4")
def test_any_other_answer_means_that_the_embedder_is_unavailable(answer: Any, said: str) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        _function(lambda _: answer).embed([SECRET_TEXT])
    assert said in str(raised.value)
    assert "mine@1" in str(raised.value)
    assert "Jane" not in str(raised.value)


@pytest.mark.rule("ERR-4")
def test_a_function_that_raises_is_reported_by_class_and_place_without_the_text() -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        _function(_raising(KeyError(SECRET_TEXT))).embed([SECRET_TEXT])
    assert "KeyError at test_embedder_function.py:" in str(raised.value)
    assert "Jane" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_threads_ask_a_function_at_the_same_time_and_each_gets_its_own_answer() -> None:
    together = Barrier(4, timeout=30)

    def answer(texts: list[str]) -> list[list[float]]:
        together.wait()
        return [vector(text) for text in texts]

    embedder = _function(answer)
    texts = ["x" * number for number in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    assert np.array(found) == pytest.approx(np.array([unit(text) for text in texts]), abs=1e-6)


@pytest.mark.parametrize("dimensions", [0, -1, 4001, 3.0, True, "3", None])
def test_dimensions_that_no_vector_here_can_have_are_refused(dimensions: Any) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 4000") as raised:
        FunctionEmbedder(lambda _: [], name="mine@1", dimensions=dimensions)
    assert raised.value.field == "dimensions"


@pytest.mark.parametrize("dimensions", [1, 4000])
def test_the_shortest_and_the_longest_vectors_are_taken(dimensions: int) -> None:
    embedder = FunctionEmbedder(lambda _: np.ones((1, dimensions)), name="mine@1", dimensions=dimensions)
    assert np.linalg.norm(embedder.embed(["a"])) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "name", ["mine", "@1", "mine@", "mi ne@1", "mine@1\n", "mine@1@2", "a" * 101 + "@1", "a@" + "1" * 41, "é@1", 7]
)
def test_a_name_without_its_version_or_with_odd_characters_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput) as raised:
        FunctionEmbedder(lambda _: [], name=name, dimensions=3)
    assert raised.value.field == "name"


def test_an_async_function_is_refused_at_once() -> None:
    async def answer(_: list[str]) -> list[list[float]]:
        return []

    for function in (answer, "no function"):
        with pytest.raises(InvalidInput) as raised:
            FunctionEmbedder(function, name="mine@1", dimensions=3)
        assert raised.value.field == "function"
