"""The scan for personal data: what it finds, what it ignores, and that it shares nothing with redaction."""

import ast
import inspect
from typing import Any

import pytest

from muniment.metrics import pii_scan
from muniment.metrics.pii_scan import personal_data, personal_data_in

SHOWN = {
    "email": [
        "Write to ada.lovelace+news@mail.example.co.uk, please.",
        "<bob@example.com>",
        "j\u00fcrgen@b\u00fccher.example",
        "ada\uff20example.com",
        "ada@exa\u200bmple.com",
    ],
    "card": [
        "My card is 4111 1111 1111 1111.",
        "5500-0000-0000-0004",
        "378282246310005",
        "card 630427373398 expired",
    ],
    "iban": ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432 and more", "de89370400440532013000"],
    "phone": [
        "+49 30 901820",
        "Call me at (212) 555-0187.",
        "212-555-0187",
        "0049 30 901820",
        "phone: 4155550187",
        "030 90182021",
        "1-800-356-9377 ext. 12",
        "tel. +1.415.555.0187",
    ],
    "national_id": ["SSN 123-45-6789", "her social security number is 123456789", "AB 12 34 56 C", "900-70-1234"],
    "ip": ["from 203.0.113.9", "2001:db8::8a2e:370:7334", "fe80::1 it said."],
    "api_key": [
        "sk-proj-abcdefghijklmnop1234",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
        "password: hunter2hunter2",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK",
    ],
    "date_of_birth": [
        "born on 12 March 1984",
        "DOB: 03/12/1984",
        "her birthday is March 12, 1984",
        "geboren am 12.03.1984",
    ],
}
LEFT_ALONE = [
    "Write to [EMAIL] or call [PHONE].",
    "The card ends in **** 1234.",
    "************1111",
    "Order 4111 1111 1111 1112 was shipped.",
    "Order number 1234567890123456 from 2026-01-05.",
    "Invoice 20260105-000123 of 12.03.2026",
    "It opened on 12 March 1984.",
    "Open 09:30-17:45, room 4.12.",
    "version 1.2.3.4 and v10.0.19.44",
    "127.0.0.1 is the machine itself, :: is anywhere",
    "12:30:45",
    "@ada told bob@home",
    "Between 1914 - 1918 and 2020-2024",
    "DE12 3456 7890 1234 5678 90",
    "task-1234 and risk-management-for-the-many-people",
    "The token is required; the password: [API_KEY]",
    "pm_01a1de60ebfc2d3c4b5a69788796",
    "customer:cust_8861 prefers channel: email",
    "She has 12 000 000 shares at 3.14159",
    "7 days, 24 hours, 1,234,567 visitors",
    "000-12-3456",
]


@pytest.mark.rule("MET-4")
@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in SHOWN.items() for text in texts])
def test_it_sees_what_has_the_shape_and_passes_the_sum(kind: str, text: str) -> None:
    assert personal_data(text) == {kind}


@pytest.mark.rule("MET-4")
@pytest.mark.parametrize("text", LEFT_ALONE)
def test_it_leaves_masks_orders_dates_and_versions_alone(text: str) -> None:
    assert personal_data(text) == set()


@pytest.mark.rule("MET-4")
@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ({"contact": [{"mail": "ada@example.com"}]}, {"email"}),
        ({"ada@example.com": 1}, {"email"}),
        (4111111111111111, {"card"}),
        ({"birth_date": "1984-03-12"}, {"date_of_birth"}),
        ({"ordered_on": "1984-03-12"}, set[str]()),
        ({"amount": 12.5, "paid": True, "note": None}, set[str]()),
    ],
)
def test_it_looks_into_values_at_every_depth(value: Any, kinds: set[str]) -> None:
    assert personal_data_in(value) == kinds


EXCEPTIONS = {
    "email": frozenset({"support@acme.example", "*@corp.acme.example"}),
    "phone": frozenset({"+4930901820", "030901820"}),
    "iban": frozenset({"DE89370400440532013000"}),
    "ip": frozenset({"203.0.113.9", "2001:db8::8a2e:370:7334"}),
}


@pytest.mark.rule("MET-4", "RED-5")
@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Write to Support@acme.example or jane@corp.acme.example.", set[str]()),
        ("jane.support@acme.example", {"email"}),
        ("support@acme.example.evil.com", {"email"}),
        ("support@acme.example and ada@example.com", {"email"}),
        ("Call +49 30 901820, 0049 30 90 18 20 or 030 901820.", set[str]()),
        ("call +49 (0)30 901820", set[str]()),
        ("phone: +4930901820", set[str]()),
        ("Call +49 30 901820 ext. 12", {"phone"}),
        ("Call +49 30 901821", {"phone"}),
        ("phone: 4930901821", {"phone"}),
        ("DE89 3704 0044 0532 0130 00", set[str]()),
        ("GB82WEST12345698765432 and more", {"iban"}),
        ("from 203.0.113.9 and 2001:db8::8a2e:370:7334", set[str]()),
        ("from 203.0.113.90", {"ip"}),
    ],
)
def test_it_does_not_report_what_the_pack_excepts_and_nothing_else_is_left_out(text: str, kinds: set[str]) -> None:
    assert personal_data(text, EXCEPTIONS) == kinds
    assert personal_data_in({"said": [text]}, exceptions=EXCEPTIONS) == kinds
    assert personal_data(text) != set(), "each of them is reported without the exceptions"


@pytest.mark.rule("MET-4")
def test_it_shares_nothing_with_redaction() -> None:
    tree = ast.parse(inspect.getsource(pii_scan))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in imported if name.startswith("muniment")} == {"muniment.model.metrics"}
    assert not imported & {"phonenumbers", "stdnum"}
