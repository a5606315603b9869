"""Scans promoted memories a second time for personal data (MET-4).

INVARIANT: it shares no code with `language.redaction`, or it would miss what the redactor misses. It matches shapes
and checks them by arithmetic, without number plans or models.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, cast

from muniment.model.metrics import PiiKind

_DASHES = dict.fromkeys((*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63, 0xFF0D), "-")

_BEFORE_AT = re.compile(r"[^\W_][\w.%+'-]*$")
_AFTER_AT = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,}")

_CARD = re.compile(r"(?<![\w*.-])\d(?:[ -]?\d){12,18}(?![\w*]|[.-]\d)")
# The issuers of cards: how their numbers begin, and how long they are.
_ISSUERS = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"3(?:0[0-5]|[689])"), (14, 16)),
    (re.compile(r"35"), (16, 17, 18, 19)),
    (re.compile(r"1800|2131"), (15,)),
    (re.compile(r"6(?:011|4[4-9]|5|2)"), (16, 17, 18, 19)),
    (re.compile(r"5[0678]|6[37]"), (13, 14, 15, 16, 17, 18, 19)),
)
# The shortest cards, only after a word for a card, as many other numbers are this long.
_SHORT_CARD = re.compile(
    r"\b(?:card|maestro|visa)\b\D{0,24}(?<!\d)((?:5[0678]|6)(?:[ -]?\d){10,11})(?![\w*])", re.IGNORECASE
)

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,32}")
_IBAN_LENGTHS = {
    length: frozenset(countries.split())
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
}

_JOINT = r"[ .()/-]{0,3}"
# With a country code, or in the groups of a telephone number.
_PHONE = re.compile(
    rf"(?<![\w+*.:-])(?:(?:\+|(?<!\d[ ./-])00)[ ]?[1-9](?:{_JOINT}\d){{6,13}}"
    r"|(?:1[ .-]?)?\(\d{2,5}\)[ .-]?\d{2,4}(?:[ .-]?\d{2,4}){1,3}"
    r"|(?:1[ .-])?\d{3}([ .-])\d{3}\1\d{4}"
    r"|(?<!\d[ ./-])0[1-9]\d{0,3}[ /-]\d{2,4}(?:[ -]?\d{2,4}){1,3})"
    r"(?:[ ]?(?:x|ext\.?)[ ]?\d{1,6})?(?![\w*]|[.:/-]\d)"
)
# Seven digits or more, right after a word that announces a telephone number.
_ANNOUNCED_PHONE = re.compile(
    r"\b(?:phones?|tel(?:ephone)?s?|mobile|cell|fax|whatsapp|call(?:s|ed)?(?: (?:me|him|her|us|them|back))?|handy"
    r"|telefon)"
    rf"\b(?:\s*(?:number|no\.?|nr\.?|#|is|at|on|to|:|=|\"|,))*\s*\+?(\(?\d(?:{_JOINT}\d){{6,14}})(?![\w*]|[.:/-]\d)",
    re.IGNORECASE,
)

_SSN = re.compile(r"(?<![\w.-])(?!000|666)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w*]|[.-]\d)")
_ANNOUNCED_SSN = re.compile(
    r"\b(?:ssn|social security)\b\D{0,24}(?<!\d)(\d{3}[- ]?\d{2}[- ]?\d{4})(?![\w*])", re.IGNORECASE
)
_NINO = re.compile(r"(?<!\w)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]([ -]?)\d{2}\1\d{2}\1\d{2}\1[A-D](?!\w)")

_IPV4 = re.compile(r"(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:][0-9A-Fa-f:.]{1,44}(?![\w:])")
_VERSION_BEFORE = re.compile(r"(?:\bversion|\brelease|\bbuild|\bv)\.?\s*$", re.IGNORECASE)

_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}"
    r"|glpat-[\w-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}"
    r"|npm_[A-Za-z0-9]{30,}|SG\.[\w-]{16,}\.[\w-]{16,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"
    r")|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_ANNOUNCED_KEY = re.compile(
    r"\b(?:api[ _-]?key|access[ _-]?key|secret(?:[ _-]?key)?|token|password|passwd)\b\"?\s*(?:is|[:=])\s*[\"']?"
    r"([^\s\"',;]{12,})",
    re.IGNORECASE,
)

_MONTH = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|june?|juni?|july?|juli"
    r"|aug(?:ust)?|sep(?:t|tember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_DAY = (
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:19|20)?\d{{2}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?{_MONTH},? (?:19|20)\d{{2}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? (?:19|20)\d{{2}})"
)
_BIRTH = re.compile(
    rf"\b(?:born|birth(?:day|date)?|dob|d\.o\.b\.?|geb(?:oren|\.)|geburtstag|geburtsdatum)\b\D{{0,32}}?(?<!\d){_DAY}(?!\d)",
    re.IGNORECASE,
)
_BIRTH_NAMES = re.compile(r"birth|\bdob\b|geburt", re.IGNORECASE)
_DATE = re.compile(_DAY, re.IGNORECASE)


# Values that a pack excepts, by kind: mail in small letters or `*@` and a domain; telephones as `+` and digits, or as
# dialled; accounts in capitals without spaces; IP addresses in their shortest spelling.
Exceptions = Mapping[str, frozenset[str]]
_NO_EXCEPTIONS: Exceptions = {}


def personal_data(text: str, exceptions: Exceptions = _NO_EXCEPTIONS) -> frozenset[PiiKind]:
    """Return the kinds of personal data that a text holds unmasked, leaving out the values that the pack excepts."""
    return frozenset(_kinds(_plain(text), exceptions))


def personal_data_in(value: Any, named: str = "", exceptions: Exceptions = _NO_EXCEPTIONS) -> frozenset[PiiKind]:
    """Return the same for a JSON value: for its strings, keys and whole numbers, at every depth.

    `named` is the name of the value; a bare date under a name such as `birthday` is a date of birth.
    """
    found: set[PiiKind] = set()
    for name, leaf in _leaves(value, named):
        found |= personal_data(leaf, exceptions)
        if _BIRTH_NAMES.search(name.replace("_", " ")) and _DATE.fullmatch(_plain(leaf).strip()):
            found.add("date_of_birth")
    return frozenset(found)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield name, value
        case bool() | float() | None:
            return
        case int():
            yield name, str(value)
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                yield name, key
                yield from _leaves(item, key)
        case list() | tuple():
            for item in cast("list[Any]", value):
                yield from _leaves(item, name)
        case _:
            yield name, str(value)


def _plain(text: str) -> str:
    """Replace letters and digits of other widths and all dashes by plain ones, and drop invisible characters."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text).translate(_DASHES)
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


