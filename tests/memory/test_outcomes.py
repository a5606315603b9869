"""`me.outcomes`: a person sees what became of their own captures, and of nobody else's."""

import pytest

from muniment import Fabric, Principal
from muniment.errors import InvalidInput, NotFound
from muniment.testing import People
from tests.conftest import Opener

PACK = """
memory_layer:
  classes: {statement: {approval: auto, auto_promotion: {threshold: 0.9}}}
  confidence: {said: 0.95}
  consent: {ask: subject}
  subject: {confirms: true}
  memory_policy: {tier_routing: [{tier: semantic}]}
"""


def _said(fabric: Fabric, people: People, user: str, text: str) -> str:
    return fabric.capture(people.run(user), kind="message", text=text, classification="INTERNAL").capture_id


def _person(people: People, user: str) -> Principal:
    return Principal(tenant_id=people.tenant_id, id=user, kind="end_user", roles={"subject"})


@pytest.mark.rule("MEM-3", "SUB-1")
def test_outcomes_are_told_from_the_capture_on_to_the_last_verdict(under: Opener, people: People) -> None:
    with under(PACK) as fabric:
        joanna = _person(people, "joanna")
        plain, health = (_said(fabric, people, "joanna", text) for text in ("I live in Berlin.", "I have diabetes."))
        waiting = fabric.me.outcomes(joanna, [health, plain])
        assert [(one.capture_id, one.read, one.facts, one.refusals) for one in waiting] == [
            (health, False, (), ()),
            (plain, False, (), ()),
        ]
        fabric.consolidate(people.tenant_id)
        refused, kept = fabric.me.outcomes(joanna, [health, plain])
        assert refused.read and [(one.gate, one.reason) for one in refused.refusals] == [("consent", "consent_missing")]
        (fact,) = kept.facts
        assert fact.text == "I live in Berlin." and fact.status == "pending" and fact.memory_id is None
        fabric.queue.approve(people.reviewer, fact.proposal_id)
        (fact,) = fabric.me.outcomes(joanna, [plain])[0].facts
        assert fact.status == "promoted" and fact.memory_id is not None and not fact.may_confirm
        fabric.me.consent(joanna, data_classifications_allowed=["PII"])
        fabric.consolidate(people.tenant_id)
        (again,) = fabric.me.outcomes(joanna, [health])
        assert again.refusals == () and [one.may_confirm for one in again.facts] == [True]


@pytest.mark.rule("SUB-1", "ISO-4")
def test_outcomes_of_another_users_capture_are_not_found(under: Opener, people: People, others: People) -> None:
    with under(PACK) as fabric:
        mine = _said(fabric, people, "joanna", "I live in Berlin.")
        for stranger in (_person(people, "tom"), _person(people, "JOANNA"), _person(others, "joanna")):
            with pytest.raises(NotFound):
                fabric.me.outcomes(stranger, [mine])
        with pytest.raises(NotFound):
            fabric.me.outcomes(_person(people, "joanna"), [mine, "cap_none"])
        with pytest.raises(InvalidInput):
            fabric.me.outcomes(_person(people, "joanna"), [])
