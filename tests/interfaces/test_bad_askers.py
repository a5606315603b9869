"""Whoever asks, made wrongly or of a tenant that is not there: a clear error or an empty answer, and no trace."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from muniment import MunimentError, Principal, RunContext
from muniment.errors import NotFound
from muniment.testing import People, TestServer
from tests.interfaces.door import Door, complaint, door, shown, told
from tests.interfaces.wrong import CHOICES, INTENTS, NAMES, NUL, QUALIFIERS, SUBJECT
from tests.stories import CONSENT

__all__ = ["door"]  # a fixture


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
    assert not any(found.values()), told(found)


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
    assert not any(found.values()), told(found)


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
    door: Door, fields: dict[str, Any], names: str
) -> None:
    run = door.people.run(**fields)
    assert complaint(lambda: door.fabric.recall(run), names) is None
    assert complaint(lambda: door.fabric.compile(run, "bread"), names) is None
    assert complaint(lambda: door.fabric.explain(run, memory_id=door.ids["memory"]), names) is None
    assert complaint(lambda: door.fabric.get(run, door.ids["memory"]), names) is None


@pytest.mark.rule("ERR-1")
def test_a_first_call_that_fails_does_not_even_open_the_tenant(door: Door, server: TestServer, database: str) -> None:
    new = People(f"tenant_{uuid4().hex[:12]}")
    fabric = door.fabric
    wrong: list[Callable[[], Any]] = [
        lambda: fabric.capture(new.run(), kind="message", text="x", classification="GEHEIM"),
        lambda: fabric.propose(new.run(), write_class="statement", text="x", classification="GEHEIM"),
        lambda: fabric.consent.grant(
            new.officer, subject=SUBJECT, **CONSENT | {"data_classifications_allowed": ["GEHEIM"]}
        ),
        lambda: fabric.consent.grant(new.officer, subject=SUBJECT, **CONSENT, valid_until=door.ids["an hour ago"]),
        lambda: fabric.packs.register(new.admin, "nonsense"),
    ]
    for call in wrong:
        with pytest.raises(MunimentError):
            call()
    with server.connect(database) as owner:
        found = owner.execute("SELECT count(*) FROM tenants WHERE tenant_id = %s", [new.tenant_id]).fetchone()
    assert found == (0,)


@pytest.mark.rule("ERR-1", "ISO-4")
def test_a_tenant_that_does_not_exist_answers_like_an_empty_one(door: Door) -> None:
    nobody = People(f"tenant_{uuid4().hex[:12]}")
    fabric = door.fabric
    assert (fabric.queue.list(nobody.reviewer), fabric.events(nobody.auditor)) == ([], [])
    assert fabric.recall(nobody.run()).records == fabric.recall(nobody.run(), "bread").records == ()
    assert fabric.compile(nobody.run(), "bread").text == ""
    for call in (
        lambda: fabric.get(nobody.auditor, door.ids["memory"]),
        lambda: fabric.explain(nobody.auditor, memory_id=door.ids["memory"]),
        lambda: fabric.replay(nobody.auditor, door.ids["recall"]),
        lambda: fabric.queue.approve(nobody.reviewer, door.ids["proposal"]),
        lambda: fabric.consent.revoke(nobody.officer, door.ids["consent"]),
        lambda: fabric.retract(nobody.reviewer, door.ids["memory"], reason="wrong"),
    ):
        with pytest.raises(NotFound):
            call()
