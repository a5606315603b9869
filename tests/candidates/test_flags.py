"""Facts that a pack flags for review, and memories that say that a contradiction of them is open."""

from typing import Any

import pytest

from muniment import Fabric, Proposal, load_pack
from muniment.candidates.rules import matching_flags
from muniment.errors import PackInvalid
from muniment.pack import Pack
from muniment.testing import FakeClock, People
from tests.conftest import Opener
from tests.language.candidates import draft
from tests.stories import CONSENT, KEY, promoted, proposed, run_job

SUBJECT = "customer:cust_1"
AUTO = """
memory_layer:
  promotion_thresholds: {calibrate_from: 12}
  classes: {preference: {risk: low, approval: auto, auto_promotion: {threshold: 0.90}}}
  flag_for_review:
    - {predicate: "legal*"}
    - {pattern: "(?i)lawsuit|subpoena"}
    - {predicate: prefers_channel, pattern: "^fax$", label: CONFIDENTIAL}
"""
FLAG = "memory_layer: {flag_for_review: [%s]}"


def packed(*rules: dict[str, Any]) -> Pack:
    return Pack.model_validate(
        {"pack_meta": {"id": "flags.test", "version": "1.0.0"}, "memory_layer": {"flag_for_review": rules}}
    )


@pytest.mark.rule("REV-10", "REV-3")
def test_what_the_pack_flags_waits_for_a_person_and_is_never_promoted_by_policy(under: Opener, people: People) -> None:
    def outcome(fabric: Fabric, **fields: Any) -> tuple[bool, str, tuple[str, ...]]:
        item = proposed(fabric, people.run(), entity=SUBJECT, confidence=0.9, **fields)
        fabric.consolidate(people.tenant_id)
        after = fabric.queue.get(people.reviewer, item.proposal_id)
        return after.auto_promote_eligible, after.status, after.human_reasons

    with under(AUTO) as fabric:
        for n in range(12):
            known = proposed(fabric, people.run(), entity=f"customer:c_{n}", predicate="p", value=n, confidence=0.9)
            fabric.queue.approve(people.reviewer, known.proposal_id)
        run_job(fabric, "calibrate", people.tenant_id)
        _flagged_wait(fabric, people, outcome)


def _flagged_wait(fabric: Fabric, people: People, outcome: Any) -> None:
    plain, flagged = (True, "promoted", ()), (False, "pending", ("compliance_flag",))
    assert outcome(fabric, predicate="likes", value="tea") == plain
    assert outcome(fabric, predicate="legal_hold", value="yes") == flagged
    assert outcome(fabric, predicate="illegal", value="yes") == plain
    assert outcome(fabric, predicate="said", value={"deep": ["He filed a LAWSUIT"]}) == flagged
    assert outcome(fabric, predicate="prefers_channel", value="fax") == flagged
    assert outcome(fabric, predicate="reads", value="fax") == plain
    (item,) = fabric.queue.list(people.reviewer, reason="compliance_flag", limit=1)
    assert item.candidate.flags == ("compliance_flag",)
    by_label = [one.candidate.classification for one in fabric.queue.list(people.reviewer, reason="compliance_flag")]
    assert sorted(by_label) == ["CONFIDENTIAL", "INTERNAL", "INTERNAL"]
    gates = {one.gate: one.reason for one in item.candidate.gates}
    assert gates["classification"] == "flagged"


@pytest.mark.rule("REV-10", "CON-2")
def test_a_flag_that_raises_the_label_to_a_sensitive_one_needs_consent(under: Opener, people: People) -> None:
    with under(FLAG % "{pattern: diagnos, label: PII}") as fabric:
        _raised(fabric, people)


def _raised(fabric: Fabric, people: People) -> None:
    fact: dict[str, Any] = {"entity": SUBJECT, "predicate": "said", "value": "was diagnosed", "subject": SUBJECT}
    no = fabric.propose(people.run(), **fact, write_class="preference", classification="PUBLIC", confidence=0.7)
    assert (getattr(no, "gate", None), getattr(no, "reason", None)) == ("consent", "consent_missing")
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    item = proposed(fabric, people.run(), **fact)
    assert (item.candidate.classification, item.sensitive) == ("PII", True)
    assert "compliance_flag" in item.human_reasons


