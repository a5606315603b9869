"""A server as an embedder: what it is sent, how its answers are checked, and that its key is shown nowhere."""

import gzip
import json
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding import Embedder
from muniment.language.embedding.http import HttpEmbedder
from tests.language.embedding_server import Asked, Remote, at, refused, remote, with_status
from tests.language.embedding_texts import KEY, SECRET_TEXT, unit

__all__ = ["remote"]  # a fixture


# ---- questions and answers ----


def test_a_server_is_asked_as_openais_is_and_its_vectors_get_unit_length(remote: Remote) -> None:
    embedder: Embedder = at(remote, model="BAAI/bge-m3:latest")
    vectors = embedder.embed(["a", " ", "Grüße \ud800"])
    assert vectors == pytest.approx(np.array([unit("a"), [0, 0, 0], unit("Grüße ?")]), abs=1e-6)
    (asked,) = remote.asked
    assert asked.path == "/v1/embeddings"
    assert asked.sent == {"model": "BAAI/bge-m3:latest", "input": ["a", "Grüße ?"]}
    assert "Authorization" not in asked.headers
    assert (embedder.name, embedder.dimensions) == ("BAAI/bge-m3:latest@3", 3)
    assert at(remote, version="2026-11").name == "m@2026-11"


def test_nothing_to_embed_asks_nobody(remote: Remote) -> None:
    assert at(remote).embed([]).shape == (0, 3)
    assert not at(remote).embed(["", " "]).any()
    assert remote.asked == []


def test_the_order_is_that_of_the_texts_whatever_that_of_the_answer(remote: Remote) -> None:
    remote.answer = lambda asked: asked.give_data(asked.data()[::-1])
    assert at(remote).embed(["a", "ab", "abc"]) == pytest.approx(
        np.array([unit("a"), unit("ab"), unit("abc")]), abs=1e-6
    )


def test_many_texts_are_sent_256_at_once_and_long_ones_fewer(remote: Remote) -> None:
    texts = ["x" * (number % 7 + 1) for number in range(600)]
    assert at(remote).embed(texts) == pytest.approx(np.array([unit(text) for text in texts]), abs=1e-6)
    assert [len(asked.sent["input"]) for asked in remote.asked] == [256, 256, 88]
    remote.asked.clear()
    at(remote).embed(["x" * 100_000] * 5 + ["y" * 1_000_000])
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
    assert said in refused(remote, [SECRET_TEXT, "b"])
    assert len(remote.asked) == 1


@pytest.mark.parametrize("body", ["<html>Jane</html>", "", "[" * 100_000, b"\xff\xfe", "1" * 5000])
def test_an_answer_that_is_not_json_is_refused(remote: Remote, body: str | bytes) -> None:
    remote.answer = lambda asked: asked.give(body)
    assert "JSON" in refused(remote, dimensions=4000)


@pytest.mark.parametrize("body", ["null", "[]", '{"data": null}', '{"error": "Jane"}'])
def test_json_of_another_kind_is_refused(remote: Remote, body: str) -> None:
    remote.answer = lambda asked: asked.give(body)
    assert '"data"' in refused(remote)


def test_numbers_written_out_at_length_are_not_too_large_an_answer(remote: Remote) -> None:
    def at_length(asked: Asked) -> None:
        data = [one | {"embedding": [-0.12345678901234567e-100] * 400} for one in asked.data()]
        asked.give(json.dumps({"data": data}, indent=8))

    remote.answer = at_length
    assert at(remote, dimensions=400).embed(["x"] * 256).shape == (256, 400)


def test_a_huge_answer_is_not_read_to_its_end(remote: Remote) -> None:
    def endless(asked: Asked) -> None:
        asked.send_response(200)
        asked.end_headers()
        while not remote.over.is_set():
            asked.wfile.write(b" " * 65536)

    remote.answer = endless
    assert "more than 66752 bytes" in refused(remote)


def test_a_packed_answer_is_not_unpacked(remote: Remote) -> None:
    remote.answer = lambda asked: asked.give(
        gzip.compress(json.dumps({"data": asked.data()}).encode()), Content_Encoding="gzip"
    )
    assert "JSON" in refused(remote)
    assert remote.asked[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(remote: Remote, status: int) -> None:
    remote.answer = lambda asked: asked.give("", status, Location=f"{remote.url}/embeddings")
    assert f"answered {status}: redirects are not followed" in refused(remote, api_key=KEY)
    assert len(remote.asked) == 1


# ---- the key ----


@pytest.mark.parametrize("given", [True, False])
def test_the_key_is_sent_and_shown_nowhere(
    remote: Remote, given: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MUNIMENT_EMBEDDER_KEY", "another" if given else f"{KEY}\n")
    embedder = at(remote, **({"api_key": KEY} if given else {}))
    embedder.embed([SECRET_TEXT])
    remote.answer = with_status(401)
    with pytest.raises(EmbedderUnavailable) as raised:
        embedder.embed([SECRET_TEXT])
    assert [asked.headers["Authorization"] for asked in remote.asked] == [f"Bearer {KEY}"] * 2
    shown = [repr(embedder), str(vars(embedder)), repr(vars(vars(embedder)["_client"])), str(raised.value), caplog.text]
    assert not [text for text in shown if KEY in text or "Jane" in text]
    assert caplog.records


def test_an_empty_key_is_no_key(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_EMBEDDER_KEY", KEY)
    at(remote, api_key="").embed(["a"])
    assert "Authorization" not in remote.asked[0].headers


@pytest.mark.parametrize("key", ["with blank", "with\nline", "ключ"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        HttpEmbedder("https://h", model="m", dimensions=3, api_key=key)
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
        HttpEmbedder(**{"url": "http://h", "model": "m", "dimensions": 3, "allow_private": True} | options)
    assert raised.value.field == field
    assert KEY not in str(raised.value)


def test_a_proxy_that_cannot_be_used_is_reported_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"gopher://me:{KEY}@h")
    with pytest.raises(EmbedderUnavailable, match="proxy") as raised:
        HttpEmbedder("http://h", model="m", dimensions=3, allow_private=True)
    assert KEY not in str(raised.value)
