"""Fills templates: chooses among alternatives, puts values into slots, and marks what they are.

A template is a line of text with `{slot}` for a value, `[one|two|]` for a choice (choices may be nested), and
`<HEALTH|words>` for words that tell of a special category; `<HEALTH:other|words>` tells of somebody other than the
speaker. `<ORGANIZATION|words>` marks words with a label. `\\n` is a line break.
"""

import re
from collections.abc import Callable
from random import Random

from training.tagger.labels import LABELS, SELF
from training.tagger.rows import Mark, Marked

# A value and its label; a value without a label is ordinary text. A value may also be marked inside.
Value = tuple[str, str | None] | Marked
Values = Callable[[str], Value]

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_PIECE = re.compile(r"\{(\w+)\}|<([A-Z]+)(?::(\w+))?\||>")


def expanded(template: str, random: Random) -> str:
    """Return the template with every choice made, the inner ones first."""
    while found := _CHOICE.search(template):
        chosen = random.choice(found.group(1).split("|"))
        template = template[: found.start()] + chosen + template[found.end() :]
    return template.replace("\\n", "\n")


def filled(template: str, values: Values, random: Random) -> Marked:
    """Return a text made from the template, with its marks."""
    line = expanded(_protected(template), random).replace("\x00", "|")
    text, spans, special = "", list[Mark](), list[Mark]()
    opened: list[tuple[int, str, str]] = []
    at = 0
    for piece in _PIECE.finditer(line):
        text += line[at : piece.start()]
        at = piece.end()
        if slot := piece.group(1):
            value = values(slot)
            if isinstance(value, Marked):
                spans += [mark.moved(len(text)) for mark in value.spans]
                text += value.text
                continue
            content, label = value
            if label and content:
                spans.append(Mark(len(text), len(text) + len(content), label))
            text += content
        elif category := piece.group(2):
            opened.append((len(text), category, piece.group(3) or SELF))
        elif opened:
            start, category, about = opened.pop()
            if category in LABELS:
                spans.append(Mark(start, len(text), category))
            else:
                special.append(Mark(start, len(text), category, about))
        else:
            text += ">"
    return Marked(text + line[at:], tuple(spans), tuple(special))


def _protected(template: str) -> str:
    return re.sub(r"<([A-Z]+(?::\w+)?)\|", "<\\1\x00", template)
