"""Divides a script of SQL into its statements.

On a cluster a statement that Citus hands on to the nodes takes the whole text along that it was sent in: of several in
one text each node would run all, or refuse them.
"""

import re
from collections.abc import Iterator
from typing import LiteralString, cast

# What may hold a semicolon that ends no statement, and the one that does.
_TOKEN = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "[^"]*" | \$(\w*)\$.*?\$\1\$ | ;""",
    re.DOTALL | re.VERBOSE,
)


def statements(text: str) -> Iterator[LiteralString]:
    """The statements of a script, in order, without its comments; it must have no function with BEGIN ATOMIC."""
    one, start = "", 0
    for token in _TOKEN.finditer(text):
        one += text[start : token.start()]
        start = token.end()
        if token[0] == ";":
            if one.strip():
                yield cast("LiteralString", one.strip())
            one = ""
        elif token[0].startswith(("--", "/*")):
            one += " "
        else:
            one += token[0]
    if one := (one + text[start:]).strip():
        yield cast("LiteralString", one)