def _kinds(text: str, exceptions: Exceptions) -> Iterator[PiiKind]:
    own: dict[str, frozenset[str]] = {
        kind: exceptions.get(kind, frozenset()) for kind in ("email", "phone", "iban", "ip")
    }
    mails = (_mail(text, place) for place, char in enumerate(text) if char == "@")
    if any(mail is not None and not _is_own_mail(mail, own["email"]) for mail in mails):
        yield "email"
    short = (_luhn_sum(_digits(found[1])) % 10 == 0 for found in _SHORT_CARD.finditer(text))
    if any(_is_card(_digits(found[0])) for found in _CARD.finditer(text)) or any(short):
        yield "card"
    accounts = (_begins_with_iban(found[0]) for found in _IBAN.finditer(text))
    if any(account is not None and account not in own["iban"] for account in accounts):
        yield "iban"
    national = [found.span() for found in _SSN.finditer(text)]
    if national or _ANNOUNCED_SSN.search(text) or _NINO.search(text):
        yield "national_id"
    phones = [(found, 0) for found in _PHONE.finditer(text) if found.span() not in national]
    phones += [(found, 1) for found in _ANNOUNCED_PHONE.finditer(text)]
    if any(_is_phone(*found) and not _is_own_phone(*found, own["phone"]) for found in phones):
        yield "phone"
    addresses = (_address(found) for pattern in (_IPV4, _IPV6) for found in pattern.finditer(text))
    if any(address is not None and address not in own["ip"] for address in addresses):
        yield "ip"
    if _KEY.search(text) or any(_looks_random(found[1]) for found in _ANNOUNCED_KEY.finditer(text)):
        yield "api_key"
    if _BIRTH.search(text):
        yield "date_of_birth"


