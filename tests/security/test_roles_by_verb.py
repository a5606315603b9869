"""Section 2 of the specification, verb by verb: who may do what, through the library and through a server (ISO-5)."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from muniment import Fabric, Principal, RunContext
from muniment.access.roles import PERSONS_ONLY
from muniment.client import Client
from muniment.errors import Denied, InvalidInput, MunimentError, RoleMissing
from muniment.model.context import Role
from muniment.model.metrics import GoldenResult
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.verbs.registry import verbs
from tests.server_thread import ServerThread

ROLES: tuple[Role, ...] = get_args(Role)
AGENT, WRITER, REVIEWER, OFFICER, AUDITOR, ADMIN, SUBJECT = (
    "agent",
    "correction_writer",
    "reviewer",
    "privacy_officer",
    "auditor",
    "admin",
    "subject",
)
Call = Callable[[Any, Any], object]
CEID = "customer:cust_1"
CONSENT: dict[str, Any] = {
    "subject": CEID,
    "purpose": "support",
    "predicates_allowed": ["*"],
    "data_classifications_allowed": ["PII"],
    "basis": "opt_in",
}
ITEM = {"id": "m1", "text": "It rains.", "user_id": "cust_1"}


def document(officer: Any) -> dict[str, Any]:
    """A consent that was recorded elsewhere."""
    scope = {name: CONSENT[name] for name in ("predicates_allowed", "data_classifications_allowed")}
    same = {"tenant_id": officer.tenant_id, "captured_at": "2026-01-01T00:00:00Z", "scope": scope}
    return {"consent_id": "cns_roles", "subject_ceid": CEID, "purpose": "support", "basis": "opt_in", **same}


PACK = 'pack_meta: {id: roles_by_verb, version: "1.0.0"}'
STAFF = {WRITER, REVIEWER, OFFICER, AUDITOR, ADMIN}

# Written by hand from the table of roles, not from the code. A run asks where only an agent may.
TABLE: dict[str, tuple[set[str], Call]] = {
    "capture": (
        {AGENT, WRITER},
        lambda f, a: f.capture(a, kind="statement", text="It rains.", classification="PUBLIC"),
    ),
    "capture_many": (
        {AGENT, WRITER},
        lambda f, a: f.capture_many(a, [{"kind": "statement", "text": "It rains.", "classification": "PUBLIC"}]),
    ),
    "propose": (
        {AGENT, WRITER},
        lambda f, a: f.propose(a, write_class="statement", text="It rains.", classification="PUBLIC"),
    ),
    "propose.correction": (
        {WRITER},
        lambda f, a: f.propose(
            a, write_class="correction", entity=CEID, predicate="p", value="v", classification="PUBLIC"
        ),
    ),
    "correct": ({WRITER}, lambda f, a: f.correct(a, entity=CEID, predicate="p", value="v", classification="PUBLIC")),
    "recall": ({AGENT}, lambda f, a: f.recall(a)),
    "compile": ({AGENT}, lambda f, a: f.compile(a)),
    "items.put": ({AGENT, WRITER}, lambda f, a: f.items.put(a, ("a",), "k", {"x": 1})),
    "items.delete": ({AGENT, WRITER}, lambda f, a: f.items.delete(a, ("a",), "none")),
    "items.get": ({AGENT}, lambda f, a: f.items.get(a, ("a",), "k")),
    "items.search": ({AGENT}, lambda f, a: f.items.search(a, ("a",))),
    "items.namespaces": ({AGENT}, lambda f, a: f.items.namespaces(a)),
    "items.status": ({AGENT}, lambda f, a: f.items.status(a, ("a",))),
    "explain": ({AGENT, REVIEWER, AUDITOR}, lambda f, a: f.explain(a, memory_id="pm_none")),
    "get": ({AGENT, REVIEWER, AUDITOR}, lambda f, a: f.get(a, "pm_none")),
    "replay": ({AUDITOR}, lambda f, a: f.replay(a, "rcl_none")),
    "trail": ({REVIEWER, AUDITOR}, lambda f, a: f.trail(a, "pm_none")),
    "retract": ({REVIEWER}, lambda f, a: f.retract(a, "pm_none", reason="wrong")),
    "undo": ({REVIEWER}, lambda f, a: f.undo(a, "pm_none")),
    "sessions.end": ({AGENT}, lambda f, a: f.sessions.end(a, "s1")),
    "profiles": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.profiles(a)),
    "erase": ({OFFICER}, lambda f, a: f.erase(a, subject="customer:nobody")),
    "erase_fact": ({OFFICER}, lambda f, a: f.erase_fact(a, fact_id="pm_none")),
    "preview_erasure": ({OFFICER}, lambda f, a: f.preview_erasure(a, "pm_none")),
    "erasures": ({OFFICER, AUDITOR}, lambda f, a: f.erasures(a)),
    "events": ({AUDITOR}, lambda f, a: f.events(a)),
    "verify": ({AUDITOR}, lambda f, a: f.verify(a)),
    "chain_head": ({AUDITOR}, lambda f, a: f.chain_head(a)),
    "archives": ({AUDITOR}, lambda f, a: f.archives(a)),
    "verify_archives": ({AUDITOR}, lambda f, a: f.verify_archives(a)),
    "adoption": ({AUDITOR}, lambda f, a: f.adoption(a)),
    "metrics": ({REVIEWER, AUDITOR, ADMIN}, lambda f, a: f.metrics(a)),
    "queue.list": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.list(a)),
    "queue.counts": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.counts(a)),
    "queue.get": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.get(a, "mwp_none")),
    "queue.evidence": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.evidence(a, "mwp_none")),
    "queue.check": ({REVIEWER}, lambda f, a: f.queue.check(a, "mwp_none", text="x")),
    "queue.preview": ({REVIEWER}, lambda f, a: f.queue.preview(a, "mwp_none")),
    "queue.attend": ({REVIEWER}, lambda f, a: f.queue.attend(a, "mwp_none")),
    "queue.approve": ({REVIEWER}, lambda f, a: f.queue.approve(a, "mwp_none")),
    "queue.approve_many": ({REVIEWER}, lambda f, a: f.queue.approve_many(a, ["mwp_none"])),
    "queue.plan_many": ({REVIEWER}, lambda f, a: f.queue.plan_many(a)),
    "queue.reject_many": ({REVIEWER}, lambda f, a: f.queue.reject_many(a, ["mwp_none"], reason="wrong")),
    "queue.assign_many": ({REVIEWER}, lambda f, a: f.queue.assign_many(a, ["mwp_none"])),
    "queue.hold": ({REVIEWER}, lambda f, a: f.queue.hold(a, "mwp_none")),
    "queue.groups": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.groups(a, "class")),
    "queue.overview": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.overview(a)),
    "queue.search": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.search(a, "x")),
    "queue.comment": ({REVIEWER}, lambda f, a: f.queue.comment(a, "mwp_none", text="x")),
    "queue.progress": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.progress(a)),
    "queue.second_look": ({REVIEWER}, lambda f, a: f.queue.second_look(a)),
    "queue.look_again": ({REVIEWER}, lambda f, a: f.queue.look_again(a, "mwp_none", would="approve")),
    "views.list": ({REVIEWER, AUDITOR}, lambda f, a: f.views.list(a)),
    "views.save": ({REVIEWER, AUDITOR}, lambda f, a: f.views.save(a, name="x", filters={})),
    "views.remove": ({REVIEWER, AUDITOR}, lambda f, a: f.views.remove(a, name="none")),
    "subjects.name": ({REVIEWER, OFFICER, ADMIN}, lambda f, a: f.subjects.name(a, "customer:x", "X")),
    "subjects.get_name": ({REVIEWER, AUDITOR}, lambda f, a: f.subjects.get_name(a, subject="customer:x")),
    "refusals.counts": ({REVIEWER, AUDITOR}, lambda f, a: f.refusals.counts(a)),
    "statements.list": ({WRITER}, lambda f, a: f.statements.list(a)),
    "check_statement": ({WRITER}, lambda f, a: f.check_statement(a, text="x", classification="INTERNAL")),
    "queue.edit": ({REVIEWER}, lambda f, a: f.queue.edit(a, "mwp_none", text="x")),
    "queue.reject": ({REVIEWER}, lambda f, a: f.queue.reject(a, "mwp_none", reason="no")),
    "queue.lift": ({REVIEWER}, lambda f, a: f.queue.lift(a, "mwp_none")),
    "queue.override": ({REVIEWER}, lambda f, a: f.queue.override(a, "mwp_none", priority=0.5)),
    "queue.assign": ({REVIEWER}, lambda f, a: f.queue.assign(a, "mwp_none")),
    "queue.release": ({REVIEWER}, lambda f, a: f.queue.release(a, "mwp_none")),
    "contradictions.list": ({REVIEWER, AUDITOR}, lambda f, a: f.contradictions.list(a)),
    "contradictions.get": ({REVIEWER, AUDITOR}, lambda f, a: f.contradictions.get(a, "ctr_none")),
    "contradictions.resolve": ({REVIEWER}, lambda f, a: f.contradictions.resolve(a, "ctr_none", way="supersede")),
    "memories.list": ({REVIEWER, AUDITOR}, lambda f, a: f.memories.list(a)),
    "memories.moments": ({REVIEWER, AUDITOR}, lambda f, a: f.memories.moments(a)),
    "memories.graph": ({REVIEWER, AUDITOR}, lambda f, a: f.memories.graph(a, CEID)),
    "recalls.list": ({REVIEWER, AUDITOR}, lambda f, a: f.recalls.list(a)),
    # An agent its own alone.
    "recalls.get": ({AGENT, REVIEWER, AUDITOR}, lambda f, a: f.recalls.get(a, "rcl_none")),
    "consent.grant": ({OFFICER}, lambda f, a: f.consent.grant(a, **CONSENT)),
    "consent.revoke": ({OFFICER}, lambda f, a: f.consent.revoke(a, "cns_none")),
    "consent.list": ({OFFICER, AUDITOR}, lambda f, a: f.consent.list(a)),
    "packs.register": ({ADMIN}, lambda f, a: f.packs.register(a, PACK)),
    "packs.propose_exception": ({REVIEWER}, lambda f, a: f.packs.propose_exception(a, kind="email", value="x")),
    "packs.get": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.get(a, "none@1.0.0")),
    "packs.list": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.list(a)),
    "packs.compare": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.compare(a, "none@1.0.0", "none@1.0.1")),
    "packs.backtest": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.backtest(a, "none@1.0.0")),
    "work.backlog": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.work.backlog(a)),
    "work.parked": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.work.parked(a)),
    "work.jobs": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.work.jobs(a)),
    "work.breakers": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.work.breakers(a)),
    "work.requeue": ({ADMIN}, lambda f, a: f.work.requeue(a)),
    "work.resume": ({ADMIN}, lambda f, a: f.work.resume(a, "preference")),
    "webhooks.list": ({ADMIN}, lambda f, a: f.webhooks.list(a)),
    "webhooks.add": ({ADMIN}, lambda f, a: f.webhooks.add(a, url="https://8.8.8.8/hook")),
    "webhooks.get": ({ADMIN}, lambda f, a: f.webhooks.get(a, "whk_none")),
    "webhooks.remove": ({ADMIN}, lambda f, a: f.webhooks.remove(a, "whk_none")),
    "webhooks.rotate_secret": ({ADMIN}, lambda f, a: f.webhooks.rotate_secret(a, "whk_none")),
    "webhooks.resume": ({ADMIN}, lambda f, a: f.webhooks.resume(a, "whk_none")),
    # It takes two roles, admin and auditor.
    "webhooks.replay": (set(), lambda f, a: f.webhooks.replay(a, "whk_none", after=0)),
    "notices.set": (STAFF, lambda f, a: f.notices.set(a, channel="browser")),
    "notices.list": (STAFF, lambda f, a: f.notices.list(a)),
    "notices.remove": (STAFF, lambda f, a: f.notices.remove(a, "ntc_none")),
    "notices.test": (STAFF, lambda f, a: f.notices.test(a, "ntc_none")),
    "notices.alerts": (STAFF, lambda f, a: f.notices.alerts(a, after=0)),
    "record_golden": ({ADMIN}, lambda f, a: f.record_golden(a, [GoldenResult(query="of roles", passed=True)])),
    "search_texts": ({OFFICER}, lambda f, a: f.search_texts(a, "Anna Schmidt")),
    "captures.list": ({REVIEWER, AUDITOR}, lambda f, a: f.captures.list(a)),
    "captures.get": ({REVIEWER, AUDITOR}, lambda f, a: f.captures.get(a, "cap_none")),
    "captures.rerun": ({REVIEWER}, lambda f, a: f.captures.rerun(a, "cap_none", "requested")),
    "refusals.list": ({REVIEWER, AUDITOR}, lambda f, a: f.refusals.list(a)),
    "memories.changes": (
        {REVIEWER, AUDITOR},
        lambda f, a: f.memories.changes(a, since=datetime(2026, 1, 1, tzinfo=UTC)),
    ),
    "consent.reach": ({OFFICER, AUDITOR}, lambda f, a: f.consent.reach(a, subject=CEID)),
    "packs.activate": ({ADMIN}, lambda f, a: f.packs.activate(a, "none@1.0.0", reason="r")),
    "packs.plan_activation": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.plan_activation(a, "none@1.0.0")),
    "packs.retire": ({ADMIN}, lambda f, a: f.packs.retire(a, "none@1.0.0", reason="r")),
    "packs.in_force": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.in_force(a)),
    "packs.activations": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.activations(a)),
    "packs.backfill": ({REVIEWER}, lambda f, a: f.packs.backfill(a, "none@1.0.0")),
    "packs.backfills": ({ADMIN, AUDITOR, REVIEWER}, lambda f, a: f.packs.backfills(a)),
    "work.reset_clock": ({ADMIN}, lambda f, a: f.work.reset_clock(a, reason="ahead")),
    "me.list": ({SUBJECT}, lambda f, a: f.me.list(a)),
    "me.get": ({SUBJECT}, lambda f, a: f.me.get(a, "pm_none")),
    "me.pending": ({SUBJECT}, lambda f, a: f.me.pending(a)),
    "me.outcomes": ({SUBJECT}, lambda f, a: f.me.outcomes(a, ["cap_none"])),
    "me.captures": ({SUBJECT}, lambda f, a: f.me.captures(a)),
    "me.recalls": ({SUBJECT}, lambda f, a: f.me.recalls(a)),
    "me.view": ({SUBJECT}, lambda f, a: f.me.view(a)),
    "me.consents": ({SUBJECT}, lambda f, a: f.me.consents(a)),
    "me.requests": ({SUBJECT}, lambda f, a: f.me.requests(a)),
    # An agent only with a code, which a test of its own tries.
    "me.confirm": ({SUBJECT}, lambda f, a: f.me.confirm(a, "mwp_none")),
    "me.decline": ({SUBJECT}, lambda f, a: f.me.decline(a, "mwp_none")),
    "me.forget": ({SUBJECT}, lambda f, a: f.me.forget(a, "pm_none")),
    "me.answer": ({SUBJECT}, lambda f, a: f.me.answer(a, "crq_none", "grant")),
    "me.undo": ({SUBJECT}, lambda f, a: f.me.undo(a, "pm_none")),
    "me.allow_again": ({SUBJECT}, lambda f, a: f.me.allow_again(a, "pm_none")),
    "me.correct": ({SUBJECT}, lambda f, a: f.me.correct(a, "pm_none", text="x")),
    "me.consent": ({SUBJECT}, lambda f, a: f.me.consent(a, data_classifications_allowed=["PII"])),
    "me.revoke": ({SUBJECT}, lambda f, a: f.me.revoke(a, "cns_none")),
    "me.export": ({SUBJECT}, lambda f, a: f.me.export(a)),
    "me.forget_everything": ({SUBJECT}, lambda f, a: f.me.forget_everything(a)),
    **{
        f"people.{name}": ({OFFICER}, lambda f, a, name=name: getattr(f.people, name)(a, user_id="cust_1"))
        for name in ("get", "memories", "reads", "view")
    },
    "consent.terms": ({OFFICER, AUDITOR}, lambda f, a: f.consent.terms(a)),
    "erasure_requests.list": ({OFFICER, AUDITOR}, lambda f, a: f.erasure_requests.list(a)),
    "erasure_requests.release": ({OFFICER}, lambda f, a: f.erasure_requests.release(a, "erq_none")),
    "erasure_requests.refuse": ({OFFICER}, lambda f, a: f.erasure_requests.refuse(a, "erq_none")),
    "consent.grant_many": ({OFFICER}, lambda f, a: f.consent.grant_many(a, [document(a)])),
    "consent.document": ({OFFICER, AUDITOR}, lambda f, a: f.consent.document(a, "cns_none")),
    "queue.document": ({REVIEWER, AUDITOR}, lambda f, a: f.queue.document(a, "mwp_none")),
    "imports.preview": ({ADMIN}, lambda f, a: f.imports.preview(a, "mem0", [ITEM])),
    "imports.run": ({ADMIN}, lambda f, a: f.imports.run(a, "mem0", [ITEM])),
    "imports.outcomes": ({ADMIN}, lambda f, a: f.imports.outcomes(a, ["cap_none"])),
    "imports.get": ({ADMIN}, lambda f, a: f.imports.get(a, "imp_none")),
    "imports.approve": ({REVIEWER}, lambda f, a: f.imports.approve(a, "imp_none")),
    "export": ({OFFICER}, lambda f, a: f.export(a, subject=CEID)),
    "export.answer": ({AUDITOR}, lambda f, a: f.export(a, run=People(a.tenant_id).run())),
    "codes.create": ({ADMIN}, lambda f, a: f.codes.create(a, "cust_1", "confirm", "mwp_none")),
}
# Not served: keys are made on the database itself.
LIBRARY_ONLY: dict[str, tuple[set[str], Call]] = {
    "keys.create": ({ADMIN}, lambda f, a: f.keys.create(a, principal_id="b", kind="agent", roles=["agent"])),
    "keys.list": ({ADMIN}, lambda f, a: f.keys.list(a)),
    "keys.get": ({ADMIN}, lambda f, a: f.keys.get(a, "key_none")),
    "keys.revoke": ({ADMIN}, lambda f, a: f.keys.revoke(a, "key_none")),
}
ITEMS = ("put", "delete", "get", "search", "namespaces", "status")
RUNS_ONLY = {"recall", "compile", "sessions.end", *(f"items.{name}" for name in ITEMS)}
# For operators alone, whatever roles somebody else holds.
PERSONS_ALONE = {
    "correct",
    "captures.rerun",
    *(f"queue.{name}" for name in ("approve", "approve_many", "edit", "check", "preview", "attend", "reject")),
    *(f"queue.{name}" for name in ("lift", "override", "assign", "release", "hold", "plan_many", "comment")),
    *(f"queue.{name}" for name in ("reject_many", "assign_many")),
    "queue.second_look",
    "queue.look_again",
    "check_statement",
    "statements.list",
    "contradictions.resolve",
    "packs.backfill",
    "retract",
    "undo",
    "consent.grant",
    "consent.revoke",
    "consent.grant_many",
    "imports.preview",
    "imports.run",
    "imports.outcomes",
    "imports.get",
    "imports.approve",
    "export",
    "erase",
    "erase_fact",
    "preview_erasure",
    "erasure_requests.release",
    "erasure_requests.refuse",
    "search_texts",
    *(f"people.{name}" for name in ("get", "memories", "reads", "view")),
    "packs.register",
    "packs.propose_exception",
    "packs.activate",
    "packs.retire",
    *(f"webhooks.{name}" for name in ("add", "list", "get", "remove", "rotate_secret", "resume", "replay")),
    *(f"notices.{name}" for name in ("set", "list", "remove", "test", "alerts")),
    *(f"keys.{name}" for name in ("create", "list", "get", "revoke")),
    "work.requeue",
    "work.resume",
    "work.reset_clock",
}
# The work of the program itself: a tenant's id and no principal; over HTTP an operator who is an admin.
PASSES = {
    "consolidate",
    "reindex",
    "seal",
    "scan_pii",
    "consent.sweep",
    "webhooks.deliver",
    "notices.deliver",
    "packs.run_backfill",
}
# It finds out who somebody is.
OF_NOBODY = {"keys.check"}


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[tuple[Fabric, ServerThread]]:
    place, clock = server.url(database), FakeClock()
    with (
        ServerThread.on(place, clock=clock) as running,
        Fabric.open(place, clock=clock, master_keys=MASTER_KEYS) as local,
    ):
        yield local, running


@pytest.fixture(scope="module")
def tenant_people() -> People:
    return People("tenant_of_roles")


def asker(people: People, role: str) -> Principal | RunContext:
    """Somebody with that role and no other: an agent's run, an end user, or an operator."""
    if role == SUBJECT:
        return Principal(tenant_id=people.tenant_id, id="only_subject", kind="end_user", roles={SUBJECT})
    return people.run(agent_id="only_agent") if role == AGENT else people.person(f"only_{role}", role)


