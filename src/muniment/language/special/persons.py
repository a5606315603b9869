"""Of whom a sentence speaks: the person who is the subject of a verb, or whose something is (CAN-16).

A few rules over single words, for English and German. They know pronouns, family and acquaintances ("my sister",
"Toms Frau", "der Chef"), names, masks of names, and the words for whoever a record is kept of ("the customer").
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment.language.special.tokens import WORDS, Mention, MentionKind, Placed, Tokens

# Sentences end here; a colon too, unless it is within an id.
_END = re.compile(r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\bProf)(?<!\b[A-Z])[.!?]+(?=\s|$)|[;\n]|:(?=\s)")
_COMMON = re.compile(r"(?:tions?|ments?|ings?|ness|ity|ance|ence|ung|ungen|heit|keit|schaft)$")
_NO_NAMES = ("no_names", "relations", "roles", "my", "their")
# A sentence is read so far before and behind what is said; of a longer one nobody knows who is meant.
_REACH = 1200
# Words between a noun and whose it is.
_ADJECTIVES = 3
_LONGEST_NAME = 4
# A pronoun and the verb that says what somebody is.
_CONTRACTED = ("he's", "she's", "who's")
# Words between what is said of a person and the noun for the person: "a gay older brother".
_BEFORE_NOUN = 1
# Words between a person and the verb: "Tom from the sales team is ...".
_LONGEST_PHRASE = 6


class _Span(NamedTuple):
    """A mention and the place of its first word."""

    mention: Mention
    first: int


def describe(text: str, start: int, end: int) -> tuple[tuple[Mention, ...], bool]:
    """Return of whom is said what stands from `start` to `end`, and whether the grammar leaves no other reading.

    `start` is the verb, or what somebody has. Several are meant in "my husband and I". Without a subject or a
    possessor the nearest person in the sentence is taken, who may only stand beside.
    """
    before, after = _sentence(text, start, end)
    tokens = Tokens.of(before)
    if found := _possessor(tokens, adjectives=0) or _subject(tokens) or _possessor(tokens):
        return found, True
    left = _all_of(tokens)
    if left:
        # A person behind a preposition is seldom the one that is spoken of.
        standing = [one for one in left if not tokens.is_in(one.first - 1, "prepositions")]
        return ((standing or left)[-1].mention,), False
    right = _all_of(Tokens.of(after))
    return ((right[0].mention,) if right else ()), False


def subject_of(text: str, verb: int) -> tuple[Mention, ...]:
    """Return the persons who are the subject of the verb at this place, none if it is somebody else."""
    tokens = Tokens.of(_sentence(text, verb, verb)[0])
    found = _subject(tokens) or _loosely(tokens, text[verb:].partition(" ")[0])
    return found if not is_cut(text, verb) else (*found, Mention("pronoun", "they"))


def possessor_of(text: str, noun: int) -> tuple[Mention, ...]:
    """Return whose the noun at this place is, none if that is not said."""
    return _possessor(Tokens.of(_sentence(text, noun, noun)[0]))


def persons_before(text: str, place: int) -> tuple[Mention, ...]:
    """Return the person, or the persons joined to one another, whose last word stands right before a place."""
    tokens = Tokens.of(_sentence(text, place, place)[0])
    found = _ending_at(tokens, len(tokens.low) - 1)
    return tuple(one.mention for one in _with_others(tokens, found)) if found is not None else ()


def noun_at(text: str, start: int, end: int) -> Mention | None:
    """Return the person whom the noun behind `end` means, together with the words from `start` on: "autistic son"."""
    before, after = _sentence(text, start, end)
    head = Tokens.of(before + text[start:end])
    tokens = Tokens.of(before + text[start:end] + after)
    for place in range(len(head.low) - 1, min(len(head.low) + _BEFORE_NOUN + 1, len(tokens.low))):
        if tokens.is_in(place, "relations", "roles"):
            found = _noun(tokens, place)
            if (subject := _subject_of_noun(tokens, place)) is not None:
                return subject
            if found is not None:
                return found.mention
            # Somebody in particular, of whom the speaker speaks: "I met a ... man".
            near = range(max(0, place - _ADJECTIVES - 1), place)
            article = next((one for one in near if tokens.is_in(one, "one")), -1)
            if article > 0 and tokens.low[article - 1] == "as":
                # "My life as a ... man."
                spoken_of = mentions_in(Tokens(tokens.said[:article], tokens.low[:article]))
                following = mentions_in(Tokens(tokens.said[place + 1 :], tokens.low[place + 1 :]))
                return next((one.mention for one in (*spoken_of[-1:], *following)), None)
            known = article >= 0 and any(map(_is_first, tokens.low))
            return Mention("relative", tokens.said[place]) if known else None
        if not tokens.low[place].replace("-", "").isalpha() or tokens.is_in(
            place, "fillers", "prepositions", "conjunctions"
        ):
            return None
    return None


def _subject_of_noun(tokens: Tokens, noun: int) -> Mention | None:
    """Return who is said to be what a noun names: "I'm a ... woman", "my brother is the ... boy"."""
    for place in range(noun - 1, max(0, noun - 2 - _ADJECTIVES), -1):
        if not tokens.is_in(place, "one", "the", "my", "their"):
            continue
        verb = place - 1
        while tokens.is_in(verb, "fillers") and not tokens.is_in(verb, "be"):
            verb -= 1
        is_contracted = verb >= 0 and tokens.said[verb].lower() != tokens.low[verb] and not tokens.owns(verb)
        if tokens.is_in(verb, "be") or is_contracted or (verb >= 0 and tokens.said[verb].lower() in _CONTRACTED):
            found = _subject(Tokens(tokens.said[: verb + 1], tokens.low[: verb + 1]))
            return found[0] if found else None
        return None
    return None


def _is_first(word: str) -> bool:
    return word in WORDS["first"] or word in WORDS["my"]


def is_cut(text: str, start: int) -> bool:
    """Whether the sentence with what is said at `start` begins before what is read of it."""
    return start > _REACH and not _END.search(text, start - _REACH, start)


def sentence_around(text: str, start: int, end: int) -> tuple[Tokens, Tokens]:
    """Return the words before and behind a span in its sentence."""
    before, after = _sentence(text, start, end)
    return Tokens.of(before), Tokens.of(after)


def mentions_in(tokens: Tokens) -> list[Placed]:
    """Return everybody whom some words mention, in order."""
    found: list[Placed] = []
    place = len(tokens.low) - 1
    while place >= 0:
        one = _mention_at(tokens, place)
        if one is not None:
            found.append(Placed(one.mention, one.first, place))
        place = (one.first if one is not None else place) - 1
    return found[::-1]


def is_supposed(text: str, start: int) -> bool:
    """Whether the clause that ends at `start` only supposes something: "if the customer is ..."."""
    before, _ = _sentence(text, start, start)
    clause = before.rpartition(",")[2] or before
    tokens = Tokens.of(clause)
    return tokens.is_in(0, "opening") or any(tokens.is_in(place, "suppositions") for place in range(len(tokens.low)))


def _sentence(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before and behind a span in its sentence."""
    low = max(0, start - _REACH)
    before = text[low:start]
    ends = [found.end() for found in _END.finditer(before)]
    after = text[end : end + _REACH]
    ending = _END.search(after)
    return before[ends[-1] :] if ends else before, after[: ending.start()] if ending else after


