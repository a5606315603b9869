"""The keys of an issuer: fetched, kept while they cannot be had, forgotten, and what each may verify."""

import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from muniment.errors import InvalidInput
from muniment.http.jwks import KEYS_LIMIT
from muniment.testing import FakeClock
from tests.interfaces.oidc_issuer import OTHER_RSA, RSA, Issuer, TokenChecks, public


def test_a_new_key_of_the_issuers_is_asked_for_at_most_every_half_minute(
    checks: TokenChecks, issuer: Issuer, clock: FakeClock
) -> None:
    assert checks.takes(checks.token())
    issuer.keys = [public("new")]
    assert not checks.takes(checks.token("new")), "it was asked just now"
    clock.advance(seconds=30)
    assert checks.takes(checks.token("new"))
    assert not checks.takes(checks.token("rsa")), "what the issuer took back is gone"
    clock.advance(seconds=29)
    for _ in range(5):
        assert not checks.takes(checks.token("rsa", header={"kid": "made up"}))
    assert issuer.asked == 2


def test_a_key_that_was_taken_back_is_forgotten_within_the_hour(
    checks: TokenChecks, issuer: Issuer, clock: FakeClock
) -> None:
    assert checks.takes(checks.token())
    issuer.keys = [public("ec")]
    clock.advance(minutes=59)
    assert checks.takes(checks.token())
    clock.advance(minutes=1)
    assert not checks.takes(checks.token())


@pytest.mark.rule("ERR-4")
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, None),
        (302, None),
        (200, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"keys": {}}'),
        (200, b'{"keys": [5, {"kty": "oct", "k": "c2VjcmV0", "kid": "rsa"}, {"kty": "RSA", "n": 5}]}'),
        (200, b" " * (KEYS_LIMIT + 1)),
        (200, b"[" * 100_000),
    ],
)
def test_while_the_keys_cannot_be_had_those_of_before_go_on(
    checks: TokenChecks, issuer: Issuer, clock: FakeClock, status: int, body: bytes | None
) -> None:
    assert checks.takes(checks.token())
    issuer.status, issuer.body = status, body
    clock.advance(hours=2)
    assert checks.takes(checks.token())
    assert not checks.takes(checks.token("new"))
    assert issuer.asked == 2
    issuer.status, issuer.body, issuer.keys = 200, None, [public("new")]
    clock.advance(seconds=31)
    assert checks.takes(checks.token("new"))


def test_without_any_keys_nobody_is_let_in_until_they_are_there(clock: FakeClock, issuer: Issuer) -> None:
    issuer.status = 503
    checks = TokenChecks(issuer.url, clock)
    assert not checks.takes(checks.token())
    issuer.status = 200
    clock.advance(seconds=30)
    assert checks.takes(checks.token())
    away = TokenChecks("http://127.0.0.1:1/keys", clock)
    assert not away.takes(away.token())


@pytest.mark.parametrize(
    ("jwk", "taken"),
    [
        (public("rsa"), True),
        (public("rsa", kid=None), False),
        (public("rsa", alg="RS256"), True),
        (public("rsa", alg="RS512"), False),
        (public("rsa", use="enc"), False),
        (public("rsa", use=None), False),
        (json.loads(RSAAlgorithm.to_jwk(RSA)) | {"kid": "rsa"}, True),
        (public("ec", kid="rsa"), False),
        (public("rsa", alg="HS256"), False),
        (public("rsa", alg=["RS256"]), False),
    ],
    ids=[
        "as it is",
        "no name",
        "its algorithm",
        "another algorithm",
        "to encrypt",
        "no use",
        "private",
        "curve",
        "secret",
        "algorithms",
    ],
)
def test_a_key_verifies_only_what_it_is_made_for(
    issuer: Issuer, clock: FakeClock, jwk: dict[str, Any], taken: bool
) -> None:
    issuer.keys = [jwk]
    checks = TokenChecks(issuer.url, clock)
    assert checks.takes(checks.token()) == taken


def test_a_token_that_names_no_key_is_tried_with_each_that_fits(checks: TokenChecks) -> None:
    for by in ("rsa", "ec", "ed"):
        assert checks.takes(checks.token(by, header={}))
    assert not checks.takes(jwt.encode(checks.claims(), OTHER_RSA, algorithm="RS256"))


def test_a_short_key_is_no_key(issuer: Issuer, clock: FakeClock) -> None:
    weak = rsa.generate_private_key(65537, 1024)
    issuer.keys = [{**json.loads(RSAAlgorithm.to_jwk(weak.public_key())), "kid": "weak"}]
    checks = TokenChecks(issuer.url, clock)
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        token = jwt.encode(checks.claims(), weak, algorithm="RS256", headers={"kid": "weak"})
    assert not checks.takes(token)


def test_keys_can_be_in_a_file_that_is_read_again(tmp_path: Path, clock: FakeClock) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [public("rsa")]}))
    checks = TokenChecks(str(file), clock)
    assert checks.takes(checks.token())
    file.write_text(json.dumps({"keys": [public("new")]}))
    clock.advance(seconds=31)
    assert checks.takes(checks.token("new"))
    for wrong in (b"", b"{}", json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}).encode()):
        file.write_bytes(wrong)
        with pytest.raises(InvalidInput) as caught:
            TokenChecks(str(file), clock)
        assert caught.value.field == "MUNIMENT_OIDC_KEYS"
