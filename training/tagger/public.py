"""Reads rows from public data: marked sentences, the same with other values, and talk without personal data."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from training.inputs import held
from training.tagger.labels import CATEGORIES, LABELS
from training.tagger.rows import Mark, Marked, Row
from training.tagger.values import Values

# What the data calls the labels; other types (age, time, title, nationality) are not marked.
_TYPES = {
    **{
        label: label
        for label in ("PERSON", "ADDRESS", "LOCATION", "ORGANIZATION", "PHONE", "EMAIL", "IBAN", "CREDIT_CARD")
    },
    "ZIP_CODE": "ADDRESS",
    "SSN": "ID",
    "DOMAIN_NAME": "ONLINE",
    "IP_ADDRESS": "ONLINE",
}
# Band names and channels have no mark, and dates and numbers of records have no type there.
_KNOWN = tuple(label for label in LABELS if label not in ("ORGANIZATION", "DATE_OF_BIRTH", "ACCOUNT"))
_SLOTS = {
    "LOCATION": "city",
    "ORGANIZATION": "company",
    "PHONE": "phone",
    "EMAIL": "email",
    "IBAN": "iban",
    "CREDIT_CARD": "card",
    "ID": "ssn",
}
_UNIT = re.compile(r"(?i)(?:suite|apt|unit|flat)\b")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][a-z]+)?")
# Words that may tell of a special category: a sentence with one of them is not taken as having none.
_TELLING = re.compile(
    r"(?i)\b(?:health|sick|ill|pain|ache|doctor|hospital|clinic|medic|treat|thera|diagnos|disease|disorder|symptom|allerg"
    r"|diabet|asthma|cancer|anxi|depress|stress|pregnan|diet|gluten|vegan|weight|sleep|insomn|surger|injur|blood|heart|mental"
    r"|disab|autis|recover|relig|church|faith|pray|god|bible|spirit|medita|yoga|jew|muslim|christ|buddh|hindu|islam|belie"
    r"|vot|politic|party|elect|democra|republic|liberal|conservat|gay|lesbian|trans|bisex|queer|gender|sex|partner|union"
    r"|strike|fingerprint|face|dna|genetic|arrest|crim|prison|jail|convict|court|police|steal|stole|son|daughter|kid|child"
    r"|baby|toddler|niece|nephew|school|skin|hair|vitamin|supplement|fitness|workout|exercise)\w*"
)


def marked_sentences(records: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Return the records that are not held back as rows."""
    for record in records:
        if held([record["text"]]):
            continue
        spans = [
            Mark(one["start"], one["end"], _TYPES[one["type"]]) for one in record["spans"] if one["type"] in _TYPES
        ]
        yield Row(Marked(record["text"], tuple(sorted(spans, key=lambda mark: mark.start))), record["set"], _KNOWN)


def refilled(rows: Iterable[Row], values: Values, random: Random, times: int) -> Iterator[Row]:
    """Return every row so many times with other values in its spans."""
    for row in rows:
        for _ in range(times if row.marked.spans else 0):
            values.begin()
            yield Row(_refilled(row.marked, values, random), f"{row.set}_refilled", row.known)


def _refilled(marked: Marked, values: Values, random: Random) -> Marked:
    small = marked.text == marked.text.lower()
    text, spans, at = "", list[Mark](), 0
    for mark in marked.spans:
        if mark.start < at:
            continue
        old = marked.text[mark.start : mark.end]
        new = values(_slot(mark.label, old, random))
        value = new.text if isinstance(new, Marked) else new[0]
        text += marked.text[at : mark.start]
        spans.append(Mark(len(text), len(text) + len(value), mark.label))
        text += value.lower() if small and len(value.lower()) == len(value) else value
        at = mark.end
    return Marked(text + marked.text[at:], tuple(spans))


def _slot(label: str, old: str, random: Random) -> str:
    """Return the slot whose values have the form of the old value."""
    if label == "PERSON":
        if "." in old:
            return "initials"
        return "full" if " " in old else random.choice(("first", "last", "wordname", "nick"))
    if label == "ADDRESS":
        if old.replace(" ", "").isdigit():
            return "zip"
        if _UNIT.match(old):
            return "unit"
        return "address" if len(old) > 30 or "\n" in old else "street"
    if label == "ONLINE":
        return "ip" if old[0].isdigit() else "url"
    return _SLOTS[label] if label != "LOCATION" else random.choice(("city", "city", "country"))


def plain_talk(texts: Iterable[str], random: Random, count: int) -> list[Row]:
    """Return sentences that have no personal data: no digits, no names, and no words that tell of special categories.

    A sentence may have no capital but its first and `I`, and its first word must occur in small letters elsewhere.
    """
    sentences = [one.group().strip() for text in texts for one in _SENTENCE.finditer(text)]
    small = Counter(word for sentence in sentences for word in _WORD.findall(sentence)[1:] if word.islower())
    safe = sorted({sentence for sentence in sentences if _is_safe(sentence, small)})
    known = tuple(label for label in LABELS + CATEGORIES if label != "ORGANIZATION")
    return [Row(Marked(sentence), "talk", known) for sentence in random.sample(safe, min(count, len(safe)))]


def _is_safe(sentence: str, small: Mapping[str, int]) -> bool:
    found = _WORD.findall(sentence)
    if not 4 <= len(found) <= 40 or any(char.isdigit() or char in "@/<>{}[]|`*#_" for char in sentence):
        return False
    others = (word for word in found[1:] if word[0] != "I" or (len(word) > 1 and word[1] not in "'\u2019"))
    return (
        all(word.islower() for word in others) and small.get(found[0].lower(), 0) > 2 and not _TELLING.search(sentence)
    )


def turns(questions: Iterable[Mapping[str, Any]], episodes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Return what is said in LongMemEval and GateMem, without the records that are held back."""
    for question in questions:
        if not held([question["question_id"]]):
            yield from (turn["content"] for part in question["haystack_sessions"] for turn in part)
    for episode in episodes:
        if not held([episode["episode_id"]]):
            yield from (turn["text"] for turn in episode["turns"])
