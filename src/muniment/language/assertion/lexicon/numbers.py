"""Number words, units and their dimensions, currencies, months and weekdays."""

from muniment.language.assertion.lexicon import words

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TENTHS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"


def _numbered(units: str, tens: str) -> dict[str, int]:
    return {word: number for number, word in enumerate(units.split())} | {
        word: 20 + 10 * number for number, word in enumerate(tens.split())
    }


CARDINALS: dict[str, int] = _numbered(_ONES, _TENS)
ORDINALS: dict[str, int] = _numbered(_ORDINALS, _TENTHS) | {"hundredth": 100, "thousandth": 1000}
SCALES: dict[str, int] = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12, "k": 1000,
}  # fmt: skip

DAY = 86400.0
# unit: (dimension, factor to the dimension's own unit)
UNITS: dict[str, tuple[str, float]] = {}
for _dimension, _factor, _names in (
    ("time", 1, "second seconds sec secs"),
    ("time", 60, "minute minutes min mins"),
    ("time", 3600, "hour hours hr hrs"),
    ("time", DAY, "day days"),
    ("time", 7 * DAY, "week weeks"),
    ("time", 14 * DAY, "fortnight fortnights"),
    ("calendar", 1, "month months"),
    ("calendar", 3, "quarter quarters"),
    ("calendar", 12, "year years yr yrs"),
    ("calendar", 120, "decade decades"),
    ("mass", 1, "g gram grams gramme grammes"),
    ("mass", 0.001, "mg milligram milligrams"),
    ("mass", 1000, "kg kilo kilos kilogram kilograms"),
    ("mass", 1e6, "ton tons tonne tonnes"),
    ("mass", 453.59237, "lb lbs"),
    ("length", 1, "m meter meters metre metres"),
    ("length", 0.01, "cm centimeter centimeters centimetre centimetres"),
    ("length", 0.001, "mm millimeter millimeters millimetre millimetres"),
    ("length", 1000, "km kilometer kilometers kilometre kilometres"),
    ("length", 1609.344, "mile miles"),
    ("length", 0.3048, "ft foot feet"),
    ("length", 0.0254, "inch inches"),
    ("volume", 1, "l liter liters litre litres"),
    ("volume", 0.001, "ml milliliter milliliters millilitre millilitres"),
    ("data", 1e3, "kb kilobyte kilobytes"),
    ("data", 1e6, "mb megabyte megabytes"),
    ("data", 1e9, "gb gigabyte gigabytes"),
    ("data", 1e12, "tb terabyte terabytes"),
    ("percent", 1, "percent % pct percentage"),
    ("temperature", 1, "degree degrees celsius"),
    ("usd", 1, "$ usd dollar dollars"),
    ("usd", 0.01, "cent cents"),
    ("eur", 1, "€ eur euro euros"),
    ("gbp", 1, "£ gbp pound pounds"),
    ("jpy", 1, "¥ jpy yen"),
    ("chf", 1, "chf franc francs"),
    ("inr", 1, "₹ inr rupee rupees"),
):
    for _name in _names.split():
        UNITS[_name] = (_dimension, float(_factor))

SIGNS = words("$ € £ ¥ ₹ usd eur gbp chf jpy inr")
MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    [
        "january jan",
        "february feb",
        "march mar",
        "april apr",
        "may",
        "june jun",
        "july jul",
        "august aug",
        "september sept sep",
        "october oct",
        "november nov",
        "december dec",
    ],
    start=1,
):
    for _name in _names.split():
        MONTHS[_name] = _number
WEEKDAYS: dict[str, int] = {}
for _number, _names in enumerate(
    [
        "monday mon",
        "tuesday tue tues",
        "wednesday wed",
        "thursday thu thurs",
        "friday fri",
        "saturday sat",
        "sunday sun_day",
    ]
):
    for _name in _names.split():
        WEEKDAYS[_name] = _number
# Names that are everyday words too: a date only with a capital inside a sentence, or beside a number.
AMBIGUOUS = words("may march mar mon sat wed sun fri dec jan")
