"""The queue as it is looked at: narrowed, counted, an edit tried, an approval foreseen, others who look too."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from anyio import Event, create_task_group, move_on_after

from muniment import Fabric, Proposal
from muniment import context as contexts
from muniment.errors import AlreadyDecided, Conflict, InvalidInput, NotFound, RoleMissing
from muniment.model.context import RunContext
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Opener
from tests.security.catalogue import tenant_tables
from tests.stories import CONSENT, KEY, event_data, promoted, proposed, remembered, run_job, submitted

SUBJECT = "customer:cust_1"
Standing = Callable[[], list[tuple[Any, ...]]]


@pytest.fixture
def tenant_state(server: TestServer, database: str, tenant: str) -> Iterator[Standing]:
    """Every row of every table that is the tenant's."""
    with server.connect(database) as owner:
        each = " UNION ALL ".join(
            f"SELECT '{table}', to_jsonb(t)::text FROM {table} t WHERE tenant_id = %(tenant)s"
            for table in tenant_tables(owner)
        )

        def read() -> list[tuple[Any, ...]]:
            return sorted(owner.execute(each, {"tenant": tenant}).fetchall())  # type: ignore[arg-type]

        yield read


def _ids(found: list[Proposal]) -> set[str]:
    return {one.proposal_id for one in found}


@pytest.mark.rule("MET-7", "REV-2")
def test_the_queue_is_narrowed_to_what_is_asked_for(fabric: Fabric, people: People, clock: FakeClock) -> None:
    run = people.run()
    liked = proposed(fabric, run, **KEY, value="email").proposal_id
    said = proposed(
        fabric, people.run(None), write_class="statement", text="The shop in Ulm is open.", subject="shop:ulm"
    )
    corrected = fabric.correct(people.author, **KEY, value="post", classification="INTERNAL")
    other = proposed(fabric, run, entity="customer:c2", predicate="diet", value="vegan").proposal_id
    ids = {liked, submitted(said), submitted(corrected), other}
    fabric.queue.override(people.reviewer, liked, tier="durable")
    fabric.queue.assign(people.reviewer, other, to="clara")

    def listed(**narrowed: Any) -> set[str]:
        return _ids(fabric.queue.list(people.reviewer, **narrowed))

    assert listed() == ids
    assert listed(tier="durable") == {liked, submitted(corrected)}
    assert listed(tier="semantic") == {other, said.proposal_id}
    assert listed(entity=KEY["entity"]) == {liked, submitted(corrected)}
    assert listed(entity="shop:ulm") == {said.proposal_id}
    assert listed(assignee="clara") == {other}
    assert listed(reason="operator_source") == {submitted(corrected)}
    assert listed(write_class="correction", risk="low") | listed(write_class="correction", risk="high") == {
        submitted(corrected)
    }
    assert listed(overdue=True) == set() and listed(overdue=False) == ids
    clock.advance(hours=5)
    assert listed(overdue=True) == {submitted(corrected)}
    assert listed(overdue=False) == ids - {submitted(corrected)}
    fabric.queue.release(people.reviewer, other)
    assert listed(assignee="clara") == set()
    fabric.queue.reject(people.reviewer, other, reason="no")
    assert listed(entity="customer:c2") == set()
    assert listed(entity="customer:c2", closed=True) == {other}
    assert listed(entity="customer:c2", closed=True, status="pending") == set()


def test_pages_of_a_narrowed_queue_are_its_whole(fabric: Fabric, people: People) -> None:
    wanted = [
        proposed(fabric, people.run(), entity=f"customer:c{n}", predicate="p", value=n).proposal_id for n in range(5)
    ]
    for one in wanted[:3]:
        fabric.queue.assign(people.reviewer, one)
    found: list[str] = []
    while page := fabric.queue.list(people.reviewer, assignee="boris", limit=2, after=found[-1] if found else None):
        found += [one.proposal_id for one in page]
    assert sorted(found) == sorted(wanted[:3])


