"""Values of facts: what they are, every way to write each of them, and a different value of the same type."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from training.pairs.names import Names

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# Types whose values can be written in several units.
MEASURES = frozenset(
    ("window", "short_time", "long_time", "hours", "seconds", "minutes", "weight", "distance", "volume", "gigabytes")
)
CURRENCIES = (("$", "dollars", "USD"), ("€", "euros", "EUR"), ("£", "pounds", "GBP"))


@dataclass(frozen=True)
class Value:
    """One value: `written` holds its equivalent spellings, `broader` what it implies (Lyon: France)."""

    key: str
    written: tuple[str, ...]
    broader: "Value | None" = field(default=None, compare=False)

    def related(self, other: "Value") -> bool:
        """Say whether the values are the same or one implies the other."""
        return self.key in other.line() or other.key in self.line()

    def line(self) -> set[str]:
        """Return the keys of the value and of all that it implies."""
        return {self.key} | (self.broader.line() if self.broader else set())


def words(number: int) -> str:
    """Return a number below a million in words."""
    if number >= 1000:
        rest = f" {words(number % 1000)}" if number % 1000 else ""
        return f"{words(number // 1000)} thousand{rest}"
    if number >= 100:
        rest = f" and {words(number % 100)}" if number % 100 else ""
        return f"{words(number // 100)} hundred{rest}"
    if number >= 20:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    return ONES[number]


def _value(kind: str, key: object, *written: str) -> Value:
    return Value(f"{kind}:{key}", tuple(dict.fromkeys(written)))


def _units(number: int, unit: str) -> list[str]:
    plural = unit if number == 1 else unit + "s"
    return [f"{number} {plural}", f"{words(number)} {plural}"]


def days(number: int) -> Value:
    """Return a span of days, also written in weeks or hours where that is exact."""
    written = _units(number, "day")
    if number % 7 == 0:
        written += _units(number // 7, "week")
    if number <= 3:
        written += _units(24 * number, "hour")[:1]
    return _value("days", number, *written, *{7: ["a week"], 14: ["a fortnight"]}.get(number, []))


def working_days(number: int) -> Value:
    """Return a span of working days."""
    return _value("working", number, *_units(number, "working day"), *_units(number, "business day"))


def months(number: int) -> Value:
    """Return a span of months, also written in years."""
    written = _units(number, "month")
    if number % 12 == 0:
        written += _units(number // 12, "year")
    extra = {6: ["half a year"], 12: ["a year"], 18: ["a year and a half", "one and a half years"]}
    return _value("months", number, *written, *extra.get(number, []))


def hours(number: int) -> Value:
    """Return a span of hours, also written in minutes or days."""
    written = _units(number, "hour")
    if number <= 6:
        written.append(f"{60 * number} minutes")
    if number <= 2:
        written.append(f"{3600 * number:,} seconds")
    if number % 24 == 0:
        written += _units(number // 24, "day")
    return _value("hours", number, *written)


def money(amount: int, currency: int) -> Value:
    """Return an amount of money in one of the currencies."""
    sign, name, code = CURRENCIES[currency]
    grouped = f"{amount:,}"
    written = [f"{sign}{grouped}", f"{grouped} {name}", f"{code} {grouped}", f"{grouped} {code}"]
    if amount < 100 or amount % 100 == 0:
        written.append(f"{words(amount)} {name}")
    if amount >= 10_000 and amount % 1000 == 0:
        written.append(f"{sign}{amount // 1000}k")
    return _value("money", f"{amount}{code}", *written)


def percent(number: int) -> Value:
    """Return a share in per cent."""
    return _value(
        "percent", number, f"{number}%", f"{number} percent", f"{number} per cent", f"{words(number)} percent"
    )


def count(number: int) -> Value:
    """Return a number of things, with dozens."""
    dozens = {6: ["half a dozen"], 12: ["a dozen"], 24: ["two dozen"]}.get(number, [])
    return _value("count", number, str(number), words(number), *dozens)


def big_count(number: int) -> Value:
    """Return a large number of things."""
    return _value("count", number, str(number), f"{number:,}", words(number))


def clock(minutes: int) -> Value:
    """Return a time of day, on the hour or at half past."""
    hour, minute = divmod(minutes, 60)
    short, part, name = (hour - 1) % 12 + 1, "am" if hour < 12 else "pm", "morning" if hour < 12 else "evening"
    dotted = part[0] + ".m."
    if minute:
        return _value(
            "clock",
            minutes,
            f"{short}:30 {part}",
            f"{hour:02}:30",
            f"half past {words(short)} in the {name}",
            f"{short}:30 {dotted}",
        )
    return _value(
        "clock",
        minutes,
        f"{short} {part}",
        f"{hour:02}:00",
        f"{words(short)} in the {name}",
        f"{short} {dotted}",
        f"{short}:00 {part}",
    )


def day(month: int, number: int, year: int | None = None) -> Value:
    """Return a day of the year, or of one year."""
    name = MONTHS[month - 1]
    suffix = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    if year:
        iso = f"{year}-{month:02}-{number:02}"
        return _value(
            "day",
            iso,
            iso,
            f"{name} {number}, {year}",
            f"{number} {name} {year}",
            f"{number:02}.{month:02}.{year}" if number > 12 else iso,
        )
    written = [f"{name} {number}", f"{number} {name}", f"{name} {number}{suffix}", f"the {number}{suffix} of {name}"]
    return _value("day", (month, number), *written)


def _version(major: int, minor: int) -> Value:
    text = f"{major}.{minor}"
    return _value("version", text, f"version {text}", f"v{text}", f"release {text}")


def _gigabytes(number: int) -> Value:
    more = {1000: ["1 TB", "one terabyte"], 2000: ["2 TB", "two terabytes"]}.get(number, [])
    return _value("gigabytes", number, f"{number} GB", f"{number} gigabytes", f"{number}GB", *more)


def _height(number: int) -> Value:
    return _value(
        "height",
        number,
        f"{number} cm",
        f"{number / 100:.2f} m",
        f"{number} centimetres",
        f"1 m {number - 100}" if number < 200 else "2 m",
    )


def _listed(entry: str) -> Value:
    own, _, broader = (part.strip() for part in entry.partition("<"))
    return Value(own.split("|")[0], tuple(own.split("|")), _listed(broader) if broader else None)


def _weight(number: int) -> Value:
    """A weight in kilograms, also in grams or tonnes."""
    written = [f"{number} kg", f"{number} kilos", f"{words(number)} kilograms"]
    if number >= 1000:
        written += [f"{number / 1000:g} tonnes", f"{number / 1000:g} t"]
    elif number <= 9:
        written += [f"{number * 1000} g", f"{number * 1000:,} grams"]
    return _value("weight", number, *written)


def _seconds(number: int) -> Value:
    """A short span of time, in seconds and, where that is exact, in minutes."""
    written = [f"{number} seconds", f"{number} s", f"{words(number)} seconds"]
    if number % 60 == 0:
        written += _units(number // 60, "minute")
    if number % 3600 == 0:
        written += _units(number // 3600, "hour")
    extra = {30: ["half a minute"], 90: ["a minute and a half", "1.5 minutes"]}.get(number, [])
    return _value("seconds", number, *written, *extra)


def _minutes(number: int) -> Value:
    """A span of minutes, also in hours."""
    written = [*_units(number, "minute"), f"{number} min"]
    extra = {30: ["half an hour"], 45: ["three quarters of an hour"], 60: ["an hour", "one hour", "1 h"]}
    more = {90: ["an hour and a half", "1.5 hours"], 75: ["an hour and a quarter"], 150: ["two and a half hours"]}
    whole = [*_units(number // 60, "hour"), f"{number // 60} h"] if number > 60 and number % 60 == 0 else []
    return _value("minutes", number, *written, *whole, *extra.get(number, []), *more.get(number, []))


def _volume(millilitres: int) -> Value:
    """A volume in millilitres, also in litres."""
    written = [f"{millilitres} ml", f"{millilitres:,} millilitres"]
    if millilitres % 100 == 0:
        written += [f"{millilitres / 1000:g} l", f"{millilitres / 1000:g} litres"]
    extra = {500: ["half a litre"], 250: ["a quarter of a litre"], 1000: ["a litre"], 1500: ["a litre and a half"]}
    return _value("volume", millilitres, *written, *extra.get(millilitres, []))


def _distance(metres: int) -> Value:
    """A distance in metres, also in kilometres."""
    written = [f"{metres} m", f"{metres:,} metres", f"{words(metres)} metres"]
    if metres >= 500:
        written += [f"{metres / 1000:g} km", f"{metres / 1000:g} kilometres"]
    extra = {500: ["half a kilometre"], 1000: ["a kilometre"], 1500: ["a kilometre and a half"]}.get(metres, [])
    return _value("distance", metres, *written, *extra)


def _temperature(number: int) -> Value:
    return _value("temperature", number, f"{number} °C", f"{number} degrees", f"{number} degrees Celsius", f"{number}°")


def _fraction(number: int) -> Value:
    """A share in per cent, also as a fraction."""
    fractions = {
        5: ["a twentieth"],
        10: ["a tenth", "one in ten"],
        20: ["a fifth", "one in five"],
        25: ["a quarter"],
        40: ["two fifths"],
        50: ["half", "50 per cent"],
        75: ["three quarters"],
    }
    return _value("percent", number, f"{number}%", f"{number} percent", *fractions.get(number, []))


def _clock(minutes: int) -> Value:
    """A time of day, with quarters of hours."""
    hour, minute = divmod(minutes, 60)
    short, after = (hour - 1) % 12 + 1, hour % 12 + 1
    name = "morning" if hour < 12 else "afternoon" if hour < 18 else "evening"
    part = "am" if hour < 12 else "pm"
    said = {
        0: [f"{words(short)} o'clock in the {name}", f"{short} {part}"],
        15: [f"a quarter past {words(short)} in the {name}", f"{short}:15 {part}"],
        30: [f"half past {words(short)} in the {name}", f"{short}:30 {part}"],
        45: [f"a quarter to {words(after)} in the {name}", f"{short}:45 {part}"],
    }
    return _value("clock", minutes, f"{hour}:{minute:02}", f"{hour:02}:{minute:02}", *said[minute])


class Values:
    """Draws values by type; what is listed comes from the vocabulary, names from the drawn ones."""

    def __init__(self, names: Names) -> None:
        self._names = names
        lists = yaml.safe_load((Path(__file__).parent / "vocabulary" / "lists.yaml").read_text())
        self._lists = {name: [_listed(entry) for entry in entries] for name, entries in lists.items()}
        self._drawn: dict[str, Callable[[random.Random], Value]] = {
            "window": lambda rng: days(
                rng.choice([rng.randint(2, 31), 7 * rng.randint(1, 13), 10 * rng.randint(1, 18)])
            ),
            "short_time": lambda rng: rng.choice([days, days, working_days])(rng.randint(1, 14)),
            "long_time": lambda rng: months(rng.choice([rng.randint(1, 24), 6, 18, 12 * rng.randint(1, 10)])),
            "hours": lambda rng: hours(rng.choice([rng.randint(1, 12), rng.randint(1, 36), 24 * rng.randint(1, 5)])),
            "weight": lambda rng: _weight(rng.choice([rng.randint(1, 9), rng.randint(2, 99), 50 * rng.randint(2, 60)])),
            "seconds": lambda rng: _seconds(
                rng.choice(
                    [rng.randint(5, 90), 30 * rng.randint(1, 20), 60 * rng.randint(1, 30), 3600 * rng.randint(1, 6)]
                )
            ),
            "minutes": lambda rng: _minutes(
                rng.choice([rng.randint(5, 59), 15 * rng.randint(1, 16), 30 * rng.randint(1, 8)])
            ),
            "distance": lambda rng: _distance(
                rng.choice([10 * rng.randint(3, 99), 100 * rng.randint(1, 90), 500 * rng.randint(1, 12)])
            ),
            "volume": lambda rng: _volume(rng.choice([10 * rng.randint(2, 99), 250 * rng.randint(1, 12)])),
            "temperature": lambda rng: _temperature(rng.randint(2, 30)),
            "fraction": lambda rng: _fraction(rng.choice([5, 10, 15, 20, 25, 30, 40, 50, 75])),
            "clock": lambda rng: _clock(15 * rng.randint(26, 88)),
            "small_money": lambda rng: money(rng.randint(2, 25), rng.randrange(3)),
            "money": lambda rng: money(
                rng.choice([rng.randint(9, 99), 10 * rng.randint(3, 90), 100 * rng.randint(2, 60)]), rng.randrange(3)
            ),
            "big_money": lambda rng: money(1000 * rng.randint(5, 900), rng.randrange(3)),
            "percent": lambda rng: percent(rng.choice([rng.randint(1, 60), 5 * rng.randint(1, 15)])),
            "count": lambda rng: count(
                rng.choice([rng.randint(3, 12), rng.randint(3, 30), 5 * rng.randint(2, 20), 6, 12])
            ),
            "tiny_count": lambda rng: count(rng.randint(2, 5)),
            "big_count": lambda rng: big_count(
                rng.choice([50, 60, 100, 120, 200, 300, 500, 600, 1000, 1500, 2000, 5000, 10000])
            ),
            "age": lambda rng: _value("age", number := rng.randint(19, 89), str(number), words(number)),
            "morning": lambda rng: clock(30 * rng.randint(11, 22)),
            "evening": lambda rng: clock(30 * rng.randint(34, 46)),
            "day": lambda rng: day(rng.randint(1, 12), rng.randint(1, 28)),
            "date": lambda rng: day(rng.randint(1, 12), rng.randint(1, 28), rng.choice([None, 2025, 2026])),
            "version": lambda rng: _version(rng.randint(1, 12), rng.randint(0, 9)),
            "gigabytes": lambda rng: _gigabytes(rng.choice([rng.randint(1, 64), 50 * rng.randint(1, 20), 1000, 2000])),
            "shoe_size": lambda rng: _value(
                "shoe",
                size := rng.choice(["36", "37", "38", "38.5", "39", "40", "41", "42", "42.5", "43", "44", "45", "46"]),
                size,
            ),
            "height": lambda rng: _height(rng.randint(151, 199)),
            "person": lambda rng: _value("person", name := self.person(rng), name),
            "company": lambda rng: _value("company", name := rng.choice(self._names.companies), name),
        }

    def person(self, rng: random.Random) -> str:
        """Return a full name."""
        return f"{rng.choice(self._names.first)} {rng.choice(self._names.family)}"

    def draw(self, kind: str, rng: random.Random) -> Value:
        """Return a value of the type."""
        return rng.choice(self._lists[kind]) if kind in self._lists else self._drawn[kind](rng)

    def other(self, kind: str, than: Value, rng: random.Random) -> Value:
        """Return a value of the type that cannot hold together with the first where only one can."""
        for _ in range(1000):
            value = self.draw(kind, rng)
            # Two dates with and without a year could be the same day, days and working days the same time.
            if not value.related(than) and _same_form(value, than):
                return value
        raise ValueError(f"no second value of the type {kind}")

    def broad(self, kind: str, rng: random.Random) -> Value | None:
        """Return a value that implies a broader one, or nothing if the type has none."""
        chosen = [value for value in self._lists.get(kind, []) if value.broader]
        return rng.choice(chosen) if chosen else None


def _same_form(one: Value, other: Value) -> bool:
    if one.key.startswith("day:"):
        return ("(" in one.key) == ("(" in other.key)
    if one.key.startswith(("days:", "working:")):
        return one.key.partition(":")[0] == other.key.partition(":")[0]
    if one.key.startswith("money:"):
        return one.key[-3:] == other.key[-3:]
    return True
