"""A request under a caller's own key is carried out once, and its answer kept for a day."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from muniment import Fabric
from muniment.access.idempotency import Answer, IdempotentRequest
from muniment.database.sealing import SubjectKey
from muniment.errors import IdempotencyConflict, InvalidInput, RequestRepeated, RoleMissing, SealBroken, SelfApproval
from muniment.fabric import AsyncFabric
from muniment.model.capture import TENANT_HOLDER
from muniment.model.context import Principal
from muniment.testing import FakeClock, People, TestServer
from tests.faults.concurrency import Calls, hold_clock
from tests.interfaces.wrong_calls import CALLS
from tests.stories import CONSENT, KEY, event_data, proposed, run_job

SUBJECT = "customer:cust_1"
# What changes nothing that a caller could ask for twice, or takes a key of its own.
NOT_WRITE_VERBS = {
    *("capture", "capture_many", "propose", "correct", "recall", "compile", "record_golden"),
    *("explain", "replay", "get", "trail", "adoption", "events", "verify", "chain_head", "metrics"),
    *("archives", "verify_archives", "erasures", "queue.list", "queue.get", "contradictions.list", "consent.list"),
    *("packs.get", "packs.list", "packs.compare", "packs.backtest", "packs.backfills", "keys.list", "keys.get"),
    *("packs.in_force", "packs.activations", "packs.plan_activation"),
    *("work.backlog", "work.parked", "work.jobs", "work.breakers", "webhooks.list", "webhooks.get", "whoami"),
    *("queue.evidence", "queue.counts", "queue.check", "queue.preview", "queue.attend", "contradictions.get"),
    *("memories.list", "memories.changes", "memories.moments", "memories.graph"),
    *(
        "recalls.list",
        "recalls.get",
        "consent.reach",
        "captures.list",
        "captures.get",
        "refusals.list",
        "search_texts",
        "statements.list",
    ),
    # What ends stays ended; a fact is looked for before it is erased, and one that is gone is a conflict.
    *("profiles", "preview_erasure", "sessions.end", "erase_fact"),
    *(
        "check_statement",
        "consent.document",
        "consent.terms",
        "export",
        "people.get",
        "people.memories",
        "people.reads",
        "people.view",
    ),
    *("queue.document", "queue.groups", "queue.overview", "queue.plan_many", "queue.progress", "queue.search"),
    *("queue.second_look", "refusals.counts", "subjects.get_name", "views.list", "notices.alerts", "notices.list"),
    # A test message goes out at most once a minute; a document and an item have keys of their own.
    *("notices.test", "consent.grant_many", "items.put", "items.delete", "items.get", "items.search"),
    *("items.namespaces", "items.status"),
}
# These look for what they act on before they claim the key: they are tried over HTTP, with what is there.
FIND_FIRST = ("me.", "codes.", "imports.", "erasure_requests.")
WRITE_VERBS = sorted(name for name in CALLS.keys() - NOT_WRITE_VERBS if not name.startswith(FIND_FIRST))

Operation = Callable[[], Awaitable[Any]]
Rows = Callable[..., list[dict[str, Any]]]


class Requester:
    """Makes idempotent requests as the HTTP interface does, in the event loop of the fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric: AsyncFabric = fabric._fabric
        self.wait: Callable[..., Any] = fabric._portal.call

    def request(self, who: Principal, key: str, write_once: Operation, content: str = "as it was") -> Answer:
        """Return the stored answer, or run the operation and store its answer."""
        return self.wait(self._request, who, key, write_once, content)

    def answer(self, who: Principal, key: str, content: str = "as it was") -> Answer | None:
        return self.wait(self.fabric.requests.answer, who, key, _fingerprint(content))

    def attempt(self, who: Principal, key: str, write_once: Operation) -> IdempotentRequest:
        """Run the operation without looking for a stored answer or storing one, as if the process ended there."""
        return self.wait(self._attempt, who, key, write_once)

    def keep(self, asked: IdempotentRequest, body: bytes) -> None:
        self.wait(self.fabric.requests.keep, asked, 200, body)

    async def _request(self, who: Principal, key: str, write_once: Operation, content: str) -> Answer:
        kept = await self.fabric.requests.answer(who, key, _fingerprint(content))
        if kept is not None:
            return kept
        with self.fabric.requests.begin(who, key, _fingerprint(content)) as asked:
            body = to_json(await write_once())
        await self.fabric.requests.keep(asked, 200, body)
        return Answer(200, body)

    async def _attempt(self, who: Principal, key: str, write_once: Operation) -> IdempotentRequest:
        with self.fabric.requests.begin(who, key, _fingerprint("as it was")) as asked:
            await write_once()
        return asked


def _who(people: People, called: str) -> Principal:
    both = people.person("admin_and_auditor", "admin", "auditor")
    return both if called == both.id else getattr(people, called)


def _fingerprint(content: str) -> bytes:
    return hashlib.sha256(content.encode()).digest()


@pytest.fixture
def requester(fabric: Fabric) -> Requester:
    return Requester(fabric)