@pytest.mark.rule("JOB-10")
def test_what_is_held_is_found_and_counted_by_why(under: Opener, people: People) -> None:
    with under("memory_layer: {contradiction: {unresolved: hold}}") as fabric:
        promoted(fabric, people, "email")
        item = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
        free = proposed(fabric, people.run(), entity="customer:c2", predicate="diet", value="vegan").proposal_id
        assert fabric.queue.approve(people.reviewer, item).status == "held"
        assert _ids(fabric.queue.list(people.reviewer, status="held")) == {item}
        assert _ids(fabric.queue.list(people.reviewer, status="pending")) == {free}
        assert _ids(fabric.queue.list(people.reviewer, reason="contradiction")) == {item}
        counts = fabric.queue.counts(people.reviewer)
        assert (counts.open, counts.held, counts.by_reason["contradiction"]) == (2, 1, 1)
        fabric.queue.release(people.reviewer, item)
        assert fabric.queue.counts(people.reviewer).held == 0
        assert fabric.queue.list(people.reviewer, status="held") == []


@pytest.mark.rule("MET-7")
def test_the_queue_is_counted_by_what_stands_in_it(fabric: Fabric, people: People, clock: FakeClock) -> None:
    assert fabric.queue.counts(people.reviewer).open == 0
    mine = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    proposed(fabric, people.run(None), write_class="statement", text="The shop in Ulm is open.")
    fabric.correct(people.author, entity=SUBJECT, predicate="name", value="Olga", classification="INTERNAL")
    done = proposed(fabric, people.run(), entity="customer:c2", predicate="diet", value="vegan").proposal_id
    fabric.queue.approve(people.reviewer, done)
    fabric.queue.assign(people.reviewer, mine)
    fabric.queue.override(people.reviewer, mine, tier="episodic")
    counts = fabric.queue.counts(people.reviewer)
    assert (counts.open, counts.overdue, counts.due_within_a_day, counts.held, counts.mine) == (3, 0, 1, 0, 1)
    assert counts.by_class == {"preference": 1, "statement": 1, "correction": 1}
    assert counts.by_tier == {"episodic": 1, "semantic": 1, "durable": 1}
    assert sum(counts.by_risk.values()) == 3
    assert counts.by_reason["approval_mode"] == 3
    listed = fabric.queue.list(people.reviewer)
    assert counts.by_reason == {
        reason: sum(reason in one.human_reasons for one in listed)
        for reason in {reason for one in listed for reason in one.human_reasons}
    }
    clock.advance(hours=5)
    later = fabric.queue.counts(people.second_reviewer)
    assert (later.overdue, later.due_within_a_day, later.mine) == (1, 0, 0)


