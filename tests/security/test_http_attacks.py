"""Attacks over HTTP: a stolen agent key, forged headers and bodies, guesses, and floods."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from muniment.http.settings import ServerSettings
from muniment.testing import People, TestServer
from tests.interfaces.http import SUBJECT, RunningServer, Story, Wire, logged, tenant_state, without_number
from tests.pack_activation import acme, put_in_force
from tests.stories import CONSENT, promoted

ITEM: dict[str, Any] = {"kind": "message", "text": "x", "classification": "INTERNAL"}
FACT: dict[str, Any] = {
    "write_class": "preference", "entity": SUBJECT, "predicate": "reads", "value": "news", "classification": "INTERNAL",
}  # fmt: skip
RUN = {"run_id": "r"}


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def stolen(http_server: RunningServer, people: People) -> str:
    """A key of an agent that acts for one user and is cleared for little."""
    return http_server.key(people.run(), user_id="cust_1", clearance={"PUBLIC", "INTERNAL"})


@pytest.mark.rule("REV-4", "AUD-3", "ISO-5")
def test_a_stolen_agents_key_does_nothing_of_a_persons(http_server: RunningServer, people: People, stolen: str) -> None:
    ids = Story(http_server, people).ids
    before = tenant_state(http_server, people)
    proposal, memory = f"/v1/queue/{ids['proposal_id']}", f"/v1/memories/{ids['memory_id']}"
    attempts: list[tuple[str, str, Any, str]] = [
        ("POST", f"{proposal}/approve", None, "review"),
        ("POST", f"{proposal}/edit", {"value": "mine"}, "review"),
        ("POST", f"{proposal}/reject", {"reason": "no"}, "review"),
        ("POST", f"{proposal}/override", {"tier": "working"}, "review"),
        ("POST", "/v1/queue/approve", {"proposal_ids": [ids["proposal_id"]]}, "review"),
        ("POST", f"/v1/contradictions/{ids['contradiction_id']}/resolve", {"way": "supersede"}, "review"),
        ("GET", "/v1/queue", None, "read_queue"),
        ("GET", proposal, None, "read_queue"),
        ("GET", f"{memory}/trail", None, "read_memory"),
        ("POST", f"{memory}/retract", {"reason": "wrong"}, "retract"),
        ("POST", "/v1/corrections", {"memory_id": ids["memory_id"], "value": "mine"}, "correct"),
        ("POST", "/v1/consents", {"subject": SUBJECT, **CONSENT}, "consent"),
        ("POST", f"/v1/consents/{ids['consent_id']}/revoke", None, "consent"),
        ("POST", "/v1/erasures", {"subject": SUBJECT}, "erase"),
        ("GET", "/v1/events", None, "audit"),
        ("POST", f"/v1/recalls/{ids['recall_id']}/replay", None, "audit"),
        ("POST", "/v1/webhooks", {"url": "https://8.8.8.8/mine"}, "webhooks"),
        ("POST", "/v1/packs", {"pack": 'pack_meta: {id: mine, version: "1.0.0"}'}, "packs"),
        ("POST", "/v1/work/consolidate", None, "work"),
        ("POST", "/v1/golden", {"results": [{"query": "q", "passed": True}]}, "golden"),
    ]
    for method, path, body, _ in attempts:
        answer = http_server.ask(method, path, body, key=stolen, once="k" if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (403, "role_missing"), path
        assert not any(one in answer.text for one in ids.values() if one != "preference"), path
    forbidden = {**FACT, "write_class": "correction", "run": RUN}
    assert http_server.ask("POST", "/v1/proposals", forbidden, key=stolen).json()["code"] == "role_missing"
    assert [one["verb"] for one in http_server.denials(people)] == [*(verb for *_, verb in attempts), "correct"]
    assert tenant_state(http_server, people) == before


@pytest.mark.rule("ISO-5", "ISO-4", "AUD-3", "REC-1")
def test_a_key_that_acts_for_one_user_reads_and_writes_for_no_other(
    http_server: RunningServer, people: People, stolen: str
) -> None:
    theirs = promoted(http_server.local, people, "yacht", user_id="cust_2", predicate="owns")
    seen = http_server.local.recall(people.run("cust_2", agent_id="other")).recall_id
    before = tenant_state(http_server, people)
    denied = 0
    for user in ("cust_2", "cust_10", "CUST_1", "cust_%", None):
        run = {**RUN, "user_id": user}
        for path, body in (
            ("/v1/recall", {}), ("/v1/compile", {}), ("/v1/captures", ITEM), ("/v1/captures", {"captures": [ITEM]}),
            ("/v1/proposals", FACT), ("/v1/explain", {"memory_id": theirs}),
        ):  # fmt: skip
            answer = http_server.ask("POST", path, {**body, "run": run}, key=stolen)
            result = answer.json()
            assert (answer.status_code, result["code"], result["field"]) == (403, "denied", "run.user_id"), path
            denied += 1
        answer = http_server.ask("GET", f"/v1/memories/{theirs}", key=stolen, headers={"Muniment-Run": json.dumps(run)})
        assert (answer.status_code, answer.json()["code"]) == (403, "denied")
        denied += 1
    assert len(http_server.denials(people)) == denied
    for path, body in (("/v1/captures", ITEM), ("/v1/captures", {"captures": [ITEM]}), ("/v1/proposals", FACT)):
        assert http_server.ask("POST", path, body, key=stolen).json()["field"] == "run", "for nobody is for everybody"
        other = {"captures": [{**ITEM, "user_id": "cust_2"}]} if "captures" in body else {**body, "user_id": "cust_2"}
        answer = http_server.ask("POST", path, {**other, "run": RUN}, key=stolen)
        assert (answer.status_code, answer.json()["field"].rpartition(".")[2]) == (422, "user_id"), path
    assert http_server.ask("GET", f"/v1/memories/{theirs}", key=stolen).json()["field"] == "run"
    as_itself = {"Muniment-Run": json.dumps(RUN)}
    hidden = [
        http_server.ask("GET", f"/v1/memories/{one}", key=stolen, headers=as_itself)
        for one in (theirs, "pm_never_there")
    ]
    assert hidden[0].status_code == 404 and without_number(hidden[0]) == without_number(hidden[1])
    for about in ({}, {"recall_id": seen}):
        result = [
            http_server.ask("POST", "/v1/explain", {"memory_id": one, "run": RUN, **about}, key=stolen)
            for one in (theirs, "pm_never_there")
        ]
        assert result[0].status_code == 404 and without_number(result[0]) == without_number(result[1])
    mine = http_server.ask("POST", "/v1/recall", {"run": RUN, "query": "yacht"}, key=stolen)
    assert mine.status_code == 200 and mine.json()["records"] == []
    assert tenant_state(http_server, people) == before


@pytest.mark.rule("ISO-2", "CAP-9")
def test_nobody_says_who_they_are_but_by_their_credential(
    http_server: RunningServer, people: People, others: People, stolen: str
) -> None:
    before, theirs = tenant_state(http_server, people), tenant_state(http_server, others)
    forged: list[tuple[str, Any]] = [
        ("source", "operator"), ("author", "boris"), ("agent_id", "boss"), ("principal", {"id": "boris"}),
        ("tenant_id", others.tenant_id), ("tenant", others.tenant_id), ("roles", ["admin"]), ("approver", "boris"),
        ("captured_at", "2020-01-01T00:00:00Z"), ("seq", 1), ("trust", 1.0), ("fact", FACT), ("status", "promoted"),
    ]  # fmt: skip
    for name, value in forged:
        for path, body in (("/v1/captures", ITEM), ("/v1/proposals", FACT), ("/v1/recall", {}), ("/v1/compile", {})):
            answer = http_server.ask("POST", path, {**body, name: value, "run": RUN}, key=stolen)
            assert (answer.status_code, answer.json()["field"]) == (422, name), path
            answer = http_server.ask("POST", path, {**body, "run": {**RUN, name: value}}, key=stolen)
            assert (answer.status_code, answer.json()["field"]) == (422, f"run.{name}"), path
        batch = {"captures": [ITEM, {**ITEM, name: value}], "run": RUN}
        assert http_server.ask("POST", "/v1/captures", batch, key=stolen).json()["field"] == f"captures.1.{name}"
        header = {"Muniment-Run": json.dumps({**RUN, name: value})}
        answer = http_server.ask("GET", "/v1/memories/pm_0", key=stolen, headers=header)
        assert (answer.status_code, answer.json()["field"]) == (422, f"run.{name}")
    # Persons name the agent whose run they ask about; an agent asks about its own alone.
    of_another = {"memory_id": "pm_0", "run": {**RUN, "agent_id": "boss"}}
    answer = http_server.ask("POST", "/v1/explain", of_another, key=stolen)
    assert (answer.status_code, answer.json()["field"]) == (422, "run.agent_id")
    twice = b'{"tenant_id": "%b", "run_id": "r", "user_id": "cust_2", "user_id": "cust_1"}' % others.tenant_id.encode()
    raw = b'{"run": %b, "kind": "message", "text": "x", "classification": "INTERNAL"}' % twice
    answer = http_server.ask(
        "POST", "/v1/captures", key=stolen, content=raw, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["field"]) == (422, "run.tenant_id")
    assert (tenant_state(http_server, people), tenant_state(http_server, others)) == (before, theirs)


@pytest.mark.rule("ISO-2", "CAP-9", "CAN-1")
def test_words_beside_the_body_change_nothing_about_who_asks(
    http_server: RunningServer, people: People, others: People, stolen: str
) -> None:
    theirs = tenant_state(http_server, others)
    query = f"?tenant_id={others.tenant_id}&tenant={others.tenant_id}&agent_id=boss&source=operator&roles=admin&kind=operator"
    headers = {
        "X-Tenant": others.tenant_id, "X-Tenant-ID": others.tenant_id, "Muniment-Tenant": others.tenant_id,
        "X-Forwarded-User": "boris", "X-Remote-User": "boris", "X-Roles": "admin", "Muniment-Principal": "boris",
        "X-HTTP-Method-Override": "DELETE", "X-Original-URL": "/v1/erasures", "X-Rewrite-URL": "/v1/erasures",
        "Muniment-Run": json.dumps({"run_id": "r", "user_id": "cust_2"}), "Cookie": "tenant=x",
    }  # fmt: skip
    refused = http_server.ask("POST", f"/v1/proposals{query}", {**FACT, "run": RUN}, key=stolen, headers=headers)
    assert (refused.status_code, refused.json()["field"]) == (422, "agent_id")
    answer = http_server.ask("POST", "/v1/proposals", {**FACT, "run": RUN}, key=stolen, headers=headers)
    assert answer.status_code == 201
    stands = http_server.local.queue.get(people.reviewer, answer.json()["proposal_id"])
    assert stands.candidate.source == "agent"
    (captured,) = [event for event in http_server.events(people) if event.type == "memory.captured"]
    assert captured.actor == "bot"
    assert http_server.ask("GET", f"/v1/whoami{query}", key=stolen, headers=headers).status_code == 422
    whoami = http_server.ask("GET", "/v1/whoami", key=stolen, headers=headers).json()
    assert whoami["principal"] == {
        "tenant_id": people.tenant_id, "id": "bot", "kind": "agent", "roles": ["agent"],
        "speaks_for": {"tools": ["*"], "channels": ["*"]},
    }  # fmt: skip
    for path in (
        f"/v1/{others.tenant_id}/queue",
        f"/v1/tenants/{others.tenant_id}/queue",
        f"/{others.tenant_id}/v1/queue",
    ):
        assert http_server.ask("GET", path, key=stolen).status_code == 404
    assert tenant_state(http_server, others) == theirs


def test_of_two_credentials_in_one_request_neither_counts(
    http_server: RunningServer, people: People, others: People, stolen: str
) -> None:
    admin = http_server.key(others.admin)
    for pair in ((stolen, admin), (admin, stolen), (stolen, stolen), (stolen, "")):
        with Wire(http_server) as wire:
            first, second = (f"Authorization: Bearer {one}" for one in pair)
            wire.send(f"GET /v1/whoami HTTP/1.1\n{first}\n{second}")
            status, body = wire.answer()
        assert (status, json.loads(body)["code"]) == (401, "unauthenticated")
    for scheme in ("Bearer", "bearer", "BEARER"):
        answer = http_server.ask("GET", "/v1/whoami", headers={"authorization": f"{scheme} {stolen}"})
        assert answer.json()["principal"]["tenant_id"] == people.tenant_id
    assert http_server.ask("GET", f"/v1/whoami?access_token={stolen}").status_code == 401
    assert http_server.ask("GET", "/v1/whoami", headers={"Cookie": f"Authorization={stolen}"}).status_code == 401


@pytest.mark.rule("ISO-1", "ISO-4")
def test_a_key_is_good_letter_for_letter_in_its_own_tenant_alone(
    http_server: RunningServer, people: People, others: People, stolen: str
) -> None:
    http_server.key(others.admin)
    tenant, key_id, secret = stolen.removeprefix("mun_").split(".")
    assert tenant == urlsafe_b64encode(people.tenant_id.encode()).rstrip(b"=").decode()
    elsewhere = urlsafe_b64encode(others.tenant_id.encode()).rstrip(b"=").decode()
    tried = [
        f"mun_{elsewhere}.{key_id}.{secret}",
        f"mun_{tenant}.{key_id.upper()}.{secret}",
        f"mun_{tenant}.{key_id}.{secret.swapcase()}",
        f"MUN_{tenant}.{key_id}.{secret}",
        f"mun_{tenant}.{key_id}.{secret}=",
        f"mun_{tenant}=.{key_id}.{secret}",
        f"{tenant}.{key_id}.{secret}",
        f"mun_{tenant}.{key_id}.",
        f"mun_{tenant}.{key_id}.{secret}.{secret}",
    ]
    for n, key in enumerate(tried):
        answer = http_server.ask("GET", "/v1/whoami", key=key, headers={"X-Forwarded-For": f"198.51.100.{n}"})
        assert answer.status_code == 401, key
    assert http_server.ask("GET", "/v1/whoami", key=stolen).status_code == 200


@pytest.mark.rule("ISO-5", "AUD-3")
def test_no_run_sees_beyond_the_clearance_of_its_key(http_server: RunningServer, people: People, stolen: str) -> None:
    http_server.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    promoted(http_server.local, people, "s3cret", predicate="phone", subject=SUBJECT, classification="PII")
    before = tenant_state(http_server, people)
    for labels in (["PII"], ["PUBLIC", "INTERNAL", "CONFIDENTIAL"], ["RESTRICTED"], ["public"], ["*"]):
        for path in ("/v1/recall", "/v1/compile"):
            answer = http_server.ask("POST", path, {"run": {**RUN, "classification_allowed": labels}}, key=stolen)
            result = answer.json()
            assert (answer.status_code, result["code"], result["field"]) == (
                403,
                "denied",
                "run.classification_allowed",
            )
    assert len(http_server.denials(people)) == 10
    answer = http_server.ask("POST", "/v1/recall", {"run": {**RUN, "role": "god"}}, key=stolen)
    assert (answer.status_code, answer.json()["field"]) == (403, "run.role")
    for role in ("admin", "auditor", "reviewer"):
        refused = http_server.ask("POST", "/v1/recall", {"run": {**RUN, "role": role}}, key=stolen)
        assert (refused.status_code, refused.json()["field"]) == (403, "run.role")
    seen = http_server.ask("POST", "/v1/recall", {"run": {**RUN, "role": "agent"}}, key=stolen)
    assert seen.status_code == 200 and "s3cret" not in seen.text
    cleared = http_server.key(people.run(), user_id="cust_1", clearance={"PUBLIC", "INTERNAL", "PII"})
    asked = {"run": {**RUN, "classification_allowed": ["PII"]}}
    assert "s3cret" in http_server.ask("POST", "/v1/recall", asked, key=cleared).text, "there was something to see"
    assert tenant_state(http_server, people) == before


@pytest.mark.rule("CAP-4", "ISO-1")
def test_a_request_that_was_overheard_is_worth_nothing_to_another(
    http_server: RunningServer, people: People, others: People, stolen: str
) -> None:
    agent = http_server.key(people.run(agent_id="honest"))
    first = http_server.ask("POST", "/v1/captures", {**ITEM, "text": "heard"}, key=agent, once="overheard")
    again = http_server.ask("POST", "/v1/captures", {**ITEM, "text": "heard", "run": RUN}, key=stolen, once="overheard")
    assert (again.status_code, again.json()["repeated"]) == (201, False)
    assert first.json()["capture_id"] not in again.text
    elsewhere = http_server.ask(
        "POST", "/v1/captures", {**ITEM, "text": "heard"}, key=http_server.key(others.run()), once="overheard"
    )
    assert elsewhere.status_code == 201 and elsewhere.json()["capture_id"] != first.json()["capture_id"]
    assert not elsewhere.json()["repeated"]


@pytest.mark.rule("PAC-4", "ISO-1")
def test_no_run_pins_another_tenants_pack(
    http_server: RunningServer, people: People, others: People, stolen: str
) -> None:
    ref = http_server.local.packs.register(others.admin, 'pack_meta: {id: lax, version: "1.0.0"}').ref
    # Neither where the pack in force lists no such version, nor where it does.
    for listed in ("", f"[{ref}, lax@9.9.9]"):
        if listed:
            put_in_force(http_server.local, people.tenant_id, acme("1.0.0", may_pin=listed))
        result: list[Any] = []
        for pack in (ref, "lax@9.9.9"):
            answer = http_server.ask("POST", "/v1/recall", {"run": {**RUN, "pack": pack}}, key=stolen)
            assert (answer.status_code, answer.json()["code"]) == (403, "pin_refused")
            result.append(answer.json()["detail"].replace(pack, ""))
        assert result[0] == result[1]


@pytest.mark.rule("ERR-1")
def test_no_text_of_a_request_is_taken_for_a_file(http_server: RunningServer, people: People, stolen: str) -> None:
    for tokenizer in (
        "file:/etc/passwd",
        "file:",
        "/etc/passwd",
        "tiktoken:/etc/passwd",
        "tiktoken:../x",
        "wordllama ",
    ):
        answer = http_server.ask("POST", "/v1/compile", {"run": RUN, "tokenizer": tokenizer}, key=stolen)
        assert (answer.status_code, answer.json()["field"]) == (422, "tokenizer"), tokenizer
    admin = http_server.key(people.admin)
    before = tenant_state(http_server, people)
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
        for a, b in zip("abcdefghij", "bcdefghijk", strict=True)
    )
    for text in (
        "/etc/passwd", "file:///etc/passwd", "../../etc/passwd", "~/.ssh/id_rsa", "pack.yaml", "!include /etc/passwd",
        '!!python/object/apply:os.system ["id"]', "!!python/name:os.system", "pack_meta: !!python/tuple [1]", laughs,
    ):  # fmt: skip
        for path, body in (
            ("/v1/packs", {"pack": text}),
            ("/v1/packs/compare", {"one": text, "other": "muniment.builtin@1.3.0"}),
            ("/v1/packs/backtest", {"pack": text}),
        ):
            answer = http_server.ask("POST", path, body, key=admin)
            assert answer.status_code in (404, 422), (path, text)
            assert "root:" not in answer.text and "uid=" not in answer.text
    assert tenant_state(http_server, people) == before


def test_no_webhook_points_inside(http_server: RunningServer, people: People) -> None:
    admin = http_server.key(people.admin)
    for url in (
        "http://8.8.8.8/", "https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://10.0.0.1/",
        "https://192.168.1.1/", "https://172.16.0.1/", "https://169.254.169.254/latest/meta-data", "https://0.0.0.0/",
        "https://[::ffff:127.0.0.1]/", "https://[fd00::1]/", "https://100.64.0.1/", "https://2130706433/",
        "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://user@8.8.8.8/", "file:///etc/passwd",
        "gopher://8.8.8.8/", "https:///x", "javascript:alert(1)", "https://8.8.8.8\\@127.0.0.1/",
    ):  # fmt: skip
        answer = http_server.ask("POST", "/v1/webhooks", {"url": url}, key=admin)
        assert (answer.status_code, answer.json()["field"]) == (422, "url"), url
    assert http_server.local.webhooks.list(people.admin) == []


def test_nobody_writes_lines_of_their_own_into_the_log(http_server: RunningServer, stolen: str) -> None:
    with logged() as lines:
        for number in ("a b", 'x","level":"error', "x" * 65, "é", "", "../.."):
            with Wire(http_server) as wire:
                wire.send(
                    f"GET /v1/nothing%0aforged%0d%0a HTTP/1.1\nAuthorization: Bearer {stolen}\nX-Request-ID: {number}"
                )
                head = wire.until(b"\r\n\r\n").decode("latin-1")
            result = head.lower().split("x-request-id: ")[1].split("\r\n")[0]
            assert len(result) == 16 and result.isalnum(), number
        kept = http_server.ask("GET", "/v1/whoami", key=stolen, headers={"X-Request-ID": "run-7.step_2"})
        assert kept.headers["x-request-id"] == "run-7.step_2"
        lines.of(kept)
        found = [json.loads(line) for line in lines.text.splitlines()]
    assert [line["message"] for line in found if line["logger"] == "muniment.http"] == ["request"] * len(found)
    assert "forged" not in lines.text and stolen not in lines.text


def test_who_guesses_keys_is_made_to_wait_and_a_good_one_passes_all_the_same(
    server: TestServer, database: str, people: People
) -> None:
    with RunningServer(server, database) as guessed:
        known, sought, unseen = (guessed.key(one) for one in (people.auditor, people.officer, people.admin))
        assert guessed.ask("GET", "/v1/whoami", key=known).status_code == 200
        for token in (known, sought):
            statuses = [guessed.ask("GET", "/v1/whoami", key=f"{token}{n}").status_code for n in range(12)]
            assert statuses[-2:] == [429] * 2
        late = guessed.ask("GET", "/v1/whoami", key=sought)
        assert (late.status_code, late.json()["code"]) == (429, "rate_limited"), "nor is it told that this one is good"
        assert 0 < int(late.headers["retry-after"]) <= 60
        assert guessed.ask("GET", "/v1/whoami", key=known).status_code == 200, "it was good lately"
        assert guessed.ask("GET", "/v1/whoami", key=unseen).status_code == 200, "nobody has guessed at this one"
        assert guessed.ask("GET", "/v1/whoami", key="nonsense").status_code == 429
        elsewhere = {"X-Forwarded-For": "203.0.113.9"}
        assert guessed.ask("GET", "/v1/whoami", key=sought, headers=elsewhere).status_code == 200
        assert guessed.ask("GET", "/healthz").status_code == 200


@pytest.mark.rule("ISO-3")
def test_a_flood_under_one_key_is_stopped_and_others_are_not(
    server: TestServer, database: str, people: People, others: People
) -> None:
    with RunningServer(server, database, ServerSettings(rate=0.01, burst=3)) as flooded:
        one, other, theirs = (flooded.key(who) for who in (people.run(), people.auditor, others.run()))
        answers = [flooded.ask("POST", "/v1/captures", ITEM, key=one) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [201] * 3 + [429] * 2
        assert int(answers[-1].headers["retry-after"]) > 1
        assert without_number(answers[-1])["code"] == "rate_limited"
        assert [flooded.ask("GET", "/v1/whoami", key=key).status_code for key in (one, other, theirs)] == [
            429,
            200,
            200,
        ]
        assert len([event for event in flooded.events(people) if event.type == "memory.captured"]) == 3
