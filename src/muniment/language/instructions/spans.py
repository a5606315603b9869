"""Which words of a text address the model: the shortest stretches that the detector finds by themselves."""

import re

from muniment.language.instructions.detector import suspicion

# A longer text is not looked into word by word: its suspicious passages are marked whole.
LONGEST = 8_000
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*")
_WORD = re.compile(r"\S+")

Span = tuple[int, int]


def addressing_spans(text: str) -> tuple[Span, ...]:
    """Return where a text addresses the model, in order and without overlap; nothing where it does not.

    A sentence that does so by itself is narrowed to the words without which it would not. Where no sentence does, but
    the text does as a whole (a disguise, several sentences together), the whole is narrowed in the same way.
    """
    if not text.strip() or not suspicion(text).addresses_the_model:
        return ()
    sentences = [found.span() for found in _SENTENCE.finditer(text) if found.group().strip()]
    alone = [span for span in sentences if suspicion(text[slice(*span)]).addresses_the_model]
    return tuple(_narrowed(text, span) for span in alone or [(0, len(text))])


def _narrowed(text: str, span: Span) -> Span:
    """Leave out words at the beginning, then at the end, as long as the rest still addresses the model."""
    words = [one.span() for one in _WORD.finditer(text, *span)]
    if span[1] - span[0] <= LONGEST:
        words = _cut(text, words, from_end=False)
        words = _cut(text, words, from_end=True)
    return words[0][0], words[-1][1]


def _cut(text: str, words: list[Span], *, from_end: bool) -> list[Span]:
    """Leave out words on one side: half of them, then ever fewer."""
    step = len(words) // 2
    while step:
        kept = words[:-step] if from_end else words[step:]
        if kept and suspicion(text[kept[0][0] : kept[-1][1]]).addresses_the_model:
            words = kept
        else:
            step //= 2
    return words
