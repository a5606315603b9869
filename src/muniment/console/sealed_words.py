"""Words that a list is searched for, sealed in the address of its page.

They may name a person, and addresses stay in histories of browsers and in logs of proxies, which no erasure reaches.
"""

import hmac
import os
from base64 import urlsafe_b64decode
from binascii import Error
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from muniment.console.forms import redirect, text_field
from muniment.console.sessions import encode_base64
from muniment.console.visitors import Visitor
from muniment.errors import InvalidInput

# The field of an address that has the sealed words.
FIND = "find"
_PURPOSE = b"muniment/console/words"
_NONCE = 12


@dataclass(frozen=True)
class Words:
    """The words that a page was asked to find: the filter that they are, and the same sealed for its links."""

    field: str
    text: str = ""
    sealed: str = ""
    problem: InvalidInput | None = None


def words_of(request: Request, visitor: Visitor, field: str) -> Words:
    """Return the words of an address, sealed or as they are; `problem` says that they cannot be opened."""
    sealed = request.query_params.get(FIND, "").strip()
    if not sealed:
        text = request.query_params.get(field, "").strip()
        return Words(field, text, seal_words(visitor.form_token, text) if text else "")
    try:
        return Words(field, open_words(visitor.form_token, sealed, field), sealed)
    except InvalidInput as error:
        return Words(field, problem=error)


def words_in_form(form: FormData, visitor: Visitor, field: str) -> str:
    """Return the words of a form, sealed or as they were typed; raises `InvalidInput`."""
    sealed = text_field(form, FIND)
    return open_words(visitor.form_token, sealed, field) if sealed else text_field(form, field) or ""


def redirect_to_found(
    visitor: Visitor, path: str, field: str, typed: dict[str, str], notice: str | None = None
) -> RedirectResponse:
    """Redirect to a list with what was typed into its filters, the words of `field` sealed."""
    words = typed.get(field)
    sealed = seal_words(visitor.form_token, words) if words else ""
    return redirect(visitor, path, notice, **{**typed, field: "", FIND: sealed})


def seal_words(form_token: str, words: str) -> str:
    """Seal words for addresses of this session; nobody can open them without it."""
    nonce = os.urandom(_NONCE)
    return encode_base64(nonce + _cipher(form_token).encrypt(nonce, words.encode(), _PURPOSE))


def open_words(form_token: str, sealed: str, field: str) -> str:
    """Open words that this session sealed; raises `InvalidInput` for all others, which another session sealed."""
    try:
        content = urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        return _cipher(form_token).decrypt(content[:_NONCE], content[_NONCE:], _PURPOSE).decode()
    except (Error, InvalidTag, ValueError):
        raise InvalidInput("this search ended with its session; search again", field=field) from None


def _cipher(form_token: str) -> AESGCM:
    return AESGCM(hmac.digest(form_token.encode(), _PURPOSE, sha256))
