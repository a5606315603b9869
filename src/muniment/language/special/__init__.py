"""Finds what texts say of persons in special categories, by rules, and of whom they say it (CAN-13, CAN-16).

The rules are a list of forms that are hard to mistake, in English and German, and find less than the trained tagger.
Who is meant (`persons`) is read for what either of them finds.
"""

from muniment.language.special.findings import (
    CATEGORIES,
    PROTECTS_OTHERS,
    SpecialFinding,
    categories_of_value,
    category_of_name,
    find_special,
    names_relation,
)
from muniment.language.special.persons import describe
from muniment.language.special.shared import with_sharers
from muniment.language.special.tokens import Mention, MentionKind

__all__ = [
    "CATEGORIES",
    "PROTECTS_OTHERS",
    "Mention",
    "MentionKind",
    "SpecialFinding",
    "categories_of_value",
    "category_of_name",
    "describe",
    "find_special",
    "names_relation",
    "with_sharers",
]