def _possessor(tokens: Tokens, adjectives: int = _ADJECTIVES) -> tuple[Mention, ...]:
    """Return whose the next word is: "my ...", "her severe ...", "Tom's ...", "my sister's ..."."""
    for last in range(len(tokens.low) - 1, max(-1, len(tokens.low) - 2 - adjectives), -1):
        if tokens.owns(last):
            found = _ending_at(tokens, last)
            return (found.mention,) if found is not None else ()
        if tokens.is_in(last, "my"):
            return (Mention("self", tokens.said[last]),)
        if tokens.is_in(last, "their"):
            return (Mention("pronoun", tokens.said[last]),)
        if not tokens.low[last].isalpha() or tokens.is_in(last, "fillers", "prepositions", "conjunctions", "relations"):
            break
    return ()


def _subject(tokens: Tokens) -> tuple[Mention, ...]:
    """Return the subject of the verb that follows the words, none if it is not a person."""
    last = len(tokens.low) - 1
    while last >= 0:
        if tokens.is_in(last, "third", "first", "second"):
            break
        if tokens.is_in(last, "fillers"):
            last -= 1
        elif tokens.low[last] in ("one", "ones") and tokens.is_in(last - 1, "the") and tokens.is_in(last - 2, "be"):
            # "Tom is the one with ..."
            last -= 2
        elif tokens.said[last] == ")" and "(" in tokens.said[:last]:
            last = _last_index(tokens.said, "(", last) - 1
        elif tokens.said[last] == ",":
            # "My sister, who lives in Rome, has ..."; without such an insertion: "She is 40, has ...".
            opened = _last_index(tokens.said, ",", last)
            if opened < 0:
                return _first_of(tokens, last)
            last = opened - 1
        elif tokens.is_in(last, "conjunctions"):
            return _first_of(tokens, last)
        elif _is_relative(tokens, last):
            last -= 2 if last and tokens.said[last - 1] == "," else 1
        else:
            break
    found = _ending_at(tokens, last) or _before_phrase(tokens, last)
    return tuple(one.mention for one in _with_others(tokens, found)) if found is not None else ()


