"""A request with a key is carried out once, however often it is sent; and of two operators one wins."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment.http.idempotency import REPLAYED
from muniment.testing import People, TestServer
from tests.faults.concurrency import Calls, hold_clock
from tests.interfaces.http import SUBJECT, RunningServer, Story, body_of
from tests.stories import CONSENT, KEY, promoted, proposed

# Written by hand, and not taken from the declarations. These take the key themselves, and need no answer kept.
OWN_KEYS = {"/captures", "/proposals", "/corrections", "/items"}
# These work off what is due, in as many transactions as that takes.
PASSES = {
    "/golden",
    "/work/consolidate",
    "/work/reindex",
    "/work/seal",
    "/work/scan",
    "/work/sweep",
    "/work/deliver",
    "/work/backfill",
}
# These write nothing that could be done twice.
READS = {
    "/exports",
    "/imports/preview",
    "/imports/outcomes",
    "/recall",
    "/compile",
    "/explain",
    "/recalls/{recall_id}/replay",
    "/verify",
    "/archives/verify",
    "/packs/compare",
    "/packs/backtest",
    "/queue/{proposal_id}/check",
    "/queue/{proposal_id}/preview",
    "/queue/{proposal_id}/attend",
    "/erasures/search",
    "/queue/search",
    "/queue/plan",
    "/statements/check",
    "/items/get",
    "/items/search",
    "/items/namespaces",
    "/items/status",
}

GRANT: dict[str, Any] = {"subject": SUBJECT, **CONSENT}
# Nothing in the story is held, or suspended, and no clock is ahead.
REFUSED_HERE = {
    "/queue/{proposal_id}/release",
    "/work/breakers/{write_class}/resume",
    "/work/clock/reset",
    "/memories/{memory_id}/undo",
    "/erasure-requests/{request_id}/refuse",
    # Nobody else decided a proposal of the story, and nothing is kept there as an item.
    "/queue/{proposal_id}/second-look",
    "/items/delete",
    "/notices/{notice_id}",
    "/notices/{notice_id}/test",
}


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def officer(http_server: RunningServer, people: People) -> str:
    return http_server.key(people.officer)


def _ids(http_server: RunningServer, story: Story, path: str, value: str) -> dict[str, str]:
    """Those of the story, with a proposal, a webhook or a consent that nothing was done to yet."""
    local, people = http_server.local, story.people
    ids = {**story.ids}
    if "{proposal_id}" in path or path in ("/queue/approve", "/queue/reject", "/queue/assign"):
        fact = {"entity": SUBJECT, "predicate": f"likes_{value}", "value": value}
        ids["proposal_id"] = proposed(local, people.run(), **fact).proposal_id
        if path.endswith("/lift"):
            local.queue.reject(people.reviewer, ids["proposal_id"], reason="no")
    if "{memory_id}" in path:
        ids["memory_id"] = promoted(local, people, value, predicate=f"has_{value}")
    if path == "/erasures/facts":
        ids["fact_id"] = promoted(local, people, value, predicate=f"knows_{value}")
    if "{webhook_id}" in path:
        ids["webhook_id"] = local.webhooks.add(people.admin, url=f"https://8.8.8.8/{value}").webhook_id
    if "{ref}" in path:
        ids["ref"] = local.packs.register(people.admin, f'pack_meta: {{id: acme, version: "1.0.0-{value}"}}').ref
    if "{consent_id}" in path:
        ids["consent_id"] = local.consent.grant(people.officer, subject=f"customer:{value}", **CONSENT).consent_id
    return ids


@pytest.mark.rule("ERR-2")
def test_every_write_under_a_key_is_done_once_and_answered_alike(http_server: RunningServer, people: People) -> None:
    story = Story(http_server, people)
    writes = [(m, p.removeprefix("/v1"), o) for m, p, o in http_server.routes() if m != "GET"]
    # What people do about themselves needs facts of their own: tests/subject has it.
    writes = [one for one in writes if one[1] not in READS | REFUSED_HERE and not one[1].startswith("/me/")]
    assert {path for _, path, _ in writes} >= PASSES
    assert len(writes) > 20
    for n, (method, path, operation) in enumerate(writes):
        assert any(one["name"] == "Idempotency-Key" for one in operation["parameters"]), path
        ids = _ids(http_server, story, path, f"x{n}")
        place, body = "/v1" + path.format(**ids), body_of(method, path, ids)
        key = story.token(operation["x-roles"][0], *operation["x-roles-also"])
        first = http_server.ask(method, place, body, key=key, once=f"key-{n}")
        assert first.status_code in (200, 201, 204) and REPLAYED not in first.headers, (path, first.text)
        log = http_server.events(people)
        again = http_server.ask(method, place, body, key=key, once=f"key-{n}")
        assert again.status_code == first.status_code, (path, again.text)
        if path in OWN_KEYS:
            assert _but_repeated(again.json()) == _but_repeated(first.json()), path
        else:
            assert (again.content, again.headers[REPLAYED]) == (first.content, "true"), path
        other = {**(body or {}), "text": "something else"} if path in OWN_KEYS else body
        differs = http_server.ask(
            method, place + ("" if path in OWN_KEYS else "?other=1"), other, key=key, once=f"key-{n}"
        )
        assert (differs.status_code, differs.json()["code"]) == (409, "idempotency_conflict"), path
        assert http_server.events(people) == log, path
        if again.content:
            assert not again.headers["content-type"].startswith("application/problem"), path


def _but_repeated(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "repeated"}


@pytest.mark.rule("ERR-2")
def test_a_pass_under_a_key_that_was_used_is_not_made_again(http_server: RunningServer, people: People) -> None:
    story, run = Story(http_server, people), people.run()
    key, place = story.token("admin"), "/v1/work/consolidate"
    said = {"kind": "statement", "classification": "INTERNAL"}
    first = http_server.ask("POST", place, key=key, once="pass-1")
    assert first.status_code == 200
    captured = http_server.local.capture(run, text="Something that comes after the pass.", **said).capture_id
    again = http_server.ask("POST", place, key=key, once="pass-1")
    assert (again.content, again.headers[REPLAYED]) == (first.content, "true")
    assert http_server.local.work.backlog(people.admin).behind == 1, captured
    other = http_server.ask("POST", place, key=key, once="pass-2")
    assert other.json()["captures"] == 1 and REPLAYED not in other.headers
    assert http_server.local.work.backlog(people.admin).behind == 0


@pytest.mark.rule("ERR-2")
def test_of_two_passes_under_one_key_at_once_both_get_one_answer(http_server: RunningServer, people: People) -> None:
    story = Story(http_server, people)
    key = story.token("admin")
    calls = Calls([lambda: http_server.ask("POST", "/v1/work/consolidate", key=key, once="both")] * 2)
    answers = {one.content for one in calls.wait()}
    kept = http_server.ask("POST", "/v1/work/consolidate", key=key, once="both")
    assert answers == {kept.content} and kept.headers[REPLAYED] == "true"


def test_reads_take_no_key_and_pay_it_no_heed(http_server: RunningServer, people: People) -> None:
    story = Story(http_server, people)
    for method, path, operation in http_server.routes():
        short = path.removeprefix("/v1")
        if short in READS:
            assert all(one["name"] != "Idempotency-Key" for one in operation["parameters"]), path
            place, key = path.format(**story.ids), story.token(operation["x-roles"][-1])
            for _ in range(2):
                body = body_of(method, path, story.ids)
                if "agent" in operation["x-roles"]:
                    key = story.token("agent")
                answer = http_server.ask(method, place, body, key=key, once="k")
                assert answer.is_success and REPLAYED not in answer.headers, (path, answer.text)


@pytest.mark.rule("ERR-2")
def test_of_two_requests_under_one_key_at_once_one_is_done(
    http_server: RunningServer, people: People, officer: str, server: TestServer, database: str
) -> None:
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda: http_server.ask("POST", "/v1/consents", GRANT, key=officer, once="k1")] * 2)
        gate.until_waiting(2)
    answers = calls.wait()
    done = [one for one in answers if one.status_code == 201]
    (stands,) = http_server.local.consent.list(people.officer)
    assert {one.json()["consent_id"] for one in done} == {stands.consent_id}
    assert [one.json()["code"] for one in answers if one not in done] in ([], ["request_repeated"])
    again = http_server.ask("POST", "/v1/consents", GRANT, key=officer, once="k1")
    assert (again.content, again.headers[REPLAYED]) == (done[0].content, "true")


@pytest.mark.rule("CAP-4", "CAP-7")
def test_captures_under_one_key_are_written_once_alone_and_in_a_batch(
    http_server: RunningServer, people: People, server: TestServer, database: str
) -> None:
    key, item = http_server.key(people.run()), {"kind": "message", "text": "x", "classification": "INTERNAL"}
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda: http_server.ask("POST", "/v1/captures", item, key=key, once="one")] * 2)
        gate.until_waiting(2)
    receipts = [one.json() for one in calls.wait()]
    assert len({one["capture_id"] for one in receipts}) == 1
    assert sorted(one["repeated"] for one in receipts) == [False, True]
    batch = {"captures": [item, {**item, "text": "y"}, {**item, "idempotency_key": "its own"}]}
    first, second = (http_server.ask("POST", "/v1/captures", batch, key=key, once="many").json() for _ in range(2))
    assert [one["repeated"] for one in second["receipts"]] == [True] * 3
    assert [_but_repeated(one) for one in first["receipts"]] == [_but_repeated(one) for one in second["receipts"]]
    assert len({one["capture_id"] for one in first["receipts"]}) == 3
    swapped = {"captures": [batch["captures"][1], batch["captures"][0]]}
    answer = http_server.ask("POST", "/v1/captures", swapped, key=key, once="many")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")
    differing = http_server.ask("POST", "/v1/captures", {**item, "idempotency_key": "a"}, key=key, once="b")
    assert (differing.status_code, differing.json()["field"]) == (422, "idempotency_key")
    captured = [event for event in http_server.events(people) if event.type == "memory.captured"]
    assert len(captured) == 2, "a batch is one event"


def test_what_was_refused_can_be_asked_again_under_its_key(
    http_server: RunningServer, people: People, officer: str
) -> None:
    for path, body, status in (
        ("/v1/consents", {**GRANT, "subject": "nobody"}, 422),
        ("/v1/consents", {**GRANT, "supersedes": "cns_0"}, 404),
        ("/v1/consents/cns_0/revoke", {}, 404),
        ("/v1/erasures", {}, 422),
        ("/v1/webhooks", {"url": "https://8.8.8.8/"}, 403),
    ):
        assert http_server.ask("POST", path, body, key=officer, once="k").status_code == status, path
    done = http_server.ask("POST", "/v1/consents", GRANT, key=officer, once="k")
    assert done.status_code == 201 and REPLAYED not in done.headers
    assert len(http_server.local.consent.list(people.officer)) == 1


@pytest.mark.rule("ISO-5", "ISO-1")
def test_a_key_is_its_principals_own_and_lost_with_the_role(
    http_server: RunningServer, people: People, others: People
) -> None:
    done = http_server.ask("POST", "/v1/consents", GRANT, key=http_server.key(people.officer), once="k")
    second = http_server.ask("POST", "/v1/consents", GRANT, key=http_server.key(people.officer), once="k")
    assert second.headers[REPLAYED] == "true", "another key of the same person"
    for somebody in (people.person("paul", "privacy_officer"), others.officer):
        own = http_server.ask("POST", "/v1/consents", GRANT, key=http_server.key(somebody), once="k")
        assert own.status_code == 201 and own.json()["consent_id"] != done.json()["consent_id"]
    demoted = people.officer.model_copy(update={"roles": frozenset({"auditor"})})
    refused = http_server.ask("POST", "/v1/consents", GRANT, key=http_server.key(demoted), once="k")
    assert (refused.status_code, refused.json()["code"]) == (403, "role_missing")
    assert http_server.denials(people)[-1]["verb"] == "consent"


@pytest.mark.rule("ERA-2")
def test_after_an_erasure_no_answer_is_left(http_server: RunningServer, people: People, officer: str) -> None:
    fact = {**KEY, "value": "pigeon post", "subject": SUBJECT}
    path = f"/v1/queue/{proposed(http_server.local, people.run(), **fact).proposal_id}/approve"
    reviewer = http_server.key(people.reviewer)
    assert "pigeon post" in http_server.ask("POST", path, key=reviewer, once="k").text
    assert "pigeon post" in http_server.ask("POST", path, key=reviewer, once="k").text
    erased = http_server.ask("POST", "/v1/erasures", {"subject": SUBJECT}, key=officer, once="e")
    gone = http_server.ask("POST", path, key=reviewer, once="k")
    assert (gone.status_code, gone.json()["code"]) == (409, "request_repeated")
    assert "pigeon" not in gone.text
    assert (
        http_server.ask("POST", "/v1/erasures", {"subject": SUBJECT}, key=officer, once="e").content == erased.content
    )


@pytest.mark.rule("REV-5")
def test_the_second_of_two_operators_gets_an_error(http_server: RunningServer, people: People) -> None:
    item = proposed(http_server.local, people.run(), **KEY, value="email").proposal_id
    boris, clara = http_server.key(people.reviewer), http_server.key(people.second_reviewer)
    place = f"/v1/queue/{item}"
    seen = [http_server.ask("GET", place, key=key).headers["etag"] for key in (boris, clara)]
    assert seen[0] == seen[1]
    first = http_server.ask("POST", f"{place}/assign", key=boris, once="mine", headers={"If-Match": seen[0]})
    assert first.status_code == 200 and first.headers["etag"] not in seen
    # About what was read since it is another request.
    other = http_server.ask(
        "POST", f"{place}/assign", key=boris, once="mine", headers={"If-Match": first.headers["etag"]}
    )
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    for action, body in (
        ("approve", None), ("assign", {}), ("reject", {"reason": "no"}), ("edit", {"value": "x"}),
        ("override", {"priority": 0.9}), ("release", None), ("lift", None),
    ):  # fmt: skip
        for match in (seen[1], f"W/{seen[1]}"):
            late = http_server.ask("POST", f"{place}/{action}", body, key=clara, headers={"If-Match": match})
            assert (late.status_code, late.json()["code"]) == (412, "version_conflict"), action
        version = {**(body or {}), "version": int(seen[1].strip('"'))}
        late = http_server.ask("POST", f"{place}/{action}", version, key=clara)
        assert late.status_code == 412, action
        both = http_server.ask(
            "POST", f"{place}/{action}", version, key=clara, headers={"If-Match": first.headers["etag"]}
        )
        assert (both.status_code, both.json()["field"]) == (422, "version"), action
    assert http_server.ask("GET", place, key=clara).headers["etag"] == first.headers["etag"]
    assert http_server.ask("POST", f"{place}/approve", key=clara, headers={"If-Match": "*"}).status_code == 200


@pytest.mark.rule("REV-5", "PRO-7")
def test_of_two_operators_at_once_one_wins(
    http_server: RunningServer, people: People, server: TestServer, database: str
) -> None:
    item = proposed(http_server.local, people.run(), **KEY, value="email").proposal_id
    keys = [http_server.key(people.reviewer), http_server.key(people.second_reviewer)]
    tag = http_server.ask("GET", f"/v1/queue/{item}", key=keys[0]).headers["etag"]

    def act(key: str, action: str, body: Any) -> Any:
        return lambda: http_server.ask("POST", f"/v1/queue/{item}/{action}", body, key=key, headers={"If-Match": tag})

    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([act(keys[0], "approve", None), act(keys[1], "reject", {"reason": "no"})])
        gate.until_waiting(2)
    answers = sorted(calls.wait(), key=lambda one: one.status_code)
    assert [one.status_code for one in answers] == [200, 412]
    assert answers[1].json()["code"] == "version_conflict"
    assert len(http_server.local.queue.get(people.reviewer, item).verdicts) == 1
