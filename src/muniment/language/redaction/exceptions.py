"""Which findings are values of the company's own, that a pack lets stand (RED-5).

A finding is excepted as a whole or not at all, and only if nothing beside it could be part of it: of
`support@acme.example` neither `jane.support@acme.example` nor `support@acme.example.evil.com` gets anything.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from muniment.language.redaction.normalised import FILLER
from muniment.pack.redaction_exceptions import RedactionExceptions, account_form, ip_form, mail_form, url_form

# A value that the pack names, or an address of a domain that it names.
Exempt = Literal["value", "domain"]

# Space and dashes that people set between groups of digits; what is found with any other character is no value.
_BETWEEN_GROUPS = frozenset(("Zs", "Pd"))
_MARKS = frozenset(("Mn", "Mc", "Me", "Cf"))
# Digits from which the name in an address may be a number of a person, as in those of messages to telephones.
_NUMBER = 6
_ZERO_IN_BRACKETS = re.compile(r"\(0\)")


class Exceptions:
    """The exceptions of a pack, compared with findings."""

    def __init__(self, declared: RedactionExceptions) -> None:
        self._forms = declared.forms

    def __bool__(self) -> bool:
        return bool(self._forms)

    def match(self, detector: str | None, text: str, start: int, end: int) -> Exempt | None:
        """Say what excepts a finding of a detector in a text, in which masks are blanked; None if nothing does."""
        if detector not in self._forms or not _stands_alone(text, start, end):
            return None
        return self.named(detector, text[start:end])

    def named(self, detector: str | None, found: str) -> Exempt | None:
        """Say whether the pack names what a detector found, whatever stands beside it."""
        if detector is None or (known := self._forms.get(detector)) is None:
            return None
        for form in _SPELLINGS[detector](found):
            if form in known:
                return "value"
            if detector == "email" and f"*@{form.rpartition('@')[2]}" in known and _is_a_name(form.rpartition("@")[0]):
                return "domain"
        return None


def _is_a_name(local: str) -> bool:
    """Say whether the part before the `@` is a name: it begins with a letter, without a long number or other address.

    `jane_mail.example#EXT#` and `bounce+jane=mail.example` are addresses of somebody elsewhere.
    """
    plain = all(letter.isalnum() or letter in "._-+" for letter in local)
    return plain and local[:1].isalpha() and sum(map(str.isdigit, local)) < _NUMBER


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Say whether nothing before or behind a finding reads as a part of it: a letter, a digit, a mask, an accent."""
    if start > 0 and _goes_on(text[start - 1]):
        return False
    follows = text[end : end + 2]
    if not follows:
        return True
    return not (_goes_on(follows[0]) or (follows[0] in ".-" and len(follows) > 1 and _goes_on(follows[1])))


def _goes_on(char: str) -> bool:
    return char.isalnum() or char in "_@" or char == FILLER or unicodedata.category(char) in _MARKS


def _mail_spellings(found: str) -> Iterator[str]:
    # An address in quotes may hold an `@` of its own.
    if '"' not in found:
        yield mail_form(found)


def _phone_spellings(found: str) -> Iterator[str]:
    """Yield the digits of a number as dialled, and behind a plus where it begins as numbers do from abroad."""
    if (plain := _plain_groups(found)) is None or any(char.isalpha() or char in "#;=" for char in plain):
        return  # With an extension it is the number of one person.
    abroad = plain.lstrip(" (").startswith("+")
    digits = re.sub(r"[^0-9]", "", _ZERO_IN_BRACKETS.sub("", plain) if abroad else plain)
    if abroad:
        yield f"+{digits}"
        return
    yield digits
    for prefix in ("00", "011"):
        if digits.startswith(prefix):
            yield f"+{digits.removeprefix(prefix)}"


def _account_spellings(found: str) -> Iterator[str]:
    if (plain := _plain_groups(found)) is not None:
        yield account_form(plain)


def _ip_spellings(found: str) -> Iterator[str]:
    if (form := ip_form(found)) is not None:
        yield form


def _url_spellings(found: str) -> Iterator[str]:
    if (form := url_form(found)) is not None:
        yield form


def _plain_groups(found: str) -> str | None:
    """Return a number with plain spaces and dashes; None where it holds anything else that is not ASCII."""
    if found.isascii():
        return found
    plain = [char if char.isascii() else " " if unicodedata.category(char) in _BETWEEN_GROUPS else "" for char in found]
    return "".join(plain) if all(plain) else None


_SPELLINGS: Mapping[str, Callable[[str], Iterator[str]]] = {
    "email": _mail_spellings,
    "phone": _phone_spellings,
    "iban": _account_spellings,
    "ip": _ip_spellings,
    "url": _url_spellings,
}
