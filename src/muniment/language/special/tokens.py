"""The words of a sentence as the rules for persons read them, and mentions of persons among them."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from muniment.language.data_files import named_lines, read_sections, word_set

# Whom a mention means: the speaker (`self`), whoever is addressed (`you`), he or she (`pronoun`), a `name`, an `entity`
# by its id, the end `user` or whoever else a record is kept of (`role`), a relative or acquaintance of the speaker
# (`own_relative`), or of somebody else (`relative`).
MentionKind = Literal["self", "you", "pronoun", "name", "entity", "user", "role", "own_relative", "relative"]

WORDS = {
    name: word_set(words) for name, words in named_lines(read_sections(__package__ or "", "words/persons.txt")["words"])
}
# Words for whoever is related to somebody.
RELATIONS = WORDS["relations"]
_TOKEN = re.compile(
    r"\[[A-Z][A-Z _-]*\]|\*{3,}"  # what masks a name
    r"|[A-Za-z][\w-]*:\w[\w.#/-]*"  # an id
    r"|@\w[\w.-]*\w|[^\W_]+(?:_[^\W_]+)+"  # how somebody is called in a chat
    r"|[^\W\d_]\.(?=\s)"  # an initial
    r"|[^\W_]+(?:[-'\u2019.][^\W_]+)*['\u2019]?"
    r"|[,&()]"
)
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_CLITIC = re.compile(r"['\u2019](?:s|m|d|ve|re|ll)?$", re.IGNORECASE)


class Mention(NamedTuple):
    """Words of a text that mean somebody."""

    kind: MentionKind
    words: str


class Tokens(NamedTuple):
    """The words of a part of a sentence, and the same in lower case and without what is contracted with them."""

    said: Sequence[str]
    low: Sequence[str]

    @classmethod
    def of(cls, text: str) -> "Tokens":
        """Split a part of a sentence into words."""
        said = _TOKEN.findall(text.replace("\u2019", "'"))
        return cls(said, [_CLITIC.sub("", one).lower() for one in said])

    def is_in(self, place: int, *lists: str) -> bool:
        """Whether there is a word at this place that is in one of the lists."""
        return 0 <= place < len(self.low) and any(self.low[place] in WORDS[name] for name in lists)

    def owns(self, place: int) -> bool:
        """Whether the word at this place is a possessor: `Tom's`."""
        return 0 <= place < len(self.said) and len(self.said[place]) > 2 and bool(_POSSESSIVE.search(self.said[place]))


class Placed(NamedTuple):
    """A mention in a list of words, with the places of its first and its last word."""

    mention: Mention
    first: int
    last: int
