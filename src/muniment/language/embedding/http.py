"""Embeds texts with a server that has the `POST /embeddings` of OpenAI's API."""

import json
import os
import re
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from math import isfinite
from threading import Thread
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import numpy as np

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding.function import TITLE, NamedEmbedder, check_dimensions, check_name, embed_by
from muniment.language.embedding.static import Vectors
from muniment.outbound import is_private_host
from muniment.remote import (
    CONNECT_WITHIN,
    PAUSES,
    RETRIED_ERRORS,
    Failure,
    client_failure,
    connection_failure,
    guarded_options,
    headers,
    refusal,
)

KEY_VARIABLE = "MUNIMENT_EMBEDDER_KEY"
TIMEOUT, DEADLINE = 20.0, 60.0
TEXTS_AT_ONCE = 256
# Less than servers accept in one request, even where every character is a token.
_CHARACTERS_AT_ONCE = 1 << 18

# How long an unused connection is kept, in seconds.
_KEPT = 30.0
_LONGEST = 600.0
# The largest answer: numbers written out in full, each on its own line, and an envelope.
_BYTES_A_NUMBER, _BYTES_A_TEXT, _BYTES_AROUND = 64, 1 << 10, 1 << 16

_LATE = "gave no answer before the deadline"


class HttpEmbedder(NamedEmbedder):
    """Embeds texts with a server; threads may share one, and its connections stay open as long as it lives.

    No message, log or repr holds the key or a text.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        dimensions: int,
        version: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        allow_private: bool = False,
    ) -> None:
        """`url` is the address before `/embeddings`; the key is taken from MUNIMENT_EMBEDDER_KEY when not given.

        The name is `<model>@<version>`; the version is the dimensions by default, so give another one when the server's
        model changes under its name. `timeout` bounds one wait, `deadline` a whole `embed`, both in seconds. The
        address must be public and https unless `allow_private`. Nothing is sent yet. Raises `InvalidInput` for a wrong
        value, `EmbedderUnavailable` when the environment names a proxy or certificates that do not exist.
        """
        self._url = _check_url(url, allow_private)
        if not isinstance(model, str) or not re.fullmatch(TITLE, model):
            raise InvalidInput("expected up to 100 letters, digits and ._:/-", field="model")
        self._model = model
        checked = check_dimensions(dimensions)
        super().__init__(check_name(f"{model}@{dimensions if version is None else version}", field="version"), checked)
        self._deadline = _check_seconds(deadline, "deadline")
        self._client = _client(_headers(api_key), _check_seconds(timeout, "timeout"), allow_private)
        weakref.finalize(self, self._client.close)

    def __repr__(self) -> str:
        return f"HttpEmbedder({self._url!r}, {self._name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of unit length per text; the zero vector for a blank text, which is not sent.

        Sends at most 256 texts at once; tries twice more when the connection fails or the server answers 429 or 5xx.
        Raises `EmbedderUnavailable`, at the latest after the deadline.
        """
        ask = partial(self._ask, ends_at=time.monotonic() + self._deadline)
        parts = [embed_by(ask, part, name=self._name, dimensions=self._dimensions) for part in _batches(texts)]
        return np.concatenate([np.zeros((0, self._dimensions), dtype=np.float32), *parts])

    def _ask(self, texts: list[str], *, ends_at: float) -> list[Any]:
        content = json.dumps({"model": self._model, "input": texts}).encode()
        most = _BYTES_AROUND + len(texts) * (_BYTES_A_TEXT + self._dimensions * _BYTES_A_NUMBER)
        why = ""
        for pause in (*PAUSES, None):
            outcome = self._try(content, most, ends_at)
            if isinstance(outcome, bytes):
                outcome = _rows(outcome, len(texts))
            if isinstance(outcome, list):
                return outcome
            why = outcome.why
            if pause is None or not outcome.again:
                break
            wait = outcome.wait(pause)
            if time.monotonic() + wait >= ends_at:
                break
            time.sleep(wait)
        raise EmbedderUnavailable(f"the embedder at {self._url} {why}")

    def _try(self, content: bytes, most: int, ends_at: float) -> bytes | Failure:
        # On a thread that can be abandoned: the client's time-outs bound each wait, and a slow name server or a
        # server that sends single bytes could make their sum as long as it likes.
        outcome: Future[bytes | Failure] = Future()
        exchange = partial(_exchange, self._client, f"{self._url}/embeddings", content, most, ends_at)
        Thread(target=lambda: outcome.set_result(exchange()), daemon=True).start()
        try:
            return outcome.result(timeout=max(ends_at - time.monotonic(), 0))
        except TimeoutError:
            return Failure(_LATE)


