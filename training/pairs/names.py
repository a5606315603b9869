"""Names of people and companies in several locales, drawn once from Faker so that a seed gives the same names."""

from pathlib import Path
from typing import NamedTuple

LOCALES = (Path(__file__).parent / "vocabulary" / "locales.txt").read_text().split()


class Names(NamedTuple):
    """First names, family names and companies to choose from."""

    first: list[str]
    family: list[str]
    companies: list[str]


def draw(seed: int, each: int = 120) -> Names:
    """Return different names of every locale."""
    # Imported here: pairs can be made with other names where Faker is not installed.
    from faker import Faker

    first: dict[str, None] = {}
    family: dict[str, None] = {}
    companies: dict[str, None] = {}
    for locale in LOCALES:
        faker = Faker(locale)
        faker.seed_instance(seed)
        for _ in range(each):
            first[faker.first_name()] = None
            family[faker.last_name()] = None
            companies[faker.company()] = None
    return Names(list(first), list(family), list(companies))
