"""Reads what the speaker likes and dislikes: from verbs of liking, habits, aversions, and judgements of things."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.language.data_files import word_set
from muniment.language.messages.clauses import complement_of, is_hedged, is_own_statement, is_stated
from muniment.language.messages.relative_dates import remove_dates
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.statement import HEDGED, LIKELY, SURE, Statement
from muniment.language.messages.topics import either_of, topic_of
from muniment.language.patterns import PatternFile


@dataclass(frozen=True)
class _Attitude:
    """A liking or a dislike: of what, and preferred over what."""

    likes: bool
    about: str
    over: str | None
    confidence: float
    update: bool
    position: int
    # Stated with "prefer", which chooses one kind of several.
    chosen: bool = False
    end: int = 0


_PATTERNS = PatternFile(__package__ or "", "patterns/attitudes.txt")
# Of a verb: whether it is a liking, and whether it states that outright or is a habit that implies it.
_VERBS = {"likes": (True, True), "dislikes": (False, True), "habit": (True, False), "avoidance": (False, False)}
_CONTINUED = [f"continued {name}" for name in _VERBS]
_OF_SOMEONE = [f"someone {name}" for name in _VERBS]

# Choosing another kind of these is a change of mind.
_CHOICES = word_set("""
    seat seats room rooms language languages currency format formats size sizes colour color unit units theme
    font time times slot slots appointment appointments meeting meetings delivery payment deposit shift shifts
    temperature bed
