"""API keys, as the database's own logins and as one who can write anything: what was not made by the fabric opens nothing."""

from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.access.store import parse_token, token_of
from muniment.errors import Unauthenticated
from muniment.model.api_key import ApiKey
from muniment.testing import People
from tests.conftest import Connect
from tests.security.catalogue import TASKS, Connection
from tests.security.rows import insert, one

BOT: dict[str, Any] = {"principal_id": "bot", "kind": "agent", "roles": ["agent"]}


def made(fabric: Fabric, people: People, **fields: Any) -> tuple[ApiKey, str]:
    key = fabric.keys.create(people.admin, **BOT | fields)
    assert key.token is not None
    return key, key.token


def secret_of(token: str) -> bytes:
    parts = parse_token(token)
    assert parts is not None
    return parts.secret


@pytest.mark.rule("ISO-2", "ISO-5")
@pytest.mark.parametrize(
    "change",
    [
        "roles = '{admin,agent}', kind = 'operator', user_id = NULL",
        "kind = 'system'",
        "principal_id = 'root'",
        "user_id = NULL",
        "user_id = 'cust_10'",
        "clearance = '{PUBLIC,RESTRICTED}'",
        "expires_at = NULL",
        "expires_at = '2100-01-01'",
        "digest = sha256('guess')",
    ],
)
def test_a_key_that_was_changed_in_the_database_opens_nothing(
    fabric: Fabric, people: People, owner: Connection, change: str
) -> None:
    key, token = made(fabric, people, user_id="cust_1")
    assert fabric.keys.check(token).key_id == key.key_id
    owner.execute(f"UPDATE api_keys SET {change} WHERE key_id = %s", [key.key_id])  # type: ignore[arg-type]
    with pytest.raises(Unauthenticated):
        fabric.keys.check(token)


@pytest.mark.rule("ISO-5")
def test_the_database_gives_a_key_for_one_user_no_other_role(fabric: Fabric, people: People, owner: Connection) -> None:
    key, _ = made(fabric, people, user_id="cust_1")
    with pytest.raises(psycopg.errors.CheckViolation, match="api_keys_for_one_user"):
        owner.execute(
            "UPDATE api_keys SET kind = 'operator', roles = '{agent,auditor}' WHERE key_id = %s", [key.key_id]
        )


@pytest.mark.rule("ISO-2", "ISO-5")
def test_a_row_or_a_digest_that_was_moved_opens_nothing(
    fabric: Fabric, people: People, others: People, owner: Connection
) -> None:
    key, token = made(fabric, people)
    strong, strong_token = made(fabric, people, principal_id="ada", kind="operator", roles=["admin"])
    made(fabric, others)
    row = one(owner, "api_keys", key_id=key.key_id)
    owner.execute("UPDATE api_keys SET digest = %s::bytea WHERE key_id = %s", [row["digest"], strong.key_id])
    insert(owner, "api_keys", row | {"tenant_id": others.tenant_id})
    for wrong in (
        strong_token,
        token_of(people.tenant_id, strong.key_id, secret_of(token)),
        token_of(others.tenant_id, key.key_id, secret_of(token)),
    ):
        with pytest.raises(Unauthenticated):
            fabric.keys.check(wrong)
    assert fabric.keys.check(token).principal.tenant_id == people.tenant_id


@pytest.mark.rule("ISO-1", "ISO-5")
def test_what_was_revoked_stays_revoked_for_every_login(fabric: Fabric, people: People, as_role: Connect) -> None:
    key, token = made(fabric, people)
    fabric.keys.revoke(people.admin, key.key_id)
    for task in TASKS:
        for change in (
            "revoked_at = NULL, revoked_by = NULL",
            "revoked_at = '2020-01-01'",
            "revoked_by = 'eve'",
            "last_used_at = now()",
            "expires_at = NULL",
            "roles = '{admin}'",
            "digest = sha256('guess')",
        ):
            try:
                done = as_role(task).execute(f"UPDATE api_keys SET {change}")  # type: ignore[arg-type]
            except psycopg.errors.InsufficientPrivilege:
                continue
            assert done.rowcount == 0, f"{task}: {change}"
    with pytest.raises(Unauthenticated):
        fabric.keys.check(token)


@pytest.mark.rule("ERA-2", "ISO-5")
def test_an_erasure_can_forget_a_user_only_with_the_key_revoked_and_only_once(
    fabric: Fabric, people: People, as_role: Connect
) -> None:
    key, token = made(fabric, people, user_id="cust_1")
    privacy = as_role("privacy")
    for change in ("user_id = NULL, label = NULL", "revoked_at = now(), revoked_by = 'eve'", "user_id = 'cust_2'"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            privacy.execute(f"UPDATE api_keys SET {change}")  # type: ignore[arg-type]
    assert fabric.keys.check(token).user_id == "cust_1"
    fabric.erase(people.officer, user_id="cust_1")
    again = privacy.execute(
        "UPDATE api_keys SET revoked_at = now(), revoked_by = 'eve' WHERE key_id = %s", [key.key_id]
    )
    assert again.rowcount == 0


@pytest.mark.rule("ISO-1")
def test_who_reads_keys_does_not_read_digests_and_who_compares_them_writes_nothing(
    fabric: Fabric, people: People, as_role: Connect
) -> None:
    made(fabric, people)
    for task in ("auditor", "privacy", "jobs"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task).execute("SELECT digest FROM api_keys")
    for statement in ("UPDATE api_keys SET last_used_at = now()", "DELETE FROM api_keys", "SELECT label FROM api_keys"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role("recall").execute(statement)  # type: ignore[arg-type]


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("roles", "{god}"),
        ("roles", "{}"),
        ("roles", "{agent,admin}"),
        ("kind", "root"),
        ("expires_at", "2000-01-01"),
        ("digest", "\\x00"),
    ],
)
def test_the_schema_refuses_a_key_that_cannot_be_right(
    fabric: Fabric, people: People, owner: Connection, column: str, value: str
) -> None:
    key, _ = made(fabric, people)
    with pytest.raises(psycopg.errors.CheckViolation):
        owner.execute(f"UPDATE api_keys SET {column} = %s WHERE key_id = %s", [value, key.key_id])  # type: ignore[arg-type]
