"""Finds payment cards: by the issuer's range and length, the Luhn check, and the grouping of the digits."""

import re
from bisect import bisect_left
from collections.abc import Iterator

from muniment.language.redaction.detectors.announcements import Announcements, names_a_thing
from muniment.language.redaction.detectors.ibans import find_ibans
from muniment.language.redaction.normalised import Span, lowered

_RUN = re.compile(r"(?<![0-9A-Za-z])[0-9]+(?:(?: ?[-._] ?| {1,2})[0-9]+)*(?![0-9A-Za-z])")
# Four groups of four, or as American Express writes them, with more between them than in a run.
_GAP = r"(?:[ \t]{1,4}|[ \t]{0,2}\r?\n[ \t]{0,2}|[ \t]?[-._/,;|][ \t]?)"
_IN_GROUPS = re.compile(
    rf"(?<![0-9A-Za-z])(?:[0-9]{{4}}{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}|3[47][0-9]{{2}}{_GAP}[0-9]{{6}}{_GAP}[0-9]{{5}})"
    r"(?![0-9A-Za-z])"
)
_MORE_BEFORE = re.compile(rf"(?<![0-9])[0-9]{{4}}{_GAP}$")
_MORE_AFTER = re.compile(rf"{_GAP}[0-9]{{4}}(?![0-9])")
_GROUP = re.compile(r"[0-9]+")
_NAMED = re.compile(
    r"(?:(?<![^\W\d_])(?:(?:credit|debit)?cards?(?:number)?|cc|ccn|credit|debit|visa|master ?card|maestro|amex"
    r"|american express|diners|discover|jcb|pan|carte|cb|tarjeta|carta|cart[aã]o)|karten?(?:nummer)?)(?![^\W\d_])"
)
_NAMED_AFTER = re.compile(r"(?i)[ ,;/(]{1,3}(?:exp(?:iry|ires?)?|cvv2?|cvc|valid (?:thru|until))(?![a-z])")
_NEAR = 40
_SHORTEST, _LONGEST = 12, 19
# Few cards and many other numbers are this short: a card must be named before them.
_TOO_COMMON = 13
_PAIRS = ((4, 6, 5), (4, 6, 4))
_DOUBLED = str.maketrans("0123456789", "0246813579")

# First digits from and to, and the lengths that the issuer uses.
_ISSUERS: tuple[tuple[str, str, frozenset[int]], ...] = (
    ("4", "4", frozenset({13, 16, 19})),  # Visa
    ("51", "55", frozenset({16})),  # Mastercard
    ("2221", "2720", frozenset({16})),
    ("34", "34", frozenset({15})),  # American Express
    ("37", "37", frozenset({15})),
    ("300", "305", frozenset({14})),  # Diners Club
    ("3095", "3095", frozenset({14})),
    ("36", "36", frozenset({14})),
    ("38", "39", frozenset({14})),
    ("3528", "3589", frozenset(range(16, 20))),  # JCB
    ("1800", "1800", frozenset({15})),
    ("2131", "2131", frozenset({15})),
    ("6011", "6011", frozenset(range(16, 20))),  # Discover
    ("644", "659", frozenset(range(16, 20))),
    ("62", "62", frozenset(range(16, 20))),  # UnionPay
    ("2200", "2205", frozenset(range(16, 20))),  # Mir
)
# Wide ranges with few cards: such a number must also be written in groups.
_RARE: tuple[tuple[str, str, frozenset[int]], ...] = (
    ("50", "50", frozenset(range(14, 20))),  # Maestro and national schemes beside it
    ("56", "58", frozenset(range(14, 20))),
    ("63", "63", frozenset(range(14, 20))),
    ("67", "67", frozenset(range(14, 20))),
    ("60", "60", frozenset({16})),  # RuPay
    ("81", "82", frozenset({16})),
    ("30", "30", frozenset({16, 19})),  # Diners Club
    ("36", "36", frozenset({16, 19})),
    ("38", "39", frozenset({16, 19})),
    ("9792", "9792", frozenset({16})),  # Troy
)


def find_cards(text: str) -> Iterator[Span]:
    """Return numbers of an issuer's range; where a card is named before it, any number that passes the Luhn check."""
    runs = [run.span() for run in _RUN.finditer(text) if run.end() - run.start() >= _SHORTEST]
    grouped = [found.span() for found in _IN_GROUPS.finditer(text)]
    if not runs and not grouped:
        return
    names = _Names(text)
    # Groups of a bank account may look like a card.
    accounts = list(find_ibans(text))
    for start, end in _all(text, runs, grouped, names):
        index = bisect_left(accounts, end, key=lambda account: account[0]) - 1
        if index < 0 or accounts[index][1] <= start:
            yield start, end


