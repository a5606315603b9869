"""Reads what the speaker likes and dislikes: from verbs of liking, habits, aversions, and judgements of things."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.language.data_files import word_set
from muniment.language.messages.clauses import (
    complement_of,
    is_hedged,
    is_own_statement,
    is_within_question,
    question_follows,
)
from muniment.language.messages.frames import (
    BEGUN,
    CONTINUED,
    CONTINUED_THIRD,
    ENDED,
    FINDS,
    FRAMES,
    HARD,
    HEADING,
    LIKING,
    SOMEONE,
    SPEAKER,
    THINGS,
    USED_TO,
)
from muniment.language.messages.relative_dates import remove_dates
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.statement import HEDGED, LIKELY, SURE, Statement
from muniment.language.messages.third_person import in_third_person, turn_pronouns
from muniment.language.messages.topics import either_of, topic_of
from muniment.language.patterns import Pattern, caseless


@dataclass(frozen=True)
class _Attitude:
    """A liking or a dislike: of what, preferred over what, as a sentence."""

    likes: bool
    about: str
    over: str | None
    text: str
    confidence: float
    update: bool
    position: int
    # Stated with "prefer", which chooses one kind of several.
    chosen: bool = False


_SIDES = caseless(rf"^(?:{LIKING})$")

_NOW = caseless(
    r"\b(?:now|these days|nowadays|lately|anymore|any more|no longer|any longer|from now on|since last|since yesterday"
    r"|recently|changed my mind|on second thought|instead|used to)\b"
)
_FLIPPED = caseless(r"\b(?:no longer|never)\b")
# No topic: it refers to what was said before, or belongs to a figure of speech.
_NO_TOPIC = caseless(
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
# After a verb of liking "the" refers to what is being discussed; after one of dislike it names a thing.
_DEFINITE = caseless(r"^the ")
_SENSATIONS = caseless(r"^the (?:colou?r|taste|smell|scent|sound|feel|feeling|look|sight|outdoors|sea|sun|cold|heat)\b")
_NOT_TO = caseless(r"^(?:not (?:to )?|to not |to avoid |avoiding |to steer clear of |to stay away from )(?:ever )?")
_OVER = caseless(r"^(.{2,120}?),? (?:over|rather than|instead of|more than|as opposed to|versus|vs|than) (.{2,120})$")
_TO = caseless(r"^([A-Za-z-]+(?: [A-Za-z-]+)?) to ([A-Za-z-]+(?: [A-Za-z-]+)?)$")
# An activity: "series to unwind" compares nothing.
_DOING = caseless(
    r"(?:^to |ing$|ing | to (?:relax|unwind|avoid|drive|use|help|save|keep|stay|make"
    r"|get|have|go|eat|work|cook|play|sleep"
    r"|read|watch|do|be|see|buy|wear|learn|study|talk|start|drink|listen|focus|exercise|reduce|minimize|support)\b)"
)
_NAME_AT_END = Pattern(r", [A-Z][a-z]+$")
_LOOSE_END = caseless(
    r"(?:,? (?:as|since|because|so|and|but|though|although|that|which|while|or|where"
    r"|especially|including|like how|like|with|for|of|in|to))+$"
)
# Choosing another kind of these is a change of mind.
_CHOICES = word_set("""
    seat seats room rooms language languages currency format formats size sizes colour color unit units theme
    font time times slot slots appointment appointments meeting meetings delivery payment deposit shift shifts
    temperature bed
