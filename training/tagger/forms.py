"""Makes structured texts: forms, JSON, rows of tables, log lines and vCards, from fields with a name and a value."""

from collections.abc import Callable
from random import Random

from training.tagger.fill import Value, Values, filled
from training.tagger.rows import Mark, Marked, joined

# The slots of a field and what it is called.
_FIELDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "full",
        ("name", "full name", "customer", "contact", "Name", "patient", "Nom", "Ansprechpartner", "assignee", "tenant"),
    ),
    ("first", ("first name", "given name", "firstName", "Vorname", "prénom")),
    ("last", ("last name", "surname", "lastName", "Nachname", "family name")),
    ("lastfirst", ("name", "employee", "student")),
    ("company", ("company", "employer", "organization", "Firma", "vendor")),
    ("address", ("address", "billing address", "home_address", "Anschrift", "adresse", "shipping_address")),
    ("street", ("street", "street address", "Straße", "address line 1")),
    ("city", ("city", "town", "Ort", "ville", "birthplace")),
    ("country", ("country", "Land", "nationality of record", "pays")),
    ("zip", ("zip", "postcode", "PLZ", "postal_code", "zip code")),
    ("phone", ("phone", "mobile", "tel", "fax", "Telefon", "phone_number", "cell", "work phone", "Handy")),
    ("barephone", ("phone", "mobile", "cell", "tel", "contact no", "phoneNumber")),
    ("email", ("email", "e-mail", "mail", "contact_email", "login")),
    ("iban", ("iban", "IBAN", "bank account", "Konto")),
    ("card", ("card", "credit card", "cc", "card_number", "PAN")),
    ("ssn", ("ssn", "SSN", "social security no", "social_security_number")),
    ("id", ("national id", "id number", "personal_id", "Personnummer", "DNI", "NINO")),
    ("passport", ("passport", "passport no", "passport_number")),
    ("licence", ("driver license", "licence no", "DL", "driving_licence")),
    ("tax", ("tax id", "TIN", "Steuernummer", "tax_number")),
    ("birth", ("dob", "date of birth", "born", "birth_date", "Geburtsdatum", "birthday")),
    ("order", ("order", "order no", "order_id", "orderNumber", "PO")),
    ("record", ("mrn", "record", "record_id", "chart no", "medical record")),
    ("device", ("serial", "imei", "device_id", "asset", "meter")),
    ("invoice", ("invoice", "invoice_no", "Rechnung")),
    ("tracking", ("tracking", "tracking_no", "parcel")),
    ("provider", ("provider", "npi", "provider_id")),
    ("customer", ("customer no", "customer_id", "client id", "Kundennummer", "member no")),
    ("account", ("account", "acct", "account_number")),
    ("ticket", ("ticket", "case", "ref", "reference")),
    ("user", ("user_id", "uid", "employee no", "id")),
    ("ip", ("ip", "client_ip", "host")),
    ("url", ("url", "website", "homepage", "link")),
    ("date", ("created", "date", "due", "updated_at", "start", "valid until", "hired")),
    ("amount", ("amount", "total", "price", "balance")),
    ("n", ("quantity", "floor", "count", "priority", "age group")),
    ("version", ("version", "build")),
    ("job", ("job", "role", "title", "occupation")),
    ("big", ("size", "views", "rows", "points")),
)
# What can be told by its form alone, without a name before it.
_EVIDENT = frozenset(
    (
        "full",
        "lastfirst",
        "company",
        "address",
        "street",
        "city",
        "country",
        "phone",
        "email",
        "iban",
        "ip",
        "url",
        "date",
        "amount",
        "n",
        "job",
    )
)
_Field = tuple[str, Marked]


def form(values: Values, random: Random) -> Marked:
    """Return a structured text of some fields."""
    make = random.choice((_lines, _lines, _json, _table, _cells, _log, _pairs, _values))
    return make(_fields(values, random, random.randint(1, 7), evident=make is _values), random)


def _fields(values: Values, random: Random, count: int, *, evident: bool) -> list[_Field]:
    fields = [field for field in _FIELDS if not evident or field[0] in _EVIDENT]
    return [(random.choice(names), _marked(values(slot))) for slot, names in random.sample(fields, count)]