def _mail(text: str, at: int) -> str | None:
    """Return the address around an `@`; None where there is none."""
    # From the `@` to both sides, as far as an address can be, so that a long text is read once.
    before, after = text[max(at - 64, 0) : at], text[at + 1 : at + 256]
    if (name := _BEFORE_AT.search(before)) is None or (domain := _AFTER_AT.match(after)) is None:
        return None
    return f"{name[0]}@{domain[0]}"


def _is_own_mail(mail: str, own: frozenset[str]) -> bool:
    address = mail.lower()
    return address in own or f"*@{address.rpartition('@')[2]}" in own


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdecimal())


def _is_card(digits: str) -> bool:
    issued = any(begin.match(digits) and len(digits) in lengths for begin, lengths in _ISSUERS)
    return issued and len(set(digits)) > 1 and _luhn_sum(digits) % 10 == 0


def _luhn_sum(digits: str) -> int:
    odd, even = digits[::-1][::2], digits[::-1][1::2]
    return sum(map(int, odd)) + sum(sum(divmod(2 * int(digit), 10)) for digit in even)


def _begins_with_iban(text: str) -> str | None:
    """Return the account that a text begins with: of the country's length, with remainder 1 by 97; None for none."""
    solid = "".join(char for char in text if char.isalnum()).upper()
    for length, countries in _IBAN_LENGTHS.items():
        if solid[:2] in countries and len(solid) >= length:
            account = solid[4:length] + solid[:4]
            right = int("".join(str(int(char, 36)) for char in account)) % 97 == 1
            return solid[:length] if right else None
    return None


_DATE_OR_YEARS = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{4} ?- ?\d{4}")


def _is_phone(found: re.Match[str], group: int) -> bool:
    shown = found[group].strip()
    count = len(_digits(shown.partition("x")[0]))
    return 7 <= count <= 15 and not _DATE_OR_YEARS.fullmatch(shown) and len(set(_digits(shown))) > 2


def _is_own_phone(found: re.Match[str], group: int, own: frozenset[str]) -> bool:
    """Say whether a number is one of these: all its digits, with a plus before them where it is written from abroad."""
    if not own:
        return False
    shown, digits = found[group].strip(), _digits(found[group])
    if any(char.isalpha() for char in shown):
        return False  # with an extension
    abroad = found.string[: found.start(group)].endswith("+") or shown.startswith("+")
    if abroad:
        return f"+{_digits(shown.replace('(0)', ''))}" in own
    return digits in own or any(
        f"+{digits.removeprefix(sign)}" in own for sign in ("00", "011") if digits.startswith(sign)
    )


def _address(found: re.Match[str]) -> str | None:
    """Return an IP address in its shortest spelling; None for what is none, and for versions."""
    text = found[0].rstrip(".")
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except (AddressValueError, ValueError):
        return None
    if isinstance(address, IPv4Address) and _VERSION_BEFORE.search(
        found.string[max(found.start() - 12, 0) : found.start()]
    ):
        return None
    # Loopback and unspecified addresses belong to nobody.
    return None if address.is_loopback or address.is_unspecified else str(address)


def _looks_random(word: str) -> bool:
    """Say whether a word mixes letters and digits like a secret, unlike a mask or a plain word."""
    return "*" not in word and "[" not in word and any(map(str.isdecimal, word)) and any(map(str.isalpha, word))
