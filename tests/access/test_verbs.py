"""What every verb does before its handler: authorise the caller, then check the input."""

import pytest

from muniment import Fabric, Principal
from muniment.errors import InvalidInput, RoleMissing
from muniment.testing import People


@pytest.mark.rule("ERR-1")
def test_on_progress_is_an_unknown_field_where_a_verb_reports_none(fabric: Fabric, people: People) -> None:
    unknown = {"on_progress": print}
    with pytest.raises(InvalidInput, match="on_progress"):
        fabric.propose(
            people.run(), write_class="preference", entity="customer:c", predicate="p", value=1, classification="INTERNAL",
            **unknown,  # type: ignore[arg-type]  # wrong on purpose
        )  # fmt: skip
    with pytest.raises(InvalidInput, match="on_progress"):
        fabric.queue.list(people.reviewer, **unknown)  # type: ignore[arg-type]  # wrong on purpose
    assert fabric.queue.list(people.reviewer) == []


@pytest.mark.rule("AUD-3", "ISO-5")
def test_who_may_not_is_denied_and_recorded_before_the_input_is_looked_at(fabric: Fabric, people: People) -> None:
    fabric.capture(people.run(), kind="message", text="a tenant with a log", classification="INTERNAL")
    nobody = Principal(tenant_id=people.tenant_id, id="nina", kind="operator", roles=set())
    with pytest.raises(RoleMissing):
        fabric.queue.preview(nobody, "mwp_x", query=5)  # type: ignore[arg-type]  # wrong on purpose
    (denied,) = [one for one in fabric.events(people.auditor) if one.type == "memory.security"]
    assert (denied.actor, denied.data["verb"]) == ("nina", "review")
