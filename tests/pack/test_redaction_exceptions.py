"""The exceptions of a pack: one normal form for each value, and nothing wider than a value or a domain of mail (RED-5)."""

from typing import Any

import pytest

from muniment.errors import PackInvalid
from muniment.pack import Pack, load_pack
from tests.conftest import HEAD

PATH = "policy_layer.guardrails.redaction_exceptions"


def with_exceptions(exceptions: str, rules: str = "[]") -> Pack:
    return load_pack(
        f"{HEAD}policy_layer: {{guardrails: {{redaction_rules: {rules}, redaction_exceptions: {exceptions}}}}}"
    )


def values_of(exceptions: str, detector: str, rules: str = "[]") -> tuple[str, ...]:
    return with_exceptions(exceptions, rules).policy_layer.guardrails.redaction_exceptions.of(detector)  # type: ignore[arg-type]


@pytest.mark.rule("RED-5", "PAC-1")
@pytest.mark.parametrize(
    ("detector", "written", "kept"),
    [
        ("email", "Support@ACME.example", "support@acme.example"),
        ("email", "'*@Acme.example'", "*@acme.example"),
        ("phone", "+49 (30) 90 18-20", "+4930901820"),
        ("phone", "+39 06 1234 5678", "+390612345678"),
        ("iban", "de89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("ip", "'2001:0DB8:0:0:0:8a2e:370:7334'", "2001:db8::8a2e:370:7334"),
        ("url", "https://WWW.acme.example/", "www.acme.example"),
        ("url", "http://www.acme.example:8080/help", "www.acme.example:8080/help"),
    ],
)
def test_a_value_is_kept_in_its_normal_form(detector: str, written: str, kept: str) -> None:
    rules = "[{name: url, detector: url}]"
    assert values_of(f"{{{detector}: [{written}]}}", detector, rules) == (kept,)
    # It loads again from what was registered, and is the same pack.
    pack = with_exceptions(f"{{{detector}: [{written}]}}", rules)
    assert Pack.model_validate(pack.document()).digest == pack.digest


@pytest.mark.rule("RED-5", "PAC-1")
@pytest.mark.parametrize(
    ("detector", "written"),
    [
        ("email", "acme.example"),
        ("email", "'*'"),
        ("email", "'*@*'"),
        ("email", "'*@example'"),
        ("email", "'*@*.acme.example'"),
        ("email", "'supp*@acme.example'"),
        ("email", "'*@gmail.com'"),
        ("email", "'*@Hotmail.co.uk'"),
        ("email", "'*@web.de'"),
        ("email", "supp\u043ert@acme.example"),
        ("email", "sup\u200bport@acme.example"),
        ("phone", "030 901820"),
        ("phone", "'+49 30 901820 ext. 12'"),
        ("phone", "'+49'"),
        ("phone", "'+999 123456789'"),
        ("phone", "'+49 30 *'"),
        ("iban", "DE89 3704 0044 0532 0130 01"),
        ("iban", "'*'"),
        ("ip", "203.0.113.0/24"),
        ("ip", "203.0.113.*"),
        ("ip", "'fe80::1%eth0'"),
        ("url", "'*.acme.example'"),
        ("url", "https://a:b@acme.example/"),
        ("url", "https://acme.example/?user=1"),
        ("url", "acme"),
    ],
)
def test_what_is_no_exact_value_is_refused_at_its_place(detector: str, written: str) -> None:
    with pytest.raises(PackInvalid) as error:
        with_exceptions(f"{{{detector}: [{written}]}}", "[{name: url, detector: url}]")
    (problem,) = error.value.problems
    assert problem.path == f"{PATH}.{detector}.0"
    assert "expected" in problem.message or "holds" in problem.message or "mixes" in problem.message


@pytest.mark.rule("RED-5", "PAC-1")
@pytest.mark.parametrize(
    ("exceptions", "rules", "path"),
    [
        ("{card: ['4111 1111 1111 1111']}", "[]", f"{PATH}.card"),
        ("{api_key: [hunter2]}", "[]", f"{PATH}.api_key"),
        ("{email: [a@acme.example, A@acme.example]}", "[]", f"{PATH}.email"),
        ("{url: [www.acme.example]}", "[]", f"{PATH}.url"),
        ("{email: [a@acme.example]}", "[{name: email, detector: email, enabled: false}]", f"{PATH}.email"),
    ],
)
def test_exceptions_fit_the_rules_of_the_pack(exceptions: str, rules: str, path: str) -> None:
    with pytest.raises(PackInvalid) as error:
        with_exceptions(exceptions, rules)
    assert [problem.path for problem in error.value.problems] == [path]


@pytest.mark.rule("RED-5", "PAC-2")
def test_the_built_in_pack_excepts_nothing() -> None:
    plain: Any = load_pack(HEAD).policy_layer.guardrails.redaction_exceptions
    assert plain.forms == {}
