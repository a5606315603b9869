"""An embedding server that is busy, slow or unreachable: retried a little, never beyond the deadline."""

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from muniment.errors import EmbedderUnavailable
from muniment.language.embedding.http import HttpEmbedder
from tests.language.embedding_server import Asked, Remote, at, no_pauses, refused, remote, with_status
from tests.language.embedding_texts import SECRET_TEXT, unit

__all__ = ["no_pauses", "remote"]  # fixtures


def _first(*answers: Callable[[Asked], None]) -> Callable[[Asked], None]:
    """These answers, one after the other, and right ones from then on."""
    left = list(answers)
    return lambda asked: left.pop(0)(asked) if left else asked.give_data(asked.data())


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_twice_more(remote: Remote, status: int) -> None:
    remote.answer = _first(with_status(status), with_status(status))
    assert at(remote).embed(["ab"])[0] == pytest.approx(unit("ab"), abs=1e-6)
    assert len(remote.asked) == 3
    remote.answer = with_status(status)
    assert f"answered {status}" in refused(remote)
    assert len(remote.asked) == 6


@pytest.mark.parametrize(
    ("status", "said"), [(400, "400"), (401, "MUNIMENT_EMBEDDER_KEY"), (404, "model"), (204, "204")]
)
def test_any_other_status_is_final(remote: Remote, status: int, said: str) -> None:
    remote.answer = lambda asked: asked.give("", status, Retry_After="0")
    assert said in refused(remote)
    assert len(remote.asked) == 1


def test_a_server_that_says_come_back_after_the_deadline_is_not_waited_for(remote: Remote) -> None:
    remote.answer = with_status(429, Retry_After="3600")
    assert "answered 429: too many requests" in refused(remote)
    assert len(remote.asked) == 1


def test_without_a_word_from_the_server_the_pause_is_short(remote: Remote) -> None:
    remote.answer = _first(with_status(503, Retry_After="Sun, 15 Nov 2026 20:00:00 GMT"))
    assert at(remote).embed(["ab"]).any()


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
    assert at(remote).embed(["ab"])[0] == pytest.approx(unit("ab"), abs=1e-6)
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
            HttpEmbedder(url, model="m", dimensions=3, allow_private=True).embed([SECRET_TEXT])
    assert len(tries) == 3


def test_a_server_that_is_too_slow_is_not_asked_again(remote: Remote) -> None:
    remote.answer = lambda _: (remote.over.wait(30), None)[1]
    assert "in time: ReadTimeout" in refused(remote, timeout=0.1)
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
    assert "before the deadline" in refused(remote, timeout=10, deadline=0.3)


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
    embedder = at(remote, timeout=10, deadline=0.2)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed(["a"])
    assert given_up.wait(10)


def test_the_deadline_is_for_all_batches_together(remote: Remote) -> None:
    remote.answer = _first(lambda asked: asked.give_data(asked.data()), lambda _: (remote.over.wait(30), None)[1])
    assert "before the deadline" in refused(remote, ["x"] * 600, timeout=10, deadline=0.5)
    assert len(remote.asked) == 2


def test_threads_share_an_embedder_and_its_connections(remote: Remote) -> None:
    embedder = at(remote)
    texts = ["x" * number for number in range(1, 65)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    assert np.array(found) == pytest.approx(np.array([unit(text) for text in texts]), abs=1e-6)
    assert len({asked.client for asked in remote.asked}) <= 8