@pytest.fixture
def grant(requester: Requester, people: People) -> Operation:
    """An operation that leaves two records if it runs twice."""
    return lambda: requester.fabric.consent.grant(people.officer, subject=SUBJECT, evidence_refs=["form:17"], **CONSENT)


def test_a_request_made_again_gets_the_answer_of_the_first_time(
    fabric: Fabric, people: People, requester: Requester, grant: Operation
) -> None:
    first = requester.request(people.officer, "k1", grant)
    assert requester.request(people.officer, "k1", grant) == first
    assert requester.answer(people.officer, "k1") == first
    assert first.body is not None
    (stands,) = fabric.consent.list(people.officer)
    assert from_json(first.body)["consent_id"] == stands.consent_id


def test_without_a_key_an_operation_is_done_at_every_call(
    fabric: Fabric, people: People, rows: Rows, requester: Requester, grant: Operation
) -> None:
    requester.wait(grant)
    requester.wait(grant)
    assert len(fabric.consent.list(people.officer)) == 2
    assert rows("requests") == []


@pytest.mark.rule("ERR-2")
def test_of_two_who_make_one_request_at_once_one_does_it_and_the_other_gets_an_error(
    fabric: Fabric, people: People, requester: Requester, grant: Operation, server: TestServer, database: str
) -> None:
    proposed(fabric, people.run(), **KEY, value="email")  # there is a tenant to hold
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda: requester.request(people.officer, "k1", grant)] * 2)
        gate.until_waiting(2)
    outcomes = calls.wait()
    (done,) = [one for one in outcomes if isinstance(one, Answer)]
    (repeated,) = [one for one in outcomes if isinstance(one, Exception)]
    assert isinstance(repeated, RequestRepeated)
    assert repeated.as_dict()["code"] == "request_repeated"
    assert len(fabric.consent.list(people.officer)) == 1
    assert requester.answer(people.officer, "k1") == done


def test_of_two_at_once_the_second_goes_on_where_the_first_came_to_nothing(
    fabric: Fabric, people: People, requester: Requester, grant: Operation, server: TestServer, database: str
) -> None:
    async def fails() -> None:
        async with requester.fabric._context.write_once(people.tenant_id, "privacy") as tx:
            await tx.tick()
            raise SelfApproval("changed its mind")

    proposed(fabric, people.run(), **KEY, value="email")
    with hold_clock(server, database, people.tenant_id) as gate:
        first = Calls([lambda: requester.request(people.officer, "k1", fails)])
        gate.until_waiting(1)
        second = Calls([lambda: requester.request(people.officer, "k1", grant)])
        gate.until_waiting(2)
    assert isinstance(first.wait()[0], SelfApproval)
    assert second.wait() == [requester.answer(people.officer, "k1")]


@pytest.mark.rule("ERR-2")
def test_a_request_whose_answer_was_lost_is_not_carried_out_again(
    fabric: Fabric, people: People, requester: Requester, grant: Operation
) -> None:
    assert requester.attempt(people.officer, "k1", grant).claimed
    assert requester.answer(people.officer, "k1") == Answer(None, None)
    with pytest.raises(RequestRepeated):
        requester.attempt(people.officer, "k1", grant)
    assert len(fabric.consent.list(people.officer)) == 1


@pytest.mark.parametrize("name", WRITE_VERBS)
def test_no_verb_carries_out_again_what_was_carried_out_under_that_key(
    fabric: Fabric, people: People, requester: Requester, grant: Operation, name: str
) -> None:
    requester.attempt(people.officer, "k1", grant)
    before = len(fabric.events(people.auditor, limit=1000))
    group, _, verb = name.rpartition(".")
    method = getattr(getattr(requester.fabric, group) if group else requester.fabric, verb)
    with pytest.raises(RequestRepeated):
        requester.attempt(people.officer, "k1", lambda: method(_who(people, CALLS[name].who), **CALLS[name].good))
    assert len(fabric.events(people.auditor, limit=1000)) == before


def test_the_same_key_with_other_content_is_a_conflict(people: People, requester: Requester, grant: Operation) -> None:
    requester.request(people.officer, "k1", grant)
    with pytest.raises(IdempotencyConflict) as caught:
        requester.request(people.officer, "k1", grant, "something else")
    assert caught.value.field == "idempotency_key"


@pytest.mark.rule("ISO-1")
def test_another_principal_or_tenant_with_the_same_key_makes_another_request(
    fabric: Fabric, people: People, others: People, requester: Requester, grant: Operation
) -> None:
    mine = requester.request(people.officer, "k1", grant)
    namesake = people.officer.model_copy(update={"kind": "system"})
    stranger = others.officer
    for somebody in (people.admin, namesake, stranger):
        assert requester.answer(somebody, "k1") is None
    requester.request(people.admin, "k1", grant)
    requester.request(namesake, "k1", grant)
    requester.request(
        stranger, "k1", lambda: requester.fabric.consent.grant(stranger, subject=SUBJECT, **CONSENT), "something else"
    )
    assert len(fabric.consent.list(people.officer)) == 3
    assert len(fabric.consent.list(stranger)) == 1
    assert requester.answer(people.officer, "k1") == mine


