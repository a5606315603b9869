"""What the speaker asks for once and for all: how to be reached, what to do always and never."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muniment.language.messages.clauses import is_own_word, remainder
from muniment.language.messages.rules import rule
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.topics import topic
from muniment.language.messages.wording import sentence as as_sentence
from muniment.language.messages.wording import third

SURE = 0.70


@dataclass(frozen=True)
class Request:
    """A standing wish of the speaker's."""

    about: str
    text: str
    confidence: float
    update: bool
    place: int
    end: int
    predicate: str
    value: Any


_CHANNELS = {
    "email": "email",
    "e-mail": "email",
    "mail": "email",
    "phone": "phone",
    "telephone": "phone",
    "call": "phone",
    "ring": "phone",
    "sms": "text message",
    "text": "text message",
    "whatsapp": "WhatsApp",
    "chat": "chat",
    "slack": "Slack",
    "teams": "Teams",
    "letter": "letter",
    "post": "letter",
    "video": "video call",
    "signal": "Signal",
    "telegram": "Telegram",
}
_CHANNEL = r"(e-?mail|phone|telephone|call|ring|sms|text|whatsapp|chat|slack|teams|letter|post|video|signal|telegram)"
_SPOKEN = r"(?:ing|s|ed)?(?: calls?| messages?| chat)?s?"

_BY = rule(
    rf"\b(?:contact|reach|notify|message|update|inform|get back to|write to|answer"
    rf"|remind) me (?:only |just |back )?(?:by|via|through|over|on|using) {_CHANNEL}\b"
)
_PREFERS_BY = rule(
    rf"\bI(?:'d| would)? (?:much |really |strongly |usually |always |now )*(?:prefer"
    rf"|rather|like) (?:to be (?:contacted|reached|notified)"
    rf"|being (?:contacted|reached|notified)|to (?:communicate|talk|hear back|be in"
    rf" touch)|communicating|contact|communication|updates)? ?(?:by |via |through "
    rf"|over |on )?{_CHANNEL}{_SPOKEN}"
    r"(?: (?:over|to|rather than|instead of)\b|,|$| for (?:contact|communication|updates|messages))"
)
_INSTEAD = rule(
    rf"(?:^|[,;] |\bplease (?:just )?){_CHANNEL} me (?:instead|only|rather than|from"
    rf" now on|in (?:the )?future|and not)\b"
)
_NOT_BY = rule(
    rf"(?:^|[,;] |\bplease |\band |\bbut )(?:don't|do not|never|stop|no longer) (?:ever"
    rf" )?{_CHANNEL}(?:ing)? me\b(?: (anymore|any more|again|on [A-Za-z ]+|at [a-z0-9 ]+"
    rf"|before [a-z0-9 ]+|after [a-z0-9 ]+|during [a-z ]+|by [a-z]+))?"
)
_ALWAYS = rule(
    r"(?:^|[,;] |\b(?:and|but|so) )(?:please (always|never)|from now on,? (?:please )?(always|never|don't|do not)?"
    r"|in (?:the )?future,? please (always|never|don't|do not)?)\b ?|^(always|never) [a-z]+ me\b ?"
)
_STOP = rule(r"(?:^|[,;] |\b(?:and|but|so) )(?:please )?stop ([a-z]+ing) (me|us|my|these|those|the|all)\b")
_DONT = rule(r"(?:^|[,;] )please (?:don't|do not) ")
_DOUBLED = ("nn", "mm", "pp", "tt", "gg", "rr", "dd", "bb")
_LONGEST = 25


def requests_of(sentence: Sentence) -> list[Request]:
    """Every standing wish in the sentence, in its order."""
    if sentence.asks:
        return []
    return [
        one for one in (*_channels(sentence.text), *_standing(sentence.text)) if is_own_word(sentence.text[: one.place])
    ]


def _channels(text: str) -> Iterator[Request]:
    for pattern in (_BY, _PREFERS_BY, _INSTEAD):
        found = pattern.search(text)
        if found:
            channel = _CHANNELS[found.group(1).lower()]
            words = as_sentence(f"The user prefers to be contacted by {channel}")
            update = "from now on" in text.lower() or " now " in text.lower()
            yield Request(
                text[found.start() :],
                words,
                SURE,
                update,
                found.start(),
                found.end(),
                "prefers_communication_channel",
                channel,
            )
            return
    found = _NOT_BY.search(text)
    if found:
        channel = _CHANNELS[found.group(1).lower()]
        when = found.group(2) or ""
        ended = when.lower() in ("anymore", "any more", "again") or found.group().lower().lstrip(", ").startswith(
            "stop"
        )
        tail = "" if ended or not when else f" {third(when)}"
        words = as_sentence(f"The user does not want to be contacted by {channel}{tail}")
        slug = topic(f"{channel}{tail}")
        yield Request(
            text[found.start() :], words, SURE, ended, found.start(), found.end(), f"contact_by_{slug}", False
        )


def _standing(text: str) -> Iterator[Request]:
    if _NOT_BY.search(text):
        return
    found = _ALWAYS.search(text)
    if found:
        how = next((word.lower() for word in found.groups() if word), "")
        start = found.end() if not found.group(4) else text.lower().index(how, found.start()) + len(how)
        wish = remainder(text, start, len(text)).object
        never = how in ("never", "don't", "do not")
        update = "from now on" in found.group().lower()
        yield from _wish(wish, never=never, update=update, how=how, place=found.start(), end=len(text))
        return
    found = _STOP.search(text)
    if found:
        wish = f"{_base(found.group(1))} {found.group(2)} {remainder(text, found.end(), len(text)).object}"
        yield from _wish(wish, never=True, update=True, how="never", place=found.start(), end=len(text))
        return
    found = _DONT.search(text)
    if found:
        wish = remainder(text, found.end(), len(text)).object
        yield from _wish(wish, never=True, update=False, how="never", place=found.start(), end=len(text))


def _wish(wish: str, *, never: bool, update: bool, how: str, place: int, end: int) -> Iterator[Request]:
    wish = wish.strip()
    about = topic(wish)
    if about is None or not 1 < len(wish.split()) <= _LONGEST:
        return
    word = "never to" if never else "always to" if how == "always" else "to"
    words = as_sentence(f"The user asks {word} {third(wish)}")
    yield Request(wish, words, SURE, update, place, end, f"wants_{about}", not never)


def _base(verb: str) -> str:
    """The verb without -ing, well enough to read."""
    bare = verb[:-3]
    if bare.endswith(_DOUBLED):
        return bare[:-1]
    return f"{bare}e" if bare.endswith(("s", "v", "c", "u", "z", "ar", "ir", "at")) else bare