def is_let(call: Call, fabric: Any, who: Any) -> bool:
    """Whether it may: whatever else is wrong with the call comes after that."""
    try:
        call(fabric, who)
    except (RoleMissing, Denied):
        return False
    except MunimentError:
        return True
    return True


def test_the_tables_name_every_verb_and_whom_it_is_for() -> None:
    declared = verbs()
    assert {*TABLE, *LIBRARY_ONLY, *PASSES, *OF_NOBODY} - {"propose.correction", "export.answer"} == set(declared)
    assert {name for name, one in declared.items() if one.right in PERSONS_ONLY} == PERSONS_ALONE | PASSES
    assert {name for name, one in declared.items() if one.caller == "tenant"} == PASSES
    assert {name for name, one in declared.items() if one.caller == "run"} == RUNS_ONLY
    assert {name for name, one in declared.items() if one.method is None} == {*LIBRARY_ONLY, *OF_NOBODY}


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize("verb", [*TABLE, *LIBRARY_ONLY])
def test_the_library_lets_exactly_those_roles_that_the_table_names(
    served: tuple[Fabric, ServerThread], tenant_people: People, verb: str
) -> None:
    roles, call = (TABLE | LIBRARY_ONLY)[verb]
    for role in ROLES:
        who = asker(tenant_people, role)
        if verb in RUNS_ONLY and role != AGENT:
            with pytest.raises((RoleMissing, InvalidInput)):
                call(served[0], who)
        else:
            assert is_let(call, served[0], who) == (role in roles), role
    nobody = tenant_people.person("nobody")
    declared = tenant_people.person("declared", "senior")
    for who in (nobody, declared):
        if verb not in RUNS_ONLY:
            assert not is_let(call, served[0], who), "no role, or one that only a pack declares"


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize("verb", list(TABLE))
def test_a_server_lets_exactly_those_roles_that_the_table_names(
    served: tuple[Fabric, ServerThread], tenant_people: People, clients: dict[str, Client], verb: str
) -> None:
    roles, call = TABLE[verb]
    for role in ROLES:
        who = asker(tenant_people, role)
        if verb in RUNS_ONLY and role != AGENT:
            # The client of a person cannot tell of a run as its own; what the route says is tested with the routes.
            with pytest.raises((RoleMissing, InvalidInput, Denied)):
                call(clients[role], who)
        else:
            assert is_let(call, clients[role], who) == (role in roles), role


@pytest.fixture(scope="module")
def clients(served: tuple[Fabric, ServerThread], tenant_people: People) -> Iterator[dict[str, Client]]:
    local, running = served
    opened: dict[str, Client] = {}
    for role in ROLES:
        who = asker(tenant_people, role)
        principal = who.principal if isinstance(who, RunContext) else who
        key = local.keys.create(
            tenant_people.admin,
            principal_id=principal.id,
            kind=principal.kind,
            roles=principal.roles,
            clearance=["PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED"],
            speaks_for=principal.speaks_for,
            user_id=principal.id if principal.kind == "end_user" else None,
        )
        opened[role] = Client.open(running.url, key.token)
    yield opened
    for client in opened.values():
        client.close()


@pytest.mark.rule("ISO-5")
def test_only_an_admin_may_record_golden_results(served: tuple[Fabric, ServerThread], tenant_people: People) -> None:
    result = [GoldenResult(query="q", passed=True)]
    served[0].record_golden(tenant_people.admin, result)
    for asker in (tenant_people.reviewer, tenant_people.auditor, tenant_people.run()):
        with pytest.raises(RoleMissing):
            served[0].record_golden(asker, result)
