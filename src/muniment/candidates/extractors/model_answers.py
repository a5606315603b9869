"""Reads the answers of a model's server: the JSON in a completion, and the server's own words when it refuses.

Completions are read tolerantly: thinking, code fences and talk around the JSON are passed over. Nothing is trusted for
being JSON: whoever asks checks it against a schema and against what was sent.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from muniment.errors import ExtractorFailed

# Thinking that is part of the content. Some chat templates open the block themselves, so that only its end is seen.
_THINKING = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THINKING_ENDS = re.compile(r"\A.*</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
# The last channel of models that mark theirs.
_CHANNEL = re.compile(r"\A.*<\|message\|>", re.DOTALL)
_END_MARK = re.compile(r"<\|[a-z_]+\|>\s*\Z")
_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
# Places of a text at which JSON is looked for, where neither the whole nor a fence is JSON.
_MOST_PLACES = 64

_MOST_WORDS = 300
_TOKEN = re.compile(r"\w+")
_HIDDEN = "..."
# Words of refusals that are shown although the data holds them too: they say nothing about anybody.
_PLAIN_WORDS = """
400 401 403 404 408 409 413 422 429 500 502 503 504 a about accepted access account active address allowed an and any
api are argument arguments as at auth authentication authorization available back bad be been before billing body but
by call can cannot capacity check choose code compiled completion completions connect connection contact contain
contains content context could created credentials current currently deployment details did do does don't due enabled
error exceed exceeded exceeds exist exists expected extra failed field fields filter filtered following for forbidden
format found free from function got grammar greater has have however if in incorrect input inputs instead internal
invalid is it its json json_object json_schema key large later least length less letters limit limits loading loc
local long look management max max_completion_tokens max_tokens maximum may message messages method minutes missing
model models modify moment more most msg must name need no non none not number object of on one only operation or
organization out output over param parameter parameters parse passed per permission permitted plan please policy
prompt provided quota range rate reach received reduce refused region request requested requests required requires
resource response response_format result retry role running schema second seconds see seed server service set should
size small spelled strict string supplied support supported system temperature text than that the them there these
they this tier time to token tokens too triggered true try type unable unauthorized unavailable unexpected unknown
unrecognized unsupported until up url usage use used user using valid value version wait was were when which while
will window with within without wrong you your
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())


def json_in(answer: bytes, max_tokens: int) -> Any:
    """Return the JSON that a completion holds.

    Raises `ExtractorFailed`, with a message that quotes nothing of it: there is none, it was cut off, or the model
    declined.
    """
    try:
        whole: Any = json.loads(answer)
        choice: Any = cast("dict[str, Any]", whole)["choices"][0]
        message: Any = choice["message"]
        content: Any = message.get("content")
        refused, ended = message.get("refusal"), choice.get("finish_reason")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise ExtractorFailed("the model did not answer in JSON") from None
    text = _text(content)
    try:
        return _first_json(text)
    except (ValueError, RecursionError):
        pass
    if ended == "length":
        raise ExtractorFailed(f"the answer of the model was cut off after {max_tokens} tokens: raise max_tokens")
    if ended == "content_filter":
        raise ExtractorFailed("a filter of the model's server held its answer back")
    if refused:
        raise ExtractorFailed("the model declined to answer")
    if not text.strip():
        raise ExtractorFailed("the model answered with no text")
    raise ExtractorFailed("the model did not answer in the schema")


def _text(content: Any) -> str:
    """Return the text of a message: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("dict[str, Any]", part).get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _first_json(text: str) -> Any:
    """Return the object or the list in a text, without what stands around it; raises `ValueError`."""
    if (found := _parsed(text)) is not None:
        return found
    said = _THINKING.sub("", _END_MARK.sub("", _CHANNEL.sub("", text)))
    answer = _THINKING_ENDS.sub("", said)
    for one in (said, answer):
        if (found := _parsed(one)) is not None:
            return found
    for found in _found_in(answer):
        return found
    raise ValueError("no JSON")


def _found_in(said: str) -> Iterator[Any]:
    for fenced in _FENCE.finditer(said):
        if (found := _parsed(fenced[1])) is not None:
            yield found
    decoder = json.JSONDecoder()
    for number, place in enumerate(re.finditer(r"[\[{]", said)):
        if number == _MOST_PLACES:
            return
        try:
            found, _ = decoder.raw_decode(said, place.start())
        except ValueError:
            continue
        # A list in the talk before the answer is none of it; an object is.
        items = cast("list[Any]", found) if isinstance(found, list) else []
        if isinstance(found, dict) or any(isinstance(one, dict) for one in items):
            yield cast("Any", found)


def _parsed(text: str) -> Any:
    """Return the object or list that the whole text is; None if it is something else."""
    try:
        found: Any = json.loads(text.strip().lstrip("\ufeff"))
    except ValueError:
        return None
    return cast("Any", found) if isinstance(found, dict | list) else None


def refusal_words(body: bytes, sent: str, secret: str) -> str:
    """Return a server's own words of refusal, for the operator: one short line, without the key and what was sent.

    A server may quote a request back. A word that stands in the data that was sent is left out, unless it is one of
    those that every refusal is made of.
    """
    words = " ".join(_message(body).split())
    words = "".join(character for character in words if character.isprintable())
    if secret:
        words = re.sub(rf"\S*{re.escape(secret[:4])}\S*", "[key]", words)
    words = words if len(words) <= _MOST_WORDS else words[: _MOST_WORDS - 3] + "..."
    known = {token.casefold() for token in _TOKEN.findall(sent)} - _PLAIN
    return _TOKEN.sub(lambda token: _HIDDEN if token[0].casefold() in known else token[0], words)


def refused_parameter(body: bytes) -> str:
    """Return the parameter that a refusal names in a field of its own; empty for none."""
    error = _error(body)
    found: Any = cast("dict[str, Any]", error).get("param") if isinstance(error, dict) else None
    return found if isinstance(found, str) else ""


def _message(body: bytes) -> str:
    error = _error(body)
    if isinstance(error, str):
        return error
    if isinstance(error, list):
        return "; ".join(_one_of_many(one) for one in cast("list[Any]", error)[:8])
    if not isinstance(error, dict):
        return ""
    named = cast("dict[str, Any]", error)
    found: Any = named.get("message") or named.get("detail") or named.get("msg")
    if isinstance(found, list):
        return "; ".join(_one_of_many(one) for one in cast("list[Any]", found)[:8])
    return found if isinstance(found, str) else str(named.get("code") or named.get("type") or "")


def _error(body: bytes) -> Any:
    """Return the part of a refusal that says why: `error`, `detail`, or the whole; a text for one that is no JSON."""
    try:
        whole: Any = json.loads(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
        return "" if "<" in text else text
    if not isinstance(whole, dict):
        return whole
    named = cast("dict[str, Any]", whole)
    return named.get("error") or named.get("detail") or named


def _one_of_many(one: Any) -> str:
    """Return one error of a list, as FastAPI gives them: where it is and what is wrong, without the input."""
    if not isinstance(one, dict):
        return str(one)
    named = cast("dict[str, Any]", one)
    where = ".".join(str(part) for part in named.get("loc", ()) if part != "body")
    return f"{where}: {named.get('msg', '')}" if where else str(named.get("msg", ""))