def test_a_denied_operation_claims_no_key_but_is_reported(
    fabric: Fabric, people: People, rows: Rows, requester: Requester
) -> None:
    item = proposed(fabric, people.author, **KEY, value="email").proposal_id
    both = people.person("olga", "correction_writer", "reviewer")
    with pytest.raises(RoleMissing):
        requester.request(people.author, "k1", lambda: requester.fabric.queue.approve(people.author, item))
    with pytest.raises(SelfApproval):
        requester.request(both, "k1", lambda: requester.fabric.queue.approve(both, item))
    assert len(event_data(fabric, people, "security")) == 2
    assert rows("requests") == []
    assert requester.request(both, "k1", lambda: requester.fabric.queue.assign(both, item)).status == 200


def test_of_many_approvals_the_first_part_claims_the_key_and_a_repetition_is_reported(
    fabric: Fabric, people: People, rows: Rows, requester: Requester
) -> None:
    # The second contradicts the first and is approved alone, in a transaction of its own.
    ids = [proposed(fabric, people.run(), **KEY, value=value).proposal_id for value in ("email", "phone")]
    seen = dict.fromkeys(ids, "looked at")
    approve = lambda: requester.fabric.queue.approve_many(people.reviewer, ids, acknowledge=seen)  # noqa: E731
    first = requester.request(people.reviewer, "k1", approve)
    assert [one["error"] for one in from_json(first.body or b"")] == [None, None]
    assert len(rows("requests")) == 1
    with pytest.raises(RequestRepeated):
        requester.attempt(people.reviewer, "k1", approve)


@pytest.mark.rule("CAP-5")
def test_nobody_opens_a_kept_answer_without_the_callers_key(
    fabric: Fabric, people: People, rows: Rows, requester: Requester, grant: Operation
) -> None:
    requester.request(people.officer, "k1-3f9a", grant)
    proposed(fabric, people.run(), **KEY, value="email")
    (row,) = rows("requests")
    assert b"form:17" not in row["answer"] and b"3f9a" not in row["key"] + row["fingerprint"] + row["answer"]
    holders = [one["holder"] for one in rows("subjects")]
    context = requester.fabric._context

    async def keys() -> dict[str, SubjectKey]:
        async with context.transaction(people.tenant_id, "writer") as tx:
            return await context.vault.keys(tx, holders)

    opened = requester.wait(keys)
    assert TENANT_HOLDER in opened and len(opened) > 1
    own = SubjectKey(people.tenant_id, TENANT_HOLDER, opened[TENANT_HOLDER].derived("requests"))
    for key in (*opened.values(), own):
        with pytest.raises(SealBroken):
            key.open("requests.answer", row["key"].hex(), row["answer"])
    assert requester.answer(people.officer, "k1-3f9b") is None


@pytest.mark.rule("ERA-2")
def test_an_erasure_takes_the_kept_answers_away_and_leaves_the_claims(
    fabric: Fabric, people: People, rows: Rows, requester: Requester
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="pigeon post", subject=SUBJECT).proposal_id
    approved = requester.request(people.reviewer, "k1", lambda: requester.fabric.queue.approve(people.reviewer, item))
    assert approved.body is not None and b"pigeon post" in approved.body
    late = requester.attempt(people.reviewer, "k2", lambda: requester.fabric.work.requeue(people.admin))
    receipt = requester.request(people.officer, "k3", lambda: requester.fabric.erase(people.officer, subject=SUBJECT))
    requester.keep(late, b"answered only now")
    assert requester.answer(people.reviewer, "k1") == Answer(200, None)
    assert requester.answer(people.reviewer, "k2") == Answer(None, None)
    assert requester.answer(people.officer, "k3") == receipt
    assert sum(row["answer"] is not None for row in rows("requests")) == 1
    with pytest.raises(RequestRepeated):
        requester.attempt(people.reviewer, "k1", lambda: requester.fabric.queue.approve(people.reviewer, item))


@pytest.mark.rule("JOB-3")
def test_a_request_is_forgotten_after_a_day(
    fabric: Fabric, people: People, clock: FakeClock, requester: Requester, grant: Operation
) -> None:
    requester.request(people.officer, "k1", grant)
    clock.advance(hours=1)
    requester.request(people.officer, "k2", grant)
    clock.advance(hours=23)
    assert run_job(fabric, "sweep", people.tenant_id).nonzero == {}
    clock.advance(seconds=1)
    assert run_job(fabric, "sweep", people.tenant_id).nonzero == {"requests": 1}
    assert requester.answer(people.officer, "k1") is None
    assert requester.answer(people.officer, "k2") is not None
    requester.request(people.officer, "k1", grant)
    assert len(fabric.consent.list(people.officer)) == 3


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("key", ["", "x" * 257, "a\x00b", " a", 5, None])
def test_a_key_that_is_no_name_is_refused(people: People, requester: Requester, key: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        requester.answer(people.officer, key)
    assert caught.value.field == "idempotency_key"
