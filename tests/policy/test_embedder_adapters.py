"""Embedders from outside: their answers are checked, their failures told apart, and nothing secret is told."""

import gzip
import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Event, Thread
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import pytest

from muniment.embedding import Embedder, builtin_embedder
from muniment.embedding.choose import find_embedder
from muniment.embedding.function import FunctionEmbedder
from muniment.embedding.http import HttpEmbedder
from muniment.embedding.sentence import SentenceTransformerEmbedder
from muniment.errors import EmbedderUnavailable, InvalidInput

SECRET_TEXT = "Jane Doe owes 4711 pounds"
KEY = "sk-very-secret-0815"


def _vector(text: str) -> list[float]:
    """Another direction for every length."""
    return [float(len(text)), 1.0, 0.0]


def _unit(text: str) -> list[float]:
    return (np.array(_vector(text)) / np.linalg.norm(_vector(text))).tolist()


def _function(answer: Callable[[list[str]], Any]) -> FunctionEmbedder:
    return FunctionEmbedder(answer, name="mine@1", dimensions=3)


def _raising(error: Exception) -> Callable[[list[str]], Any]:
    def raise_it(_: list[str]) -> Any:
        raise error

    return raise_it


# ---- any function ----


def test_what_a_function_gives_becomes_rows_of_unit_length_in_single_precision() -> None:
    embedder: Embedder = _function(lambda texts: [_vector(text) for text in texts])
    vectors = embedder.embed(["a", "abc"])
    assert (vectors.dtype, vectors.shape) == (np.float32, (2, 3))
    assert vectors == pytest.approx(np.array([_unit("a"), _unit("abc")]), abs=1e-6)
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
        return [_vector(text) for text in texts]

    vectors = _function(answer).embed(["", "ab", " \n\t", "abcd"])
    assert vectors.any(axis=1).tolist() == [False, True, False, True]
    assert vectors[3] == pytest.approx(_unit("abcd"), abs=1e-6)
    assert not _function(answer).embed([" "]).any()
    assert asked == [["ab", "abcd"]]


def test_a_text_that_the_function_finds_nothing_in_stays_the_zero_vector() -> None:
    assert not _function(lambda _: [[0, 0, 0]]).embed(["x"]).any()


def test_a_lone_surrogate_does_not_reach_the_function() -> None:
    assert _function(lambda texts: [_vector(texts[0].encode("utf-8").decode("utf-8"))]).embed(["a\ud800b"]).any()


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
def test_a_function_that_raises_is_told_by_class_and_place_without_the_text() -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        _function(_raising(KeyError(SECRET_TEXT))).embed([SECRET_TEXT])
    assert "KeyError at test_embedder_adapters.py:" in str(raised.value)
    assert "Jane" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_threads_ask_a_function_at_the_same_time_and_each_gets_its_own_answer() -> None:
    together = Barrier(4, timeout=30)

    def answer(texts: list[str]) -> list[list[float]]:
        together.wait()
        return [_vector(text) for text in texts]

    embedder = _function(answer)
    texts = ["x" * number for number in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    assert np.array(found) == pytest.approx(np.array([_unit(text) for text in texts]), abs=1e-6)


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


# ---- sentence-transformers ----


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


def test_without_the_package_the_error_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderUnavailable, match=r"pip install 'muniment\[sentence-transformers\]'"):
        SentenceTransformerEmbedder(model)


def test_a_model_is_loaded_from_its_folder_and_nothing_from_the_network(model: Path, theirs: type[TheirModel]) -> None:
    embedder: Embedder = SentenceTransformerEmbedder(model)
    assert theirs.made == [(str(model), {"local_files_only": True, "trust_remote_code": False})]
    assert embedder.dimensions == 3
    assert embedder.embed(["ab", "", "abc"]) == pytest.approx(
        np.array([_unit("ab"), [0, 0, 0], _unit("abc")]), abs=1e-6
    )


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
    assert np.array(found) == pytest.approx(np.array([_unit(text) for text in texts]), abs=1e-6)


