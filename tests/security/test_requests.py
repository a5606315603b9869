"""As the database's own logins: a request is claimed and answered once, and no login takes more than its part."""

from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.testing import People
from tests.conftest import Connect
from tests.security.catalogue import Connection
from tests.security.conftest import requested

ANSWER = "UPDATE requests SET status = 201, answer = 'other' WHERE tenant_id = %s"


@pytest.fixture
def answered(fabric: Fabric, people: People, owner: Connection) -> dict[str, Any]:
    """A request that was answered, as its row stands."""
    fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
    fabric._portal.call(requested, fabric._fabric, people)
    return _row(owner, people.tenant_id)


def _row(owner: Connection, tenant: str) -> dict[str, Any]:
    found: Any = owner.execute("SELECT to_jsonb(r) FROM requests r WHERE tenant_id = %s", [tenant]).fetchone()
    return found[0]


def test_an_answer_is_not_written_over(as_role: Connect, owner: Connection, answered: dict[str, Any]) -> None:
    tenant = answered["tenant_id"]
    assert as_role("writer").execute(ANSWER, [tenant]).rowcount == 0
    assert _row(owner, tenant) == answered


@pytest.mark.rule("ERA-2")
def test_what_an_erasure_closed_gets_no_answer_and_is_not_opened_again(
    as_role: Connect, owner: Connection, answered: dict[str, Any]
) -> None:
    tenant, privacy = answered["tenant_id"], as_role("privacy")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        privacy.execute("UPDATE requests SET answer = 'other' WHERE tenant_id = %s", [tenant])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        privacy.execute("UPDATE requests SET answer = NULL WHERE tenant_id = %s", [tenant])
    closing = "UPDATE requests SET answer = NULL, closed = %s WHERE tenant_id = %s"
    assert privacy.execute(closing, [True, tenant]).rowcount == 1
    assert privacy.execute(closing, [False, tenant]).rowcount == 0
    assert as_role("writer").execute(ANSWER, [tenant]).rowcount == 0
    assert _row(owner, tenant) == answered | {"answer": None, "closed": True}


def test_a_claim_comes_without_an_answer(as_role: Connect, answered: dict[str, Any]) -> None:
    claim = (
        "INSERT INTO requests (tenant_id, principal, key, fingerprint, at, status)"
        " VALUES (%s, 'ada', decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'), now(), %s)"
    )
    for task in ("writer", "privacy"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task).execute(claim, [answered["tenant_id"], 200])


@pytest.mark.parametrize("task", ["recall", "auditor", "privacy", "jobs"])
def test_only_the_writer_reads_answers(as_role: Connect, answered: dict[str, Any], task: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role(task).execute("SELECT answer FROM requests")
