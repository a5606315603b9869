"""Strips the framing of a question: polite or roundabout openings and endings become one fixed form."""

import re
from collections.abc import Sequence

from muniment.language.assertion.tokens import Token
from muniment.language.data_files import fill_parts, named_lines, read_sections

# An opening may have another before it.
_MOST_OPENINGS = 4
_WITH_AGENT = frozenset(("how", "can", "why", "where"))
_PERSONS = frozenset(("i", "we", "you"))

_sections = read_sections("muniment.language.assertion.lexicon", "questions.txt", joint="")
_parts = dict(named_lines(_sections["parts"]))
# By the first word of a sentence: the patterns to try, each with the words that replace it.
_OPENINGS: dict[str, list[tuple[re.Pattern[str], str]]] = {}
for _words, _source in named_lines(_sections["openings"]):
    _firsts, _, _replacement = _words.partition("->")
    for _first in _firsts.split():
        _pattern = re.compile(fill_parts(_source, _parts))
        _OPENINGS.setdefault(_first, []).append((_pattern, _replacement.strip()))
_ENDINGS = [re.compile(rf" {source} ?[?.!]*$") for source in _sections["endings"]]


def strip_framing(tokens: Sequence[Token]) -> list[Token]:
    """Replace each framing in the tokens of a question by the word that stands for it."""
    kept: list[Token] = []
    for sentence in _split_sentences(tokens):
        kept += _replace_opening(sentence)
    return _cut_ending(kept)


def _split_sentences(tokens: Sequence[Token]) -> list[list[Token]]:
    sentences: list[list[Token]] = [[]]
    for token in tokens:
        sentences[-1].append(token)
        if token.kind == "stop" and token.lower[0] in ".!?":
            sentences.append([])
    return sentences


def _replace_opening(sentence: list[Token]) -> list[Token]:
    for _ in range(_MOST_OPENINGS):
        text = " ".join([token.lower for token in sentence])
        for pattern, replacement in _OPENINGS.get(sentence[0].lower if sentence else "", ()):
            match = pattern.match(text)
            if match is None or match.end() >= len(text) or not match[0].endswith(" "):
                continue
            used = match[0].count(" ")
            words = [Token("word", word, False, True) for word in replacement.split()]
            if replacement in _WITH_AGENT:
                # `How can I help you` and `how can you help me` ask two things.
                words += [token for token in sentence[:used] if token.lower in _PERSONS]
            if [token.lower for token in sentence[:used]] == [word.lower for word in words]:
                return sentence
            sentence = [*words, *sentence[used:]]
            break
        else:
            return sentence
    return sentence


def _cut_ending(tokens: list[Token]) -> list[Token]:
    text = " ".join(token.lower for token in tokens)
    for pattern in _ENDINGS:
        match = pattern.search(text)
        if match is not None and match.start() > 0:
            kept = text[: match.start()].count(" ") + 1
            stop = [token for token in tokens[-1:] if token.kind == "stop"]
            tokens, text = [*tokens[:kept], *stop], text[: match.start()]
    return tokens
