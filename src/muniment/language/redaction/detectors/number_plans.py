"""The telephone number plans of countries, from the metadata of `phonenumbers`; each is one pattern."""

import re
from functools import cache
from itertools import chain
from typing import Any, cast

# The countries in which a number without a country code is looked up.
_COUNTRIES = (
    *("US", "CA", "GB", "DE", "FR", "IT", "ES", "NL", "BE", "CH", "AT", "IE", "PT", "SE", "NO", "DK", "FI", "PL", "CZ"),
    *("RO", "HU", "GR", "TR", "IL", "AU", "NZ", "IN", "JP", "KR", "ZA", "BR", "MX", "AR", "CL", "CO", "SG"),
)
_KINDS = (
    *("fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "personal_number", "voip", "pager", "uan"),
    "voicemail",
)


@cache
def _metadata(region: str) -> Any:
    # Imported here, as it is slow and many programs need it never.
    from phonenumbers import PhoneMetadata

    return cast("Any", PhoneMetadata).metadata_for_region(region, None)


@cache
def _regions(country_code: int) -> tuple[str, ...]:
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE

    return COUNTRY_CODE_TO_REGION_CODE.get(country_code, ())


@cache
def _plan(region: str) -> re.Pattern[str]:
    kinds = (getattr(_metadata(region), kind) for kind in _KINDS)
    patterns = [kind.national_number_pattern for kind in kinds if kind is not None and kind.national_number_pattern]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)")


@cache
def _lengths(country_code: int) -> frozenset[int]:
    known = (_metadata(region) for region in _regions(country_code) if region != "001")
    return frozenset(chain.from_iterable(one.general_desc.possible_length for one in known if one is not None))


def split_country(digits: str) -> tuple[int, str] | None:
    """Split digits into country code and national number; None where no country has the code."""
    for size in (1, 2, 3):
        code = digits[:size]
        if code and code[0] != "0" and _regions(int(code)):
            return int(code), digits[size:]
    return None


def is_assigned(country_code: int, national: str) -> bool:
    """Say whether the plan of the country has such a number."""
    return any(_plan(region).fullmatch(national) for region in _regions(country_code) if region != "001")


def is_possible(country_code: int, national: str) -> bool:
    """Say whether a number of the country can be that long."""
    return len(national) in _lengths(country_code)


def is_national(digits: str) -> bool:
    """Say whether one of the common countries has the number, as it is dialled inside the country."""
    return any(_dialled_in(region, digits) for region in _COUNTRIES)


def is_north_american(digits: str) -> bool:
    """Say whether ten digits are a number of the North American plan."""
    return len(digits) == 10 and is_assigned(1, digits)


def _dialled_in(region: str, digits: str) -> bool:
    trunk = _metadata(region).national_prefix
    if trunk and digits.startswith(trunk):
        return _plan(region).fullmatch(digits[len(trunk) :]) is not None
    # Where a trunk digit is dialled, a number without it is not a national one, except in North America.
    return (not trunk or trunk == "1") and _plan(region).fullmatch(digits) is not None
