"""Measures whether extraction changes a word: each fact of a fixed list of sentences is compared with its sentence."""

import asyncio
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, NamedTuple

from muniment.candidates.extractors import Extracted
from muniment.candidates.extractors.messages import MessageExtractor
from muniment.evaluation.extraction import NoAnswers, spoken
from muniment.language.messages.requests import CHANNELS
from muniment.language.messages.worth import RULES_FLOOR

_WORD = re.compile(r"\S+")
_SIGNS = "\"'\u201c\u201d\u2018\u2019.,;:!?()[]"


class _Changed(NamedTuple):
    """A fact with a word that its sentence does not have."""

    sentence: str
    fact: str


def listed_sentences() -> list[str]:
    """Return the sentences of the list."""
    lines = files("muniment.evaluation").joinpath("sentences.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def figures(sentences: Iterable[str] | None = None) -> dict[str, Any]:
    """Read each sentence as a message of its own, and count the facts of which a word was changed.

    A fact is changed if its text is not in the sentence as it is, word for word, or if its value has a word that the
    sentence does not have; the names of channels (`email`, `phone`) are a list of their own. `lost` are sentences
    from which the rules make no fact: neither a typed one nor a statement that is worth knowing.
    """
    extractor, read = MessageExtractor(), 0
    facts, changed, lost = 0, list[_Changed](), list[str]()
    for sentence in sentences if sentences is not None else listed_sentences():
        read += 1
        found = asyncio.run(extractor.extract(spoken(sentence), NoAnswers()))
        kept = [one for one in found if one.worth is None or one.worth[1] >= RULES_FLOOR]
        facts += len(kept)
        changed += [
            _Changed(sentence, str(one.fact.value or one.fact.text)) for one in found if is_changed(one, sentence)
        ]
        if not kept:
            lost.append(sentence)
    return {
        "n": read,
        "facts": facts,
        "changed": len(changed),
        "lost": len(lost),
        "changes": [{"sentence": one.sentence, "fact": one.fact} for one in changed],
        "lost_sentences": lost,
    }


def is_changed(read: Extracted, sentence: str) -> bool:
    """Say whether a fact has a word that its sentence does not have, or lacks one within its own text."""
    text, value = read.fact.text or "", read.fact.value
    if text not in sentence:
        return True
    if not isinstance(value, str) or value in CHANNELS:
        return False
    return f" {' '.join(_words(value))} " not in f" {' '.join(_words(sentence))} "


def _words(text: str) -> list[str]:
    return [word.strip(_SIGNS) for word in _WORD.findall(text)]
