"""Finds national identity numbers: by their check digits, and by a name before them where those prove too little."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from stdnum import luhn, verhoeff
from stdnum.fr import nir
from stdnum.no import fodselsnummer
from stdnum.us import ssn

from muniment.language.redaction.detectors.announcements import Announcements, names_a_thing
from muniment.language.redaction.normalised import Span, is_date, lowered

_Check = Callable[[str], bool]
_NEAR = 56


@dataclass(frozen=True)
class _Kind:
    """A kind of number: its form, its check, and the name that must stand before it, if any."""

    form: re.Pattern[str]
    check: _Check
    named: re.Pattern[str] | None = None


def _by(module: str) -> _Check:
    """Return the check of a module of python-stdnum, such as `br.cpf`."""
    return import_module(f"stdnum.{module}").is_valid


def _compact(number: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "", number).upper()


def _is_american(number: str) -> bool:
    return ssn.is_valid(_compact(number))


def _has_two_digits(number: str) -> bool:
    return len(set(_compact(number))) > 1


def _starts_with_a_day(digits: str, order: str) -> bool:
    """Say whether the first six digits are a date of the last two centuries, in the order `ymd` or `dmy`."""
    first, month, last = int(digits[:2]), int(digits[2:4]), int(digits[4:6])
    year, day = (first, last) if order == "ymd" else (last, first)
    return any(is_date(century + year, month, day) for century in (1900, 2000))


def _is_french(number: str) -> bool:
    month = int(_compact(number)[3:5])
    # Unknown months have numbers of their own.
    return bool(nir.is_valid(number)) and (1 <= month <= 12 or 20 <= month <= 42 or month >= 50)


# The modules of python-stdnum for these numbers read the clock, which a pure rule must not.


def _is_swedish(number: str) -> bool:
    digits = _compact(number)[-10:]
    day = int(digits[4:6])
    moved = f"{digits[:4]}{day - 60 if day > 60 else day:02d}"
    return luhn.is_valid(digits) and _starts_with_a_day(moved, "ymd")


def _is_norwegian(number: str) -> bool:
    digits = _compact(number)
    checks = cast("Any", fodselsnummer)
    day = int(digits[:2])
    moved = f"{day - 40 if day > 40 else day:02d}{digits[2:6]}"
    return (
        _starts_with_a_day(moved, "dmy")
        and checks.calc_check_digit1(digits) == digits[9]
        and checks.calc_check_digit2(digits) == digits[10]
    )


def _is_belgian(number: str) -> bool:
    digits = _compact(number)
    body, check = int(digits[:9]), int(digits[9:])
    return int(digits[2:4]) <= 12 and check in (97 - body % 97, 97 - (2_000_000_000 + body) % 97)


def _is_danish(number: str) -> bool:
    return _starts_with_a_day(_compact(number), "dmy")


def _is_south_african(number: str) -> bool:
    digits = _compact(number)
    return luhn.is_valid(digits) and _starts_with_a_day(digits, "ymd") and digits[10] in "012"


def _is_korean(number: str) -> bool:
    digits = _compact(number)
    total = sum(
        int(digit) * weight for digit, weight in zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False)
    )
    return _starts_with_a_day(digits, "ymd") and (11 - total % 11) % 10 == int(digits[-1])


def _is_british(number: str) -> bool:
    return _compact(number)[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


def _is_singaporean(number: str) -> bool:
    letters = {"S": "JZIHGFEDCBA", "T": "GFEDCBAJZIH", "F": "XWUTRQPNMLK", "G": "RQPNMLKXWUT", "M": "XWUTRQPNJLK"}
    code = _compact(number)
    total = sum(int(digit) * weight for digit, weight in zip(code[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    row = letters[code[0]]
    return row[(total + (3 if code[0] == "M" else 0)) % 11] == code[8] or row[total % 11] == code[8]


def _is_aadhaar(number: str) -> bool:
    return verhoeff.is_valid(_compact(number))


def _kind(form: str, check: _Check, named: str | None = None) -> _Kind:
    words = re.compile(rf"(?<![^\W\d_])(?:{named})(?![a-zà-ÿ])") if named else None
    return _Kind(re.compile(rf"(?:{form})(?![0-9A-Za-z])(?![.,-][0-9])"), check, words)


_ANY_ID = (
    r"national (?:id(?:entity|entification)?|insurance)(?: (?:card|number|no))?|identity (?:card|number|no)"
    r"|id (?:card|number|no)"
)
_TAX = r"tax(?:payer)?[ -]?(?:id(?:entification)?|number|no|file)|tin"
_NINE = r"[0-9]{9}|[0-9]{3}[ -][0-9]{3}[ -][0-9]{3}"
_ELEVEN = r"[0-9]{11}"

# Numbers that need no name: they have enough check digits, or a form of their own.
_PROVEN: tuple[_Kind, ...] = (
    _kind(r"[0-9]{3}-[0-9]{2}-[0-9]{4}|[0-9]{3} [0-9]{2} [0-9]{4}", _is_american),
    _kind(r"9[0-9]{2}-[5-9][0-9]-[0-9]{4}", _by("us.itin")),
    _kind(r"[12][ ]?[0-9]{2}[ ]?[0-9]{2}[ ]?[0-9][0-9AB][ ]?[0-9]{3}[ ]?[0-9]{3}[ ]?[0-9]{2}", _is_french),
    _kind(r"756[. ]?[0-9]{4}[. ]?[0-9]{4}[. ]?[0-9]{2}", _by("ch.ssn")),
    _kind(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", _by("br.cpf")),
    _kind(r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]", _by("cl.rut")),
    _kind(r"(?:19|20)?[0-9]{6}[-+][0-9]{4}", _is_swedish),
    _kind(r"[0-9]{6} ?[0-9]{5}", _is_norwegian),
    _kind(r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", _is_belgian),
    _kind(r"[0-9]{6}-[1-8][0-9]{6}", _is_korean),
    _kind(r"[0-9]{6}/[0-9]{3,4}", _by("cz.rc")),
    _kind(r"[0-9]{17}[0-9Xx]", _by("cn.ric")),
    _kind(r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y]", _by("fi.hetu")),
)
# The same, with letters in them.
_LETTERED: tuple[_Kind, ...] = (
    _kind(
        r"[A-CEGHJ-PR-TW-Za-ceghj-pr-tw-z][A-CEGHJ-NPR-TW-Za-ceghj-npr-tw-z]"
        r"(?:([ -]?)[0-9]{2}\1[0-9]{2}\1[0-9]{2}\1|[ -][0-9]{6}[ -]?)[A-Da-d]",
        _is_british,
    ),
    _kind(r"[0-9]{8}[ -]?[A-HJ-NP-TV-Z]", _by("es.dni")),
    _kind(r"[XYZ][ -]?[0-9]{7}[ -]?[A-Z]", _by("es.nie")),
    _kind(
        r"[A-Za-z]{6}[0-9LMNP-Vlmnp-v]{2}[A-EHLMPRSTa-ehlmprst][0-9LMNP-Vlmnp-v]{2}[A-Za-z][0-9LMNP-Vlmnp-v]{3}[A-Za-z]",
        _by("it.codicefiscale"),
    ),
    _kind(r"[A-Za-z]{4}[0-9]{6}[HMhm][A-Za-z]{5}[0-9A-Za-z][0-9]", _by("mx.curp")),
    _kind(r"[0-9]{7}[A-W][A-IW]?", _by("ie.pps")),
    _kind(r"[STFGM][0-9]{7}[A-Z]", _is_singaporean),
)
# Every tenth number of this form passes the check: the name must stand before it.
_NAMED: tuple[_Kind, ...] = (
    # Nothing proves a social security number: after its name every one counts.
    _kind(
        r"[0-9]{9}|[0-9]{3}([ .-])[0-9]{2}\1[0-9]{4}",
        _has_two_digits,
        r"ssn|social(?:[ -]security)?(?: (?:number|no|id))?|soc\. ?sec\.?|s\.s\.n",
    ),
    _kind(r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", _by("gb.nhs"), r"nhs(?: (?:number|no))?"),
    _kind(_NINE, _by("ca.sin"), r"sin|social insurance"),
    _kind(
        r"[0-9]{2}[ ]?[0-9]{3}[ ]?[0-9]{3}[ ]?[0-9]{3}",
        _by("de.idnr"),
        rf"steuer-?id(?:entifikationsnummer|entnummer|nr)?|steuernummer|idnr|{_TAX}",
    ),
    _kind(r"[0-9]{4}[ .-]?[0-9]{2}[ .-]?[0-9]{3}|[0-9]{8,9}", _by("nl.bsn"), r"bsn|burgerservicenummer|sofinummer"),
    _kind(_ELEVEN, _is_belgian, r"rijksregister(?:nummer)?|num[ée]ro national|registre national|rrn|nrn|insz|niss"),
    _kind(_ELEVEN, _by("br.cpf"), r"cpf|cadastro de pessoas?"),
    _kind(_ELEVEN, _by("pl.pesel"), rf"pesel|{_ANY_ID}"),
    _kind(_ELEVEN, _by("tr.tckimlik"), rf"t\.?c\.? ?kimlik(?: no)?|kimlik|{_ANY_ID}"),
    _kind(_ELEVEN, _by("hr.oib"), rf"oib|{_TAX}|{_ANY_ID}"),
    _kind(_ELEVEN, _by("ee.ik"), rf"isikukood|asmens kodas|{_ANY_ID}"),
    _kind(r"[0-9]{6}[- ]?[0-9]{4}", _is_danish, r"cpr(?:-?(?:nr|nummer))?|personnummer"),
    _kind(r"[0-9]{10,12}", _is_swedish, r"personnummer|personal identity number"),
    _kind(r"[0-9]{10}", _by("bg.egn"), rf"egn|егн|{_ANY_ID}"),
    _kind(r"[0-9]{13}", _by("ro.cnp"), rf"cnp|cod numeric personal|{_ANY_ID}"),
    _kind(r"[0-9]{13}", _is_south_african, rf"{_ANY_ID}|south african id|rsa id"),
    _kind(r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}", _is_aadhaar, r"aadhaa?r(?: (?:number|no|card))?|uidai|uid"),
    _kind(r"[0-9]{2,3}[ ]?[0-9]{3}[ ]?[0-9]{3}", _by("au.tfn"), rf"tfn|{_TAX}"),
    _kind(_NINE, _by("pt.nif"), r"nif|contribuinte|n[úu]mero de identifica[çc][ãa]o fiscal"),
    _kind(r"[0-9]{9}", _by("il.idnr"), rf"teudat zehut|israeli id|{_ANY_ID}"),
    _kind(r"[A-Z]{3}P[A-Z][0-9]{4}[A-Z]", _by("in_.pan"), rf"pan|permanent account|income tax|{_ANY_ID}|{_TAX}"),
    _kind(r"[0-9]{7,8}-?[0-9Kk]", _by("cl.rut"), r"rut|run"),
)
# The first words of the names: a text with none of them is not searched for each name.
_BEGINNINGS = re.compile(
    r"(?<![^\W\d_])(?:ssn|social|soc|s|nhs|sin|steuer|steuerid\w*|steuernummer|idnr|tax\w*|tin|bsn|burgerservicenummer|sofinummer"
    r"|rijksregister\w*|num\w+|registre|rrn|nrn|insz|niss|cpf|cadastro|pesel|t|tc|kimlik|oib|isikukood|asmens|cpr\w*"
    r"|person\w*|egn|егн|cnp|cod|south|rsa|aadhaa?r|uid|uidai|tfn|nif|n[úu]mero|contribuinte|teudat|israeli|rut|run|pan"
    r"|permanent|income|national|identity|id)(?![^\W\d_])"
)
_NUMBER_GOES_ON = re.compile(r"(?:[0-9A-Za-z]|[0-9][.,-])\Z")
_MANY_DIGITS = re.compile(r"[0-9](?:[^0-9\n]{0,2}[0-9]){5}|[0-9]{2}[A-Za-z][0-9]{2}[A-Za-z][0-9]{3}")

_LETTER_BESIDE_DIGIT = re.compile(r"[A-Za-z][ -]?[0-9]|[0-9][ -]?[A-Za-z]")


def find_national_ids(text: str) -> Iterator[Span]:
    """Return social security and other numbers of persons, each checked by the rules of its state."""
    if not _MANY_DIGITS.search(text):
        return
    announcements = Announcements(text)
    for kind in (*_PROVEN, *_LETTERED) if _LETTER_BESIDE_DIGIT.search(text) else _PROVEN:
        for found in kind.form.finditer(text):
            if _holds(text, kind, found) and not names_a_thing(announcements.before(found.start(), _NEAR)):
                yield found.span()
    small = lowered(text).replace("_", " ")
    for kind in _NAMED if _BEGINNINGS.search(small) else ():
        # The name is searched first: without it no number needs a check.
        if kind.named is None or not kind.named.search(small):
            continue
        for found in kind.form.finditer(text):
            lead = announcements.before(found.start(), _NEAR).lower().replace("_", " ")
            if kind.named.search(lead) and not names_a_thing(lead) and _holds(text, kind, found):
                yield found.span()


def _holds(text: str, kind: _Kind, found: re.Match[str]) -> bool:
    if _NUMBER_GOES_ON.search(text[max(0, found.start() - 2) : found.start()]):
        return False
    try:
        return kind.check(found.group())
    except (LookupError, ValueError):
        # Some checks raise at a region or date that does not exist.
        return False
