"""Pools of names, streets, towns, companies and numbers of many countries, made by Faker from one seed."""

import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from importlib import import_module
from random import Random
from types import SimpleNamespace
from typing import Any

from training.tagger.words import words

# Those whose addresses Faker writes in the form of the country.
_LOCALES = (
    *(
        "en_US",
        "en_GB",
        "en_AU",
        "en_CA",
        "en_IN",
        "en_IE",
        "en_NZ",
        "de_DE",
        "de_AT",
        "de_CH",
        "fr_FR",
        "fr_CA",
        "fr_CH",
    ),
    *(
        "es_ES",
        "es_MX",
        "it_IT",
        "nl_NL",
        "nl_BE",
        "pt_BR",
        "pt_PT",
        "sv_SE",
        "da_DK",
        "no_NO",
        "fi_FI",
        "pl_PL",
        "cs_CZ",
    ),
    *("sk_SK", "hu_HU", "ro_RO", "hr_HR", "sl_SI", "id_ID", "vi_VN", "zu_ZA", "az_AZ", "el_GR", "ru_RU", "uk_UA"),
)
# Those that have names of their own, but towns and streets of the United States.
_NAMES_ONLY = frozenset(
    ("et_EE", "lt_LT", "lv_LV", "tr_TR", "is_IS", "en_PK", "ga_IE", "yo_NG", "en_KE", "en_NG", "sw", "ha_NG")
)
_TRANSLITERATED = frozenset(("el_GR", "ru_RU", "uk_UA"))
# Locales whose national ids have the form of the country; the others would repeat the American one.
_OWN_IDS = frozenset(
    (
        *("en_US", "en_GB", "en_CA", "de_AT", "de_CH", "fr_FR", "fr_CA", "es_MX", "it_IT", "nl_NL", "nl_BE", "pt_BR"),
        *("sv_SE", "no_NO", "fi_FI", "pl_PL", "hu_HU", "ro_RO", "hr_HR", "el_GR", "et_EE", "lv_LV", "tr_TR"),
    )
)
_POOL = 300
# Some national ids hold a day of birth, which Faker reckons from today: these modules get a day that stays the same.
_TODAY = (2026, 1, 1)
_DATES = "faker.providers.date_time"
_FROM_TODAY = tuple(f"faker.providers.ssn.{locale}" for locale in ("sv_SE", "no_NO", "fi_FI", "et_EE", "lv_LV"))


@dataclass(frozen=True)
class Region:
    """What is usual in one country."""

    locale: str
    first: tuple[str, ...]
    last: tuple[str, ...]
    streets: tuple[str, ...]
    houses: tuple[str, ...]
    postcodes: tuple[str, ...]
    cities: tuple[str, ...]
    states: tuple[str, ...]
    companies: tuple[str, ...]
    ids: tuple[str, ...]
    phones: tuple[str, ...]
    ibans: tuple[str, ...]

    @property
    def has_addresses(self) -> bool:
        """Whether streets and towns are of this country."""
        return bool(self.streets)


@dataclass(frozen=True)
class Pools:
    """The pools of all countries, and what has no country."""

    regions: tuple[Region, ...]
    cards: tuple[str, ...]
    jobs: tuple[str, ...]

    def region(self, random: Random) -> Region:
        """Return a country; the United States and the United Kingdom are as likely as all others together."""
        share = random.random()
        if share < 0.35:
            return self.regions[0]
        return self.regions[1] if share < 0.45 else random.choice(self.regions)

    def region_with_addresses(self, random: Random) -> Region:
        """Return a country of which there are streets and towns."""
        while not (region := self.region(random)).has_addresses:
            pass
        return region


def transliterated(text: str) -> str:
    """Return Greek and Cyrillic text in Latin letters."""
    bare = "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
    spelling = dict(letter.split("=") for letter in words("letters"))
    letters: list[str] = []
    for char in bare:
        plain = spelling.get(char.lower(), char)
        letters.append(plain.capitalize() if char.isupper() else plain)
    return "".join(letters)


def faker_pools(seed: int, size: int = _POOL) -> Pools:
    """Return pools of so many values of each kind; the same seed gives the same pools."""
    # Imported by name, as it is not installed where nothing is trained.
    faker: Any = import_module("faker").Faker
    with _same_day():
        regions = [
            _region(locale, faker(locale), seed + index, size)
            for index, locale in enumerate((*_LOCALES, *sorted(_NAMES_ONLY)))
        ]
    world = faker("en_US")
    world.seed_instance(seed)
    return Pools(
        tuple(regions),
        tuple(world.credit_card_number() for _ in range(size * 4)),
        tuple(sorted({world.job() for _ in range(size)})),
    )


class _SameTime(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_SameTime":
        return cls(*_TODAY, tzinfo=tz)


class _SameDay(date):
    @classmethod
    def today(cls) -> "_SameDay":
        return cls(*_TODAY)


@contextmanager
def _same_day() -> Generator[None]:
    """Let it be the same day for Faker, so that the pools depend on the seed alone."""
    dates = SimpleNamespace(datetime=_SameTime, date=_SameDay, timedelta=timedelta)
    stopped: dict[str, Any] = {_DATES: _SameTime} | dict.fromkeys(_FROM_TODAY, dates)
    modules: dict[str, Any] = {name: import_module(name) for name in stopped}
    before = {name: module.datetime for name, module in modules.items()}
    try:
        for name, module in modules.items():
            module.datetime = stopped[name]
        yield
    finally:
        for name, module in modules.items():
            module.datetime = before[name]


def _region(locale: str, fake: Any, seed: int, size: int) -> Region:
    fake.seed_instance(seed)
    plain: Callable[[str], str] = transliterated if locale in _TRANSLITERATED else str

    def values(method: str, wanted: bool = True) -> tuple[str, ...]:
        made: list[str] = []
        with suppress(AttributeError):
            made = [str(getattr(fake, method)()) for _ in range(size if wanted else 0)]
        return tuple(sorted({plain(one) for one in made if one}))

    placed = locale not in _NAMES_ONLY
    return Region(
        locale,
        values("first_name"),
        values("last_name"),
        values("street_name", placed),
        values("building_number", placed),
        values("postcode", placed),
        values("city", placed) if locale != "it_IT" else _italian_cities(seed, size),
        values("state_abbr", locale in ("en_US", "en_AU")) or values("state", placed),
        values("company"),
        values("ssn", locale in _OWN_IDS),
        values("phone_number"),
        values("iban"),
    )


def _italian_cities(seed: int, size: int) -> tuple[str, ...]:
    """Return cities from Faker's list, which has another order in every process."""
    provider: Any = import_module("faker.providers.address.it_IT").Provider
    cities = sorted(set(provider.cities))
    return tuple(sorted(Random(seed).sample(cities, min(size, len(cities)))))  # noqa: S311 - no secrets
