"""What the speaker likes, and what not: verbs of liking, habits, aversions, findings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muniment.extract.messages.clauses import asks_before, is_answered, is_hedged, is_own_word, remainder
from muniment.extract.messages.rules import (
    ADVERBS,
    BAD,
    DISLIKING,
    DISLIKING_TOLD,
    FEELS_BAD,
    FEELS_GOOD,
    GOOD,
    HABITS,
    HABITS_TOLD,
    LIKING,
    LIKING_TOLD,
    either,
    rule,
)
from muniment.extract.messages.sentences import Sentence
from muniment.extract.messages.wording import told

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


_I = r"\b(?:I|as someone who|I'm someone who|I am someone who|I'm a person who)"
_BE = r"(?:'m| am)"
_ADJECTIVES = r"(?:[a-z-]+ ){0,3}"
_AVERSION = either(
    "aversion dislike distaste hatred bias phobia fear objection intolerance disdain disinterest prejudice hate loathing"
)
_FONDNESS = either("preference fondness soft_spot passion weakness love liking appreciation penchant affinity taste")
_TOWARDS = either("to for of against towards toward with")
_FAN = r"(?:a |the )?(?:(?:big|huge|great|massive|real|lifelong|die-hard) )?(?:fan|lover|admirer) of"
_INTO = either("into keen_on fond_of big_on crazy_about comfortable_with interested_in excited_about much_for")
_DRAWN = either(
    "into keen_on fond_of partial_to crazy_about obsessed_with passionate_about drawn_to captivated_by fascinated_by"
    " big_on addicted_to hooked_on only_interested_in"
)
_REPELLED = either(
    "afraid_of scared_of terrified_of uncomfortable_with averse_to opposed_to sensitive_to put_off_by sick_of tired_of"
    " done_with against bored_by bored_of wary_of"
)
_NOT = r"(?:don't|do not|doesn't|does not)"
_CANNOT = r"(?:can't|cannot|can not|couldn't)"

# Each with the side it takes. What stands before `(?:` groups is the speaker; the object follows the match.
_FRAMES: tuple[tuple[bool, bool, Any], ...] = tuple(
    (likes, said, rule(pattern))
    for likes, said, pattern in (
        (True, True, rf"{_I} {ADVERBS}(?:{LIKING}|{LIKING_TOLD}) "),
        (True, True, rf"\bI(?:'d| would) (?:really |much |still )?(?:prefer|rather) "),
        (False, True, rf"{_I} {ADVERBS}(?:{DISLIKING}|{DISLIKING_TOLD}) "),
        (False, True, rf"{_I} {ADVERBS}(?:steer|stay|keep|shy)s? (?:clear of|away from) "),
        (False, True, rf"{_I} {ADVERBS}(?:refuse|decline)s? to (?:{HABITS} )?"),
        (
            False,
            True,
            rf"{_I} {ADVERBS}{_CANNOT} {ADVERBS}{either('stand bear tolerate handle stomach abide eat drink consume')} ",
        ),
        (False, True, rf"{_I} {ADVERBS}{_NOT} {ADVERBS}(?:{LIKING}|care for|think much of) "),
        (False, True, rf"\bI(?:{_BE}) not {ADVERBS}(?:{_FAN}|{_INTO}|much of an?) "),
        (True, True, rf"\bI(?:{_BE}) {ADVERBS}(?:{_FAN}|{_DRAWN}) "),
        (False, True, rf"\bI(?:{_BE}) {ADVERBS}{_REPELLED} "),
        (False, True, rf"{_I}(?:'ve got| have| has) (?:an?|some) {_ADJECTIVES}{_AVERSION} {_TOWARDS} "),
        (
            False,
            True,
            rf"{_I}(?:'ve got| have| has) {ADVERBS}(?:no|little|zero|not much) {either('interest desire patience appetite tolerance use time')} {either('in for to')} ",
        ),
        (True, True, rf"{_I}(?:'ve got| have| has) (?:an?|some) {_ADJECTIVES}{_FONDNESS} for "),
        (
            True,
            False,
            rf"{_I} (?:{ADVERBS})(?:will |can |could )?(?:only|exclusively|solely|strictly) {ADVERBS}(?:{HABITS}|{HABITS_TOLD}) ",
        ),
        (True, False, rf"\bI(?:{_BE}) only interested in "),
        (True, False, rf"{_I} {ADVERBS}(?:sticks? (?:to|with)|opts? for|goes? for|relys? on|swears? by) "),
        (False, False, rf"{_I} (?:{ADVERBS})?(?:never(?: ever)?|won't|will not) {ADVERBS}(?:{HABITS}|{HABITS_TOLD}) "),
        (False, False, rf"{_I} {ADVERBS}{_NOT} {ADVERBS}{HABITS} "),
    )
)
# The speaker goes on with "and" or "but".
_CONTINUED: tuple[tuple[bool, bool, Any], ...] = tuple(
    (likes, said, rule(pattern))
    for likes, said, pattern in (
        (True, True, rf"\b(?:and|but|so|,) {ADVERBS}(?:prefers?|enjoys?|favou?rs?) "),
        (
            False,
            True,
            rf"\b(?:and|but|so|,) {ADVERBS}(?:avoids?|dislikes?|detests?|despises?|hates?|refuses? to(?: {HABITS})?) ",
        ),
        (False, True, rf"\b(?:and|but|so|,) {ADVERBS}{_NOT} {ADVERBS}(?:{LIKING}|{HABITS}) "),
        (True, False, rf"\b(?:and|but|so|,) (?:will |can )?(?:only|exclusively) {ADVERBS}(?:{HABITS}|{HABITS_TOLD}) "),
        (
            False,
            False,
            rf"\b(?:and|but|so|,) (?:never|won't|will not|cannot|can't) {ADVERBS}(?:{HABITS}|{HABITS_TOLD}) ",
        ),
    )
)
_ENDED = tuple(
    rule(pattern)
    for pattern in (
        rf"\bI(?:'ve| have)? (?:just |recently |finally |now )?(?:stopped|quit) (?:{ADVERBS})(?:[a-z]+ing) ",
        r"\bI(?:'ve| have)? (?:just |recently |finally |now )?(?:gone off|given up(?: on)?|gave up(?: on)?|cut out|lost interest in"
        r"|lost my taste for|grown tired of|grown out of|grew out of|had enough of|moved away from) ",
    )
)
_BEGUN = tuple(
    rule(pattern)
    for pattern in (
        rf"\bI(?:'ve| have)? (?:just |recently |finally |now |really )?(?:started|begun|began|come|grown|learned|learnt|got|gotten)"
        rf" (?:to |into )?(?:really )?(?:{LIKING}|liking|loving|enjoying|preferring|appreciating|into) ",
    )
)
_USED_TO = rule(
    rf"\bI used to (?:really )?(?:{LIKING}|{HABITS}) ([^,.]{{2,120}}?),? but (?:not any ?more|no longer|not now|I don't any ?more"
    r"|I no longer do|that changed|that's changed|now I (?:don't|hate|can't|avoid))"
)
_FINDS = tuple(
    (
        likes,
        rule(
            rf"{_I} {ADVERBS}finds? ([^,;]{{2,100}}?) (?:to be )?((?:{ADVERBS})(?:too [a-z-]+|less [a-z-]+|{words}))\b"
        ),
    )
    for likes, words in ((False, BAD), (True, GOOD))
)
# The thing comes first, and then what it is to the speaker.
_THINGS: tuple[tuple[bool, Any], ...] = tuple(
    (
        likes,
        rule(
            rf"^(?:.{{0,80}}?(?:[,;:] |\b(?:because|since|as|and|but|though|that|where|so) ))??([^,;:]{{2,100}}?)(?:,? which)? {pattern}\b"
        ),
    )
    for likes, pattern in (
        (False, rf"(?:make|makes|made) me (?:feel )?{ADVERBS}{FEELS_BAD}"),
        (True, rf"(?:make|makes) me (?:feel )?{ADVERBS}{FEELS_GOOD}"),
        (
            False,
            rf"{_NOT} {ADVERBS}(?:appeal to me|interest me|work for me|sit well with me|agree with me|do it for me)",
        ),
        (
            False,
            r"(?:isn't|aren't|is not|are not) (?:really |quite )?(?:for me|my (?:thing|cup of tea|style|favou?rite|jam))",
        ),
        (False, r"(?:is|are) (?:an? )?(?:strict |absolute |definite |hard )?(?:no-go|deal-?breaker|turn-?off) for me"),
        (False, r"(?:bore|bores|annoy|annoys|disgust|disgusts|scare|scares|irritate|irritates) me"),
        (
            True,
            r"(?:is|are) (?:my|a) (?:number one|top|main|first|biggest|highest|absolute) (?:priority|must)(?: for me)?",
        ),
        (
            True,
            r"(?:is|are|matter|matters) (?:very |really |so |extremely |a lot )?(?:important|crucial|essential)? ?(?:to|for) me",
        ),
        (True, r"(?:is|are) (?:really |totally |so )?my (?:thing|jam|cup of tea|go-to)"),
    )
)
_HEADING = rule(
    rf"^([A-Za-z][A-Za-z ]{{0,40}}) I ({LIKING}|{DISLIKING}|don't like|do not like|can't stand)(?: to [a-z]+(?: to| in| at)?)?: (.+)$"
)
_SIDES = rule(rf"^(?:{LIKING})$")

_NOW = rule(
    r"\b(?:now|these days|nowadays|lately|anymore|any more|no longer|any longer|from now on|since last|since yesterday"
    r"|recently|changed my mind|on second thought|instead|used to)\b"
)
_FLIPPED = rule(r"\b(?:no longer|never)\b")
# Not a topic, but what was said a moment ago, or how one speaks.
_NO_TOPIC = rule(
    r"^(?:it|that|this|these|those|them|him|her|you|your|yours|how|when|what|where|why|who|if|one|ones|everything|nothing"
    r"|anything|something|all of|both|each|to (?:think|know|hear|see|ask|thank|say|be honest|believe|point|mention|start|add"
    r"|note|learn more|get started)|so|too|much|hearing|seeing|knowing|thinking|talking|doing (?:it|that|this)|not|either|any of"
    r"|(?:a|the) (?:lot|bit|ton|way|idea|ideas|suggestion|suggestions|sound of|thought|concept|help|advice|tips?|recommendations?"
    r"|support|effort|feedback|info|information|approach)|having (?:you|a|to|it)|having|being able|getting to|getting)\b|^(?:the|a|an|to|of)$"
)
# After a word of praise "the" points at what is being talked about; after one of dislike it names a thing.
_POINTED = rule(
    r"^the [a-z-]+(?: [a-z-]+)? ?(?:idea|ideas|suggestion|suggestions|option|options|one|part|plan|thought)?$"
)
_NOT_TO = rule(r"^(?:not (?:to )?|to not |to avoid |avoiding |to steer clear of |to stay away from )(?:ever )?")
_OVER = rule(r"^(.{2,120}?),? (?:over|rather than|instead of|more than|as opposed to|versus|vs|than) (.{2,120})$")
_TO = rule(r"^([A-Za-z-]+(?: [A-Za-z-]+){0,2}) to ([A-Za-z-]+(?: [A-Za-z-]+){0,2})$")
_ING = rule(r"(?:^to |ing$|ing )")
_MOST_WORDS = 40
_MOST_ITEMS = 8


def attitudes_of(sentence: Sentence) -> list[Attitude]:
    """Every liking and dislike that the sentence states as the speaker's own, in its order."""
    text = sentence.text
    heading = _HEADING.search(text)
    if heading and not sentence.asks:
        return list(_listed(heading))
    found = [*_by_verbs(sentence), *_by_findings(sentence)]
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