def _client(given: dict[str, str], timeout: float, allow_private: bool) -> httpx2.Client:
    try:
        return httpx2.Client(
            headers=given,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_WITHIN)),
            limits=httpx2.Limits(keepalive_expiry=_KEPT),
            follow_redirects=False,
            **guarded_options(allow_private=allow_private, blocking=True),
        )
    except Exception as error:
        raise EmbedderUnavailable(client_failure(error)) from None


def _exchange(client: httpx2.Client, place: str, content: bytes, most: int, ends_at: float) -> bytes | Failure:
    """Return the body of the answer. Errors are named by their class, as their messages may hold what was sent."""
    try:
        with client.stream("POST", place, content=content) as response:
            if response.status_code != httpx2.codes.OK:
                return refusal(response, KEY_VARIABLE)
            return _read(response, most, ends_at)
    except httpx2.TimeoutException as error:
        return Failure(f"gave no answer in time: {type(error).__name__}", again=isinstance(error, RETRIED_ERRORS))
    except Exception as error:
        return connection_failure(error)


def _read(response: httpx2.Response, most: int, ends_at: float) -> bytes | Failure:
    body = bytearray()
    # Raw, as no compression was requested: a compressed body could unpack to any size.
    for part in response.iter_raw():
        body += part
        if len(body) > most:
            return Failure(f"answered with more than {most} bytes")
        if time.monotonic() > ends_at:
            return Failure(_LATE)
    return bytes(body)


def _rows(body: bytes, count: int) -> list[Any] | Failure:
    """Return the vectors in the order of their texts; `embed_by` checks the numbers."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return Failure("did not answer in JSON")
    data: Any = cast("dict[str, Any]", answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        return Failure('answered without a list in "data"')
    entries = [cast("dict[str, Any]", one) for one in cast("list[Any]", data) if isinstance(one, dict)]
    rows = {one["index"]: one.get("embedding") for one in entries if type(one.get("index")) is int}
    if len(entries) != count or rows.keys() != set(range(count)):
        return Failure(f"did not give one vector, with its index, for each of {count} texts")
    return [rows[index] for index in range(count)]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for text in texts:
        if part and (len(part) == TEXTS_AT_ONCE or size + len(text) > _CHARACTERS_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part


def _headers(api_key: str | None) -> dict[str, str]:
    found = headers((os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key).strip())
    if found is None:
        raise InvalidInput(
            f"the key (from {KEY_VARIABLE} when not given) has characters that no key has", field="api_key"
        )
    return found


def _check_url(url: str, allow_private: bool) -> str:
    # The message does not show the address, which could hold a password.
    expected = "expected http://host:port/path or https, without a password, a question mark or a #"
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        httpx2.URL(url)
    except (ValueError, TypeError, AttributeError, httpx2.InvalidURL):
        raise InvalidInput(expected, field="url") from None
    if not sound or not re.fullmatch(r"[!-~]+", url) or any(character in url for character in "@?#"):
        raise InvalidInput(expected, field="url")
    if not isinstance(allow_private, bool):
        raise InvalidInput("expected true or false", field="allow_private")
    if not allow_private and (parts.scheme != "https" or is_private_host(url)):
        raise InvalidInput("expected a public address over https; allow_private=true allows any", field="url")
    return url.rstrip("/")


def _check_seconds(seconds: float, field: str) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not isfinite(seconds):
        raise InvalidInput("expected a number of seconds", field=field)
    if not 0 < seconds <= _LONGEST:
        raise InvalidInput(f"expected seconds above 0, up to {_LONGEST:.0f}", field=field)
    return float(seconds)