@pytest.mark.rule("ISO-1")
def test_another_tenants_proposals_are_neither_counted_nor_looked_into(
    fabric: Fabric, people: People, others: People
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    assert fabric.queue.counts(others.reviewer).open == 0
    for look in (
        fabric.queue.attend,
        fabric.queue.preview,
        lambda asker, one: fabric.queue.check(asker, one, value="x"),
    ):
        with pytest.raises(NotFound) as theirs:
            look(others.reviewer, item)
        with pytest.raises(NotFound) as nobodys:
            look(others.reviewer, "mwp_0")
        assert str(theirs.value) == str(nobodys.value)
    with pytest.raises(NotFound):
        fabric.queue.preview(people.reviewer, item, run=others.run())


@pytest.mark.rule("ISO-5")
def test_who_may_not_review_tries_nothing_and_is_written_down(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    assert fabric.queue.counts(people.auditor).open == 1
    for look in (
        fabric.queue.attend,
        fabric.queue.preview,
        lambda asker, one: fabric.queue.check(asker, one, value="x"),
    ):
        with pytest.raises(RoleMissing):
            look(people.auditor, item)
    assert [one["verb"] for one in event_data(fabric, people, "security")] == ["review"] * 3


# --- an edit, tried


@pytest.mark.rule("REV-5", "RED-3")
def test_a_check_says_what_the_edit_then_becomes(fabric: Fabric, people: People, tenant_state: Standing) -> None:
    against = promoted(fabric, people, "post")
    item = proposed(fabric, people.run(), **KEY, value="email", text="Reach her by email.").proposal_id
    before = tenant_state()
    seen = fabric.queue.check(people.reviewer, item, value="fax", text="Write to olga@example.com.")
    assert tenant_state() == before
    assert not seen.passes and seen.refusal is not None and seen.candidate is None  # a mail address is personal data
    seen = fabric.queue.check(people.reviewer, item, value="fax")
    assert tenant_state() == before
    became = fabric.queue.edit(people.reviewer, item, value="fax")
    assert isinstance(became, Proposal) and seen.passes and seen.candidate is not None
    left_out = {"candidate_id"}
    assert seen.candidate.model_dump(exclude=left_out) == became.candidate.model_dump(exclude=left_out)
    assert (seen.tier, seen.priority, seen.human_reasons) == (
        became.tier_target, became.priority, became.human_reasons,
    )  # fmt: skip
    assert [(one.memory_id, one.reason, one.replaced) for one in seen.contradicts] == [(against, "other_value", False)]
    assert became.contradiction_check.contradicted == (against,)


@pytest.mark.rule("RED-4", "CON-2")
def test_a_check_masks_and_names_the_gate_that_refuses(fabric: Fabric, people: People, tenant_state: Standing) -> None:
    fact = {"write_class": "statement", "text": "She called.", "subject": SUBJECT, "classification": "PII"}
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    item = proposed(fabric, people.run(), **fact).proposal_id
    before = tenant_state()
    seen = fabric.queue.check(people.reviewer, item, text="Write to olga@example.com.")
    assert seen.candidate is not None
    assert "olga@example.com" not in seen.candidate.text and sum(seen.candidate.redactions.values()) == 1
    (consent,) = fabric.consent.list(people.officer)
    fabric.consent.revoke(people.officer, consent.consent_id)
    before = tenant_state()
    refused = fabric.queue.check(people.reviewer, item, text="She called twice.").refusal
    assert refused is not None and refused.gate == "consent"
    assert tenant_state() == before
    assert refused.model_copy(update={"at": None}) == fabric.queue.edit(
        people.reviewer, item, text="She called twice."
    ).model_copy(update={"at": None})


def test_a_check_refuses_what_an_edit_would(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    with pytest.raises(InvalidInput, match="name what to change"):
        fabric.queue.check(people.reviewer, item)
    fabric.queue.reject(people.reviewer, item, reason="no")
    with pytest.raises(AlreadyDecided):
        fabric.queue.check(people.reviewer, item, value="x")


def test_an_edit_that_says_what_a_memory_says_is_reported_as_a_repetition(fabric: Fabric, people: People) -> None:
    there = promoted(fabric, people, "post")
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    assert fabric.queue.check(people.reviewer, item, value="post").repeats == (there,)


# --- an approval, foreseen


@pytest.mark.rule("REC-1", "CTR-6")
def test_a_preview_shows_recall_before_and_after_and_leaves_nothing(
    fabric: Fabric, people: People, tenant_state: Standing
) -> None:
    other = promoted(fabric, people, "tea", predicate="drinks")
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    before = tenant_state()
    seen = fabric.queue.preview(people.reviewer, item, query="How does customer:cust_1 want to be reached?")
    assert tenant_state() == before
    assert (seen.status, seen.error, seen.supersedes, seen.disappears) == ("promoted", None, (), ())
    assert [one.id for one in seen.before.records] == [other]
    assert seen.appears == (seen.memory_id,) and {one.id for one in seen.after.records} == {other, seen.memory_id}
    (new,) = (one for one in seen.after.records if one.id == seen.memory_id)
    assert new.value == "email" and new.score["total"] > 0
    with pytest.raises(NotFound):
        fabric.get(people.auditor, new.id)
    fabric.queue.approve(people.reviewer, item)
    after = fabric.recall(people.run(), "How does customer:cust_1 want to be reached?")
    assert [(one.text, one.score) for one in after.records] == [
        (one.text, one.score) for one in seen.after.records
    ]  # the clock stands still


def test_a_tenant_tries_one_thing_at_a_time_and_holds_no_other_up(
    fabric: Fabric, people: People, others: People
) -> None:
    context = fabric._fabric._context
    pack = context.packs.default

    async def run() -> tuple[bool, bool]:
        began, meanwhile = Event(), True

        async def second() -> None:
            async with context.dry_run(people.tenant_id, under=pack):
                began.set()

        async with (
            create_task_group() as group,
            context.dry_run(people.tenant_id, under=pack),
            context.dry_run(others.tenant_id, under=pack),
        ):
            group.start_soon(second)
            with move_on_after(0.2):
                await began.wait()
            meanwhile = began.is_set()
        return meanwhile, began.is_set()

    assert fabric._portal.call(run) == (False, True)


def test_a_dry_run_that_would_wait_long_is_refused(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "_DRY_RUN_WAIT", 0.05)
    context = fabric._fabric._context
    pack = context.packs.default

    async def run() -> None:
        async with context.dry_run(people.tenant_id, under=pack):
            with pytest.raises(Conflict, match="try again"):
                async with context.dry_run(people.tenant_id, under=pack):
                    raise AssertionError("two at once")
        async with context.dry_run(people.tenant_id, under=pack):
            pass  # who gave up has left no turn taken

    fabric._portal.call(run)


@pytest.mark.rule("CTR-4", "CTR-6", "COR-2")
def test_a_preview_shows_what_would_be_superseded_and_what_would_conflict(
    fabric: Fabric, people: People, tenant_state: Standing
) -> None:
    stood = promoted(fabric, people, "email")
    against = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
    correction = fabric.correct(people.author, memory_id=stood, value="post")
    before = tenant_state()
    conflict = fabric.queue.preview(people.reviewer, against)
    (pair,) = conflict.after.conflicts
    assert {one.id for one in pair.records} == {stood, conflict.memory_id}
    assert conflict.before.conflicts == () and [one.id for one in conflict.before.records] == [stood]
    corrected = fabric.queue.preview(people.reviewer, submitted(correction))
    assert (corrected.supersedes, corrected.disappears) == ((stood,), (stood,))
    assert [one.value for one in corrected.after.records] == ["post"]
    assert tenant_state() == before


@pytest.mark.rule("REV-4")
def test_an_author_may_look_ahead_at_what_somebody_else_must_approve(
    fabric: Fabric, people: People, tenant_state: Standing
) -> None:
    both = people.person("olga", "correction_writer", "reviewer")
    item = submitted(fabric.correct(both, **KEY, value="post", classification="INTERNAL"))
    before = tenant_state()
    seen = fabric.queue.preview(both, item)
    assert (seen.status, [one.value for one in seen.after.records]) == ("promoted", ["post"])
    assert tenant_state() == before


@pytest.mark.rule("CON-2", "PRO-1")
def test_a_preview_says_what_stands_against_an_approval(
    fabric: Fabric, people: People, under: Opener, tenant_state: Standing
) -> None:
    given = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    fact = {"entity": SUBJECT, "predicate": "phone", "value": "see file", "subject": SUBJECT, "classification": "PII"}
    item = proposed(fabric, people.run(), **fact).proposal_id
    fabric.consent.revoke(people.officer, given.consent_id)
    before = tenant_state()
    seen = fabric.queue.preview(people.reviewer, item)
    assert (seen.error, seen.status, seen.memory_id) == ("not_promotable", "pending", None)
    assert seen.before == seen.after and tenant_state() == before
    fabric.queue.reject(people.reviewer, item, reason="no")
    with pytest.raises(AlreadyDecided):
        fabric.queue.preview(people.reviewer, item)


def test_a_preview_of_a_repetition_changes_nothing(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    remembered(fabric, people, "email", user_id=None)
    seen = fabric.queue.preview(people.reviewer, item)
    assert (seen.status, seen.memory_id, seen.appears) == ("duplicate", None, ())
    assert seen.before == seen.after


@pytest.mark.rule("TIR-3")
def test_a_preview_in_the_working_tier_leaves_the_session_store_alone(fabric: Fabric, people: People) -> None:
    run = people.run(session_id="s1")
    item = proposed(fabric, run, **KEY, value="email").proposal_id
    fabric.queue.override(people.reviewer, item, tier="working")
    seen = fabric.queue.preview(people.reviewer, item)
    assert [one.tier for one in seen.after.records] == ["working"]
    context = fabric._fabric._context
    held = fabric._portal.call(context.sessions.held, people.tenant_id, "s1", [seen.memory_id], context.now())
    assert held == {}
    assert fabric.recall(run).records == ()


@pytest.mark.rule("REC-1")
def test_a_preview_for_a_run_shows_what_that_run_would_see(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    stranger: RunContext = people.run("cust_2")
    assert fabric.queue.preview(people.reviewer, item, run=stranger).appears == ()
    assert len(fabric.queue.preview(people.reviewer, item, run=people.run()).appears) == 1
    scoped = proposed(fabric, people.run(), entity=SUBJECT, predicate="p", value=1, intent_id="support.*")
    assert len(fabric.queue.preview(people.reviewer, scoped.proposal_id).appears) == 1


# --- who else looks


def test_two_at_one_proposal_see_each_other_for_half_a_minute(
    fabric: Fabric, people: People, clock: FakeClock, tenant_state: Standing
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    other = proposed(fabric, people.run(), entity="customer:c2", predicate="p", value=1).proposal_id
    events = len(fabric.events(people.auditor))
    came = clock.now
    assert fabric.queue.attend(people.reviewer, item) == []
    clock.advance(seconds=20)
    assert fabric.queue.attend(people.second_reviewer, other) == []
    (seen,) = fabric.queue.attend(people.second_reviewer, item)
    assert (seen.principal, seen.since) == ("boris", came)
    (back,) = fabric.queue.attend(people.reviewer, item)
    assert (back.principal, back.since) == ("clara", came + timedelta(seconds=20))
    clock.advance(seconds=31)
    assert fabric.queue.attend(people.second_reviewer, item) == []
    (anew,) = fabric.queue.attend(people.reviewer, item)
    assert anew.since == clock.now
    clock.advance(seconds=31)
    assert run_job(fabric, "sweep", people.tenant_id).nonzero == {"presence": 3}
    assert "presence" not in {table for table, _ in tenant_state()}
    assert len(fabric.events(people.auditor)) == events
    assert fabric.queue.get(people.reviewer, item).verdicts == ()


# --- a contradiction, opened


@pytest.mark.rule("CTR-3")
def test_a_contradiction_is_shown_with_both_its_sides(fabric: Fabric, people: People, others: People) -> None:
    stood = promoted(fabric, people, "email", text="Reach her by email.")
    item = proposed(fabric, people.run(), **KEY, value="phone", text="Reach her by phone.").proposal_id
    (one,) = fabric.contradictions.list(people.reviewer)
    shown = fabric.contradictions.get(people.auditor, one.contradiction_id)
    assert shown.contradiction == one and shown.incoming is None
    assert (shown.existing.memory_id, shown.existing.text) == (stood, "Reach her by email.")
    assert (shown.proposal.proposal_id, shown.proposal.candidate.text) == (item, "Reach her by phone.")
    became = fabric.queue.approve(people.reviewer, item).memory_id
    again = fabric.contradictions.get(people.reviewer, one.contradiction_id)
    assert again.incoming is not None and again.incoming.memory_id == became
    with pytest.raises(NotFound):
        fabric.contradictions.get(others.reviewer, one.contradiction_id)
    with pytest.raises(RoleMissing):
        fabric.contradictions.get(people.officer, one.contradiction_id)