def _heads(text: str) -> list[_Head]:
    found = [
        _Head(likes, said, match.start(), match.end())
        for likes, said, pattern in _FRAMES
        for match in pattern.finditer(f"{text} ")
    ]
    found += [_Head(False, True, m.start(), m.end(), update=True) for p in _ENDED for m in p.finditer(text)]
    found += [_Head(True, True, m.start(), m.end(), update=True) for p in _BEGUN for m in p.finditer(text)]
    # The longer match knows more: "do not like" is not "like".
    found.sort(key=lambda head: (head.start, -head.end))
    own: list[_Head] = []
    for head in found:
        if not own or head.start >= own[-1].end:
            own.append(head)
    if own:
        first = own[0].end
        for likes, said, pattern in _CONTINUED:
            for match in pattern.finditer(text):
                clear = all(match.end() <= head.start or match.start() >= head.end for head in own)
                if match.start() >= first and clear:
                    own.append(_Head(likes, said, match.start(), match.end(), continued=True))
    return sorted(own, key=lambda head: head.start)


def _by_verbs(sentence: Sentence) -> Iterator[Attitude]:
    text = sentence.text
    heads = _heads(text)
    stands = False
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
    used = _USED_TO.search(text)
    if used and not sentence.asks and is_own_word(text[: used.start()]) and _is_topic(used.group(1), likes=False):
        yield Attitude(False, used.group(1), None, told(used.group()), SAID, True, used.start())


