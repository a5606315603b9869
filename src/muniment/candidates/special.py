"""Special categories at the gates: what a fact says in one, of whom, and whose consent counts for it (CAN-13, CAN-16).

Whose words a fact is made of decides how its words are read. In the user's own words "I" is the speaker and whoever
else is spoken of is another person. What an operator, an agent or a tool notes down is about the subject that its
capture names: "the customer", "she" and a name are the subject there, "I" is the subject speaking, and a relative is
nobody that the capture names.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from muniment.candidates.readings import name_of_speaker, texts_of
from muniment.capture.rules import user_subject
from muniment.language.name_search import strings
from muniment.language.readers.tagger import OTHER, Tag
from muniment.language.redaction.tags import TaggedTexts
from muniment.language.special import (
    PROTECTS_OTHERS,
    Mention,
    SpecialFinding,
    categories_of_value,
    category_of_name,
    describe,
    find_special,
    names_relation,
    with_sharers,
)
from muniment.model.candidate import Candidate
from muniment.model.fields import CaptureKind
from muniment.model.speakers import USER
from muniment.pack import Pack

# Whom a fact is about: whoever speaks; the capture's subject, of whom somebody else speaks; another person, whom the
# capture may name as its subject; or a person who is not the capture's subject.
Whom: TypeAlias = Literal["speaker", "subject", "other", "stranger"]

# Sources that state something. A tool's result and an import are records, which nobody says.
_SPEAKERS = frozenset(("operator", "agent", "end_user"))
# Namespaces of persons: a fact on such a key is about that person.
_PERSONS = frozenset(
    ("user", "customer", "client", "person", "contact", "patient", "employee", "member", "guest", "lead")
)
_POSSESSIVES = frozenset(("my", "our", "the", "mein", "meine", "meiner", "unser", "unsere", "der", "die"))
_FEWEST_LETTERS = 3
# Parts of ids that are not names.
_PREFIXES = frozenset(
    ("cus", "cust", "customer", "usr", "user", "client", "acc", "account", "person", "patient", "member", "emp")
)


class SpecialReading(NamedTuple):
    """What a fact says in special categories: each with the tagger's score, None where only rules find it."""

    categories: dict[str, float | None]
    whom: tuple[Whom, ...] = ()
    others: int = 0

    def is_third_party(self, source_class: str) -> bool:
        """Whether it is about somebody other than its speaker."""
        if "other" in self.whom or "stranger" in self.whom:
            return True
        return "subject" in self.whom and source_class in _SPEAKERS


class _Said(NamedTuple):
    """Whom a fact is about, and the words that mention them, if any."""

    whom: Whom
    by: Mention | None = None


