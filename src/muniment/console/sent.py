"""Forms as browsers send them, made into fields; long ones in a thread."""

from urllib.parse import unquote_to_bytes

from fastapi import Request
from starlette.datastructures import FormData

from muniment.errors import InvalidInput, TooLarge
from muniment.loops import in_thread

_KIND = "application/x-www-form-urlencoded"
# Bytes: what is longer is read in a thread, and in pieces of that length.
_PIECE = 64 * 1024


async def sent_form(request: Request, *, fields: int) -> FormData:
    """The fields of a form; raises `InvalidInput` for another kind of body, `TooLarge` for too many of them."""
    if request.headers.get("content-type", _KIND).partition(";")[0].strip().lower() != _KIND:
        raise InvalidInput(f"expected {_KIND}", field="Content-Type")
    content = await request.body()
    if content.count(b"&") >= fields:
        raise TooLarge(f"has more than {fields} fields", field="body")
    if len(content) <= _PIECE:
        return _form(content)
    return await in_thread(_form, content)


def _form(content: bytes) -> FormData:
    parts = [part.partition(b"=") for part in content.split(b"&") if part]
    return FormData([(_text(name), _text(value)) for name, _, value in parts])


def _text(written: bytes) -> str:
    """What a field says. In pieces: between two of them other threads can run."""
    spaced = written.replace(b"+", b" ")
    found = bytearray()
    begin = 0
    while begin < len(spaced):
        end = min(begin + _PIECE, len(spaced))
        # An escape is not cut in two.
        cut = spaced.rfind(b"%", max(begin + 1, end - 2), end) if end < len(spaced) else -1
        end = cut if cut > begin else end
        found += unquote_to_bytes(spaced[begin:end])
        begin = end
    return found.decode("utf-8", "replace")
