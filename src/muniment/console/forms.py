"""Forms: reading what a browser sent, field by field, and the redirect after it."""

import re
from datetime import datetime
from typing import TypeVar, cast
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from muniment.console.rendering import HEADERS
from muniment.console.sessions import Sessions
from muniment.console.urls import console_url, parse_time
from muniment.console.visitors import NOTICE, Visitor, sign_notice
from muniment.errors import Denied, InvalidInput, TooLarge
from muniment.loops import in_thread

T = TypeVar("T")
FORM_FIELD = "form_token"
_CONTENT_TYPE = "application/x-www-form-urlencoded"
# Bytes: a longer body is decoded in a thread, in pieces of that length.
_PIECE = 64 * 1024
_DIGITS = re.compile(r"[0-9]{1,15}")


async def read_form(request: Request, visitor: Visitor) -> FormData:
    """Return the form a visitor sent; raises `Denied` for one that is not from a page of this session."""
    form = await parse_form(request, fields=2000)
    sessions = cast("Sessions", request.app.state.sessions)
    token = form.get(FORM_FIELD)
    if not sessions.is_form_token(visitor.session, token if isinstance(token, str) else None) or is_cross_site(request):
        raise Denied("this form is not from this session; load the page again")
    return form


async def parse_form(request: Request, *, fields: int) -> FormData:
    """Parse a form body; raises `InvalidInput` for another content type, `TooLarge` for too many fields."""
    if request.headers.get("content-type", _CONTENT_TYPE).partition(";")[0].strip().lower() != _CONTENT_TYPE:
        raise InvalidInput(f"expected {_CONTENT_TYPE}", field="Content-Type")
    content = await request.body()
    if content.count(b"&") >= fields:
        raise TooLarge(f"has more than {fields} fields", field="body")
    return _parse(content) if len(content) <= _PIECE else await in_thread(_parse, content)


def _parse(content: bytes) -> FormData:
    parts = [part.partition(b"=") for part in content.split(b"&") if part]
    return FormData([(_decode(name), _decode(value)) for name, _, value in parts])


def _decode(encoded: bytes) -> str:
    """Decode a name or a value, piece by piece, so that other threads run in between."""
    spaced = encoded.replace(b"+", b" ")
    decoded = bytearray()
    begin = 0
    while begin < len(spaced):
        end = min(begin + _PIECE, len(spaced))
        # An escape is not cut in two.
        cut = spaced.rfind(b"%", max(begin + 1, end - 2), end) if end < len(spaced) else -1
        end = cut if cut > begin else end
        decoded += unquote_to_bytes(spaced[begin:end])
        begin = end
    return decoded.decode("utf-8", "replace")


def is_cross_site(request: Request) -> bool:
    """Whether the browser says that the form was on another site's page."""
    origin = request.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != request.headers.get("host")
    except ValueError:
        return True  # Not an address at all.


def redirect(
    visitor: Visitor, path: str, notice: str | None = None, *, anchor: str = "", **query: str | None
) -> RedirectResponse:
    """Redirect to a page after an action, where `notice` says what happened."""
    signed = {NOTICE: sign_notice(visitor.form_token, notice)} if notice else {}
    to = console_url(path, **query, **signed)
    return RedirectResponse(f"{to}#{anchor}" if anchor else to, 303, headers=HEADERS)


def text_field(form: FormData, name: str) -> str | None:
    """A field's text without surrounding space; None if it was left empty."""
    value = form.get(name)
    return value.strip() or None if isinstance(value, str) else None


def list_field(form: FormData, name: str) -> list[str]:
    """A field with several names, separated by commas, spaces or lines; or several fields of that name."""
    typed = " ".join(one for one in form.getlist(name) if isinstance(one, str))
    return [word for word in re.split(r"[,\s]+", typed) if word]


def lines_field(form: FormData, name: str) -> list[str]:
    """A field with one entry per line."""
    return [line.strip() for line in (text_field(form, name) or "").splitlines() if line.strip()]


def time_field(form: FormData, name: str) -> datetime | None:
    """A date and time in UTC; None if it was left empty; raises `InvalidInput`."""
    return parse_time(text_field(form, name) or "", name)


def number_field(form: FormData, name: str, default: T) -> int | T:
    """A whole number; `default` if it was left empty; raises `InvalidInput`."""
    text = text_field(form, name)
    if text is not None and not _DIGITS.fullmatch(text):
        raise InvalidInput("expected a whole number", field=name)
    return int(text) if text is not None else default


def raw_fields(form: FormData, *names: str) -> dict[str, str]:
    """The fields exactly as they were typed, to fill the form again."""
    values = {name: form.get(name) for name in names}
    return {name: value if isinstance(value, str) else "" for name, value in values.items()}


def parse_qualifiers(text: str | None, side: str) -> dict[str, str] | None:
    """Parse qualifiers such as `region=de`, separated by commas or lines; raises `InvalidInput`."""
    found: dict[str, str] = {}
    for part in (text or "").replace("\n", ",").split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            continue
        if not (name and equals and value):
            raise InvalidInput("expected qualifiers such as region=de", field=side)
        found[name] = value
    return found or None
