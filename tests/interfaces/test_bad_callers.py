"""Callers that are malformed or of an unknown tenant get a clear error or an empty answer, and leave no trace."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from muniment import MunimentError, Principal, RunContext
from muniment.errors import NotFound
from muniment.testing import People, TestServer
from tests.interfaces.two_tenants import TwoTenants, complaint, listed, shown, two_tenants
from tests.interfaces.wrong import CHOICES, INTENTS, NAMES, NUL, QUALIFIERS, SUBJECT
from tests.stories import CONSENT

__all__ = ["two_tenants"]  # a fixture


@pytest.mark.rule("ERR-1", "ISO-2")
@pytest.mark.parametrize(
    ("field_name", "wrong"),
    [
        ("tenant_id", [*NAMES, None, "x" * 129]),
        ("id", [*NAMES, None]),
        ("kind", [*CHOICES, None]),
        ("roles", ["reviewer", 5, ["God"], ["a b"], [f"r{n}" for n in range(65)], [5], None, {"reviewer": True}]),
        (
            "speaks_for",
            ["*", 5, ["crm"], {"tool": ["crm"]}, {"tools": "crm"}, {"tools": [5]}, {"channels": ["a*"]}, None],
        ),
        ("colour", ["red"]),
    ],
)
def test_a_principal_cannot_be_made_wrongly(field_name: str, wrong: list[Any]) -> None:
    good: dict[str, Any] = {"tenant_id": "t", "id": "olga", "kind": "operator", "roles": {"reviewer"}}
    found = {
        shown(value): complaint(lambda v=value: Principal(**good | {field_name: v}), field_name) for value in wrong
    }
    assert not any(found.values()), listed(found)


@pytest.mark.rule("ERR-1", "ISO-2")
@pytest.mark.parametrize(
    ("field_name", "wrong"),
    [
        ("tenant_id", [*NAMES, None, "x" * 129]),
        ("run_id", [*NAMES, None]),
        ("agent_id", [*NAMES, None]),
        ("session_id", NAMES),
        ("user_id", NAMES),
        ("role", [*NAMES, None]),
        ("intent_id", INTENTS),
        ("workflow_id", NAMES),
        ("decision_key", NAMES),
        ("classification_allowed", ["PII", 5, [5], [""], [NUL], None, [f"L{n}" for n in range(65)]]),
        ("qualifiers", [*QUALIFIERS, None]),
        ("pack", NAMES),
        ("trace_id", NAMES),
        ("colour", ["red"]),
    ],
)
def test_a_run_cannot_be_made_wrongly(field_name: str, wrong: list[Any]) -> None:
    good: dict[str, Any] = {"tenant_id": "t", "run_id": "r", "agent_id": "a"}
    found = {
        shown(value): complaint(lambda v=value: RunContext(**good | {field_name: v}), field_name) for value in wrong
    }
    assert not any(found.values()), listed(found)


@pytest.mark.rule("ERR-1", "REC-1")
@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"role": "stranger"}, "role"),
        ({"classification_allowed": {"PII", "GEHEIM"}}, "classification_allowed"),
        ({"pack": "acme@9.9.9"}, "pack"),
    ],
)
def test_a_run_that_names_what_its_pack_does_not_have_recalls_nothing(
    two_tenants: TwoTenants, fields: dict[str, Any], names: str
) -> None:
    run = two_tenants.people.run(**fields)
    assert complaint(lambda: two_tenants.fabric.recall(run), names) is None
    assert complaint(lambda: two_tenants.fabric.compile(run, "bread"), names) is None
    assert complaint(lambda: two_tenants.fabric.explain(run, memory_id=two_tenants.ids["memory"]), names) is None
    assert complaint(lambda: two_tenants.fabric.get(run, two_tenants.ids["memory"]), names) is None


@pytest.mark.rule("ERR-1")
def test_a_first_call_that_fails_does_not_even_open_the_tenant(
    two_tenants: TwoTenants, server: TestServer, database: str
) -> None:
    new = People(f"tenant_{uuid4().hex[:12]}")
    fabric = two_tenants.fabric
    wrong: list[Callable[[], Any]] = [
        lambda: fabric.capture(new.run(), kind="message", text="x", classification="GEHEIM"),
        lambda: fabric.propose(new.run(), write_class="statement", text="x", classification="GEHEIM"),
        lambda: fabric.consent.grant(
            new.officer, subject=SUBJECT, **CONSENT | {"data_classifications_allowed": ["GEHEIM"]}
        ),
        lambda: fabric.consent.grant(
            new.officer, subject=SUBJECT, **CONSENT, valid_until=two_tenants.ids["an hour ago"]
        ),
        lambda: fabric.packs.register(new.admin, "nonsense"),
    ]
    for call in wrong:
        with pytest.raises(MunimentError):
            call()
    with server.connect(database) as owner:
        found = owner.execute("SELECT count(*) FROM tenants WHERE tenant_id = %s", [new.tenant_id]).fetchone()
    assert found == (0,)


@pytest.mark.rule("ERR-1", "ISO-4")
def test_a_tenant_that_does_not_exist_answers_like_an_empty_one(two_tenants: TwoTenants) -> None:
    nobody = People(f"tenant_{uuid4().hex[:12]}")
    fabric = two_tenants.fabric
    assert (fabric.queue.list(nobody.reviewer), fabric.events(nobody.auditor)) == ([], [])
    assert fabric.recall(nobody.run()).records == fabric.recall(nobody.run(), "bread").records == ()
    assert fabric.compile(nobody.run(), "bread").text == ""
    for call in (
        lambda: fabric.get(nobody.auditor, two_tenants.ids["memory"]),
        lambda: fabric.explain(nobody.auditor, memory_id=two_tenants.ids["memory"]),
        lambda: fabric.replay(nobody.auditor, two_tenants.ids["recall"]),
        lambda: fabric.queue.approve(nobody.reviewer, two_tenants.ids["proposal"]),
        lambda: fabric.consent.revoke(nobody.officer, two_tenants.ids["consent"]),
        lambda: fabric.retract(nobody.reviewer, two_tenants.ids["memory"], reason="wrong"),
    ):
        with pytest.raises(NotFound):
            call()