def _loosely(tokens: Tokens, verb: str) -> tuple[Mention, ...]:
    """Return the subject of a verb where it is neither a plain noun nor a name with a capital letter.

    "Everyone in my flat", "the guy next door", "tom". An ordinary noun in the singular has an article before it, so
    that a lone word before the verb is a name.
    """
    last = len(tokens.low) - 1
    while last >= 0 and tokens.is_in(last, "fillers") and not tokens.is_in(last, "first", "second", "third"):
        last -= 1
    first = next((place for place in range(last, -1, -1) if _opens_clause(tokens, place - 1)), 0)
    if last < first:
        return ()
    head = next((place for place in range(first, last + 1) if tokens.is_in(place, "indefinite")), -1)
    phrase = range(head + 1, last + 1)
    if head >= 0 and any(tokens.is_in(place, "prepositions", "first") for place in phrase):
        counted = head > first and (tokens.low[head - 1].isdigit() or tokens.is_in(head - 1, "numbers"))
        own = any(_is_first(tokens.low[place]) for place in phrase)
        if own or counted or not tokens.is_in(head, "people"):
            return (Mention("own_relative", " ".join(tokens.said[head : last + 1])),)
    if (
        tokens.is_in(last, "people")
        and last > 0
        and tokens.is_in(last - 1, "numbers")
        and any(map(_is_first, tokens.low))
    ):
        return (Mention("own_relative", " ".join(tokens.said[last - 1 : last + 1])),)
    for place in range(first, min(first + 4, last)):
        if tokens.is_in(place, "relations", "roles") and not tokens.owns(place) and _reduced(tokens, place + 1):
            found = _noun(tokens, place)
            if found is not None:
                return (found.mention,)
    if last > first and tokens.is_in(last - 1, "relations") and _is_lone_name(tokens.said[last], verb):
        found = _noun(tokens, last - 1)
        return (found.mention,) if found is not None else ()
    if last == first and _is_lone_name(tokens.said[last], verb):
        return (Mention("name", tokens.said[last]),)
    return ()


def _opens_clause(tokens: Tokens, place: int) -> bool:
    """Whether a clause begins behind this place."""
    return place < 0 or tokens.said[place] in ",(" or tokens.is_in(place, "conjunctions") or tokens.low[place] == "that"


def _reduced(tokens: Tokens, place: int) -> bool:
    """Whether a relative clause without its pronoun, or a place, begins here: "the guy next door", "the one I love"."""
    return tokens.is_in(place, "first", "second", "third", "places")


def _is_lone_name(said: str, verb: str) -> bool:
    """Whether a word that stands alone before a verb in the singular is a name."""
    low, does = said.lower(), verb.lower()
    if does in ("have", "are", "were", "am", "'m", "'re", "'ve") or (low.endswith("s") and not does.endswith("s")):
        return False
    if len(low) == 1:
        return said.isupper() and low not in "ai"
    known = any(
        one in words for one in (low, low.removesuffix("s")) for name, words in WORDS.items() if name != "particles"
    )
    return low.isalpha() and not known and not _COMMON.search(low)


def _is_relative(tokens: Tokens, place: int) -> bool:
    """Whether a word begins a relative clause: an article in German does so only behind a comma."""
    if not tokens.is_in(place, "relative") or place == 0:
        return False
    return tokens.low[place].startswith(("wh", "that")) or tokens.said[place - 1] == ","


