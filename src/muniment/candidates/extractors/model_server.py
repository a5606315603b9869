"""Asks the server of a language model: one question, one answer of limited size, in limited time.

A parameter that the server refuses is left out and the question asked again. What a server refuses is remembered as
long as the process lives.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta

import httpx2

from muniment.candidates.extractors.extractor import SERVER_SAYS
from muniment.candidates.extractors.model_answers import refusal_words, refused_parameter
from muniment.candidates.extractors.model_dialect import Dialect, Question, is_about_length
from muniment.candidates.extractors.models import VARIABLE, NamedModel
from muniment.errors import ExtractorFailed
from muniment.outbound import is_loopback
from muniment.remote import (
    CONNECT_WITHIN,
    PAUSES,
    Failure,
    bounded,
    client_failure,
    connection_failure,
    guarded_options,
    headers,
    refusal,
)

log = logging.getLogger("muniment.models")

# An escaped token takes many bytes, and the server adds an envelope.
_BYTES_PER_TOKEN, _ENVELOPE_BYTES = 64, 1 << 16
_MOST_REFUSAL_BYTES = 1 << 16
# Seconds that a server may ask us to wait; for more the capture waits, not the call.
_LONGEST_PAUSE = 5.0
# Answers after which another parameter may be left out: some servers answer 500 to what they do not know.
_MAY_NAME_PARAMETER = (400, 422, 500, 501)
_BAD_REQUEST = (400, 422)
# Answers that may have to do with this one question; after any other the model fails as a whole.
_OF_THIS_QUESTION = (200, 400, 413, 422)


@dataclass(frozen=True)
class _Refused:
    """An answer other than 200: what it means, the server's words, and the parameter that it names."""

    failure: Failure
    status: int
    words: str = ""
    parameter: str = ""


async def ask(named: NamedModel, question: Question, within: timedelta) -> bytes:
    """Return the body of the answer; raises `ExtractorFailed`, at the latest after `within`.

    Tries twice more when the connection fails or the server answers 429 or 5xx. The key is sent to the model's own
    address only: no redirect is followed, and no message or repr holds it. The message of a refusal has the server's
    own words, without any that were sent to it. Every failure of the server, not of this answer, is `unreachable`.
    """
    try:
        async with asyncio.timeout(within.total_seconds()):
            return await _ask(named, question)
    except TimeoutError:
        raise _report(named, _Refused(Failure("gave no answer in time"), 0)) from None


async def _ask(named: NamedModel, question: Question) -> bytes:
    most = _ENVELOPE_BYTES + question.max_tokens * _BYTES_PER_TOKEN
    dialect, pauses = named.dialect, iter(PAUSES)
    first: _Refused | None = None
    too_long, sent = False, f"{question.data} {question.about}"
    async with _client(named) as client:
        while True:
            outcome = await _try(client, named, dialect.request(named.model, question), most, sent)
            if isinstance(outcome, bytes):
                # A number of tokens that was too large for this question may be right for the next.
                named.dialect = replace(dialect, tokens=named.dialect.tokens) if too_long else dialect
                named.reported = ""
                return outcome
            if (other := _changed(dialect, outcome)) is not None:
                first = first or outcome
                too_long = too_long or (bool(dialect.tokens) and not other.tokens and is_about_length(outcome.words))
                dialect = other
                continue
            pause = next(pauses, None) if outcome.failure.again else None
            if pause is None or outcome.failure.wait(pause) > _LONGEST_PAUSE:
                # What the server said first: nothing that was left out since has changed its mind.
                raise _report(named, first or outcome)
            await asyncio.sleep(outcome.failure.wait(pause))


def _changed(dialect: Dialect, refused: _Refused) -> Dialect | None:
    """Return the dialect to ask in again after a refusal, which has less in it; None if no other one can help."""
    if refused.status not in _MAY_NAME_PARAMETER:
        return None
    if dialect.tokens and is_about_length(refused.words):
        return replace(dialect, tokens=())
    said = dialect.without(refused.parameter) if refused.parameter else None
    said = said or dialect.without(refused.words)
    if said is None and refused.status in _BAD_REQUEST and dialect != dialect.bare():
        return dialect.bare()
    return said


def _report(named: NamedModel, refused: _Refused) -> ExtractorFailed:
    """Return the error, and tell the operator once for each reason."""
    words = f'{SERVER_SAYS}"{refused.words}"' if refused.words else ""
    message = f"the model {refused.failure.why}{words}"
    if named.reported != message:
        named.reported = message
        log.warning("%s: %s", named.name, message)
    return ExtractorFailed(message, unreachable=refused.status not in _OF_THIS_QUESTION)


def _client(named: NamedModel) -> httpx2.AsyncClient:
    settings = named.settings
    options = guarded_options(allow_private=settings.allow_private)
    if is_loopback(settings.url):
        options["trust_env"] = False  # A server on this machine is not reached through a proxy.
    try:
        return httpx2.AsyncClient(
            headers=headers(named.secret, header="api-key" if settings.server == "azure" else None),
            timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN),
            follow_redirects=False,
            **options,
        )
    except Exception as error:
        raise ExtractorFailed(client_failure(error), unreachable=True) from None


async def _try(client: httpx2.AsyncClient, named: NamedModel, request: bytes, most: int, sent: str) -> bytes | _Refused:
    try:
        async with client.stream("POST", named.settings.address, content=request) as response:
            if response.status_code != httpx2.codes.OK:
                body = await bounded(response, _MOST_REFUSAL_BYTES) or b""
                words = refusal_words(body, sent, named.secret)
                failure = refusal(response, VARIABLE)
                return _Refused(failure, response.status_code, words, refused_parameter(body))
            body = await bounded(response, most)
            if body is None:
                return _Refused(Failure(f"answered with more than {most} bytes"), response.status_code)
            return body
    except Exception as error:
        return _Refused(connection_failure(error), 0)
