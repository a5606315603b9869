"""Makes the values of slots: names in all their forms, addresses of many countries, companies, links and numbers."""

from collections.abc import Callable
from random import Random

from training.tagger import addresses, numbers
from training.tagger.fill import Value
from training.tagger.pools import Pools, Region, transliterated
from training.tagger.rows import Mark, Marked
from training.tagger.words import words

_PARTICLES = ("van ", "de ", "von ", "da ", "del ", "bin ", "Mc", "van der ", "O'", "al-", "ter ", "di ")
_SUFFIXES = ("Jr.", "Sr.", "III", "PhD", "MD", "II")
_PATHS = ("", "/", "/login", "/p/1234", "/users/42", "/docs/start.html", "?id=77", "/en/shop", "/index.php?a=1")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Values:
    """The values of the slots of one text after the other; within a text, an address of mail may repeat its name."""

    def __init__(self, pools: Pools, random: Random) -> None:
        self._pools = pools
        self._random = random
        self._region = pools.regions[0]
        self._person = ("", "")
        self._slots: dict[str, Callable[[], Value]] = {
            "person": self._any_person,
            "full": lambda: (" ".join(self._names()), "PERSON"),
            "first": lambda: (self._names()[0], "PERSON"),
            "last": lambda: (self._names()[1], "PERSON"),
            "lastfirst": lambda: (", ".join(reversed(self._names())), "PERSON"),
            "wordname": lambda: (self._word_name(), "PERSON"),
            "nick": lambda: (random.choice(words("nicknames")), "PERSON"),
            "initials": self._initials,
            "someone": self._someone,
            "title": lambda: (random.choice(words("titles")), None),
            "address": self._address,
            "street": lambda: (addresses.street(self._place(), random), "ADDRESS"),
            "unit": lambda: (addresses.unit(random), "ADDRESS"),
            "zip": lambda: (random.choice(self._place().postcodes), "ADDRESS"),
            "pobox": lambda: (addresses.box(random), "ADDRESS"),
            "city": lambda: (self._city(), "LOCATION"),
            "country": lambda: (random.choice(words("countries")), "LOCATION"),
            "company": lambda: (self._company(), "ORGANIZATION"),
            "system": lambda: (random.choice(words("systems")), None),
            "phone": self._phone,
            "barephone": lambda: (numbers.bare_phone(random), "PHONE"),
            "email": self._email,
            "iban": lambda: (self._iban(), "IBAN"),
            "card": lambda: (numbers.card(random.choice(pools.cards), random), "CREDIT_CARD"),
            "ssn": lambda: (numbers.ssn(random), "ID"),
            "id": self._id,
            "birth": lambda: (numbers.date(random, (1930, 2015)), "DATE_OF_BIRTH"),
            "date": lambda: (numbers.date(random, (1990, 2035)), None),
            "url": lambda: (self._url(), "ONLINE"),
            "ip": lambda: (self._ip(), "ONLINE"),
            "amount": lambda: (self._amount(), None),
            "n": lambda: (str(random.randint(2, 99)), None),
            "big": lambda: (str(random.randint(100, 9_999_999)), None),
            "age": lambda: (str(random.randint(18, 95)), None),
            "childage": lambda: (str(random.randint(1, 15)), None),
            "year": lambda: (str(random.randint(1950, 2032)), None),
            "time": lambda: (f"{random.randint(0, 23):02}:{random.choice(('00', '15', '30', '45', '07'))}", None),
            "day": lambda: (random.choice(_WEEKDAYS), None),
            "version": lambda: (".".join(str(random.randint(0, 20)) for _ in range(random.choice((2, 3, 4)))), None),
            "job": lambda: (random.choice(pools.jobs).lower().split(",")[0], None),
            "percent": lambda: (f"{random.randint(1, 99)}%", None),
        }
        for name in ("condition", "medicine", "faith", "party", "union", "crime"):
            self._slots[name] = self._word(name)
        for kind in ("passport", "licence", "tax", "national"):
            self._slots[kind] = self._other_id(kind)
        for kind in (
            "order",
            "record",
            "device",
            "invoice",
            "tracking",
            "provider",
            "customer",
            "account",
            "ticket",
            "policy",
            "part",
            "user",
        ):
            self._slots[kind] = self._count(kind)

    def begin(self) -> None:
        """Start a new text: it gets a country of its own."""
        self._region = self._pools.region(self._random)
        self._person = ("", "")

    def __call__(self, slot: str) -> Value:
        """Return a value for a slot, with its label."""
        return self._slots[slot]()

    # --- persons

    def _names(self) -> tuple[str, str]:
        random = self._random
        share = random.random()
        if share < 0.06:
            first, _, last = random.choice(words("world_names")).partition(" ")
        elif share < 0.1:
            first, last = self._word_name(), random.choice(self._region.last)
        elif share < 0.13:
            first, last = random.choice(self._region.first), self._word_name()
        else:
            first = random.choice(self._region.first)
            # Names of two countries meet.
            last = random.choice((self._region if random.random() < 0.8 else random.choice(self._pools.regions)).last)
        if random.random() < 0.04:
            last = f"{last}-{random.choice(self._region.last)}"
        if random.random() < 0.04:
            first = f"{first}-{random.choice(self._region.first)}"
        self._person = (first, last)
        return self._person

    def _word_name(self) -> str:
        return self._random.choice(words("word_names"))

    def _any_person(self) -> Value:
        random = self._random
        first, last = self._names()
        share = random.random()
        if share < 0.5:
            name = f"{first} {last}"
        elif share < 0.72:
            name = first
        elif share < 0.77:
            return self._titled(last)
        elif share < 0.8:
            return self._titled(f"{first} {last}")
        elif share < 0.86:
            name = f"{first} {random.choice('ABCDEFGHJKLMNPRSTW')}. {last}"
        elif share < 0.9:
            name = f"{first[0]}. {last}"
        elif share < 0.92:
            name = f"{first} {random.choice(self._region.first)} {last}"
        elif share < 0.94:
            name = f"{first} {last} {random.choice(_SUFFIXES)}"
        elif share < 0.96:
            name = f"{first} {random.choice(_PARTICLES)}{last}"
        else:
            name = last
        return name, "PERSON"

    def _someone(self) -> Value:
        """Return a person by name, or words for one."""
        return self._any_person() if self._random.random() < 0.72 else (self._random.choice(words("someone")), None)

    def _titled(self, name: str) -> Marked:
        title = self._random.choice(words("titles"))
        start = len(title) + 1
        return Marked(f"{title} {name}", (Mark(start, start + len(name), "PERSON"),))

    def _initials(self) -> Value:
        first, last = self._names()
        return self._random.choice(
            (f"{first[0]}. {last}", f"{first[0]}.{last[0]}. {last}", f"{first} {last[0]}.")
        ), "PERSON"

    # --- places

    def _place(self) -> Region:
        return self._region if self._region.has_addresses else self._pools.region_with_addresses(self._random)

    def _city(self) -> str:
        random = self._random
        city = random.choice(words("cities") if random.random() < 0.5 else self._place().cities)
        return city.upper() if random.random() < 0.05 else city

    def _address(self) -> Value:
        region = self._pools.region_with_addresses(self._random) if self._random.random() < 0.3 else self._place()
        return addresses.address(region, self._random), "ADDRESS"

    # --- companies, mail and links

    def _company(self) -> str:
        random = self._random
        share = random.random()
        if share < 0.3:
            return random.choice(words("brands"))
        if share < 0.6:
            return random.choice(self._region.companies)
        stem = random.choice(words("org_stems"))
        if share < 0.75:
            return stem
        if share < 0.9:
            return f"{stem} {random.choice(words('org_ends'))}"
        return f"{random.choice(self._region.last)} {random.choice(words('org_ends'))}"

    def _email(self) -> Value:
        random = self._random
        first, last = self._person if self._person[0] and random.random() < 0.7 else self._names()
        given, family = (_ascii(name) or "info" for name in (first, last))
        local = random.choice(
            (
                f"{given}.{family}",
                f"{given[0]}{family}",
                given,
                f"{given}_{family}{random.randint(1, 99)}",
                f"{given}{family}",
            )
        )
        host = (
            random.choice(words("mail_hosts"))
            if random.random() < 0.5
            else f"{random.choice(words('org_stems'))}.{random.choice(words('top_domains'))}"
        )
        return (local if random.random() < 0.15 else local.lower()) + "@" + host.lower(), "EMAIL"

    def _url(self) -> str:
        random = self._random
        host = f"{random.choice(words('org_stems'))}{random.choice(('', '', 'shop', 'hub', '-online', 'Insider'))}"
        host = host if random.random() < 0.3 else host.lower()
        start = random.choice(("https://", "http://", "https://www.", "http://www.", "www.", ""))
        return f"{start}{host}.{random.choice(words('top_domains'))}{random.choice(_PATHS)}"

    def _ip(self) -> str:
        random = self._random
        if random.random() < 0.15:
            return ":".join(f"{random.randint(0, 65535):x}" for _ in range(8))
        address = ".".join(str(random.randint(1, 254)) for _ in range(4))
        return f"{address}:{random.randint(80, 9999)}" if random.random() < 0.1 else address

    # --- numbers

    def _phone(self) -> Value:
        if self._random.random() < 0.35:
            return self._random.choice(self._region.phones), "PHONE"
        return numbers.phone(self._random), "PHONE"

    def _iban(self) -> str:
        return numbers.iban(self._random.choice(self._pools.region(self._random).ibans), self._random)

    def _id(self) -> Value:
        share = self._random.random()
        if share < 0.35:
            return numbers.ssn(self._random), "ID"
        if share < 0.65:
            while not (ids := self._random.choice(self._pools.regions).ids):
                pass
            return self._random.choice(ids), "ID"
        return numbers.other_id("national", self._random), "ID"

    def _other_id(self, kind: str) -> Callable[[], Value]:
        return lambda: (numbers.other_id(kind, self._random), "ID")

    def _count(self, kind: str) -> Callable[[], Value]:
        return lambda: (numbers.count_of(kind, self._random), "ACCOUNT")

    def _amount(self) -> str:
        random = self._random
        number = random.choice(
            (f"{random.randint(1, 999)}", f"{random.randint(1000, 99999):,}", f"{random.uniform(1, 900):.2f}")
        )
        return random.choice(
            (
                f"${number}",
                f"€{number}",
                f"{number} EUR",
                f"£{number}",
                f"{number} dollars",
                f"USD {number}",
                f"{number} €",
            )
        )

    def _word(self, name: str) -> Callable[[], Value]:
        file = {
            "condition": "conditions",
            "medicine": "medicines",
            "faith": "faiths",
            "party": "parties",
            "union": "unions",
            "crime": "crimes",
        }[name]
        return lambda: (self._random.choice(words(file)), None)


def _ascii(name: str) -> str:
    """Return a name as it is written in an address of mail."""
    return "".join(char for char in transliterated(name) if char.isascii() and char.isalnum())
