"""What the speaker likes, and what not: verbs of liking, habits, aversions, findings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.language.messages.clauses import asks_before, is_answered, is_hedged, is_own_word, remainder
from muniment.language.messages.frames import (
    BEGUN,
    CONTINUED,
    ENDED,
    FINDS,
    FRAMES,
    HARD,
    HEADING,
    SOMEONE,
    SPEAKS,
    THINGS,
    TOLD_ON,
    USED_TO,
)
from muniment.language.messages.rules import LIKING, rule
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.wording import told

SAID, SHOWN, HEDGED = 0.70, 0.60, 0.50


@dataclass(frozen=True)
class Attitude:
    """A liking or a dislike: for what, in whose favour over what, in words."""

    likes: bool
    about: str
    over: str | None
    text: str
    confidence: float
    update: bool
    place: int
    # Said with "prefer", which chooses among others of its kind.
    chosen: bool = False


_SIDES = rule(rf"^(?:{LIKING})$")

_NOW = rule(
    r"\b(?:now|these days|nowadays|lately|anymore|any more|no longer|any longer|from now on|since last|since yesterday"
    r"|recently|changed my mind|on second thought|instead|used to)\b"
)
_FLIPPED = rule(r"\b(?:no longer|never)\b")
# Not a topic, but what was said a moment ago, or how one speaks.
_NO_TOPIC = rule(
    r"^(?:better|best|more$|on|at|in|by|from|with|for|about|after|before|until|during)\b|\b(?:you|your)\b|\bthis"
    r" (?:is|was)\b|^(?:it|that|this|these|those|them|him|her|you|your|yours|how|when"
    r"|what|where|why|who|if|one|ones|everything|nothing"
    r"|(?:anything|something)(?: (?:else|about|to|you|I|in|for|at))|(?:anything|something)$"
    r"|all of|both|each|to (?:think|know|hear|see|ask|thank|say|be honest|believe"
    r"|point|mention|start|add"
    r"|note|learn more|get started)|so|too|much|hearing|seeing|knowing|thinking|talking"
    r"|doing (?:it|that|this)|not|either|any of"
    r"|all the|(?:a|the) (?:lot|bit|ton|way|idea|ideas|suggestion|suggestions|sound"
    r" of|thought|concept|help|advice|tips?|recommendations?"
    r"|support|effort|feedback|info|information|approach)|having (?:you|to|it)|being"
    r" able|getting to|getting)\b|^(?:the|a|an|to|of)$"
    r"|^(?:is|are|was|were|has|had|will|would)\b|^(?:[a-z]+ing|to [a-z]+) (?:them"
    r"|it|him|her|you|that|this|those|these)\b"
)
# After a word of praise "the" points at what is being talked about; after one of dislike it names a thing.
_POINTED = rule(r"^the ")
_SENSED = rule(r"^the (?:colou?r|taste|smell|scent|sound|feel|feeling|look|sight|outdoors|sea|sun|cold|heat)\b")
_NOT_TO = rule(r"^(?:not (?:to )?|to not |to avoid |avoiding |to steer clear of |to stay away from )(?:ever )?")
_OVER = rule(r"^(.{2,120}?),? (?:over|rather than|instead of|more than|as opposed to|versus|vs|than) (.{2,120})$")
_TO = rule(r"^([A-Za-z-]+(?: [A-Za-z-]+)?) to ([A-Za-z-]+(?: [A-Za-z-]+)?)$")
# What one does, and not what one has: "series to unwind" compares nothing.
_DOING = rule(
    r"(?:^to |ing$|ing | to (?:relax|unwind|avoid|drive|use|help|save|keep|stay|make"
    r"|get|have|go|eat|work|cook|play|sleep"
    r"|read|watch|do|be|see|buy|wear|learn|study|talk|start|drink|listen|focus|exercise|reduce|minimize|support)\b)"
)
_CALLED = rule(r", [A-Z][a-z]+$", cased=True)
_DANGLING = rule(
    r"(?:,? (?:as|since|because|so|and|but|though|although|that|which|while|or|where"
    r"|especially|including|like how|like|with|for|of|in|to))+$"
)
_MOST_WORDS = 40
_MOST_ITEMS = 8
_NO_THING = rule(r"^(?:I|I've|I'm|I'd|the|my|we|our|they|he|she|there|here|someone|people) ")
_LEAD = rule(r"^(?:and|but|so|because|since|as|though|that|well|also|honestly|actually|for me|plus) ")


def attitudes_of(sentence: Sentence, after: Sequence[int] = ()) -> list[Attitude]:
    """Every liking and dislike that the sentence states as the speaker's own, in its order.

    `after` are the places where something else ends that the speaker said, and may go on from with "and".
    """
    text = sentence.text
    heading = HEADING.search(text)
    if heading and not sentence.asks:
        return list(_listed(heading))
    findings = list(_by_findings(sentence))
    found = [*_by_verbs(sentence, [*after, *(one.place for one in findings)]), *findings]
    taken: list[Attitude] = []
    for one in sorted(found, key=lambda each: each.place):
        if not any(one.place == other.place or one.text == other.text for other in taken):
            taken.append(one)
    return taken


@dataclass(frozen=True)
class _Head:
    likes: bool
    said: bool
    start: int
    end: int
    update: bool = False
    continued: bool = False


def _heads(text: str, after: Sequence[int]) -> list[_Head]:
    found = [
        _Head(likes, said, match.start(), match.end())
        for likes, said, pattern in FRAMES
        for match in pattern.finditer(f"{text} ")
    ]
    found += [_Head(False, True, m.start(), m.end(), update=True) for p in ENDED for m in p.finditer(text)]
    found += [_Head(True, True, m.start(), m.end(), update=True) for p in BEGUN for m in p.finditer(text)]
    # The longer match knows more: "do not like" is not "like".
    found.sort(key=lambda head: (head.start, -head.end))
    own: list[_Head] = []
    for head in found:
        if not own or head.start >= own[-1].end:
            own.append(head)
    speaks, someone = SPEAKS.search(text), SOMEONE.search(text)
    anchors = [*after, *(head.end for head in own[:1])]
    if speaks and is_own_word(text[: speaks.start(1)]):
        anchors.append(speaks.end())
    if anchors:
        first = min(anchors)
        for likes, said, pattern in (*CONTINUED, *(TOLD_ON if someone else ())):
            for match in pattern.finditer(text):
                clear = all(match.end() <= head.start or match.start() >= head.end for head in own)
                if match.start() >= first and clear:
                    own.append(_Head(likes, said, match.start(), match.end(), continued=True))
    return sorted(own, key=lambda head: head.start)


def _by_verbs(sentence: Sentence, after: Sequence[int]) -> Iterator[Attitude]:
    text = sentence.text
    heads = _heads(text, after)
    # Whatever the speaker may go on from was said as a fact.
    stands = True
    for place, head in enumerate(heads):
        limit = heads[place + 1].start if place + 1 < len(heads) else len(text)
        if not head.continued:
            before = text[: head.start]
            stands = is_own_word(before)
            if sentence.asks and (asks_before(before) or not is_answered(text[head.end :])):
                stands = False
        if stands:
            one = _attitude(text, head, limit)
            if one is not None:
                yield one
    used = USED_TO.search(text)
    if used and not sentence.asks and is_own_word(text[: used.start()]) and _is_topic(used.group(1), likes=False):
        yield Attitude(False, used.group(1), None, told(used.group()), SAID, True, used.start())


def _attitude(text: str, head: _Head, limit: int) -> Attitude | None:
    rest = remainder(text, head.end, limit)
    about, likes = _CALLED.sub("", rest.object), head.likes
    phrase = text[head.start : head.end].strip()
    opened = _NOT_TO.search(about)
    if likes and opened:
        likes, about = False, about[opened.end() :]
    flips = _FLIPPED.search(phrase)
    if flips and head.said and flips.group().lower() == "no longer":
        likes = not likes
    elif flips and head.said and head.likes and likes:
        likes = False
    about, over = _parted(_DANGLING.sub("", about), likes=likes)
    about = " ".join(about.split()[:_MOST_WORDS])
    if not _is_topic(about, likes=likes):
        return None
    if head.continued:
        subject = phrase.split(" ", 1)[1] if " " in phrase else phrase
        clause = f"I {subject.lstrip(', ')}" if not subject.split()[-1].endswith("s") else subject
    else:
        clause = phrase
    tail = _CALLED.sub("", _DANGLING.sub("", text[head.end : rest.end].strip(" ,;:-")))
    whole = f"{clause} {tail}{rest.reason}"
    hedged = is_hedged(text[max(0, head.start - 40) : head.end])
    confidence = HEDGED if hedged else SAID if head.said else SHOWN
    update = head.update or rest.no_more or bool(_NOW.search(text[max(0, head.start - 60) : rest.end]))
    chosen = likes and "prefer" in phrase.lower()
    return Attitude(likes, about, over, told(_from_speaker(whole)), confidence, update, head.start, chosen)


def _from_speaker(clause: str) -> str:
    for opening in ("as someone who ", "i'm someone who ", "i am someone who ", "i'm a person who "):
        if clause.lower().startswith(opening):
            return clause[len(opening) :]
    return clause


def _parted(about: str, *, likes: bool) -> tuple[str, str | None]:
    """What is preferred, and over what."""
    if not likes:
        return about, None
    found = _OVER.search(about)
    if found:
        return found.group(1), found.group(2)
    found = _TO.search(about)
    if found and not _DOING.search(about) and not _DOING.search(found.group(1)):
        return found.group(1), found.group(2)
    return about, None


def _is_topic(about: str, *, likes: bool) -> bool:
    if not any(sign.isalpha() for sign in about) or _NO_TOPIC.search(about):
        return False
    return not likes or not _POINTED.search(about) or bool(_SENSED.search(about))


def _by_findings(sentence: Sentence) -> Iterator[Attitude]:
    """Things that are something to the speaker."""
    text = sentence.text
    if sentence.asks:
        return
    hard = HARD.search(text)
    if hard and is_own_word(text[: hard.start()]):
        rest = remainder(text, hard.end(), len(text))
        about = rest.object.partition(" and ")[0]
        if _is_topic(about, likes=False):
            yield Attitude(
                False, about, None, told(_from_speaker(f"{hard.group()}{about}")), SHOWN, False, hard.start()
            )
    for likes, pattern in FINDS:
        found = pattern.search(text)
        if found and is_own_word(text[: found.start()]) and _is_topic(found.group(1), likes=False):
            bad = not likes or found.group(2).lower().split()[0] in ("too", "less")
            whole = _from_speaker(found.group())
            yield Attitude(not bad, found.group(1), None, told(whole), SHOWN, False, found.start())
            break
    for likes, pattern in THINGS:
        found = pattern.search(text)
        about = found.group(1).strip() if found else ""
        start = found.start(1) if found else 0
        lead = _LEAD.search(about)
        if lead:
            about, start = about[lead.end() :], start + lead.end()
        if found and _is_topic(about, likes=likes) and is_own_word(text[:start]) and not _NO_THING.search(about):
            said = text[start : found.end()]
            yield Attitude(likes, about, None, f'The user said: "{said[:1].upper()}{said[1:]}."', SHOWN, False, start)
            break


def _listed(heading: Any) -> Iterator[Attitude]:
    verb = heading.group(2).lower()
    likes = bool(_SIDES.search(verb))
    for place, item in enumerate(heading.group(3).split(", ")[:_MOST_ITEMS]):
        about = item.strip(" .")
        if _is_topic(about, likes=False):
            yield Attitude(likes, about, None, told(f"I {verb} {about}"), SAID, False, place)
