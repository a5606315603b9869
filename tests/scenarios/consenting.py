"""Rules by which consents come and go, and time passes."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from muniment.errors import ConsentChanged
from tests.scenarios.settling import Settling
from tests.scenarios.stage import anything, pick, tenants
from tests.scenarios.world import ENTITIES, FAULTS, UNRESOLVED
from tests.scenarios.writing import confidences, entities, labels, places, predicates, soon, values

subjects = st.sampled_from(ENTITIES)
past = st.fixed_dictionaries(
    {"place": places, "entity": entities, "predicate": predicates, "value": values, "label": labels}
)
quarrel = st.fixed_dictionaries({"which": anything, "label": labels, "confidence": confidences, "then": soon})
days = st.sampled_from((None, 1, 40))


class Consenting(Settling):
    """The privacy officer, and the clock."""

    @initialize(
        unresolved=st.sampled_from(("mark_both", "mark_both", *UNRESOLVED)),
        facts=st.lists(past, min_size=3, max_size=3),
        others=st.lists(quarrel, min_size=2, max_size=2),
    )
    def begin(self, unresolved: str, facts: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
        """Begin where customers have agreed to something, and something is believed of them, not all of one mind."""
        self.open(unresolved)
        for subject in ENTITIES:
            self._grant(0, subject, ("*",), self._until(40))
        for fact in facts:
            self.propose(0, then="clara", **fact)
        for other in others:
            self.oppose(**other, write_class="preference", elsewhere=None)

    @rule(tenant=tenants, subject=subjects, predicates=st.sampled_from((("*",), ("channel",))), lasts=days)
    def grant(self, tenant: int, subject: str, predicates: tuple[str, ...], lasts: int | None) -> None:
        self._grant(tenant, subject, predicates, self._until(lasts))

    def _grant(self, tenant: int, subject: str, predicates: tuple[str, ...], until: datetime | None) -> None:
        people, oracle = self.on(tenant)
        granted = self.fabric.consent.grant(
            people.officer, subject=subject, purpose="support", predicates_allowed=predicates,
            data_classifications_allowed=["PII"], basis="opt_in", valid_until=until,
        )  # fmt: skip
        oracle.ledger.grant(granted.consent_id, subject, predicates, self.clock.now, until)

    def _until(self, lasts: int | None) -> datetime | None:
        return self.clock.now + timedelta(days=lasts) if lasts is not None else None

    @precondition(lambda self: any(oracle.ledger.grants for oracle in self.oracle))
    @rule(which=anything, lasts=days)
    def renew(self, which: int, lasts: int | None) -> None:
        tenant, consent_id = pick(self._grants(), which)
        people, oracle = self.on(tenant)
        earlier = oracle.ledger.grants[consent_id]
        if "renewal_of_the_swept" in FAULTS and earlier.root in oracle.ledger.swept and earlier.until == self.clock.now:
            return
        fields = {
            "subject": earlier.subject, "purpose": "support", "predicates_allowed": earlier.predicates,
            "data_classifications_allowed": ["PII"], "basis": "opt_in", "supersedes": consent_id,
            "valid_until": self._until(lasts),
        }  # fmt: skip
        if oracle.ledger.changed(consent_id):
            with pytest.raises(ConsentChanged):
                self.fabric.consent.grant(people.officer, **fields)
        else:
            granted = self.fabric.consent.grant(people.officer, **fields)
            oracle.ledger.renew(earlier, granted.consent_id, self.clock.now, self._until(lasts))

    @precondition(lambda self: any(oracle.ledger.grants for oracle in self.oracle))
    @rule(which=anything)
    def revoke(self, which: int) -> None:
        tenant, consent_id = pick(self._grants(), which)
        people, oracle = self.on(tenant)
        if oracle.ledger.changed(consent_id):
            with pytest.raises(ConsentChanged):
                self.fabric.consent.revoke(people.officer, consent_id)
        else:
            self.fabric.consent.revoke(people.officer, consent_id)
            oracle.ledger.revoked.add(oracle.ledger.grants[consent_id].root)

    def _grants(self) -> list[tuple[int, str]]:
        return [
            (tenant, consent_id) for tenant, oracle in enumerate(self.oracle) for consent_id in oracle.ledger.grants
        ]

    @precondition(lambda self: any(oracle.ledger.ended(self.clock.now) for oracle in self.oracle))
    @rule()
    def sweep(self) -> None:
        for tenant in range(2):
            people, oracle = self.on(tenant)
            swept = self.fabric.consent.sweep(people.tenant_id)
            assert (swept.consents, swept.memories) == oracle.sweep(self.clock.now)
            assert self.fabric.consent.sweep(people.tenant_id).consents == 0

    @rule(by=st.sampled_from((*[{"minutes": 61}] * 2, *[{"days": 1}] * 4, {"days": 31}, {"days": 180}, {"days": 366})))
    def wait(self, by: dict[str, float]) -> None:
        self.clock.advance(**by)
        self.touched = {0, 1}
