"""The pack's `redaction_exceptions`: values of the company's own that are found and left as they are (RED-5).

A value is kept in one normal form, so that two spellings of it are one exception. It is compared as a whole and
character by character: letters that only look alike are other letters. Only mail has a wildcard, `*@acme.example`.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from ipaddress import ip_address
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from stdnum import iban

from muniment.model.names import check_name
from muniment.pack.fields import Detector, Section, Unique, setting

_LARGE_TO_SMALL = {large: large + 32 for large in range(ord("A"), ord("Z") + 1)}
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_MAIL = re.compile(rf"(?:\*|[\w.+'-]{{1,64}})@(?:{_LABEL}\.)+[^\W\d_][\w-]{{1,62}}")
_PHONE = re.compile(r"\+[0-9][0-9 ()./-]{5,30}")
_HOST = rf"(?:{_LABEL}\.)+{_LABEL}"
_URL = re.compile(rf"(?:https?://)?({_HOST})(:[0-9]{{1,5}})?((?:/[!-~]{{0,400}})?)", re.IGNORECASE | re.ASCII)
# Providers of mail for everybody: all their addresses together are no company's own.
_PROVIDERS = re.compile(
    r"(?:gmail|googlemail|outlook|hotmail|live|msn|yahoo|ymail|rocketmail|icloud|aol|gmx|proton|protonmail|zoho|yandex"
    r"|fastmail|tutanota|tuta|inbox|mail|email|rediffmail|seznam)\.(?:com?\.)?[a-z]{2,4}"
    r"|(?:me|mac|hey|qq|163|126|naver|btinternet)\.com|(?:att|comcast|verizon|sbcglobal|laposte|daum)\.net"
    r"|(?:orange|wanadoo|free|sfr)\.fr|(?:web|freenet|t-online)\.de|libero\.it|pm\.me"
)


def mail_form(text: str) -> str:
    """Return a mail address with small ASCII letters; every other character stays as it is."""
    return text.translate(_LARGE_TO_SMALL)


def account_form(text: str) -> str:
    """Return the letters and digits of an account number, in capitals."""
    return re.sub(r"[ ./-]", "", text).upper()


def ip_form(text: str) -> str | None:
    """Return an IP address in its shortest spelling; None for anything else."""
    try:
        return str(ip_address(text)) if "%" not in text else None
    except ValueError:
        return None


def url_form(text: str) -> str | None:
    """Return host, port and path of an address with or without http(s); None where it has anything else."""
    found = _URL.fullmatch(text)
    if found is None or any(sign in text for sign in "@?#\\"):
        return None
    host, port, path = found.groups(default="")
    return host.lower() + port + ("" if path == "/" else path)


def _mail(value: str) -> str:
    check_name(value)
    form = mail_form(value)
    if not _MAIL.fullmatch(form) or ".." in form:
        raise ValueError("expected a mail address, or *@ and a domain of your own, such as *@acme.example")
    if form.startswith("*") and _PROVIDERS.fullmatch(form[2:]):
        raise ValueError(f"{form[2:]} has addresses of everybody; expected *@ and a domain of your own")
    return form


def _phone(value: str) -> str:
    expected = "expected a telephone number with its country code and no extension, such as +49 30 901820"
    if not _PHONE.fullmatch(value):
        raise ValueError(expected)
    # Imported here, as it is slow and most packs need it never.
    import phonenumbers

    try:
        number = phonenumbers.parse(value, None)
    except phonenumbers.NumberParseException:
        raise ValueError(expected) from None
    if not phonenumbers.is_possible_number(number):
        raise ValueError(expected)
    return f"+{number.country_code}{phonenumbers.national_significant_number(number)}"


def _account(value: str) -> str:
    form = account_form(value)
    if not form.isascii() or not iban.is_valid(form, check_country=False):
        raise ValueError("expected an IBAN with the right check digits")
    return form


def _ip(value: str) -> str:
    if (form := ip_form(value)) is None:
        raise ValueError("expected one IP address, such as 203.0.113.7")
    return form


def _url(value: str) -> str:
    if (form := url_form(value)) is None:
        raise ValueError("expected a host such as www.acme.example, or an address with no password, query or #")
    return form


def _phone_spellings(number: str) -> Iterator[str]:
    """Yield a number as it is dialled from abroad, and inside its country."""
    import phonenumbers

    parsed = phonenumbers.parse(number, None)
    national, code = phonenumbers.national_significant_number(parsed), parsed.country_code
    yield number
    region = phonenumbers.region_code_for_country_code(code or 0)
    plan = cast("Any", phonenumbers.PhoneMetadata).metadata_for_region(region, None)
    if plan is None:
        return  # A number of no country is dialled alike everywhere.
    trunk = plan.national_prefix or ""
    yield trunk + national
    if trunk == "1":
        yield national
    if trunk == "0":
        yield f"+{code}0{national}"


_Text = Annotated[str, StringConstraints(strict=True, max_length=500)]
OwnMail = Annotated[
    _Text, AfterValidator(_mail), WithJsonSchema({"type": "string", "pattern": r"^[^@\s]+@[^@\s]+\.[^@\s]+$"})
]
OwnPhone = Annotated[
    _Text, AfterValidator(_phone), WithJsonSchema({"type": "string", "pattern": f"^{_PHONE.pattern}$"})
]
OwnAccount = Annotated[
    _Text,
    AfterValidator(_account),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z]{2}[0-9]{2}[0-9A-Za-z ./-]{11,60}$"}),
]
OwnIp = Annotated[_Text, AfterValidator(_ip), WithJsonSchema({"type": "string", "pattern": "^[0-9A-Fa-f:.]{2,45}$"})]
OwnUrl = Annotated[_Text, AfterValidator(_url), WithJsonSchema({"type": "string", "pattern": "^[!-~]{1,500}$"})]
_most = Field(max_length=1000)


class RedactionExceptions(Section):
    """Values of the company's own, by the detector that finds them."""

    email: Annotated[Unique[OwnMail], _most] = setting(
        (), "Mail addresses, such as support@acme.example; *@acme.example is every address of that domain."
    )
    phone: Annotated[Unique[OwnPhone], _most] = setting(
        (), "Telephone numbers with their country code; found in any grouping, and as dialled inside the country."
    )
    iban: Annotated[Unique[OwnAccount], _most] = setting((), "Accounts.")
    ip: Annotated[Unique[OwnIp], _most] = setting((), "IP addresses of servers.")
    url: Annotated[Unique[OwnUrl], _most] = setting(
        (), "Hosts, or addresses with their path; only the host alone or that path, with or without http(s)."
    )

    def of(self, detector: Detector) -> tuple[str, ...]:
        """Return the values of a detector; none for a detector that has no exceptions."""
        return getattr(self, detector) if detector in type(self).model_fields else ()

    @cached_property
    def forms(self) -> dict[str, frozenset[str]]:
        """The normal forms that a finding is compared with, by detector; a telephone number has several."""
        found = {name: frozenset(self.of(cast("Detector", name))) for name in type(self).model_fields}
        found["phone"] = frozenset(form for number in self.phone for form in _phone_spellings(number))
        return {name: forms for name, forms in found.items() if forms}