# ---- a server ----


class Request(NamedTuple):
    """What was sent."""

    path: str
    sent: Any
    headers: dict[str, str]
    client: Any


class Asked(BaseHTTPRequestHandler):
    """A connection with the request at hand, and the ways to answer it."""

    protocol_version = "HTTP/1.1"
    sent: Any

    @property
    def remote(self) -> "Remote":
        return cast("Remote", self.server)

    def do_POST(self) -> None:
        self.sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.remote.asked.append(Request(self.path, self.sent, dict(self.headers), self.client_address))
        self.remote.answer(self)

    def do_GET(self) -> None:
        raise AssertionError("nobody should follow here")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  theirs
        pass

    def give(self, body: bytes | str, status: int = 200, **headers: str) -> None:
        raw = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def data(self) -> list[dict[str, Any]]:
        return [
            {"object": "embedding", "index": index, "embedding": _vector(text)}
            for index, text in enumerate(self.sent["input"])
        ]

    def give_data(self, data: Any) -> None:
        self.give(json.dumps({"object": "list", "data": data}))


class Remote(ThreadingHTTPServer):
    """On the loopback; answers right until told otherwise."""

    daemon_threads = True
    # the listener's default of 5 would turn away a burst of threads
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.asked: list[Request] = []
        self.answer: Callable[[Asked], None] = lambda asked: asked.give_data(asked.data())
        self.over = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever goes away early is no news."""


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "MUNIMENT_EMBEDDER_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with Remote() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.embedding.http._PAUSES", (0.0, 0.0))


def _at(remote: Remote, **options: Any) -> HttpEmbedder:
    return HttpEmbedder(remote.url, **{"model": "m", "dimensions": 3} | options)


def _refused(remote: Remote, texts: list[str] | None = None, **options: Any) -> str:
    with pytest.raises(EmbedderUnavailable) as raised:
        _at(remote, **options).embed([SECRET_TEXT] if texts is None else texts)
    assert raised.value.__context__ is None
    assert "Jane" not in str(raised.value)
    return str(raised.value)


def test_a_server_is_asked_as_openais_is_and_its_vectors_get_unit_length(remote: Remote) -> None:
    embedder: Embedder = _at(remote, model="BAAI/bge-m3:latest")
    vectors = embedder.embed(["a", " ", "Grüße \ud800"])
    assert vectors == pytest.approx(np.array([_unit("a"), [0, 0, 0], _unit("Grüße ?")]), abs=1e-6)
    (asked,) = remote.asked
    assert asked.path == "/v1/embeddings"
    assert asked.sent == {"model": "BAAI/bge-m3:latest", "input": ["a", "Grüße ?"]}
    assert "Authorization" not in asked.headers
    assert (embedder.name, embedder.dimensions) == ("BAAI/bge-m3:latest@3", 3)
    assert _at(remote, version="2026-11").name == "m@2026-11"


def test_nothing_to_embed_asks_nobody(remote: Remote) -> None:
    assert _at(remote).embed([]).shape == (0, 3)
    assert not _at(remote).embed(["", " "]).any()
    assert remote.asked == []


def test_the_order_is_that_of_the_texts_whatever_that_of_the_answer(remote: Remote) -> None:
    remote.answer = lambda asked: asked.give_data(asked.data()[::-1])
    assert _at(remote).embed(["a", "ab", "abc"]) == pytest.approx(
        np.array([_unit("a"), _unit("ab"), _unit("abc")]), abs=1e-6
    )


def test_many_texts_are_sent_256_at_once_and_long_ones_fewer(remote: Remote) -> None:
    texts = ["x" * (number % 7 + 1) for number in range(600)]
    assert _at(remote).embed(texts) == pytest.approx(np.array([_unit(text) for text in texts]), abs=1e-6)
    assert [len(asked.sent["input"]) for asked in remote.asked] == [256, 256, 88]
    remote.asked.clear()
    _at(remote).embed(["x" * 100_000] * 5 + ["y" * 1_000_000])
    assert [len(asked.sent["input"]) for asked in remote.asked] == [2, 2, 1, 1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data[:-1], "for each of 2 texts"),
        (lambda data: [*data, data[0]], "for each of 2 texts"),
        (lambda data: [data[0], data[0]], "for each of 2 texts"),
        (lambda data: [data[0], data[1] | {"index": 2}], "for each of 2 texts"),
        (lambda data: [data[0], data[1] | {"index": True}], "for each of 2 texts"),
        (lambda data: [data[0], {"embedding": data[1]["embedding"]}], "for each of 2 texts"),
        (lambda data: [data[0], "Jane"], "for each of 2 texts"),
        (lambda data: {"Jane": data}, '"data"'),
        (lambda data: [data[0], data[1] | {"embedding": [1.0, 2.0]}], "rows of numbers"),
        (lambda data: [one | {"embedding": [1.0, 2.0]} for one in data], "expected (2, 3)"),
        (lambda data: [one | {"embedding": "AAAAAAAAAAA="} for one in data], "rows of numbers"),
        (lambda data: [data[0], {"index": 1}], "rows of numbers"),
        (lambda data: [data[0], data[1] | {"embedding": [float("nan"), 1.0, 1.0]}], "not finite"),
        (lambda data: [data[0], data[1] | {"embedding": [float("-inf"), 1.0, 1.0]}], "not finite"),
    ],
)
@pytest.mark.rule("ERR-4")
def test_an_answer_that_is_not_one_finite_vector_for_each_text_is_refused_and_not_asked_for_again(
    remote: Remote, change: Callable[[Any], Any], said: str
) -> None:
    remote.answer = lambda asked: asked.give_data(change(asked.data()))
    assert said in _refused(remote, [SECRET_TEXT, "b"])
    assert len(remote.asked) == 1


@pytest.mark.parametrize("body", ["<html>Jane</html>", "", "[" * 100_000, b"\xff\xfe", "1" * 5000])
def test_an_answer_that_is_not_json_is_refused(remote: Remote, body: str | bytes) -> None:
    remote.answer = lambda asked: asked.give(body)
    assert "JSON" in _refused(remote, dimensions=4000)


@pytest.mark.parametrize("body", ["null", "[]", '{"data": null}', '{"error": "Jane"}'])
def test_json_of_another_kind_is_refused(remote: Remote, body: str) -> None:
    remote.answer = lambda asked: asked.give(body)
    assert '"data"' in _refused(remote)


def test_numbers_written_out_at_length_are_not_too_large_an_answer(remote: Remote) -> None:
    def at_length(asked: Asked) -> None:
        data = [one | {"embedding": [-0.12345678901234567e-100] * 400} for one in asked.data()]
        asked.give(json.dumps({"data": data}, indent=8))

    remote.answer = at_length
    assert _at(remote, dimensions=400).embed(["x"] * 256).shape == (256, 400)


def test_a_huge_answer_is_not_read_to_its_end(remote: Remote) -> None:
    def endless(asked: Asked) -> None:
        asked.send_response(200)
        asked.end_headers()
        while not remote.over.is_set():
            asked.wfile.write(b" " * 65536)

    remote.answer = endless
    assert "more than 66752 bytes" in _refused(remote)


def test_a_packed_answer_is_not_unpacked(remote: Remote) -> None:
    remote.answer = lambda asked: asked.give(
        gzip.compress(json.dumps({"data": asked.data()}).encode()), Content_Encoding="gzip"
    )
    assert "JSON" in _refused(remote)
    assert remote.asked[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(remote: Remote, status: int) -> None:
    remote.answer = lambda asked: asked.give("", status, Location=f"{remote.url}/embeddings")
    assert f"answered {status}: redirects are not followed" in _refused(remote, api_key=KEY)
    assert len(remote.asked) == 1


def _first(*answers: Callable[[Asked], None]) -> Callable[[Asked], None]:
    """These answers, one after the other, and right ones from then on."""
    left = list(answers)
    return lambda asked: left.pop(0)(asked) if left else asked.give_data(asked.data())


def _status(status: int, **headers: str) -> Callable[[Asked], None]:
    return lambda asked: asked.give("Jane", status, **{"Retry_After": "0"} | headers)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_twice_more(remote: Remote, status: int) -> None:
    remote.answer = _first(_status(status), _status(status))
    assert _at(remote).embed(["ab"])[0] == pytest.approx(_unit("ab"), abs=1e-6)
    assert len(remote.asked) == 3
    remote.answer = _status(status)
    assert f"answered {status}" in _refused(remote)
    assert len(remote.asked) == 6


@pytest.mark.parametrize(
    ("status", "said"), [(400, "400"), (401, "MUNIMENT_EMBEDDER_KEY"), (404, "model"), (204, "204")]
)
def test_any_other_status_is_final(remote: Remote, status: int, said: str) -> None:
    remote.answer = lambda asked: asked.give("", status, Retry_After="0")
    assert said in _refused(remote)
    assert len(remote.asked) == 1


def test_a_server_that_says_come_back_after_the_deadline_is_not_waited_for(remote: Remote) -> None:
    remote.answer = _status(429, Retry_After="3600")
    assert "answered 429: too many requests" in _refused(remote)
    assert len(remote.asked) == 1


def test_without_a_word_from_the_server_the_pause_is_short(remote: Remote) -> None:
    remote.answer = _first(_status(503, Retry_After="Sun, 15 Nov 2026 20:00:00 GMT"))
    assert _at(remote).embed(["ab"]).any()


def test_a_connection_that_breaks_is_tried_again(remote: Remote, no_pauses: None) -> None:
    def hang_up(asked: Asked) -> None:
        asked.close_connection = True

    def break_off(asked: Asked) -> None:
        asked.send_response(200)
        asked.send_header("Content-Length", "1000")
        asked.end_headers()
        asked.wfile.write(b'{"data": [')
        asked.close_connection = True

    remote.answer = _first(hang_up, break_off)
    assert _at(remote).embed(["ab"])[0] == pytest.approx(_unit("ab"), abs=1e-6)
    assert len(remote.asked) == 3


@pytest.mark.rule("ERR-4")
def test_a_server_that_is_not_there_is_tried_three_times(no_pauses: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Any] = []
    connect = socket.create_connection
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(socket, "create_connection", lambda *a, **b: (tries.append(a), connect(*a, **b))[1])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listened on
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EmbedderUnavailable, match="cannot be reached: ConnectError"):
            HttpEmbedder(url, model="m", dimensions=3).embed([SECRET_TEXT])
    assert len(tries) == 3


def test_a_server_that_is_too_slow_is_not_asked_again(remote: Remote) -> None:
    remote.answer = lambda _: (remote.over.wait(30), None)[1]
    assert "in time: ReadTimeout" in _refused(remote, timeout=0.1)
    assert len(remote.asked) == 1


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["", "head", "body"]
)
def test_a_server_that_sends_a_byte_now_and_then_has_until_the_deadline(remote: Remote, start: bytes) -> None:
    def drip(asked: Asked) -> None:
        asked.wfile.write(start)
        while start and not remote.over.wait(0.02):
            asked.wfile.write(b" ")
        remote.over.wait(30)

    remote.answer = drip
    assert "before the deadline" in _refused(remote, timeout=10, deadline=0.3)


def test_after_the_deadline_the_connection_is_given_up(remote: Remote) -> None:
    given_up = Event()

    def drip(asked: Asked) -> None:
        asked.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while not remote.over.wait(0.02):
                asked.wfile.write(b" ")
        except OSError:
            given_up.set()

    remote.answer = drip
    embedder = _at(remote, timeout=10, deadline=0.2)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed(["a"])
    assert given_up.wait(10)


def test_the_deadline_is_for_all_batches_together(remote: Remote) -> None:
    remote.answer = _first(lambda asked: asked.give_data(asked.data()), lambda _: (remote.over.wait(30), None)[1])
    assert "before the deadline" in _refused(remote, ["x"] * 600, timeout=10, deadline=0.5)
    assert len(remote.asked) == 2


def test_threads_share_an_embedder_and_its_connections(remote: Remote) -> None:
    embedder = _at(remote)
    texts = ["x" * number for number in range(1, 65)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    assert np.array(found) == pytest.approx(np.array([_unit(text) for text in texts]), abs=1e-6)
    assert len({asked.client for asked in remote.asked}) <= 8


# ---- the key ----


@pytest.mark.parametrize("given", [True, False])
def test_the_key_is_sent_and_shown_nowhere(
    remote: Remote, given: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MUNIMENT_EMBEDDER_KEY", "another" if given else f"{KEY}\n")
    embedder = _at(remote, **({"api_key": KEY} if given else {}))
    embedder.embed([SECRET_TEXT])
    remote.answer = _status(401)
    with pytest.raises(EmbedderUnavailable) as raised:
        embedder.embed([SECRET_TEXT])
    assert [asked.headers["Authorization"] for asked in remote.asked] == [f"Bearer {KEY}"] * 2
    shown = [repr(embedder), str(vars(embedder)), repr(vars(vars(embedder)["_client"])), str(raised.value), caplog.text]
    assert not [text for text in shown if KEY in text or "Jane" in text]
    assert caplog.records


def test_an_empty_key_is_no_key(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_EMBEDDER_KEY", KEY)
    _at(remote, api_key="").embed(["a"])
    assert "Authorization" not in remote.asked[0].headers


@pytest.mark.parametrize("key", ["with blank", "with\nline", "ключ"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        HttpEmbedder("http://h", model="m", dimensions=3, api_key=key)
    assert raised.value.field == "api_key"
    assert key not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"url": "ftp://h"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://h:99999"}, "url"),
        ({"url": f"http://me:{KEY}@h"}, "url"),
        ({"url": f"http://h/v1?key={KEY}"}, "url"),
        ({"url": "http://h/v 1"}, "url"),
        ({"url": None}, "url"),
        ({"model": "two words"}, "model"),
        ({"model": ""}, "model"),
        ({"version": "a b"}, "version"),
        ({"dimensions": 0}, "dimensions"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"deadline": 601}, "deadline"),
        ({"deadline": True}, "deadline"),
    ],
)
def test_what_cannot_be_the_address_of_a_server_is_refused_and_not_shown(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        HttpEmbedder(**{"url": "http://h", "model": "m", "dimensions": 3} | options)
    assert raised.value.field == field
    assert KEY not in str(raised.value)


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"gopher://me:{KEY}@h")
    with pytest.raises(EmbedderUnavailable, match="proxy") as raised:
        HttpEmbedder("http://h", model="m", dimensions=3)
    assert KEY not in str(raised.value)


# ---- which one is meant ----


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "acme_embedders.py").write_text(
        "from muniment.embedding.function import FunctionEmbedder\n"
        "from muniment.errors import EmbedderUnavailable\n"
        "one = FunctionEmbedder(lambda texts: [[1, 0, 0]] * len(texts), name='acme/one@7', dimensions=3)\n"
        "def make(): return one\n"
        "class Own:\n"
        "    name = 'own@1'\n"
        "    dimensions = 2\n"
        "    def embed(self, texts): ...\n"
        "number = 7\n"
        "def fails(): raise ZeroDivisionError\n"
        "def away(): raise EmbedderUnavailable('not today')\n"
        "def needs(what): ...\n"
        "def nothing(): ...\n"
    )
    (tmp_path / "acme_broken.py").write_text("import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("acme_embedders", "acme_broken"):
        sys.modules.pop(name, None)


def test_nothing_said_means_the_builtin_embedder() -> None:
    assert find_embedder(None) is find_embedder("builtin") is find_embedder(" builtin\n") is builtin_embedder()


def test_an_embedder_is_given_back_as_it_is() -> None:
    mine = _function(lambda _: [])
    assert find_embedder(mine) is mine
    assert find_embedder(builtin_embedder()) is builtin_embedder()


@pytest.mark.usefixtures("theirs")
def test_a_folder_is_named_after_sentence_transformers(model: Path) -> None:
    assert find_embedder(f"sentence-transformers:{model}").name == SentenceTransformerEmbedder(model).name


def test_a_server_is_named_by_its_address_with_model_and_dimensions(remote: Remote) -> None:
    found = find_embedder(f"{remote.url}/#model=BAAI/bge-m3&dimensions=3&version=2&timeout=1.5&deadline=9")
    assert (type(found), found.name, found.dimensions) == (HttpEmbedder, "BAAI/bge-m3@2", 3)
    assert found.embed(["ab"])[0] == pytest.approx(_unit("ab"), abs=1e-6)
    assert remote.asked[0].path == "/v1/embeddings"
    assert find_embedder("HTTPS://h#model=a%3Ab&dimensions=12").name == "a:b@12"


@pytest.mark.usefixtures("installed")
def test_an_object_or_what_makes_one_is_named_by_its_place_in_python() -> None:
    one = find_embedder("python:acme_embedders:one")
    assert one.name == "acme/one@7"
    assert find_embedder("python:acme_embedders:make") is one
    made = find_embedder("python:acme_embedders:Own")
    assert (type(made).__name__, made.dimensions) == ("Own", 2)


class Odd:
    """An embedder that says of itself what it is told to."""

    def __init__(self, name: Any, dimensions: Any) -> None:
        self.name = name
        self.dimensions = dimensions

    def embed(self, _: Any) -> Any: ...


@pytest.mark.usefixtures("installed", "theirs")
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "expected builtin"),
        ("builtin:x", "expected builtin"),
        ("openai", "expected builtin"),
        ("sentence-transformers:", "expected builtin"),
        ("sentence-transformers:/no/such/folder", "path: there is no folder"),
        ("http://h/v1", "after the #"),
        ("http://h/v1#model=m", "after the #"),
        ("http://h/v1#model=m&dimensions=3&dimensions=4", "after the #"),
        (f"http://h/v1#model=m&dimensions=3&api_key={KEY}", "MUNIMENT_EMBEDDER_KEY"),
        (f"http://me:{KEY}@h/v1#model=m&dimensions=3", "url: "),
        ("http://h/v1#model=m&dimensions=three", "dimensions: expected a number"),
        ("http://h/v1#model=m&dimensions=4001", "dimensions: expected a whole number"),
        ("http://h/v1#model=m&dimensions=3&timeout=soon", "timeout: expected a number"),
        ("http://h/v1#model=&dimensions=3", "model: "),
        ("python:", "python:package.module:attribute"),
        ("python:acme_embedders", "python:package.module:attribute"),
        ("python:acme_embedders:one.embed", "python:package.module:attribute"),
        ("python:acme_embedders:absent", "AttributeError"),
        ("python:no_such_module:one", "ModuleNotFoundError"),
        ("python:acme_broken:one", "ModuleNotFoundError"),
        ("python:acme_embedders:number", "name, dimensions and embed"),
        ("python:acme_embedders:nothing", "name, dimensions and embed"),
        (7, "name, dimensions and embed"),
        (Odd("odd", 3), "name: "),
        (Odd(None, 3), "name: "),
        (Odd("odd@1", 0), "dimensions: "),
        (Odd("odd@1", True), "dimensions: "),
        (Odd("odd@1", 3.0), "dimensions: "),
    ],
)
def test_what_names_no_embedder_is_invalid_input_and_secrets_in_it_are_not_shown(spec: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        find_embedder(spec)
    assert raised.value.field == "embedder"
    assert said in raised.value.message
    assert KEY not in raised.value.message


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("spec", "said"), [("fails", "ZeroDivisionError"), ("needs", "TypeError"), ("away", "not today")]
)
def test_what_should_make_an_embedder_and_does_not_is_unavailable(spec: str, said: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=said):
        find_embedder(f"python:acme_embedders:{spec}")
