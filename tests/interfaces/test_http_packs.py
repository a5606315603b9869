"""The pack in force through the server: activated, planned, looked back at, retired and pinned; and by a client."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment.errors import Conflict, NotFound, PackChanged, PinRefused, SecondPersonRequired
from muniment.testing import People, TestServer
from tests.interfaces.http import PACK, RUN, RunningServer
from tests.pack_activation import acme, admin, in_force, put_in_force, register
from tests.server_thread import RemoteFabric
from tests.stories import KEY, promoted, proposed

STRICT = "memory_layer: {promotion_thresholds: {confidence_floor: 0.75}}"
LAX = "memory_layer: {promotion_thresholds: {confidence_floor: 0.1}, retention: {replay_horizon: 1d}}"


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.mark.rule("PAC-5")
def test_a_version_is_put_in_force_and_its_history_comes_in_pages(http_server: RunningServer, people: People) -> None:
    ada, anton = http_server.key(people.admin), http_server.key(people.auditor)
    promoted(http_server.local, people)
    before = http_server.clock.now
    http_server.clock.advance(hours=1)
    for version in ("1.0.0", "1.1.0"):
        register(http_server.local, people.tenant_id, acme(version, STRICT))
        body = {"reason": f"it is time for {version}", "expected": in_force(http_server.local, people.tenant_id)}
        made = http_server.ask("POST", f"/v1/packs/acme@{version}/activate", body, key=ada)
        assert (made.status_code, made.json()["pack"], made.json()["reason"]) == (
            200,
            f"acme@{version}",
            body["reason"],
        )
    assert http_server.ask("GET", "/v1/packs/in-force", key=anton).json() == made.json()
    then = http_server.ask("GET", "/v1/packs/in-force", key=anton, params={"at": before.isoformat()})
    assert then.json()["pack"] == PACK
    first = http_server.ask("GET", "/v1/packs/activations?limit=2", key=anton).json()
    assert [one["pack"] for one in first["items"]] == ["acme@1.1.0", "acme@1.0.0"]
    rest = http_server.ask("GET", f"/v1/packs/activations?limit=2&after={first['next']}", key=anton).json()
    assert ([one["pack"] for one in rest["items"]], rest["next"]) == ([PACK], None)
    shown = {one["ref"]: one["in_force"] for one in http_server.ask("GET", "/v1/packs", key=anton).json()["items"]}
    assert shown == {PACK: False, "acme@1.0.0": False, "acme@1.1.0": True}
    for query, field in (("at=soon", "at"), ("at=2026-01-05T09:00:00", "at")):
        wrong = http_server.ask("GET", f"/v1/packs/in-force?{query}", key=anton)
        assert (wrong.status_code, wrong.json()["field"]) == (422, field), wrong.text
    for after in ("-1", "many", str(2**70)):
        wrong = http_server.ask("GET", f"/v1/packs/activations?after={after}", key=anton)
        assert (wrong.status_code, wrong.json()["field"]) == (422, "after"), wrong.text


@pytest.mark.rule("PAC-5", "PAC-9")
def test_what_an_activation_would_do_is_reported_and_one_that_takes_two_people_is_refused_to_one(
    http_server: RunningServer, people: People
) -> None:
    proposed(http_server.local, people.run(), **KEY, value="email")
    register(http_server.local, people.tenant_id, acme("1.0.0", LAX))
    ada, zoe = http_server.key(people.admin), http_server.key(admin(people.tenant_id, "zoe"))
    plan = http_server.ask("GET", "/v1/packs/acme@1.0.0/activation", key=http_server.key(people.reviewer)).json()
    assert (plan["in_force"], plan["second_person"], plan["registered_by"], plan["proposals"]) == (PACK, True, "ada", 1)
    assert plan["loosens"][0] == "promotion_thresholds.confidence_floor: 0.3 to 0.1"
    assert "memory_layer.promotion_thresholds.confidence_floor" in [
        change["path"] for change in plan["difference"]["changes"]
    ]
    refused = http_server.ask("POST", "/v1/packs/acme@1.0.0/activate", {"reason": "alone"}, key=ada)
    assert (refused.status_code, refused.json()["code"]) == (403, "second_person_required")
    assert [one["code"] for one in http_server.denials(people)] == ["second_person_required"]
    changed = http_server.ask(
        "POST", "/v1/packs/acme@1.0.0/activate", {"reason": "seen", "expected": "acme@0.1.0"}, key=zoe
    )
    assert (changed.status_code, changed.json()["code"]) == (409, "pack_changed")
    assert in_force(http_server.local, people.tenant_id) == PACK
    done = http_server.ask(
        "POST", "/v1/packs/acme@1.0.0/activate", {"reason": "seen by two", "expected": PACK}, key=zoe
    )
    assert (done.status_code, done.json()["second_person"], done.json()["loosens"]) == (200, True, plan["loosens"])
    twice = http_server.ask("POST", "/v1/packs/acme@1.0.0/activate", {"reason": "twice"}, key=zoe)
    assert (twice.status_code, twice.json()["code"]) == (409, "conflict")


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("verb", ["activate", "retire"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (None, "body"),
        ({}, "reason"),
        ({"reason": ""}, "reason"),
        ({"reason": 5}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"reason": "for jane.doe@example.com"}, "reason"),
        ({"reason": "x", "by": "zoe"}, "by"),
        ({"reason": "x", "second_person": False}, "second_person"),
    ],
)
def test_a_wrong_body_is_refused_by_its_field(
    http_server: RunningServer, people: People, verb: str, body: Any, field: str
) -> None:
    register(http_server.local, people.tenant_id, acme("1.0.0", STRICT))
    answer = http_server.ask("POST", f"/v1/packs/acme@1.0.0/{verb}", body, key=http_server.key(people.admin))
    assert (answer.status_code in (413, 422), answer.json()["field"]) == (True, field), answer.text
    found = http_server.local.packs.get(people.admin, "acme@1.0.0")
    assert (found.in_force, found.retired) == (False, False)


@pytest.mark.rule("PAC-4", "PAC-5", "AUD-3")
def test_a_run_pins_only_what_the_pack_in_force_lists_and_nothing_that_is_retired(
    http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people)
    agent, ada = http_server.key(people.run()), http_server.key(people.admin)
    for version in ("0.8.0", "0.9.0"):
        register(http_server.local, people.tenant_id, acme(version))
    put_in_force(http_server.local, people.tenant_id, acme("1.0.0", may_pin="[acme@0.9.0]"))

    def asked(pack: str) -> list[Any]:
        run = {"run": {**RUN, "pack": pack}}
        return [http_server.ask("POST", f"/v1/{verb}", run, key=agent) for verb in ("recall", "compile")]

    recalled, compiled = asked("acme@0.9.0")
    assert [one["id"] for one in recalled.json()["records"]] == [memory_id]
    assert recalled.json()["pack"] == "acme@0.9.0" and compiled.status_code == 200
    # A write goes by the pack in force, whatever is pinned.
    said = {"kind": "message", "text": "hello", "classification": "INTERNAL", "run": {**RUN, "pack": "acme@0.8.0"}}
    assert http_server.ask("POST", "/v1/captures", said, key=agent).status_code == 201
    for answer in asked("acme@0.8.0"):
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (403, "pin_refused", "pack")
    kept = http_server.ask("POST", "/v1/packs/acme@1.0.0/retire", {"reason": "by mistake"}, key=ada)
    assert (kept.status_code, kept.json()["code"]) == (409, "conflict")
    done = http_server.ask("POST", "/v1/packs/acme@0.9.0/retire", {"reason": "old"}, key=ada)
    assert (done.status_code, done.json()["pack"], done.json()["retired_by"]) == (200, "acme@0.9.0", "ada")
    assert http_server.ask("GET", "/v1/packs/acme@0.9.0", key=ada).json()["retired"]
    for answer in asked("acme@0.9.0"):
        assert (answer.status_code, answer.json()["code"]) == (403, "pin_refused")
    assert {one["target"] for one in http_server.denials(people)} == {"acme@0.8.0", "acme@0.9.0"}


def test_a_client_has_every_verb_of_the_fabric_with_the_same_answers(
    http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    register(http_server.local, people.tenant_id, acme("1.0.0", LAX))
    with RemoteFabric(http_server.local, http_server.url) as remote:
        zoe = admin(people.tenant_id, "zoe")
        assert remote.packs.plan_activation(people.admin, "acme@1.0.0") == http_server.local.packs.plan_activation(
            people.admin, "acme@1.0.0"
        )
        with pytest.raises(SecondPersonRequired):
            remote.packs.activate(people.admin, "acme@1.0.0", reason="alone")
        with pytest.raises(PackChanged):
            remote.packs.activate(zoe, "acme@1.0.0", reason="seen", expected="acme@0.1.0")
        with pytest.raises(NotFound):
            remote.packs.activate(zoe, "acme@9.9.9", reason="not there")
        made = remote.packs.activate(zoe, "acme@1.0.0", reason="seen", expected=PACK)
        assert made == http_server.local.packs.in_force(people.admin) == remote.packs.in_force(people.admin)
        whole = http_server.local.packs.activations(people.auditor)
        assert remote.packs.activations(people.auditor, limit=1, after=whole[0].seq) == whole[1:]
        assert remote.packs.in_force(people.auditor, at=whole[1].activated_at) == http_server.local.packs.in_force(
            people.auditor, at=whole[1].activated_at
        )
        with pytest.raises(PinRefused):
            remote.recall(people.run(pack=PACK))
        with pytest.raises(Conflict):
            remote.packs.retire(people.admin, "acme@1.0.0", reason="by mistake")
        assert remote.packs.retire(people.admin, PACK, reason="old").pack == PACK
        assert [(one.ref, one.in_force, one.retired) for one in remote.packs.list(people.admin)] == [
            (one.ref, one.in_force, one.retired) for one in http_server.local.packs.list(people.admin)
        ]
