"""Makes addresses in the forms of many countries: streets, apartments, boxes, towns with and without their codes."""

from random import Random

from training.tagger.numbers import digits
from training.tagger.pools import Region
from training.tagger.words import words

_HOUSES = ("#", "##", "###", "##a", "##-##", "#/#", "####", "## bis", "nº ##", "No. ##")
_FIRST_NUMBERS = ("##", "###", "####", "#####")


def street(region: Region, random: Random) -> str:
    """Return a street with its number, in the order of the country."""
    name, house = random.choice(region.streets), random.choice(region.houses)
    if random.random() < 0.2:
        house = digits(random.choice(_HOUSES), random)
    if random.random() < 0.1:
        # Two numbers, as badly joined records have them.
        return f"{digits(random.choice(_FIRST_NUMBERS), random)} {name} {house}"
    ahead = region.locale.startswith(("en", "fr")) != (random.random() < 0.04)
    between = ", " if random.random() < (0.1 if ahead else 0.06) else " "
    return f"{house}{between}{name}" if ahead else f"{name}{between}{house}"


def box(random: Random) -> str:
    """Return a box at a post office."""
    return digits(random.choice(words("box_forms")), random)


def unit(random: Random) -> str:
    """Return an apartment, a suite or a floor."""
    return digits(random.choice(words("unit_forms")), random)


def address(region: Region, random: Random) -> str:
    """Return a street or a box, mostly with the town, sometimes with an apartment and the country."""
    parts = [box(random) if random.random() < 0.06 else street(region, random)]
    if random.random() < 0.25:
        inside = unit(random)
        parts = [f"{parts[0]}{random.choice((' ', ', '))}{inside}"] if random.random() < 0.7 else [inside, *parts]
    share = random.random()
    if share < 0.78:
        parts.append(_town(region, random, with_code=share < 0.62))
        if random.random() < 0.2:
            parts.append(random.choice(words("countries")))
            if random.random() < 0.2:
                parts[-1] += f" {random.choice(region.postcodes)}"
    return random.choice((", ", ", ", ", ", "\n", " ", "; ", "\n  ", " / ")).join(parts)


def _town(region: Region, random: Random, *, with_code: bool) -> str:
    city = random.choice(region.cities)
    code = random.choice(region.postcodes) if with_code else ""
    state = random.choice(region.states) if region.states else ""
    if region.locale in ("en_US", "en_AU") or (region.locale.startswith("en") and random.random() < 0.3):
        between = random.choice((", ", ", ", " ")) if state else ""
        return f"{city}{between}{state} {code}".strip()
    if region.locale.startswith("en"):
        return f"{city}{random.choice((' ', ', ')) if code else ''}{code}"
    town = f"{code} {city}".strip() if random.random() < 0.85 else f"{city} {code}".strip()
    return f"{town} {state}" if state and random.random() < 0.15 else town