def _with_others(tokens: Tokens, found: _Span, *, listed: bool = False) -> Iterator[_Span]:
    """Yield the mention and those that it is joined to at the beginning of a clause: "Tom, my husband and I"."""
    yield found
    joint = found.first - 1
    if not tokens.is_in(joint, "conjunctions") and not (listed and joint > 0 and tokens.said[joint] == ","):
        return
    other = _ending_at(tokens, joint - 1)
    if other is None:
        return
    before = other.first - 1
    if before < 0 or tokens.said[before] == "," or tokens.is_in(before, "conjunctions", "relative"):
        yield from _with_others(tokens, other, listed=True)


def _before_phrase(tokens: Tokens, last: int) -> _Span | None:
    """Return a person before a phrase that belongs to them: "Tom from the sales team"."""
    for place in range(last - 1, max(-1, last - _LONGEST_PHRASE), -1):
        if tokens.is_in(place, "prepositions"):
            return _ending_at(tokens, place - 1)
    return None


def _first_of(tokens: Tokens, end: int) -> tuple[Mention, ...]:
    """Return the first person of a sentence, who is the subject of its later verbs too."""
    for one in _all_of(Tokens(tokens.said[:end], tokens.low[:end])):
        if not tokens.is_in(one.first - 1, "prepositions"):
            return (one.mention,)
    return ()


def _all_of(tokens: Tokens) -> list[_Span]:
    """Return every mention of a sentence, in order."""
    return [_Span(one.mention, one.first) for one in mentions_in(tokens)]


def _mention_at(tokens: Tokens, place: int) -> _Span | None:
    """Return the mention whose last word is at this place; whose something is, is mentioned too."""
    one = _ending_at(tokens, place)
    if one is not None:
        return one
    if tokens.is_in(place, "their") and not tokens.is_in(place - 1, "my"):
        return _Span(Mention("pronoun", tokens.said[place]), place)
    return _Span(Mention("self", tokens.said[place]), place) if tokens.is_in(place, "my") else None


def _ending_at(tokens: Tokens, last: int) -> _Span | None:
    """Return the mention whose last word is at this place."""
    if last < 0:
        return None
    said, low = tokens.said[last], tokens.low[last]
    if low in ("mine", "mir") and tokens.is_in(last - 1, "prepositions") and tokens.is_in(last - 2, "relations"):
        return _Span(Mention("own_relative", " ".join(tokens.said[last - 2 : last + 1])), last - 2)
    if low in WORDS["first"]:
        return _Span(Mention("self", said), last)
    if low in WORDS["third"]:
        return _Span(Mention("pronoun", said), last)
    if low in WORDS["second"]:
        return _Span(Mention("you", said), last)
    if said[0] in "[*":
        return _named(tokens, last, last)
    if ":" in said:
        return _Span(Mention("entity", said), last)
    if said[0] == "@" or "_" in said:
        return _Span(Mention("name", said), last)
    if low in WORDS["relations"] or low in WORDS["roles"]:
        return _noun(tokens, last)
    return _name(tokens, last)


def _noun(tokens: Tokens, last: int) -> _Span | None:
    """Return a relative or a role with whose it is: "my older sister", "Tom's wife", "the customer"."""
    is_role, is_relation = tokens.is_in(last, "roles"), tokens.is_in(last, "relations")
    for place in range(last - 1, max(-1, last - 2 - _ADJECTIVES), -1):
        words = " ".join(tokens.said[place : last + 1])
        if tokens.owns(place):
            owner = _ending_at(tokens, place)
            first = owner.first if owner is not None else place
            own = owner is not None and owner.mention.kind == "own_relative"
            return _Span(Mention("own_relative" if own else "relative", words), first)
        if tokens.is_in(place, "my"):
            # "Our customer" is whoever the record is kept of.
            ours = is_role and tokens.low[place].startswith(("our", "unser"))
            return _Span(Mention("role" if ours else "own_relative", words), place)
        if tokens.is_in(place, "their"):
            return _Span(Mention("relative", words), place)
        if tokens.is_in(place, "the"):
            return _of_whom(tokens, last, place) if is_role else _Span(Mention("relative", words), place)
        if tokens.is_in(place, "numbers") and is_relation:
            return _Span(Mention("own_relative", words), place)
        if tokens.is_in(place, "any"):
            # A friend is somebody that the speaker knows; a customer is any.
            known = is_relation and not is_role
            return _Span(Mention("own_relative", words), place) if known else None
        if tokens.said[place] == "," or tokens.is_in(place, "conjunctions", "prepositions", "fillers", "relative"):
            break
    if tokens.is_in(last, "called"):
        return _Span(Mention("own_relative", tokens.said[last]), last)
    if is_relation and not is_role:
        # Without a word before it, a plural means any of them.
        low = tokens.low[last]
        plural = low in WORDS["plurals"] or (low.endswith("s") and low.removesuffix("s") in WORDS["relations"])
        return _Span(Mention("relative", tokens.said[last]), last) if not plural else None
    # A record may leave the article out: "Customer is ...".
    bare = tokens.is_in(last, "bare") and (last == 0 or tokens.said[last - 1] == ",")
    return _of_whom(tokens, last, last) if bare else None


