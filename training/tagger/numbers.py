"""Makes numbers: telephones in every grouping, cards, ids, dates, and the numbers of orders, records and devices."""

from random import Random

from training.tagger.words import words

_EXTENSIONS = ("x###", "x####", " x##", " ext. ###", " ext ####", " extension ##", ", ext. ###", "x#####")
_BARE_PHONES = (
    "########",
    "#########",
    "##########",
    "#### ####",
    "##########",
    "0#########",
    "###########",
    "#######",
)
_COUNTS = {
    "order": (
        "##########",
        "########",
        "ORD-######",
        "PO#######",
        "###-#######-#######",
        "#########",
        "A########",
        "SO-####-###",
    ),
    "record": (
        "#######",
        "########",
        "MRN ########",
        "#########",
        "##########",
        "P-######",
        "EMR#######",
        "##-###-###",
    ),
    "device": (
        "SN########",
        "###############",
        "############",
        "C##X#######",
        "##########",
        "AA:##:BC:##:##:F#",
        "DEV-##-####",
    ),
    "invoice": ("INV-####-####", "########", "RE#######", "####/####", "##########", "F-######", "#########"),
    "tracking": (
        "1Z##########",
        "################",
        "############",
        "JD##################",
        "##########",
        "RR#########DE",
    ),
    "provider": ("##########", "#########", "NPI ##########", "########", "PRV-######", "##-#######"),
    "customer": ("########", "C-######", "K#######", "##########", "#########", "######", "CUST####", "##-####-##"),
    "account": (
        "########",
        "##########",
        "############",
        "#### #### ##",
        "##-##-## ########",
        "AC########",
        "#########",
    ),
    "ticket": ("#######", "#####", "INC########", "TCK-#####", "##########", "CS#######", "########"),
    "policy": ("POL-#######", "##########", "########", "H-###-####-##", "############"),
    "part": ("##-###-####", "###-##-####-#", "#######", "##########", "A###-####", "###.####.##"),
    "user": ("########", "user_#####", "##########", "u-####-####", "#########"),
}
_OTHER_IDS = {
    "passport": ("#########", "C########", "X#######", "AB#######", "##AA#####", "P#######", "G########", "L#######"),
    "licence": (
        "D#######",
        "#########",
        "########",
        "F###-####-####",
        "SMITH######JD9XX",
        "B########",
        "##-###-####",
        "S###-#######",
    ),
    "tax": ("##-#######", "## ### ### ###", "###########", "###/###/#####", "#########", "##########", "### ### ###"),
    "national": (
        "AB ## ## ## C",
        "AB######C",
        "########A",
        "X#######Z",
        "###########",
        "######-####",
        "##########",
        "######/####",
        "#### #### ####",
        "## ## ## ### ### ##",
        "###.###.###-##",
        "### ### ###",
    ),
}
_SSN = ("###-##-####", "###-##-####", "### ## ####", "###.##.####", "#########", "###-##-####")
_RARE_CARDS = (
    "5018",
    "5020",
    "5893",
    "6304",
    "6759",
    "6761",
    "0604",
    "5612",
    "9792",
    "8171",
    "6521",
    "2200",
    "3528",
    "1800",
    "2131",
    "3088",
    "3600",
    "67",
    "60",
    "630",
)
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def digits(form: str, random: Random) -> str:
    """Return the form with a digit for every `#`."""
    return "".join(random.choice("0123456789") if char == "#" else char for char in form)


def phone(random: Random) -> str:
    """Return a telephone number in one of many groupings, sometimes with an extension."""
    made = digits(random.choice(words("phone_forms")), random)
    if random.random() < 0.08:
        made = _other_separators(made, random)
    return made + digits(random.choice(_EXTENSIONS), random) if random.random() < 0.1 else made


def bare_phone(random: Random) -> str:
    """Return a telephone number that only the words around it tell from other numbers."""
    return digits(random.choice(_BARE_PHONES), random)


def _other_separators(number: str, random: Random) -> str:
    separators = [random.choice(" -./") for _ in range(2)]
    return "".join(random.choice(separators) if char in " -." else char for char in number)


def count_of(kind: str, random: Random) -> str:
    """Return a number of an order, a record, a device and so on."""
    return digits(random.choice(_COUNTS[kind]), random)


def other_id(kind: str, random: Random) -> str:
    """Return a passport, a licence, a tax number or a national number."""
    made = digits(random.choice(_OTHER_IDS[kind]), random)
    return "".join(random.choice("ABCDEFGHJKLMNPRSTUVWXYZ") if char in "ABXZ" else char for char in made)


def ssn(random: Random) -> str:
    """Return a social security number, with any separators or none."""
    return digits(random.choice(_SSN), random)


def card(number: str, random: Random) -> str:
    """Return a card number as people write it; sometimes one with a rare beginning instead."""
    if random.random() < 0.2:
        start = random.choice(_RARE_CARDS)
        number = _with_check_digit(
            digits(start + "#" * (random.choice((12, 13, 15, 16, 16, 16, 18, 19)) - len(start) - 1), random)
        )
    if random.random() < 0.55:
        return number
    between = random.choice(("-", " ", " ", " ", ".", "  "))
    if len(number) == 15:
        return between.join((number[:4], number[4:10], number[10:]))
    return between.join(number[at : at + 4] for at in range(0, len(number), 4))


def _with_check_digit(number: str) -> str:
    total = 0
    for index, digit in enumerate(reversed(number)):
        doubled = int(digit) * 2 if index % 2 == 0 else int(digit)
        total += doubled - 9 if doubled > 9 else doubled
    return number + str(-total % 10)


def iban(number: str, random: Random) -> str:
    """Return an account number in one piece or in groups of four."""
    return number if random.random() < 0.6 else " ".join(number[at : at + 4] for at in range(0, len(number), 4))


def date(random: Random, years: tuple[int, int]) -> str:
    """Return a date of these years in one of many forms."""
    year, month, day = random.randint(*years), random.randint(1, 12), random.randint(1, 28)
    name = _MONTHS[month - 1]
    short = name[:3]
    ending = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd"}.get(day, "th")
    return random.choice(
        (
            *(
                f"{year}-{month:02}-{day:02}",
                f"{day:02}/{month:02}/{year}",
                f"{month:02}/{day:02}/{year}",
                f"{day}.{month}.{year}",
            ),
            *(
                f"{day:02}.{month:02}.{year}",
                f"{day} {name} {year}",
                f"{name} {day}, {year}",
                f"{day}{ending} {name} {year}",
            ),
            *(
                f"{name} {day}{ending}, {year}",
                f"{day}-{short}-{year}",
                f"{short} {day} {year}",
                f"{month}/{day}/{year % 100:02}",
            ),
            *(
                f"{day}/{month}/{year % 100:02}",
                f"{year}/{month:02}/{day:02}",
                f"{day:02}-{month:02}-{year}",
                f"{year}{month:02}{day:02}",
            ),
        )
    )