def _attitude(text: str, head: _Head, limit: int) -> Attitude | None:
    rest = remainder(text, head.end, limit)
    about, likes = rest.object, head.likes
    phrase = text[head.start : head.end].strip()
    opened = _NOT_TO.search(about)
    if likes and opened:
        likes, about = False, about[opened.end() :]
    flips = _FLIPPED.search(phrase)
    if flips and head.said and flips.group().lower() == "no longer":
        likes = not likes
    elif flips and head.said and head.likes and likes:
        likes = False
    about, over = _parted(about, likes=likes)
    about = " ".join(about.split()[:_MOST_WORDS])
    if not _is_topic(about, likes=likes):
        return None
    if head.continued:
        subject = phrase.split(" ", 1)[1] if " " in phrase else phrase
        clause = f"I {subject.lstrip(', ')}" if not subject.split()[-1].endswith("s") else subject
    else:
        clause = phrase
    tail = text[head.end : head.end + len(text[head.end : rest.end])].strip(" ,;:-")
    whole = f"{clause} {tail}{rest.reason}"
    hedged = is_hedged(text[max(0, head.start - 40) : head.end])
    confidence = HEDGED if hedged else SAID if head.said else SHOWN
    update = head.update or rest.no_more or bool(_NOW.search(text[max(0, head.start - 60) : rest.end]))
    return Attitude(likes, about, over, told(_from_speaker(whole)), confidence, update, head.start)


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
    if found and not _ING.search(found.group(1)):
        return found.group(1), found.group(2)
    return about, None


