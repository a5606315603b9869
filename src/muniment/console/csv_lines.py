"""Lines of CSV that a spreadsheet opens without running anything in them."""

import csv
import io

# What a spreadsheet takes for a formula at the beginning of a cell; the wide signs where text is Chinese or Japanese.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_line(*cells: str) -> str:
    """Write one line; a cell that would be taken for a formula begins with an apostrophe."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow([f"'{one}" if one.startswith(_FORMULA) else one for one in cells])
    return line.getvalue()