class _Words(NamedTuple):
    """Whose words a fact is made of, and whom its capture names."""

    are_the_users: bool
    subject: str | None
    user_id: str | None
    # Whether the subject is the run's own user; without a user, whoever speaks is the subject.
    on_own_key: bool
    # Whether the fact is on a key of its subject, or of another person; and whether that is of a person at all.
    typed: bool
    about_another: bool
    about_person: bool = False
    # Whether the message names somebody other than its user as the speaker: "I" is that person.
    by_another: bool = False

    @classmethod
    def of(cls, candidate: Candidate, pack: Pack, kind: CaptureKind, vouched: str | None) -> "_Words":
        subject = pack.identity.resolve(candidate.subject) if candidate.subject is not None else None
        user_id = candidate.scope.user_id
        own = user_id is None or subject in (None, user_subject(user_id, pack)) or _local(subject) == user_id.lower()
        typed = _is_same(candidate.entity, subject)
        persons = _PERSONS.union(pack.identity.users_spelled)
        special = candidate.predicate is not None and category_of_name(candidate.predicate) is not None
        of_person = candidate.entity is not None and candidate.entity.partition(":")[0] in persons
        another = candidate.entity is not None and not typed and (special or of_person)
        speaks = candidate.speaker
        by_another = (
            speaks is not None and speaks != user_id and any(_name_parts(user_id)) and not _holds_name(user_id, speaks)
        )
        in_own_words = vouched == USER or kind == "message"
        return cls(in_own_words, subject, user_id, own, typed, another, of_person or typed, by_another)

    def said_of(self, persons: Iterable[Mention], *, other: bool = False) -> Sequence[_Said]:
        """Return whom these mentions mean; without any, whom the fact is about (see `unmentioned`)."""
        return [_Said(self.whom(one), one) for one in persons] or [_Said(self.unmentioned(other=other))]

    def whom(self, mention: Mention) -> Whom:
        """Return whom a mention means."""
        if self.about_another and mention.kind in ("pronoun", "role", "name"):
            return "stranger"
        if mention.kind == "entity":
            return self.of_subject() if mention.words.lower() == (self.subject or "").lower() else "stranger"
        if self.are_the_users:
            return self._in_own_words(mention)
        if mention.kind == "self":
            return "speaker"
        if mention.kind == "own_relative":
            return "stranger" if self.on_own_key else "other"
        if mention.kind == "relative" or (mention.kind == "name" and not self._may_be_named(mention.words)):
            return "stranger"
        return "subject"

    def _in_own_words(self, mention: Mention) -> Whom:
        if mention.kind == "self" and self.by_another:
            return "stranger" if self.on_own_key else "other"
        if mention.kind in ("self", "user", "you"):
            return "speaker"
        of_key = self.typed and self.on_own_key
        if mention.kind in ("pronoun", "role") and of_key:
            return "speaker"
        if mention.kind == "name" and (_holds_name(self.user_id, mention.words) or (of_key and not self._has_name())):
            return "speaker"
        return "stranger" if self.on_own_key else "other"

    def unmentioned(self, *, other: bool = False) -> Whom:
        """Return whom a fact is about that mentions nobody; `other` is what the tagger says."""
        if self.about_another:
            return "stranger"
        return "stranger" if other and self.are_the_users and self.on_own_key and not self.typed else self.of_subject()

    def of_subject(self) -> Whom:
        """Return whom a fact about the capture's subject is about."""
        if not self.are_the_users:
            return "subject"
        return "speaker" if self.on_own_key else "other"

    def _may_be_named(self, name: str) -> bool:
        """Whether a name in a note may be that of the subject.

        An id that is made of a name has to hold it. It may be that of any other id; where the subject is the run's own
        user, only if the fact is on that key.
        """
        if self._has_name():
            return _holds_name(self.subject, name)
        return not self.on_own_key or self.user_id is None or self.typed

    def _has_name(self) -> bool:
        """Whether the subject's id is made of a name, which another name can be compared with."""
        return any(_name_parts(self.subject))


def read_special(
    candidate: Candidate, pack: Pack, kind: CaptureKind, vouched: str | None, tags: TaggedTexts | None = None
) -> SpecialReading:
    """Read what a fact says in special categories, by rules and by what the tagger found, and of whom."""
    words = _Words.of(candidate, pack, kind, vouched)
    categories: dict[str, float | None] = {}
    whom: list[Whom] = []
    named: list[Mention] = []

    def take(category: str, score: float | None, said: Sequence[_Said]) -> None:
        best = [one for one in (categories.get(category), score) if one is not None]
        categories[category] = max(best, default=None)
        if category in PROTECTS_OTHERS:
            whom.extend(one.whom for one in said)
            named.extend(one.by for one in said if one.by is not None and one.whom == "other")

    for text in (*texts_of(candidate), *name_of_speaker(candidate)):
        found = find_special(text)
        for one in found:
            # A field of a form says nothing of a person, unless the capture does.
            if one.persons or words.subject is not None:
                take(one.category, None, words.said_of(one.persons))
        for tag in tags.special(text) if tags is not None else ():
            category, _, who = tag.label.partition(":")
            take(category, tag.score, _tagged(text, tag, words, found, other=who == OTHER))
    for value in strings(candidate.value, names=False) if words.about_person else ():
        for category in categories_of_value(value):
            take(category, None, () if whom else words.said_of(()))
    keyed = [found for name in _names(candidate) if (found := category_of_name(name)) is not None]
    if keyed and words.are_the_users and any(map(names_relation, _names(candidate))):
        # `brother_diagnosis`, or {"brother": {"diagnosis": ...}}.
        whom.append("stranger" if words.on_own_key else "other")
    for category in keyed if words.subject is not None else ():
        # A text that says of whom is better than the key alone.
        take(category, None, () if whom else words.said_of(()))
    return SpecialReading(categories, tuple(dict.fromkeys(whom)), _count(named))