def _is_topic(about: str, *, likes: bool) -> bool:
    if not any(sign.isalpha() for sign in about) or _NO_TOPIC.search(about):
        return False
    return not (likes and _POINTED.search(about))


def _by_findings(sentence: Sentence) -> Iterator[Attitude]:
    """Things that are something to the speaker."""
    text = sentence.text
    if sentence.asks:
        return
    for likes, pattern in _FINDS:
        found = pattern.search(text)
        if found and is_own_word(text[: found.start()]) and _is_topic(found.group(1), likes=False):
            bad = not likes or found.group(2).lower().split()[0] in ("too", "less")
            whole = _from_speaker(found.group())
            yield Attitude(not bad, found.group(1), None, told(whole), SHOWN, False, found.start())
            break
    for likes, pattern in _THINGS:
        found = pattern.search(text)
        about = found.group(1).strip() if found else ""
        start = found.start(1) if found else 0
        if found and _is_topic(about, likes=False) and is_own_word(text[:start]) and not about.lower().startswith("i "):
            told_as = told(f"I {'like' if likes else 'dislike'} {about}")
            said = text[start : found.end()]
            yield Attitude(likes, about, None, f'{told_as[:-1]} ("{said}").', SHOWN, False, start)
            break


def _listed(heading: Any) -> Iterator[Attitude]:
    verb = heading.group(2).lower()
    likes = bool(_SIDES.search(verb))
    for place, item in enumerate(heading.group(3).split(", ")[:_MOST_ITEMS]):
        about = item.strip(" .")
        if _is_topic(about, likes=False):
            yield Attitude(likes, about, None, told(f"I {verb} {about}"), SAID, False, place)