""")
_MOST_WORDS = 40
_MOST_ITEMS = 8
_NO_THING = caseless(r"^(?:I|I've|I'm|I'd|the|my|we|our|they|he|she|there|here|someone|people) ")
_LEAD = caseless(r"^(?:and|but|so|because|since|as|though|that|well|also|honestly|actually|for me|plus) ")


def attitudes_of(sentence: Sentence, after: Sequence[int] = ()) -> list[Statement]:
    """Return the likings and dislikes that the sentence states as the speaker's own, in order.

    `after` are the ends of other statements of the speaker, who may continue from them with "and".
    """
    return [made for one in _attitudes(sentence, after) if (made := _statement(one)) is not None]


def _statement(one: _Attitude) -> Statement | None:
    """Return the attitude with its predicate; None where it is about nothing."""
    about = topic_of(remove_dates(one.about))
    words = one.about.split()
    predicate: str | None = None
    if one.over is not None:
        predicate = either_of(about, topic_of(remove_dates(one.over)))
    if predicate is None and one.chosen and 2 <= len(words) <= 3 and words[-1].lower() in _CHOICES:
        predicate = f"prefers_{topic_of(words[-1])}"
    value: Any = turn_pronouns(one.about)
    if predicate is None:
        if about is None:
            return None
        predicate, value = f"likes_{about}", one.likes
    return Statement(one.text, one.confidence, one.update, predicate, value, one.position)


def _attitudes(sentence: Sentence, after: Sequence[int]) -> list[_Attitude]:
    text = sentence.text
    heading = HEADING.search(text)
    if heading and not sentence.is_question:
        return list(_from_list(heading))
    judgements = list(_from_judgements(sentence))
    found = [*_from_verbs(sentence, [*after, *(one.position for one in judgements)]), *judgements]
    taken: list[_Attitude] = []
    for one in sorted(found, key=lambda each: each.position):
        if not any(one.position == other.position or one.text == other.text for other in taken):
            taken.append(one)
    return taken


@dataclass(frozen=True)
class _Verb:
    likes: bool
    # Whether the verb states the attitude, rather than a habit that implies it.
    outright: bool
    start: int
    end: int
    update: bool = False
    continued: bool = False


def _find_verbs(text: str, after: Sequence[int]) -> list[_Verb]:
    found = [
        _Verb(likes, outright, match.start(), match.end())
        for likes, outright, pattern in FRAMES
        for match in pattern.finditer(f"{text} ")
    ]
    found += [_Verb(False, True, m.start(), m.end(), update=True) for p in ENDED for m in p.finditer(text)]
    found += [_Verb(True, True, m.start(), m.end(), update=True) for p in BEGUN for m in p.finditer(text)]
    # The longer match counts: "do not like" is not "like".
    found.sort(key=lambda verb: (verb.start, -verb.end))
    own: list[_Verb] = []
    for verb in found:
        if not own or verb.start >= own[-1].end:
            own.append(verb)
    speaks, someone = SPEAKER.search(text), SOMEONE.search(text)
    anchors = [*after, *(verb.end for verb in own[:1])]
    if speaks and is_own_statement(text[: speaks.start(1)]):
        anchors.append(speaks.end())
    if anchors:
        first = min(anchors)
        for likes, outright, pattern in (*CONTINUED, *(CONTINUED_THIRD if someone else ())):
            for match in pattern.finditer(text):
                clear = all(match.end() <= verb.start or match.start() >= verb.end for verb in own)
                if match.start() >= first and clear:
                    own.append(_Verb(likes, outright, match.start(), match.end(), continued=True))
    return sorted(own, key=lambda verb: verb.start)


def _from_verbs(sentence: Sentence, after: Sequence[int]) -> Iterator[_Attitude]:
    text = sentence.text
    verbs = _find_verbs(text, after)
    # What the speaker continues from was stated as a fact.
    is_stated = True
    for position, verb in enumerate(verbs):
        limit = verbs[position + 1].start if position + 1 < len(verbs) else len(text)
        if not verb.continued:
            before = text[: verb.start]
            is_stated = is_own_statement(before)
            if sentence.is_question and (is_within_question(before) or not question_follows(text[verb.end :])):
                is_stated = False
        if is_stated:
            one = _attitude(text, verb, limit)
            if one is not None:
                yield one
    used = USED_TO.search(text)
    if (
        used
        and not sentence.is_question
        and is_own_statement(text[: used.start()])
        and _is_object(used.group(1), likes=False)
    ):
        yield _Attitude(False, used.group(1), None, in_third_person(used.group()), SURE, True, used.start())


def _attitude(text: str, verb: _Verb, limit: int) -> _Attitude | None:
    rest = complement_of(text, verb.end, limit)
    about, likes = _NAME_AT_END.sub("", rest.object), verb.likes
    phrase = text[verb.start : verb.end].strip()
    opened = _NOT_TO.search(about)
    if likes and opened:
        likes, about = False, about[opened.end() :]
    flips = _FLIPPED.search(phrase)
    if flips and verb.outright and flips.group().lower() == "no longer":
        likes = not likes
    elif flips and verb.outright and verb.likes and likes:
        likes = False
    about, over = _split_comparison(_LOOSE_END.sub("", about), likes=likes)
    about = " ".join(about.split()[:_MOST_WORDS])
    if not _is_object(about, likes=likes):
        return None
    if verb.continued:
        subject = phrase.split(" ", 1)[1] if " " in phrase else phrase
        clause = f"I {subject.lstrip(', ')}" if not subject.split()[-1].endswith("s") else subject
    else:
        clause = phrase
    tail = _NAME_AT_END.sub("", _LOOSE_END.sub("", text[verb.end : rest.end].strip(" ,;:-")))
    whole = f"{clause} {tail}{rest.reason}"
    hedged = is_hedged(text[max(0, verb.start - 40) : verb.end])
    confidence = HEDGED if hedged else SURE if verb.outright else LIKELY
    update = verb.update or rest.ended or bool(_NOW.search(text[max(0, verb.start - 60) : rest.end]))
    chosen = likes and "prefer" in phrase.lower()
    return _Attitude(
        likes, about, over, in_third_person(_without_someone_who(whole)), confidence, update, verb.start, chosen
    )


def _without_someone_who(clause: str) -> str:
    for opening in ("as someone who ", "i'm someone who ", "i am someone who ", "i'm a person who "):
        if clause.lower().startswith(opening):
            return clause[len(opening) :]
    return clause


def _split_comparison(about: str, *, likes: bool) -> tuple[str, str | None]:
    """Return what is preferred, and over what."""
    if not likes:
        return about, None
    found = _OVER.search(about)
    if found:
        return found.group(1), found.group(2)
    found = _TO.search(about)
    if found and not _DOING.search(about) and not _DOING.search(found.group(1)):
        return found.group(1), found.group(2)
    return about, None


def _is_object(about: str, *, likes: bool) -> bool:
    if not any(sign.isalpha() for sign in about) or _NO_TOPIC.search(about):
        return False
    return not likes or not _DEFINITE.search(about) or bool(_SENSATIONS.search(about))


def _from_judgements(sentence: Sentence) -> Iterator[_Attitude]:
    """Read judgements of things, such as `I find it boring`."""
    text = sentence.text
    if sentence.is_question:
        return
    hard = HARD.search(text)
    if hard and is_own_statement(text[: hard.start()]):
        rest = complement_of(text, hard.end(), len(text))
        about = rest.object.partition(" and ")[0]
        if _is_object(about, likes=False):
            yield _Attitude(
                False,
                about,
                None,
                in_third_person(_without_someone_who(f"{hard.group()}{about}")),
                LIKELY,
                False,
                hard.start(),
            )
    for likes, pattern in FINDS:
        found = pattern.search(text)
        if found and is_own_statement(text[: found.start()]) and _is_object(found.group(1), likes=False):
            bad = not likes or found.group(2).lower().split()[0] in ("too", "less")
            whole = _without_someone_who(found.group())
            yield _Attitude(not bad, found.group(1), None, in_third_person(whole), LIKELY, False, found.start())
            break
    for likes, pattern in THINGS:
        found = pattern.search(text)
        about = found.group(1).strip() if found else ""
        start = found.start(1) if found else 0
        lead = _LEAD.search(about)
        if lead:
            about, start = about[lead.end() :], start + lead.end()
        if found and _is_object(about, likes=likes) and is_own_statement(text[:start]) and not _NO_THING.search(about):
            outright = text[start : found.end()]
            yield _Attitude(
                likes, about, None, f'The user said: "{outright[:1].upper()}{outright[1:]}."', LIKELY, False, start
            )
            break


def _from_list(heading: Any) -> Iterator[_Attitude]:
    verb = heading.group(2).lower()
    likes = bool(_SIDES.search(verb))
    for position, item in enumerate(heading.group(3).split(", ")[:_MOST_ITEMS]):
        about = item.strip(" .")
        if _is_object(about, likes=False):
            yield _Attitude(likes, about, None, in_third_person(f"I {verb} {about}"), SURE, False, position)
