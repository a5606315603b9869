"""Changes how a text is written and keeps its marks in place: case, typing errors, missing or added marks."""

from collections.abc import Callable
from random import Random

from training.tagger.rows import Mark, Marked

_NEAR = {"a": "s", "e": "r", "i": "o", "o": "p", "n": "m", "t": "r", "s": "d", "r": "t", "l": "k", "c": "v"}
_PREFIXES = (
    "- ",
    "* ",
    "> ",
    "1. ",
    "FYI: ",
    "note to self: ",
    "[10:42] ",
    "re: ",
    "??? ",
    "    ",
    "btw ",
    "## ",
    "• ",
    "q: ",
    "TODO ",
)
_SUFFIXES = ("!", " !!", " :)", " thx", "...", " 👍", " pls", " (see above)", ",", " asap", "\n")


def styled(marked: Marked, random: Random) -> Marked:
    """Return the text in a random style; most often as it is."""
    share = random.random()
    if share < 0.16:
        marked = marked.mapped(str.lower)
    elif share < 0.22:
        marked = marked.mapped(str.upper)
    elif share < 0.25:
        marked = _titled(marked)
    if random.random() < 0.07:
        marked = with_typos(marked, random, random.randint(1, 3))
    if random.random() < 0.06:
        marked = without(marked, lambda char: char in ".,!?" and random.random() < 0.8)
    if random.random() < 0.08:
        marked = surrounded(random.choice(_PREFIXES), marked, "")
    if random.random() < 0.06 and not marked.text.endswith("\n"):
        marked = surrounded("", marked, random.choice(_SUFFIXES))
    return marked


def surrounded(before: str, marked: Marked, after: str) -> Marked:
    """Return the text with more text before and after it."""
    move = len(before)
    return Marked(
        before + marked.text + after,
        tuple(mark.moved(move) for mark in marked.spans),
        tuple(mark.moved(move) for mark in marked.special),
    )


def _titled(marked: Marked) -> Marked:
    text = marked.text.title()
    return Marked(text, marked.spans, marked.special) if len(text) == len(marked.text) else marked


def with_typos(marked: Marked, random: Random, count: int) -> Marked:
    """Return the text with letters mistaken, doubled or swapped; digits and marks of labels stay as they are."""
    inside = {place for mark in marked.spans for place in range(mark.start, mark.end)}
    places = [place for place, char in enumerate(marked.text) if char.lower() in _NEAR and place not in inside]
    chars = list(marked.text)
    for place in random.sample(places, min(count, len(places))):
        near = _NEAR[chars[place].lower()]
        chars[place] = random.choice((near.upper() if chars[place].isupper() else near, chars[place] * 2, ""))
    return _rebuilt(marked, chars)


def without(marked: Marked, dropped: Callable[[str], bool]) -> Marked:
    """Return the text without some characters; none inside of a label is dropped."""
    inside = {place for mark in marked.spans for place in range(mark.start, mark.end)}
    return _rebuilt(
        marked, ["" if place not in inside and dropped(char) else char for place, char in enumerate(marked.text)]
    )


def tidied(marked: Marked) -> Marked:
    """Return the text without the spaces that empty choices leave behind: two together, or one before a full stop."""
    text = marked.text
    kept = [
        ""
        if char == " "
        and text[place + 1 : place + 2] in (" ", ".", ",", "?", "!")
        and text[place + 1 : place + 4] != "..."
        else char
        for place, char in enumerate(text)
    ]
    inside = {place for mark in marked.spans for place in range(mark.start, mark.end)}
    return _rebuilt(marked, [char if place in inside else kept[place] for place, char in enumerate(text)])


def _rebuilt(marked: Marked, chars: list[str]) -> Marked:
    """Return the text of these pieces, one for each character of the old text."""
    places = [0]
    for piece in chars:
        places.append(places[-1] + len(piece))

    def moved(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
        return tuple(Mark(places[mark.start], places[mark.end], mark.label, mark.about) for mark in marks)

    return Marked("".join(chars), moved(marked.spans), moved(marked.special))
