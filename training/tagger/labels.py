"""The labels of the tagger: what a span is, and which special category the words tell of.

Spans do not overlap and are one layer of tags. Special categories are a second layer, as their words may hold a name
("my daughter Emma (7)").
"""

# ADDRESS is also a postcode alone, ID every number that a state gives a person, ONLINE a link or an IP address.
# ACCOUNT is a number of a thing or a record (order, customer, device): it is there so that the reader does not take
# such numbers for telephones and ids.
LABELS = (
    "PERSON",
    "ADDRESS",
    "LOCATION",
    "ORGANIZATION",
    "PHONE",
    "EMAIL",
    "IBAN",
    "CREDIT_CARD",
    "ID",
    "DATE_OF_BIRTH",
    "ACCOUNT",
    "ONLINE",
)

CATEGORIES = ("HEALTH", "BELIEF", "POLITICS", "SEXUALITY", "UNION", "BIOMETRICS", "CRIMINAL", "CHILD")

# What a known special category is said of: the speaker, or somebody else (CAN-16).
SELF, OTHER = "self", "other"

# The classes of the two layers: outside of all spans, or the first or a later token of one; of whom a category is told.
TAGS = ("O", *(f"{place}-{label}" for label in LABELS for place in "BI"))
SPECIAL = ("O", *(f"{category}-{about}" for category in CATEGORIES for about in (SELF, OTHER)))