""")
_MOST_WORDS = 40
_MOST_ITEMS = 8


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
    value: Any = one.about
    if predicate is None:
        if about is None:
            return None
        predicate, value = f"likes_{about}", one.likes
    return Statement(one.confidence, one.update, predicate, value, one.position, one.end)


def _attitudes(sentence: Sentence, after: Sequence[int]) -> list[_Attitude]:
    text = sentence.text
    heading = _PATTERNS["heading"].search(text)
    if heading and not sentence.is_question:
        return list(_from_list(heading))
    judgements = list(_from_judgements(sentence))
    found = [*_from_verbs(sentence, [*after, *(one.position for one in judgements)]), *judgements]
    taken: list[_Attitude] = []
    for one in sorted(found, key=lambda each: each.position):
        if not any(
            one.position == other.position or (one.likes, one.about) == (other.likes, other.about) for other in taken
        ):
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
        _Verb(*_VERBS[name], match.start(), match.end())
        for name, pattern in _PATTERNS.all_of(*_VERBS)
        for match in pattern.finditer(f"{text} ")
    ]
    found += [
        _Verb(name == "begun", True, match.start(), match.end(), update=True)
        for name, pattern in _PATTERNS.all_of("ended", "begun")
        for match in pattern.finditer(text)
    ]
    # The longer match counts: "do not like" is not "like".
    found.sort(key=lambda verb: (verb.start, -verb.end))
    own: list[_Verb] = []
    for verb in found:
        if not own or verb.start >= own[-1].end:
            own.append(verb)
    speaks, someone = _PATTERNS["speaker"].search(text), _PATTERNS["someone"].search(text)
    anchors = [*after, *(verb.end for verb in own[:1])]
    if speaks and is_own_statement(text[: speaks.start(1)]):
        anchors.append(speaks.end())
    if anchors:
        first = min(anchors)
        for name, pattern in _PATTERNS.all_of(*_CONTINUED, *(_OF_SOMEONE if someone else ())):
            for match in pattern.finditer(text):
                clear = all(match.end() <= verb.start or match.start() >= verb.end for verb in own)
                if match.start() >= first and clear:
                    own.append(_Verb(*_VERBS[name.split()[1]], match.start(), match.end(), continued=True))
    return sorted(own, key=lambda verb: verb.start)


def _from_verbs(sentence: Sentence, after: Sequence[int]) -> Iterator[_Attitude]:
    text = sentence.text
    verbs = _find_verbs(text, after)
    # What the speaker continues from was stated as a fact.
    stated = True
    for position, verb in enumerate(verbs):
        limit = verbs[position + 1].start if position + 1 < len(verbs) else len(text)
        if not verb.continued:
            stated = is_stated(sentence, verb.start, verb.end)
        if stated and (one := _attitude(text, verb, limit)) is not None:
            yield one
    used = _PATTERNS["used_to"].search(text)
    if (
        used
        and not sentence.is_question
        and is_own_statement(text[: used.start()])
        and _is_object(used.group(1), likes=False)
    ):
        yield _Attitude(False, used.group(1), None, SURE, True, used.start(), end=used.end())


def _attitude(text: str, verb: _Verb, limit: int) -> _Attitude | None:
    rest = complement_of(text, verb.end, limit)
    about, likes = _PATTERNS["name_at_end"].sub("", rest.object), verb.likes
    phrase = text[verb.start : verb.end].strip()
    opened = _PATTERNS["not_to"].search(about)
    if likes and opened:
        likes, about = False, about[opened.end() :]
    flips = _PATTERNS["flipped"].search(phrase)
    if flips and verb.outright and flips.group().lower() == "no longer":
        likes = not likes
    elif flips and verb.outright and verb.likes and likes:
        likes = False
    about, over = _split_comparison(_PATTERNS["loose_end"].sub("", about), likes=likes)
    about = " ".join(about.split()[:_MOST_WORDS])
    if not _is_object(about, likes=likes):
        return None
    hedged = is_hedged(text[max(0, verb.start - 40) : verb.end])
    confidence = HEDGED if hedged else SURE if verb.outright else LIKELY
    update = verb.update or rest.ended or bool(_PATTERNS["now"].search(text[max(0, verb.start - 60) : rest.end]))
    chosen = likes and "prefer" in phrase.lower()
    return _Attitude(likes, about, over, confidence, update, verb.start, chosen, rest.end)


def _split_comparison(about: str, *, likes: bool) -> tuple[str, str | None]:
    """Return what is preferred, and over what."""
    if not likes:
        return about, None
    found = _PATTERNS["over"].search(about)
    if found:
        return found.group(1), found.group(2)
    found = _PATTERNS["to"].search(about)
    if found and not _PATTERNS["doing"].search(about) and not _PATTERNS["doing"].search(found.group(1)):
        return found.group(1), found.group(2)
    return about, None


def _is_object(about: str, *, likes: bool) -> bool:
    if not any(sign.isalpha() for sign in about) or _PATTERNS["no_topic"].search(about):
        return False
    return not likes or not _PATTERNS["definite"].search(about) or bool(_PATTERNS["sensations"].search(about))


def _from_judgements(sentence: Sentence) -> Iterator[_Attitude]:
    """Read judgements of things, such as `I find it boring`."""
    text = sentence.text
    if sentence.is_question:
        return
    hard = _PATTERNS["hard"].search(text)
    if hard and is_own_statement(text[: hard.start()]):
        rest = complement_of(text, hard.end(), len(text))
        about = rest.object.partition(" and ")[0]
        if _is_object(about, likes=False):
            yield _Attitude(False, about, None, LIKELY, False, hard.start(), end=rest.end)
    for name, pattern in _PATTERNS.all_of("bad find", "good find"):
        found = pattern.search(text)
        if found and is_own_statement(text[: found.start()]) and _is_object(found.group(1), likes=False):
            bad = name == "bad find" or found.group(2).lower().split()[0] in ("too", "less")
            yield _Attitude(not bad, found.group(1), None, LIKELY, False, found.start(), end=found.end())
            break
    for name, pattern in _PATTERNS.all_of("bad thing", "good thing"):
        found = pattern.search(text)
        if not found:
            continue
        likes, about, start = name == "good thing", found.group(1).strip(), found.start(1)
        lead = _PATTERNS["lead"].search(about)
        if lead:
            about, start = about[lead.end() :], start + lead.end()
        if (
            _is_object(about, likes=likes)
            and is_own_statement(text[:start])
            and not _PATTERNS["no_thing"].search(about)
        ):
            yield _Attitude(likes, about, None, LIKELY, False, start, end=found.end())
            break


def _from_list(heading: Any) -> Iterator[_Attitude]:
    verb = heading.group(2).lower()
    likes = bool(_PATTERNS["sides"].search(verb))
    for position, item in enumerate(heading.group(3).split(", ")[:_MOST_ITEMS]):
        about = item.strip(" .")
        if _is_object(about, likes=False):
            yield _Attitude(likes, about, None, SURE, False, position, end=heading.end())
