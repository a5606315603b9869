"""Redaction exceptions that a reviewer proposes: registered as a draft, without effect until an admin activates it."""

import pytest

from muniment import Fabric
from muniment.errors import Conflict, InvalidInput, RoleMissing
from muniment.packs.exceptions import MOST_PROPOSED, proposed_versions
from muniment.testing import People
from tests.pack_activation import acme, put_in_force
from tests.stories import KEY, proposed


@pytest.mark.rule("RED-5", "PAC-5")
def test_a_proposed_exception_is_a_draft_that_changes_nothing_else(fabric: Fabric, people: People) -> None:
    proposed(fabric, people.run(), **KEY, value="email")
    before = fabric.packs.in_force(people.admin).pack
    first = fabric.packs.propose_exception(people.reviewer, kind="email", value="help@acme.example")
    assert (first.registered_by, first.in_force) == (people.reviewer.id, False)
    assert fabric.packs.in_force(people.admin).pack == before
    changed = fabric.packs.compare(people.admin, before, first.ref).changes
    assert [one.path for one in changed if "pack_meta" not in one.path] == [
        "policy_layer.guardrails.redaction_exceptions.email"
    ]
    second = fabric.packs.propose_exception(people.reviewer, kind="phone", value="+43 1 2345678")
    assert second.ref != first.ref, "each is a version of its own"
    fabric.packs.activate(people.admin, first.ref, reason="our own address")
    with pytest.raises(Conflict, match="already"):
        fabric.packs.propose_exception(people.reviewer, kind="email", value="help@acme.example")
    with pytest.raises(InvalidInput):
        fabric.packs.propose_exception(people.reviewer, kind="email", value="someone@gmail.com *")
    with pytest.raises(RoleMissing):
        fabric.packs.propose_exception(people.auditor, kind="email", value="help@acme.example")


@pytest.mark.rule("RED-5", "PAC-5")
def test_a_proposed_change_takes_no_version_that_an_admin_would_give_to_a_pack(fabric: Fabric, people: People) -> None:
    put_in_force(fabric, people.tenant_id, acme("1.2.0"))
    refs = [
        fabric.packs.propose_exception(people.reviewer, kind="email", value=f"{name}@acme.example").ref
        for name in ("help", "sales", "help")
    ]
    assert refs == ["acme@1.2.1-exception.1", "acme@1.2.1-exception.2", "acme@1.2.1-exception.1"], "the same once"
    assert fabric.packs.register(people.admin, acme("1.2.1")).ref == "acme@1.2.1"
    fabric.packs.activate(people.admin, refs[0], reason="our own address")
    following = fabric.packs.propose_exception(people.reviewer, kind="email", value="sales@acme.example")
    assert following.ref == "acme@1.2.1-exception.3"


@pytest.mark.parametrize(
    ("version", "first"),
    [
        ("1.2.9", "1.2.10-exception.1"),
        ("2.0.0-rc.1", "2.0.0-rc.1.exception.1"),
        ("2.0.0-rc.1.exception.9", "2.0.0-rc.1.exception.10"),
        ("1.2.1-exception.1", "1.2.1-exception.2"),
    ],
)
def test_versions_of_proposed_changes_follow_the_one_in_force(version: str, first: str) -> None:
    assert next(proposed_versions(version)) == first


def test_no_more_than_fifty_proposed_exceptions_wait_for_an_admin(fabric: Fabric, people: People) -> None:
    proposed(fabric, people.run(), **KEY, value="email")
    for n in range(MOST_PROPOSED):
        fabric.packs.propose_exception(people.reviewer, kind="email", value=f"help{n}@acme.example")
    with pytest.raises(Conflict, match="an admin decides on them first"):
        fabric.packs.propose_exception(people.reviewer, kind="email", value="sales@acme.example")