def _tagged(text: str, tag: Tag, words: _Words, found: Iterable[SpecialFinding], *, other: bool) -> Sequence[_Said]:
    """Return of whom the tagger's span is said: by grammar where that is clear, else by either of the two."""
    for one in found:
        if one.persons and one.start < tag.end and tag.start < one.end:
            return words.said_of(one.persons)
    persons, is_clear = describe(text, tag.start, tag.end)
    said = words.said_of(with_sharers(text, tag.start, tag.end, persons))
    doubtful = other and not is_clear and all(one.whom == "speaker" for one in said)
    return words.said_of((), other=other) if doubtful or not persons else said


def refusal_of(
    candidate: Candidate, pack: Pack, kind: CaptureKind, vouched: str | None, tags: TaggedTexts | None = None
) -> str | None:
    """Return why no consent can count for a fact about a third party; None if that of its subject does.

    The person spoken of has to be the capture's subject, and one person. INVARIANT: the fact has a subject.
    """
    words = _Words.of(candidate, pack, kind, vouched)
    read = read_special(candidate, pack, kind, vouched, tags)
    of_speaker = words.are_the_users and words.on_own_key
    return "third_party" if of_speaker or "stranger" in read.whom or read.others > 1 else None


def _names(candidate: Candidate) -> Iterator[str]:
    """Yield the names of what a fact states: its predicate, and the keys within its value."""
    if candidate.write_class == "evidence_link":
        return
    if candidate.predicate is not None:
        yield candidate.predicate_name or candidate.predicate
    yield from _keys(candidate.value)


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from _keys(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _keys(item)


def _is_same(entity: str | None, subject: str | None) -> bool:
    return entity is not None and subject is not None and entity.lower() == subject.lower()


def _local(ceid: str | None) -> str:
    return (ceid or "").partition(":")[2].lower()


def _name_parts(ceid: str | None) -> Iterator[str]:
    """Yield the parts of an id that may be of a name."""
    local = "".join(letter if letter.isalpha() else " " for letter in (ceid or "").rpartition(":")[2].lower())
    return (part for part in local.split() if len(part) >= _FEWEST_LETTERS and part not in _PREFIXES)


def _holds_name(ceid: str | None, name: str) -> bool:
    """Whether an id may be made of a name: `joanna_smith`, `joanna`, `jsmith` and `joannasmith` of Joanna Smith.

    The family name alone is not enough: `joanna_smith` is not Peter Smith.
    """
    words, parts = _bare_words(name), set(_name_parts(ceid))
    if not words:
        return False
    first, last = words[0], words[-1]
    if "".join(words) in parts or (len(words) > 1 and first[:1] + last in parts):
        return True
    return first in parts and (len(words) == 1 or len(parts) == 1 or last in parts)


def _bare_words(name: str) -> list[str]:
    """Return the words of a mention in lower case, without a possessive ending."""
    return [word.strip(".'").lower() for word in name.replace("'s", "").split()]


def _count(named: Iterable[Mention]) -> int:
    """Count the persons that mentions mean: those that share a word are one, and a pronoun is one of them."""
    groups: list[set[str]] = []
    pronouns = 0
    for mention in named:
        if mention.kind == "pronoun":
            pronouns = 1
            continue
        words = {*_bare_words(mention.words)} - _POSSESSIVES
        same = [group for group in groups if group & words]
        groups = [group for group in groups if group not in same] + [words.union(*same)]
    return max(len(groups), pronouns)