def _of_whom(tokens: Tokens, last: int, first: int) -> _Span:
    """Return a role, or the relative in "the wife of the customer"."""
    if tokens.is_in(first - 1, "prepositions", "the") and tokens.is_in(first - 2, "relations"):
        return _Span(Mention("relative", " ".join(tokens.said[first - 2 : last + 1])), first - 2)
    if tokens.is_in(first - 1, "relations") and tokens.low[first] in ("des", "der", "vom", "von"):
        return _Span(Mention("relative", " ".join(tokens.said[first - 1 : last + 1])), first - 1)
    kind: MentionKind = "user" if tokens.is_in(last, "users") else "role"
    return _Span(Mention(kind, " ".join(tokens.said[first : last + 1])), first)


def _name(tokens: Tokens, last: int) -> _Span | None:
    """Return a name of words with capital letters, none behind an article."""
    first = last + 1
    while first > 0 and last - first + 2 <= _LONGEST_NAME:
        place = first - 1
        inner = first <= last and tokens.is_in(place, "particles") and tokens.said[place].islower()
        if not inner and not _may_name(tokens, place):
            break
        first = place
    while first <= last and tokens.is_in(first, "particles") and tokens.said[first].islower():
        first += 1
    if first > last:
        return None
    if first == last and (len(tokens.low[last]) < 2 or _COMMON.search(tokens.low[last])):
        return None
    return _named(tokens, first, last)


def _named(tokens: Tokens, first: int, last: int) -> _Span | None:
    """Return a name with what stands before it: a title, whose relative it is, or an article, with which it is none."""
    if tokens.is_in(first - 1, "titles"):
        first -= 1
    words = " ".join(tokens.said[first : last + 1])
    before = first - 1
    if before > 0 and tokens.said[before] == ",":
        before -= 1
    if tokens.is_in(before, "relations") and (found := _noun(tokens, before)) is not None:
        return _Span(Mention(found.mention.kind, f"{found.mention.words} {words}"), found.first)
    if tokens.is_in(first - 1, "roles"):
        return _Span(Mention("name", words), first - 1)
    if tokens.is_in(first - 1, "prepositions") and tokens.is_in(first - 2, "relations"):
        return _Span(Mention("relative", " ".join(tokens.said[first - 2 : last + 1])), first - 2)
    if tokens.is_in(first - 1, "my", "their"):
        return _Span(Mention("own_relative", words), first - 1)
    # "That" before a name begins a clause.
    article = tokens.is_in(first - 1, "the", "any") and tokens.low[first - 1] not in ("that", "said")
    if article and tokens.said[first][0] not in "[*":
        return None
    return _Span(Mention("name", words), first)


def _may_name(tokens: Tokens, place: int) -> bool:
    said, low = tokens.said[place], tokens.low[place]
    single = low.removesuffix("s")
    if not said[0].isupper() or any(one in WORDS[name] for one in (low, single) for name in _NO_NAMES):
        return False
    # What is written in capitals throughout is an abbreviation, except for an initial.
    return len(said) < 3 or not said.isupper() or len(said) > 5


def _last_index(said: Sequence[str], sign: str, before: int) -> int:
    """Return the place of the last such sign before a place, -1 if there is none."""
    return next((place for place in range(before - 1, -1, -1) if said[place] == sign), -1)
