"""Of whom a sentence speaks: the person who is the subject of a verb, or whose something is (CAN-16).

A few rules over single words, for English and German. They know pronouns, family and acquaintances ("my sister",
"Toms Frau", "der Chef"), names, masks of names, and the words for whoever a record is kept of ("the customer").
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from muniment.language.data_files import named_lines, read_sections, word_set

# Whom a mention means: the speaker (`self`), whoever is addressed (`you`), he or she (`pronoun`), a `name`, an `entity`
# by its id, the end `user` or whoever else a record is kept of (`role`), a relative or acquaintance of the speaker
# (`own_relative`), or of somebody else (`relative`).
MentionKind = Literal["self", "you", "pronoun", "name", "entity", "user", "role", "own_relative", "relative"]

_WORDS = {
    name: word_set(words) for name, words in named_lines(read_sections(__package__ or "", "words/persons.txt")["words"])
}
# Words for whoever is related to somebody.
RELATIONS = _WORDS["relations"]
_TOKEN = re.compile(
    r"\[[A-Z][A-Z _-]*\]|\*{3,}"  # what masks a name
    r"|[A-Za-z][\w-]*:\w[\w.#/-]*"  # an id
    r"|[^\W\d_]\.(?=\s)"  # an initial
    r"|[^\W_]+(?:[-'\u2019.][^\W_]+)*['\u2019]?"
    r"|[,&()]"
)
# Sentences end here; a colon too, unless it is within an id.
_END = re.compile(r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\bProf)(?<!\b[A-Z])[.!?]+(?=\s|$)|[;\n]|:(?=\s)")
_COMMON = re.compile(r"(?:tions?|ments?|ings?|ness|ity|ance|ence|ung|ungen|heit|keit|schaft)$")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_CLITIC = re.compile(r"['\u2019](?:s|m|d|ve|re|ll)?$", re.IGNORECASE)
_NO_NAMES = ("no_names", "relations", "roles")
# A sentence is read so far before and behind what is said.
_REACH = 300
# Words between a noun and whose it is.
_ADJECTIVES = 3
_LONGEST_NAME = 4
# Words between a person and the verb: "Tom from the sales team is ...".
_LONGEST_PHRASE = 6


class Mention(NamedTuple):
    """Words of a text that mean somebody."""

    kind: MentionKind
    words: str


class _Tokens(NamedTuple):
    """The words of a part of a sentence, and the same in lower case and without what is contracted with them."""

    said: Sequence[str]
    low: Sequence[str]

    @classmethod
    def of(cls, text: str) -> "_Tokens":
        said = _TOKEN.findall(text.replace("\u2019", "'"))
        return cls(said, [_CLITIC.sub("", one).lower() for one in said])

    def is_in(self, place: int, *lists: str) -> bool:
        """Whether there is a word at this place that is in one of the lists."""
        return 0 <= place < len(self.low) and any(self.low[place] in _WORDS[name] for name in lists)

    def owns(self, place: int) -> bool:
        """Whether the word at this place is a possessor: `Tom's`."""
        return 0 <= place < len(self.said) and len(self.said[place]) > 2 and bool(_POSSESSIVE.search(self.said[place]))


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
    tokens = _Tokens.of(before)
    if found := _possessor(tokens, adjectives=0) or _subject(tokens) or _possessor(tokens):
        return found, True
    left = _all_of(tokens)
    if left:
        # A person behind a preposition is seldom the one that is spoken of.
        standing = [one for one in left if not tokens.is_in(one.first - 1, "prepositions")]
        return ((standing or left)[-1].mention,), False
    right = _all_of(_Tokens.of(after))
    return ((right[0].mention,) if right else ()), False


def subject_of(text: str, verb: int) -> tuple[Mention, ...]:
    """Return the persons who are the subject of the verb at this place, none if it is somebody else."""
    return _subject(_Tokens.of(_sentence(text, verb, verb)[0]))


def possessor_of(text: str, noun: int) -> tuple[Mention, ...]:
    """Return whose the noun at this place is, none if that is not said."""
    return _possessor(_Tokens.of(_sentence(text, noun, noun)[0]))


def is_supposed(text: str, start: int) -> bool:
    """Whether the clause that ends at `start` only supposes something: "if the customer is ..."."""
    before, _ = _sentence(text, start, start)
    clause = before.rpartition(",")[2] or before
    tokens = _Tokens.of(clause)
    return tokens.is_in(0, "opening") or any(tokens.is_in(place, "suppositions") for place in range(len(tokens.low)))


def _sentence(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before and behind a span in its sentence."""
    low = max(0, start - _REACH)
    before = text[low:start]
    ends = [found.end() for found in _END.finditer(before)]
    after = text[end : end + _REACH]
    ending = _END.search(after)
    return before[ends[-1] :] if ends else before, after[: ending.start()] if ending else after


def _possessor(tokens: _Tokens, adjectives: int = _ADJECTIVES) -> tuple[Mention, ...]:
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


def _subject(tokens: _Tokens) -> tuple[Mention, ...]:
    """Return the subject of the verb that follows the words, none if it is not a person."""
    last = len(tokens.low) - 1
    while last >= 0:
        if tokens.is_in(last, "third", "first", "second"):
            break
        if tokens.is_in(last, "fillers"):
            last -= 1
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


