"""Reads what announces a number: the heading of its column in a table, or the words before it.

The words before a number announce it up to the last other number only: in `SSN 531-21-7351, order 104820559` the name
belongs to the first. In a list ("call 467 3395 or 467 3396") they announce every number of it.
"""

import re
from bisect import bisect_right

from muniment.language.data_files import word_set
from muniment.language.redaction.normalised import before

_SEPARATORS = ("|", "\t", ";", ",")
_OTHER_NUMBER = re.compile(r"[0-9](?:[ ./()-]{0,3}[0-9]){5,}")
_LIST = re.compile(
    r"(?i)(?:[\s,;/&|]|(?:x|ext\.?) ?[0-9]{1,6}|\b(?:or|and|und|oder|et|ou|y|o|e|of|en|eller)\b"
    r"|\((?:home|work|office|mobile|cell|fax)\))*"
)
# What has numbers of its own and is no person.
THINGS = word_set("""
    order orders invoice invoices ticket tickets case cases sku skus tracking parcel shipment barcode ean gtin upc isbn
    issn lot batch rma item items article part model version serial imei device asset meter booking reservation voucher
    transaction txn bestellung bestellnummer rechnung commande facture pedido factura sendungsnummer auftrag
""")
_PLACES_AND_ACCOUNTS = ("suite", "apt", "apartment", "unit", "room", "box", "account", "acct")
_THING_AND_NUMBER = re.compile(
    rf"(?<![^\W\d_])(?:{'|'.join(sorted((*THINGS, *_PLACES_AND_ACCOUNTS), key=len, reverse=True))})"
    r"(?:[ _-]?(?:number|no|nr|id|code))?(?:[\s:#=.\"'|-]|(?:is|was)(?= )){0,6}$"
)
_DIGITS = re.compile(r"[0-9]{3}")
_LONGEST_HEADING, _MOST_COLUMNS = 40, 100


class Announcements:
    """What announces the numbers of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._headings: _Headings | None = None

    def before(self, start: int, reach: int) -> str:
        """Return the words that can announce a number at a position: in a table the heading and the own cell."""
        lead = before(self._text, start, reach)
        if self._headings is None:
            self._headings = _Headings(self._text)
        if (cell := self._headings.of(start)) is not None:
            heading, separator = cell
            in_cell = lead.rpartition("\n")[2].rpartition(separator)[2]
            return f"{heading}: {in_cell.lstrip()}"
        *_, last = [None, *_OTHER_NUMBER.finditer(lead)]
        if last is None or _LIST.fullmatch(lead, last.end()):
            return lead
        return lead[last.end() :]


def names_a_thing(lead: str) -> bool:
    """Say whether words end with a thing whose number must follow: an order, a parcel, a device."""
    return _THING_AND_NUMBER.search(lead.lower()) is not None


class _Headings:
    """The tables of a text: lines with equally many separators after a line of headings, which holds no long number."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []
        self._tables: list[tuple[str, list[str]] | None] = []
        form: tuple[str, int] | None = None
        cells: list[str] | None = None
        start = 0
        for line in text.split("\n"):
            found = next(((one, count) for one in _SEPARATORS if (count := line.count(one))), None)
            in_table = found is not None and found == form and found[1] <= _MOST_COLUMNS
            if not in_table:
                form = found
                cells = line.split(found[0]) if found and not _DIGITS.search(line) else None
            self._starts.append(start)
            self._tables.append((found[0], cells) if found and in_table and cells else None)
            start += len(line) + 1

    def of(self, place: int) -> tuple[str, str] | None:
        """Return the heading of the column of a position and the separator; None where it is in no such table."""
        line = bisect_right(self._starts, place) - 1
        if (table := self._tables[line]) is None:
            return None
        separator, cells = table
        heading = cells[self._text.count(separator, self._starts[line], place)].strip()
        return (heading, separator) if len(heading) <= _LONGEST_HEADING else None