def _marked(value: Value) -> Marked:
    if isinstance(value, Marked):
        return value
    text, label = value
    return Marked(text, (Mark(0, len(text), label),) if label else ())


def _named(name: str, between: str, value: Marked, after: str = "") -> Marked:
    return joined((Marked(name + between), value, Marked(after)), "")


def _lines(fields: list[_Field], random: Random) -> Marked:
    between = random.choice((": ", ": ", ":", " = ", " - ", ":\n", "\t", " "))
    change: Callable[[str], str] = random.choice((str, str.title, str.upper, str.capitalize))
    return joined(
        [_named(change(name), between, value) for name, value in fields],
        random.choice(("\n", "\n", "\n\n", "; ", ", ")),
    )


def _json(fields: list[_Field], random: Random) -> Marked:
    between, comma = random.choice((('": "', '", "'), ('":"', '","'), ('": "', '",\n  "')))
    parts = [_named(name.replace(" ", "_"), between, _one_line(value)) for name, value in fields]
    return joined((Marked('{"'), joined(parts, comma), Marked('"}')), "")


def _one_line(value: Marked) -> Marked:
    return value.mapped(lambda char: " " if char in '\n"\\' else char)


def _table(fields: list[_Field], random: Random) -> Marked:
    between = random.choice((" | ", "|", ",", ";", "\t", "  "))
    cells = joined([_one_line(value) for _, value in fields], between)
    return joined((Marked(between.join(name for name, _ in fields)), cells), "\n")


def _values(fields: list[_Field], random: Random) -> Marked:
    if random.random() < 0.3:
        return fields[0][1]
    return joined([_one_line(value) for _, value in fields], random.choice((" | ", "|", ",", ";", "\t", "  ", "\n")))


def _cells(fields: list[_Field], random: Random) -> Marked:
    name, value = fields[0]
    between = random.choice((" | ", ",", "\t"))
    return _named(f"{between.lstrip()}{name}", between, _one_line(value), between.rstrip())


def _log(fields: list[_Field], random: Random) -> Marked:
    level = random.choice(("INFO", "WARN", "ERROR", "DEBUG"))
    action = random.choice(("request handled", "user updated", "login failed", "job done", "validation error", "sent"))
    day, hour = f"{random.randint(2020, 2029)}-0{random.randint(1, 9)}-{random.randint(10, 28)}", random.randint(10, 23)
    start = f"{day}T{hour}:00:0{random.randint(0, 9)}Z {level} {action} "
    parts = [_named(name.replace(" ", "_"), "=", _one_line(value)) for name, value in fields]
    return joined((Marked(start), joined(parts, " ")), "")


def _pairs(fields: list[_Field], random: Random) -> Marked:
    lead = random.choice(
        ("please update my record", "new entry", "here are my details", "customer data", "see below", "fyi")
    )
    between = random.choice((" is ", " ", ": ", " = "))
    return joined((Marked(f"{lead}: "), joined([_named(name, between, value) for name, value in fields], ", ")), "")


def transcript(lines: list[Marked], values: Values, random: Random) -> Marked:
    """Return lines as the turns of two speakers, who may be named."""
    if random.random() < 0.4:
        speakers = [_marked(values("first")), _marked(values("first"))]
    else:
        speakers = [
            Marked(name)
            for name in random.choice(
                (("User", "Bot"), ("Agent", "Customer"), ("A", "B"), ("Caller", "Operator"), ("Q", "A"))
            )
        ]
    turns = [joined((speakers[index % 2], Marked(": "), line), "") for index, line in enumerate(lines)]
    return joined(turns, "\n")


def mail(body: Marked, values: Values, random: Random) -> Marked:
    """Return a text as a mail with a greeting and a signature."""
    greeting = filled(
        random.choice(("Hi {first},", "Dear {title} {last},", "Hello {full},", "Hi team,", "Hi all,", "Hey,")),
        values,
        random,
    )
    signature = filled(
        random.choice(
            (
                "Best,\\n{first}",
                "Kind regards,\\n{full}\\n{company}",
                "{full}\\n{job}\\n{company}\\n{phone}",
                "Thanks",
                "-- \\n{full}\\n{address}\\n{email}",
                "Cheers, {nick}",
            )
        ),
        values,
        random,
    )
    return joined((greeting, body, signature), random.choice(("\n", "\n\n")))
