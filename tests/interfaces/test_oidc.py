"""Tokens of an issuer with real keys, and a real server that hands out its public ones."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from muniment.errors import InvalidInput
from muniment.http.oidc import OidcSettings
from muniment.model.api_key import CLEARANCE
from muniment.testing import FakeClock
from tests.interfaces.oidc_issuer import AUDIENCE, EC, ISSUER, OTHER_RSA, RSA, Issuer, TokenChecks, public


@pytest.mark.parametrize("by", ["rsa", "ec", "ed"])
def test_a_token_stands_for_what_its_claims_say(checks: TokenChecks, clock: FakeClock, issuer: Issuer, by: str) -> None:
    held = checks.check(checks.token(by, groups=["leads", "compliance", "chess"]))
    who = held.principal
    assert (who.tenant_id, who.id, who.kind, who.roles) == ("acme", "jane", "operator", {"reviewer", "auditor"})
    assert (held.user_id, held.clearance, held.key_id) == (None, CLEARANCE, None)
    assert held.expires_at == clock.now.replace(microsecond=0) + timedelta(seconds=360)
    assert checks.takes(checks.token(by))
    assert issuer.asked == 1, "the keys are kept"


@pytest.mark.parametrize(
    ("claims", "roles"),
    [
        ({"groups": ["chess", "Leads", "leads ", "*", "admin", "reviewer"]}, set[str]()),
        ({"groups": []}, set[str]()),
        ({"groups": ...}, set[str]()),
        ({"groups": "leads"}, {"reviewer"}),
        ({"groups": "leads root"}, set[str]()),
        ({"groups": ["root"]}, {"admin"}),
    ],
)
def test_only_values_of_the_map_are_roles(checks: TokenChecks, claims: dict[str, Any], roles: set[str]) -> None:
    assert checks.check(checks.token(**claims)).principal.roles == roles


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://login.example.com"},
        {"iss": ...},
        {"aud": "other"},
        {"aud": ["other", "another"]},
        {"aud": ...},
        {"exp": ...},
        {"exp": 0},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": 10**30},
        {"nbf": 4_000_000_000},
        {"nbf": "now"},
        {"iat": 4_000_000_000},
        {"sub": ...},
        {"sub": ""},
        {"sub": 5},
        {"sub": "auto"},
        {"sub": "a\x00b"},
        {"sub": "x" * 257},
        {"org": ...},
        {"org": ""},
        {"org": ["acme"]},
        {"org": {"name": "acme"}},
        {"org": " acme"},
        {"groups": [5]},
        {"groups": {"leads": True}},
    ],
    ids=str,
)
def test_a_token_with_a_claim_that_is_missing_or_wrong_is_refused(checks: TokenChecks, wrong: dict[str, Any]) -> None:
    assert checks.takes(checks.token())
    assert not checks.takes(checks.token(**wrong))


def test_an_audience_among_others_is_enough(checks: TokenChecks) -> None:
    assert checks.takes(checks.token(aud=["other", AUDIENCE]))


def test_a_token_holds_from_its_beginning_to_its_end_give_or_take_a_minute(
    checks: TokenChecks, clock: FakeClock
) -> None:
    now = int(clock.now.timestamp())
    token, later = checks.token(exp=now + 300), checks.token(exp=now + 3000, nbf=now + 300)
    assert (checks.takes(token), checks.takes(later)) == (True, False)
    clock.advance(seconds=240)
    assert checks.takes(later), "the clocks may differ"
    clock.advance(seconds=119)
    assert checks.takes(token)
    clock.advance(seconds=1)
    assert not checks.takes(token)


def _unsigned(head: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = (json.dumps(head).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def test_a_token_that_the_issuer_did_not_sign_is_refused(checks: TokenChecks) -> None:
    good = checks.token()
    head, body, signature = good.split(".")
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    forged: list[Any] = [
        _unsigned({"alg": name, "kid": "rsa"}, checks.claims()) for name in ("none", "None", "NONE", "")
    ]
    for secret in (pem, pem.strip(), base64.urlsafe_b64decode(public("rsa")["n"] + "=="), b""):
        unsigned = _unsigned({"alg": "HS256", "kid": "rsa", "typ": "JWT"}, checks.claims()).rstrip(".")
        mac = hmac.digest(secret, unsigned.encode(), hashlib.sha256)
        forged.append(f"{unsigned}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}")
    own = {**json.loads(RSAAlgorithm.to_jwk(OTHER_RSA.public_key())), "kid": "mine"}
    forged += [
        jwt.encode(checks.claims(), OTHER_RSA, algorithm="RS256", headers={"kid": "rsa"}),
        jwt.encode(checks.claims(), OTHER_RSA, algorithm="RS256", headers={"kid": "mine", "jwk": own}),
        jwt.encode(checks.claims(), OTHER_RSA, algorithm="RS256", headers={"jku": "http://127.0.0.1/keys"}),
        jwt.encode(checks.claims(), EC, algorithm="ES256", headers={"kid": "rsa"}),
        jwt.encode(checks.claims(), RSA, algorithm="RS512", headers={"kid": "rsa"}),
        jwt.encode(checks.claims(), RSA, algorithm="PS256", headers={"kid": "rsa"}),
        f"{head}.{checks.token(sub='eve').split('.')[1]}.{signature}",
        f"{head}.{body}.",
        f"{head}.{body}",
        *(good + "x", f"{good}.x", f" {good}", good.encode(), None, 5, "", "...", "mun_x", "ä.b.c", "\ud800"),
        _unsigned({"alg": ["RS256"], "kid": "rsa"}, checks.claims(), b"x"),
        _unsigned({"alg": "RS256", "kid": {"a": 1}}, checks.claims(), b"x"),
        base64.urlsafe_b64encode(b"[" * 3000).decode() + ".e30.e30",
    ]
    assert [one for one in forged if checks.takes(one)] == []
    assert checks.takes(good)


def test_a_huge_token_is_refused_before_it_is_read(checks: TokenChecks, issuer: Issuer) -> None:
    assert not checks.takes(checks.token(picture="x" * 20_000))
    assert not checks.takes("a" * 50_000_000)
    assert issuer.asked == 0


@pytest.mark.rule("ISO-5", "ISO-8")
def test_claims_say_what_a_token_may_speak_for_which_packs_it_may_pin_and_its_declared_roles(
    issuer: Issuer, clock: FakeClock
) -> None:
    checks = TokenChecks(
        issuer.url,
        clock,
        kind_claim="kind",
        tools_claim="mun.tools",
        channels_claim="channels",
        packs_claim="packs",
        role_map={"bots": "agent", "old hands": "senior", "root": "admin"},
    )
    said: dict[str, Any] = {"kind": "agent", "groups": ["bots", "old hands", "root"]}
    held = checks.check(checks.token(**said, mun={"tools": ["crm.lookup"]}, channels="app_chat", packs=["acme@1.0.0"]))
    speaks_for = held.principal.speaks_for
    assert (speaks_for.tools, speaks_for.channels, held.packs) == ({"crm.lookup"}, {"app_chat"}, {"acme@1.0.0"})
    assert held.principal.roles == {"agent", "senior"}, "no claim makes an agent a person"
    none = checks.check(checks.token(**said))
    assert (none.principal.speaks_for.tools, none.principal.speaks_for.channels, none.packs) == (set(), set(), set())
    for wrong in ({"channels": [5]}, {"channels": ["channel:x"]}, {"mun": {"tools": ["a*"]}}, {"packs": {"a": 1}}):
        assert not checks.takes(checks.token(**said | wrong)), wrong
    unset = TokenChecks(issuer.url, clock, kind_claim="kind")
    plain = unset.check(
        unset.token(kind="agent", groups=["bots"], channels=["*"], tools=["*"], speaks_for={"tools": ["*"]})
    )
    assert (plain.principal.speaks_for.channels, plain.principal.speaks_for.tools) == (set(), set())


@pytest.mark.rule("ISO-8")
def test_a_token_of_an_end_user_is_for_that_user_alone(issuer: Issuer, clock: FakeClock) -> None:
    checks = TokenChecks(issuer.url, clock, kind_claim="kind")
    held = checks.check(checks.token(kind="end_user", groups=["bots"]))
    assert (held.principal.kind, held.user_id) == ("end_user", "jane")
    assert not checks.takes(checks.token(kind="end_user", groups=["root"])), "and has the role agent"


@pytest.mark.rule("ISO-5")
def test_claims_bound_kind_user_and_clearance_and_what_is_asked_for_must_be_there(
    issuer: Issuer, clock: FakeClock
) -> None:
    checks = TokenChecks(
        issuer.url, clock, kind_claim="kind", user_claim="on_behalf_of", clearance_claim="clearance",
        roles_claim="realm_access.roles",
    )  # fmt: skip

    def token(kind: Any = "agent", roles: Any = ("bots",), **more: Any) -> str:
        return checks.token(kind=kind, realm_access={"roles": list(roles)}, **more)

    held = checks.check(token(roles=("bots", "root"), on_behalf_of="cust_1", clearance=["PUBLIC", "PII"]))
    assert (held.principal.kind, held.principal.roles) == ("agent", {"agent"}), "no claim makes an agent an admin"
    assert (held.user_id, held.clearance) == ("cust_1", {"PUBLIC", "PII"})
    assert checks.check(token(on_behalf_of="cust_1")).clearance == CLEARANCE
    assert checks.check(token(on_behalf_of="cust_1", clearance=[])).clearance == frozenset()
    assert not checks.takes(token()), "for no user in particular it would act for any"
    assert not checks.takes(token(on_behalf_of=5))
    assert not checks.takes(token(on_behalf_of="cust_1", clearance={"PII": 1}))
    person = checks.check(token("operator", ("leads",), on_behalf_of="cust_1"))
    assert (person.principal.roles, person.user_id) == ({"reviewer"}, None)
    both = checks.check(token("operator", ("leads", "bots"), on_behalf_of="cust_1"))
    assert (both.principal.roles, both.user_id) == ({"agent"}, "cust_1"), "another role would reach past that user"
    for kind in ("root", "Operator", "", 5, ["operator"], None, ...):
        assert not checks.takes(token(kind, ("leads",)))


def test_settings_come_from_the_environment_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [public("ec")]}))
    needed = {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "KEYS": str(file), "TENANT_CLAIM": "org"}

    def gather(**given: str) -> OidcSettings | None:
        return OidcSettings.gather({f"MUNIMENT_OIDC_{name}": value for name, value in given.items()})

    assert gather() is None
    assert OidcSettings.gather({"HOME": "/", "MUNIMENT_OIDC_ISSUER": " "}) is None
    plain = gather(**needed)
    assert plain is not None
    assert (plain.principal_claim, plain.roles_claim, dict(plain.role_map)) == ("sub", None, {})
    assert gather(ALLOW_PRIVATE="1") is None
    allowed = gather(**needed | {"KEYS": "https://10.1.2.3/k"}, ALLOW_PRIVATE="1")
    assert allowed is not None and allowed.allow_private
    for text in ("leads=reviewer, cn=x=auditor", '{"leads": "reviewer", "cn=x": "auditor"}'):
        mapped = gather(**needed, ROLES_CLAIM="groups", ROLE_MAP=text, PRINCIPAL_CLAIM="email", USER_CLAIM="u")
        assert mapped is not None
        assert mapped.role_map == {"leads": "reviewer", "cn=x": "auditor"}
        assert (mapped.principal_claim, mapped.user_claim) == ("email", "u")
    for name in needed:
        with pytest.raises(InvalidInput) as caught:
            gather(**{other: value for other, value in needed.items() if other != name})
        assert caught.value.field == f"MUNIMENT_OIDC_{name}"
    with pytest.raises(InvalidInput, match="MUNIMENT_OIDC_AUDIENCE and MUNIMENT_OIDC_TENANT_CLAIM"):
        gather(ISSUER=ISSUER, KEYS=str(file))
    wrong = [
        ("ROLE_MAP", {"ROLES_CLAIM": "groups"}),
        ("ROLES_CLAIM", {"ROLE_MAP": "a=reviewer"}),
        *(
            ("ROLE_MAP", {"ROLES_CLAIM": "groups", "ROLE_MAP": text})
            for text in ("a", "=reviewer", "a=", "a=God", "*=admin", "team-*=admin", "a=reviewer,a=admin", "[1]", "{")
        ),
        *(
            ("ROLE_MAP", {"ROLES_CLAIM": "g", "ROLE_MAP": text})
            for text in ('{"a": 1}', '{"a": "admin", "a": "agent"}')
        ),
        *(
            ("KEYS", {"KEYS": text})
            for text in (
                *("http://login.example.com/keys", "ftp://x/y", "https://", "https://u:p@example.com/k"),
                *("https://example.com/k#x", "https://example.com:0/k", "no/such/file", str(tmp_path)),
                *(
                    "http://127.0.0.1/k",
                    "https://127.0.0.1/k",
                    "https://localhost/k",
                    "https://[::1]/k",
                    "https://10.1.2.3/k",
                ),
            )
        ),
    ]
    for name, given in wrong:
        with pytest.raises(InvalidInput) as caught:
            gather(**needed | given)
        assert caught.value.field == f"MUNIMENT_OIDC_{name}", given