def _is_relative(tokens: _Tokens, place: int) -> bool:
    """Whether a word begins a relative clause: an article in German does so only behind a comma."""
    if not tokens.is_in(place, "relative") or place == 0:
        return False
    return tokens.low[place].startswith(("wh", "that")) or tokens.said[place - 1] == ","


def _with_others(tokens: _Tokens, found: _Span, *, listed: bool = False) -> Iterator[_Span]:
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


def _before_phrase(tokens: _Tokens, last: int) -> _Span | None:
    """Return a person before a phrase that belongs to them: "Tom from the sales team"."""
    for place in range(last - 1, max(-1, last - _LONGEST_PHRASE), -1):
        if tokens.is_in(place, "prepositions"):
            return _ending_at(tokens, place - 1)
    return None


def _first_of(tokens: _Tokens, end: int) -> tuple[Mention, ...]:
    """Return the first person of a sentence, who is the subject of its later verbs too."""
    for one in _all_of(_Tokens(tokens.said[:end], tokens.low[:end])):
        if not tokens.is_in(one.first - 1, "prepositions"):
            return (one.mention,)
    return ()


def _all_of(tokens: _Tokens) -> list[_Span]:
    """Return every mention of a sentence, in order."""
    found: list[_Span] = []
    place = len(tokens.low) - 1
    while place >= 0:
        one = _ending_at(tokens, place)
        if one is not None:
            found.append(one)
        elif tokens.is_in(place, "their") and not tokens.is_in(place - 1, "my"):
            found.append(_Span(Mention("pronoun", tokens.said[place]), place))
        elif tokens.is_in(place, "my"):
            found.append(_Span(Mention("self", tokens.said[place]), place))
        place = (one.first if one is not None else place) - 1
    return found[::-1]


def _ending_at(tokens: _Tokens, last: int) -> _Span | None:
    """Return the mention whose last word is at this place."""
    if last < 0:
        return None
    said, low = tokens.said[last], tokens.low[last]
    if low in ("mine", "mir") and tokens.is_in(last - 1, "prepositions") and tokens.is_in(last - 2, "relations"):
        return _Span(Mention("own_relative", " ".join(tokens.said[last - 2 : last + 1])), last - 2)
    if low in _WORDS["first"]:
        return _Span(Mention("self", said), last)
    if low in _WORDS["third"]:
        return _Span(Mention("pronoun", said), last)
    if low in _WORDS["second"]:
        return _Span(Mention("you", said), last)
    if said[0] in "[*":
        return _named(tokens, last, last)
    if ":" in said:
        return _Span(Mention("entity", said), last)
    if low in _WORDS["relations"] or low in _WORDS["roles"]:
        return _noun(tokens, last)
    return _name(tokens, last)


def _noun(tokens: _Tokens, last: int) -> _Span | None:
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
        plural = tokens.low[last].removesuffix("s") in _WORDS["relations"] and tokens.low[last].endswith("s")
        return _Span(Mention("relative", tokens.said[last]), last) if not plural else None
    # A record may leave the article out: "Customer is ...".
    bare = tokens.is_in(last, "bare") and (last == 0 or tokens.said[last - 1] == ",")
    return _of_whom(tokens, last, last) if bare else None


def _of_whom(tokens: _Tokens, last: int, first: int) -> _Span:
    """Return a role, or the relative in "the wife of the customer"."""
    if tokens.is_in(first - 1, "prepositions", "the") and tokens.is_in(first - 2, "relations"):
        return _Span(Mention("relative", " ".join(tokens.said[first - 2 : last + 1])), first - 2)
    if tokens.is_in(first - 1, "relations") and tokens.low[first] in ("des", "der", "vom", "von"):
        return _Span(Mention("relative", " ".join(tokens.said[first - 1 : last + 1])), first - 1)
    kind: MentionKind = "user" if tokens.is_in(last, "users") else "role"
    return _Span(Mention(kind, " ".join(tokens.said[first : last + 1])), first)


def _name(tokens: _Tokens, last: int) -> _Span | None:
    """Return a name of words with capital letters, none behind an article."""
    first = last + 1
    while first > 0 and last - first + 2 <= _LONGEST_NAME:
        place = first - 1
        inner = first <= last and tokens.is_in(place, "particles") and tokens.said[place].islower()
        if not inner and not _may_name(tokens, place):
            break
        first = place
    while first <= last and tokens.is_in(first, "particles"):
        first += 1
    if first > last:
        return None
    if first == last and (len(tokens.low[last]) < 2 or _COMMON.search(tokens.low[last])):
        return None
    return _named(tokens, first, last)


def _named(tokens: _Tokens, first: int, last: int) -> _Span | None:
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


def _may_name(tokens: _Tokens, place: int) -> bool:
    said, low = tokens.said[place], tokens.low[place]
    single = low.removesuffix("s")
    if not said[0].isupper() or any(one in _WORDS[name] for one in (low, single) for name in _NO_NAMES):
        return False
    # What is written in capitals throughout is an abbreviation, except for an initial.
    return len(said) < 3 or not said.isupper() or len(said) > 5


def _last_index(said: Sequence[str], sign: str, before: int) -> int:
    """Return the place of the last such sign before a place, -1 if there is none."""
    return next((place for place in range(before - 1, -1, -1) if said[place] == sign), -1)
