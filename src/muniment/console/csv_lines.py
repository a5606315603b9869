"""Lines of CSV that a spreadsheet opens without running anything in them."""

import csv
import io
import re

# What a spreadsheet takes for a formula at the beginning of a cell; the wide signs where text is Chinese or Japanese.
# Where it divides lines at semicolons, tabs or bars, what follows one begins a cell too, as after a line end.
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(f'^(?=[\t\r\n])|(?:^|[;|\t\r\n]) *"?(?=[{_SIGNS}])')


def csv_line(*cells: str) -> str:
    """Write one line; a cell that would be taken for a formula begins with an apostrophe."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow([_FORMULA.sub(r"\g<0>'", one) for one in cells])
    return line.getvalue()
