"""Makes predicates from what a preference is about, so that preferences about the same thing share one."""

import re
import unicodedata

from muniment.language.data_files import word_set

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
# No part of a topic. The second half are verbs that go with anything: "I hate watching horror films" is about horror
# films.
_EMPTY = word_set("""
    a an the any all some most my our your their his her its this that these those of to and or in on at by for
    with as from about into over than too very really so such like also just only even more less much many lot
    lots bit kind kinds type types sort sorts form forms anything something things thing stuff ones one which
    who whom whose what when where while because due since is are was were be been being am has have had having
    do does did doing done will would can could may might must not no nor me i we us them they it he she you
    don't isn't aren't doesn't i'm ever always far usually often generally entirely completely especially
    including rather instead other others whatsoever using use used going go watching watch eating eat drinking
    drink playing play reading read listening listen wearing wear getting get making make taking take trying try
    buying buy consuming consume staying stay visiting visit involving involve containing contain contains
    involves feature features that's there
""")
# What follows is the reason, no part of the topic.
_REASON = re.compile(r" for (?:its|their|his|her) | because | due to | so that ")
_MOST_WORDS = 6
_LONGEST = 100
_ENDS_IN_IE = word_set("""
    movies cookies selfies smoothies pies ties zombies hoodies calories rookies veggies genies
""")
_KEPT_S = ("ss", "us", "is", "news", "series", "species", "always", "yes", "gas")


def topic_of(text: str) -> str | None:
    """Return the content words of a text in order, joined with underscores; None where there are none."""
    words: list[str] = []
    for word in _WORD.findall(_REASON.split(_plain(text), maxsplit=1)[0]):
        one = singular(word.partition("'")[0])
        if word not in _EMPTY and one not in _EMPTY and one not in words:
            words.append(one)
    slug = "_".join(words[:_MOST_WORDS])[:_LONGEST].strip("_")
    return slug or None


def either_of(one: str | None, other: str | None) -> str | None:
    """Return the predicate of a choice between two topics; None where there are no two."""
    topics = sorted(topic for topic in (one, other) if topic)
    if len(topics) != 2 or topics[0] == topics[1]:
        return None
    return f"prefers_{topics[0][:58]}_or_{topics[1][:58]}"


def singular(word: str) -> str:
    """Return a word without its plural ending, roughly: singular and plural of one topic must agree."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_KEPT_S):
        return word
    if word in _ENDS_IN_IE:
        return word[:-1]
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    if word.endswith(("ches", "shes", "sses", "xes", "zes", "buses")):
        return word[:-2]
    return word[:-1]


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in letters if not unicodedata.combining(sign))
