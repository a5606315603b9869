"""Reads standing requests: how to contact the speaker, what to do always and never."""

from collections.abc import Iterator

from muniment.language.data_files import word_map
from muniment.language.messages.clauses import complement_of, is_own_statement
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.statement import SURE, Statement
from muniment.language.messages.topics import topic_of
from muniment.language.patterns import PatternFile

_CHANNELS = word_map("""
    email=email e-mail=email mail=email phone=phone telephone=phone call=phone ring=phone sms=text_message
    text=text_message whatsapp=WhatsApp chat=chat slack=Slack teams=Teams letter=letter post=letter video=video_call
    signal=Signal telegram=Telegram
""")
CHANNELS = frozenset(_CHANNELS.values())
"""The names of channels, whatever words they were said in."""
_PATTERNS = PatternFile(__package__ or "", "patterns/requests.txt")

_DOUBLED = ("nn", "mm", "pp", "tt", "gg", "rr", "dd", "bb")
_LONGEST = 25


def requests_of(sentence: Sentence) -> list[Statement]:
    """Return the standing requests of a sentence, in order."""
    if sentence.is_question:
        return []
    text = sentence.text
    return [one for one in (*_channels(text), *_standing(text)) if is_own_statement(text[: one.position])]


def _channels(text: str) -> Iterator[Statement]:
    for pattern in (_PATTERNS["by"], _PATTERNS["prefers_by"], _PATTERNS["instead"]):
        found = pattern.search(text)
        if found:
            channel = _CHANNELS[found.group(1).lower()]
            update = "from now on" in text.lower() or " now " in text.lower()
            yield Statement(SURE, update, "prefers_communication_channel", channel, found.start(), found.end())
            return
    found = _PATTERNS["not_by"].search(text)
    if found:
        channel = _CHANNELS[found.group(1).lower()]
        when = found.group(2) or ""
        stops = found.group().lower().lstrip(", ").startswith("stop")
        ended = stops or when.lower() in ("anymore", "any more", "again")
        tail = "" if ended or not when else f" {when}"
        predicate = f"contact_by_{topic_of(f'{channel}{tail}')}"
        yield Statement(SURE, ended, predicate, False, found.start(), found.end())


def _standing(text: str) -> Iterator[Statement]:
    if _PATTERNS["not_by"].search(text):
        return
    found = _PATTERNS["always"].search(text)
    if found:
        how = next((word.lower() for word in found.groups() if word), "")
        start = found.end() if not found.group(4) else text.lower().index(how, found.start()) + len(how)
        wish = complement_of(text, start, len(text)).object
        update = "from now on" in found.group().lower()
        yield from _wish(wish, how=how, update=update, position=found.start(), end=len(text))
        return
    found = _PATTERNS["stop"].search(text)
    if found:
        wish = f"{_base(found.group(1))} {found.group(2)} {complement_of(text, found.end(), len(text)).object}"
        yield from _wish(wish, how="never", update=True, position=found.start(), end=len(text))
        return
    found = _PATTERNS["dont"].search(text)
    if found:
        wish = complement_of(text, found.end(), len(text)).object
        yield from _wish(wish, how="never", update=False, position=found.start(), end=len(text))


def _wish(wish: str, *, how: str, update: bool, position: int, end: int) -> Iterator[Statement]:
    wish = wish.strip()
    topic = topic_of(wish)
    if topic is None or not 1 < len(wish.split()) <= _LONGEST:
        return
    never = how in ("never", "don't", "do not")
    yield Statement(SURE, update, f"wants_{topic}", not never, position, end)


def _base(verb: str) -> str:
    """Return the verb without -ing, roughly."""
    bare = verb[:-3]
    if bare.endswith(_DOUBLED):
        return bare[:-1]
    return f"{bare}e" if bare.endswith(("s", "v", "c", "u", "z", "ar", "ir", "at")) else bare