def _all(text: str, runs: list[Span], grouped: list[Span], names: "_Names") -> Iterator[Span]:
    yield from (span for span in grouped if _is_grouped_card(text, span, names))
    for run in runs:
        yield from _within(text, [group.span() for group in _GROUP.finditer(text, *run)], names)


class _Names:
    """Says which numbers of a text are named as a card, or as a thing that is none."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._announcements = Announcements(text)
        self._any = _NAMED.search(lowered(text)) is not None

    def is_card(self, start: int, end: int) -> bool:
        """Say whether a card is named before a number that ends there, or its expiry stands behind it."""
        if _NAMED_AFTER.match(self._text, end):
            return True
        return self._any and _NAMED.search(self._before(start).lower()) is not None

    def is_thing(self, start: int) -> bool:
        """Say whether the number is announced as one of an order, a parcel or a device."""
        return names_a_thing(self._before(start))

    def _before(self, start: int) -> str:
        return self._announcements.before(start, _NEAR)


def _is_grouped_card(text: str, span: Span, names: _Names) -> bool:
    """Say whether four such groups are a card; within a longer row of groups a card must be named before them."""
    start, end = span
    digits = "".join(_GROUP.findall(text[start:end]))
    if not _is_issued(digits, grouped=False) or not _passes_luhn(digits):
        return False
    alone = not _MORE_AFTER.match(text, end) and not _MORE_BEFORE.search(text[max(0, start - 12) : start])
    return alone or names.is_card(start, end)


def _within(text: str, groups: list[Span], names: _Names) -> Iterator[Span]:
    first = 0
    while first < len(groups):
        start = groups[first][0]
        if names.is_card(start, groups[-1][1]):
            last = _longest_number(text, groups, first)
        else:
            last = _longest_card(text, groups, first)
            if last == first and names.is_thing(start):
                last = None
        if last is None:
            first += 1
            continue
        yield start, groups[last][1]
        first = last + 1


def _longest_number(text: str, groups: list[Span], first: int) -> int | None:
    """Return the last group of the longest number from `first` on that passes the Luhn check."""
    digits = ""
    found: int | None = None
    for last in range(first, len(groups)):
        digits += text[slice(*groups[last])]
        if len(digits) > _LONGEST:
            break
        if len(digits) >= _SHORTEST and _passes_luhn(digits):
            found = last
    return found


def _longest_card(text: str, groups: list[Span], first: int) -> int | None:
    """Return the same for numbers that also have the range, the length and the grouping of a card."""
    length = groups[first][1] - groups[first][0]
    if length == 1:
        whole = first == 0 and len(groups) <= _LONGEST and all(end - start == 1 for start, end in groups)
        lasts = [len(groups) - 1] if whole else []
    elif length == 4:
        lasts = range(min(len(groups) - 1, first + 4), first, -1)
    else:
        lasts = [first] if length > _TOO_COMMON else []
    for last in lasts:
        digits = "".join(text[start:end] for start, end in groups[first : last + 1])
        if (
            _is_issued(digits, grouped=last > first)
            and _is_grouped_like_a_card(groups, first, last)
            and _passes_luhn(digits)
        ):
            return None if _is_part_of_a_decimal(text, groups, first, last) else last
    return None


def _is_issued(digits: str, *, grouped: bool) -> bool:
    issuers = _ISSUERS + _RARE if grouped else _ISSUERS
    return _TOO_COMMON < len(digits) <= _LONGEST and any(
        len(digits) in lengths and low <= digits[: len(low)] <= high for low, high, lengths in issuers
    )


def _passes_luhn(digits: str) -> bool:
    """Say whether the Luhn check holds; one repeated digit passes it too but is no card."""
    total = sum(map(int, digits[-1::-2])) + sum(map(int, digits[-2::-2].translate(_DOUBLED)))
    return total % 10 == 0 and len(set(digits)) > 1


def _is_grouped_like_a_card(groups: list[Span], first: int, last: int) -> bool:
    lengths = tuple(end - start for start, end in groups[first : last + 1])
    if len(lengths) == 1 or set(lengths) == {1} or lengths in _PAIRS:
        return True
    return set(lengths[:-1]) == {4} and lengths[-1] <= 4


def _is_part_of_a_decimal(text: str, groups: list[Span], first: int, last: int) -> bool:
    if first != last:
        return False
    start, end = groups[first]
    return bool(re.search(r"[0-9]\.$", text[max(0, start - 2) : start]) or re.match(r"\.[0-9]", text[end : end + 2]))
