"""In the database: two spellings of one name are one person, and keys with such names give no access."""

import json
from typing import Any

import psycopg
import pytest

from muniment import Fabric, Principal
from muniment.access import store as api_keys
from muniment.database.cluster.errors import violates
from muniment.errors import Conflict, InvalidInput, SelfApproval, Unauthenticated
from muniment.model.names import name_keys
from muniment.model.proposal import Proposal
from muniment.pack import builtin_pack
from muniment.testing import People, TestServer
from tests.conftest import Connect
from tests.model import name_table
from tests.model.test_names import CYRILLIC_BORIS, OTHERS, SAME
from tests.security.test_four_eyes import Forger
from tests.stories import CONSENT, proposed

MIXED = "M\u0430x"  # with a Cyrillic a


@pytest.fixture
def durable(fabric: Fabric, people: People, as_role: Connect) -> Forger:
    """A durable proposal of olga's."""
    proposal = proposed(fabric, people.author, entity="customer:c", predicate="p", value="v", write_class="correction")
    return Forger(as_role("writer"), people.tenant_id, proposal)


@pytest.mark.rule("REV-15", "REV-4")
@pytest.mark.parametrize(
    "spelling", ["Olga", "OLGA", "0lga", "o1ga", "\u043elga", "ol\u200bga", "\uff4f\uff4c\uff47\uff41"]
)
def test_another_spelling_of_the_author_cannot_approve_even_in_sql(durable: Forger, spelling: str) -> None:
    assert durable.memory["author"] == "olga"
    with pytest.raises(psycopg.errors.CheckViolation) as error:
        durable.try_it(verdict_by=spelling, approver=spelling)
    assert violates(error.value, "memories_two_people")


@pytest.mark.rule("REV-15", "REV-4")
def test_another_spelling_of_an_editor_cannot_approve(fabric: Fabric, people: People, as_role: Connect) -> None:
    subject = "customer:c"
    fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    fact: dict[str, Any] = {"entity": subject, "predicate": "drink", "subject": subject, "classification": "PII"}
    item = proposed(fabric, people.run(), value="tea", **fact)
    edited = fabric.queue.edit(people.reviewer, item.proposal_id, value="milk")
    assert isinstance(edited, Proposal)
    for spelling in ("Boris", "BORIS", "b0ris", "bor\u0131s"):
        with pytest.raises(SelfApproval):
            fabric.queue.approve(people.person(spelling, "reviewer"), edited.proposal_id)
        # What would be is no matter of who looks.
        assert fabric.queue.preview(people.person(spelling, "reviewer"), edited.proposal_id).status == "promoted"
    forger = Forger(as_role("writer"), people.tenant_id, edited)
    forger.memory["editors"] = ["boris"]
    with pytest.raises(psycopg.errors.CheckViolation):
        forger.try_it(verdict_by="BORIS", approver="BORIS")
    assert fabric.queue.approve(people.second_reviewer, edited.proposal_id).status == "promoted"


@pytest.mark.rule("REV-15")
def test_the_database_computes_the_keys_that_the_program_does(as_role: Connect) -> None:
    table: dict[str, Any] = json.loads(name_table.TABLE.read_text("ascii"))["keys"]
    names = [name for pair in (*SAME, *OTHERS) for name in pair]
    names += [f"a{character}b" for character in (*map(chr, range(1, 0x250)), *table)]
    names += ["", " ", "a \t b", '%"`|0m', "\u00a0x\u2003y", "\ud55c\uae00", "\u1e9e", "\ufb01", "e\u0301\u0327"]
    rows = as_role("writer").execute("SELECT name_keys(name) FROM unnest(%s::text[]) AS name", [names]).fetchall()
    found = dict(zip(names, (tuple(row[0]) for row in rows), strict=True))  # type: ignore[arg-type]
    assert found == {name: tuple(name_keys(name)) for name in names}


@pytest.mark.rule("REV-15")
def test_no_login_can_change_how_names_are_compared(as_role: Connect) -> None:
    for task in ("writer", "privacy", "jobs", "auditor", "recall"):
        for statement in (
            "CREATE OR REPLACE FUNCTION muniment.is_among(name text, people text[]) RETURNS boolean LANGUAGE sql RETURN false",
            "ALTER TABLE muniment.memories DROP CONSTRAINT memories_two_people",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task).execute(statement)


@pytest.mark.rule("REV-15")
def test_a_second_key_under_a_look_alike_name_is_refused(fabric: Fabric, people: People, others: People) -> None:
    wanted: dict[str, Any] = {"kind": "operator", "roles": ["reviewer"]}
    first = fabric.keys.create(people.admin, principal_id="boris", **wanted)
    again = fabric.keys.create(people.admin, principal_id="boris", **wanted)
    for spelling in ("Boris", "b0ris", "BORlS"):
        with pytest.raises(Conflict) as error:
            fabric.keys.create(people.admin, principal_id=spelling, **wanted)
        assert error.value.field == "principal_id" and "looks like boris" in str(error.value)
    with pytest.raises(InvalidInput):
        fabric.keys.create(people.admin, principal_id=CYRILLIC_BORIS, **wanted)
    assert fabric.keys.create(others.admin, principal_id="Boris", **wanted).state == "active"
    for one in (first, again):
        fabric.keys.revoke(people.admin, one.key_id)
    assert fabric.keys.create(people.admin, principal_id="Boris", **wanted).state == "active"


@pytest.mark.rule("REV-15")
def test_an_older_key_whose_name_is_now_refused_is_reported_and_gives_no_access(
    fabric: Fabric, people: People, server: TestServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the program of before made it: a row with such a name, and the digest over it.
    made = fabric.keys.create(people.admin, principal_id="max", kind="operator", roles=["reviewer"])
    assert made.token is not None and fabric.keys.check(made.token).principal.id == "max"
    given = api_keys.parse_token(made.token)
    assert given is not None
    tenant_data_key = fabric._fabric._context.vault.cached_tenant_data_key(people.tenant_id)
    assert tenant_data_key is not None
    bounds = {"tools": [], "channels": [], "packs": None}
    row = {**made.model_dump(), "roles": list(made.roles), "clearance": list(made.clearance), "principal_id": MIXED}
    row |= bounds
    with server.connect(database) as owner:
        owner.execute(
            "UPDATE api_keys SET principal_id = %s, digest = %s WHERE key_id = %s",
            [MIXED, api_keys.digest(tenant_data_key, row, given.secret), made.key_id],
        )
    with pytest.raises(Unauthenticated, match="mixes the scripts Cyrillic and Latin"):
        fabric.keys.check(made.token)
    (listed,) = fabric.keys.list(people.admin)
    assert listed.principal_id == MIXED and "mixes the scripts" in str(listed.problem)
    assert fabric.keys.revoke(people.admin, made.key_id).state == "revoked"


@pytest.mark.rule("REV-15")
def test_who_is_called_like_a_backfill_orders_none(fabric: Fabric, people: People) -> None:
    impostor = Principal(
        tenant_id=people.tenant_id, id="Muniment:Backfill", kind="operator", roles={"admin", "reviewer"}
    )
    with pytest.raises(SelfApproval):
        fabric.packs.backfill(impostor, builtin_pack().ref)