@pytest.mark.rule("REV-10", "REV-5")
def test_an_edit_that_takes_out_what_was_flagged_is_not_flagged_any_more(under: Opener, people: People) -> None:
    with under(FLAG % "{pattern: lawsuit}") as fabric:
        item = proposed(fabric, people.run(), entity=SUBJECT, predicate="said", value="a lawsuit")
        assert "compliance_flag" in item.human_reasons
        edited = fabric.queue.edit(people.reviewer, item.proposal_id, value="a letter", text="said a letter")
        assert isinstance(edited, Proposal)
        assert "compliance_flag" not in edited.human_reasons


@pytest.mark.rule("REV-10", "RED-2")
def test_a_rule_matches_by_predicate_or_text_and_in_linear_time() -> None:
    typed = draft(predicate="legal_hold", text="x", value={"legal": 1})
    plain = draft(write_class="statement", entity=None, predicate=None, value=None, text="a" * 30_000 + "!")
    assert [
        len(matching_flags(typed, packed({"predicate": one}))) for one in ("*", "legal*", "legal_hold", "legal")
    ] == [
        1,
        1,
        1,
        0,
    ]
    assert [len(matching_flags(plain, packed({"predicate": one}))) for one in ("*", "legal*")] == [1, 0]
    assert matching_flags(plain, packed({"pattern": "(a+)+b"})) == ()
    assert len(matching_flags(typed, packed({"pattern": "^legal$"}))) == 1


@pytest.mark.rule("REV-10", "PAC-1")
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{label: PII}", "expected a predicate, a pattern, or both"),
        ("{predicate: likes, label: SECRET}", "SECRET is not declared"),
        ("{pattern: '(a'}", "RE2"),
        ("{predicate: 'Bad Name'}", "predicate"),
        ("{predicate: likes, colour: red}", "colour"),
    ],
)
def test_a_wrong_flag_rule_is_refused_at_its_line(rule: str, said: str) -> None:
    document = f'pack_meta: {{id: a.b, version: "1.0.0"}}\nmemory_layer:\n  flag_for_review:\n    - {rule}\n'
    with pytest.raises(PackInvalid) as caught:
        load_pack(document)
    (problem,) = caught.value.problems
    assert problem.line == 4
    assert said in str(problem)


@pytest.mark.rule("CTR-3", "CTR-6", "REC-4")
def test_a_memory_says_that_a_contradiction_of_it_is_open_and_no_more_once_it_is_settled(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = promoted(fabric, people, "email")
    other = promoted(fabric, people, "seven", predicate="lucky_number")

    def said() -> dict[str, bool]:
        return {one.memory_id: one.contradiction for one in fabric.memories.list(people.auditor)}

    assert said() == {first: False, other: False}
    waits = proposed(fabric, people.run(), **KEY, value="phone")
    # A person is told while it is a proposal still; a run sees no proposals.
    assert said() == {first: True, other: False}
    assert fabric.get(people.reviewer, first).contradiction
    assert not fabric.get(people.run(), first).contradiction
    assert [one.contradiction for one in fabric.recall(people.run()).all_records] == [False, False]
    clock.advance(minutes=1)
    second = fabric.queue.approve(people.reviewer, waits.proposal_id).memory_id
    assert second is not None
    assert said() == {first: True, second: True, other: False}
    shown = {one.id: one.contradiction for one in fabric.recall(people.run()).all_records}
    assert shown == {first: True, second: True, other: False}
    assert fabric.get(people.run(), second).contradiction
    assert fabric.trail(people.auditor, first).memory.contradiction
    between = clock.now
    clock.advance(minutes=1)
    (one,) = fabric.contradictions.list(people.reviewer)
    fabric.contradictions.resolve(people.reviewer, one.contradiction_id, "supersede")
    assert said() == {second: False, other: False}
    assert not fabric.get(people.auditor, first).contradiction
    then = fabric.memories.list(people.auditor, as_of=between)
    assert {one.memory_id: one.contradiction for one in then} == {first: True, second: True, other: False}
