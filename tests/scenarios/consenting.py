"""Steps that grant and end consents, and let time pass."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from muniment.errors import ConsentChanged
from tests.scenarios.settling import Settling
from tests.scenarios.stage import Stage, anything, pick, tenants
from tests.scenarios.world import ENTITIES, PLACES, UNRESOLVED
from tests.scenarios.writing import classes, confidences, entities, labels, places, predicates, soon, values

subjects = st.sampled_from(ENTITIES)
past = st.fixed_dictionaries(
    {"place": places, "entity": entities, "predicate": predicates, "value": values, "label": labels}
)
# Said in a session or a workflow, and kept there.
inside = st.fixed_dictionaries(
    {"place": st.sampled_from([place for place in PLACES if place.session and place.workflow]), "label": labels}
)
quarrel = st.fixed_dictionaries(
    {"which": anything, "label": labels, "confidence": confidences, "write_class": classes, "then": soon}
)
days = st.sampled_from((None, 1, 40))


def ending(self: Stage) -> list[datetime]:
    return [
        grant.until
        for oracle in self.oracle
        for grant in oracle.ledger.grants.values()
        if grant.until is not None and grant.runs(self.clock.now)
    ]


class Consenting(Settling):
    """The privacy officer, and the clock."""

    @initialize(
        unresolved=st.sampled_from(("mark_both", "mark_both", *UNRESOLVED)),
        facts=st.lists(past, min_size=3, max_size=3),
        others=st.lists(quarrel, min_size=2, max_size=2),
        kept=inside,
    )
    def begin(
        self, unresolved: str, facts: list[dict[str, Any]], others: list[dict[str, Any]], kept: dict[str, Any]
    ) -> None:
        """Begin where customers have agreed to something, and something is believed of them, not all of one mind."""
        self.open(unresolved)
        for subject in ENTITIES:
            self._grant(0, subject, ("*",), self._until(40))
        for fact in facts:
            self.propose(0, then="clara", **fact)
        for other in others:
            self.oppose(**other, age=timedelta(0), elsewhere=None)
        for tier in ("working", "episodic"):
            self.propose(0, then=None, entity=ENTITIES[0], predicate="tag", value=f"kept {tier}", **kept)
            self.approve(which=-1, who="clara", victim=None, tier=tier)

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

    def all_is_as_it_must_be(self) -> None:
        """Look at everything."""
        raise NotImplementedError

    def _until(self, lasts: int | None) -> datetime | None:
        return self.clock.now + timedelta(days=lasts) if lasts is not None else None

    @precondition(lambda self: any(oracle.ledger.grants for oracle in self.oracle))
    @rule(which=anything, lasts=days)
    def renew(self, which: int, lasts: int | None) -> None:
        tenant, consent_id = pick(self._grants(), which)
        people, oracle = self.on(tenant)
        earlier = oracle.ledger.grants[consent_id]
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
    @rule(which=anything, swept=st.booleans())
    def revoke(self, which: int, swept: bool) -> None:
        tenant, consent_id = pick(self._grants(), which)
        people, oracle = self.on(tenant)
        if oracle.ledger.changed(consent_id):
            with pytest.raises(ConsentChanged):
                self.fabric.consent.revoke(people.officer, consent_id)
        else:
            self.fabric.consent.revoke(people.officer, consent_id)
            oracle.ledger.revoked.add(oracle.ledger.grants[consent_id].root)
        self._sweep(swept)

    @precondition(ending)
    @rule(
        which=anything, short=st.sampled_from((timedelta(0), timedelta(0), timedelta(minutes=1))), swept=st.booleans()
    )
    def lapse(self, which: int, short: timedelta, swept: bool) -> None:
        """Let a consent run out, to the minute or just not yet."""
        self.until(pick(ending(self), which) - short)
        self._sweep(swept)

    def _grants(self) -> list[tuple[int, str]]:
        return [
            (tenant, consent_id) for tenant, oracle in enumerate(self.oracle) for consent_id in oracle.ledger.grants
        ]

    def _sweep(self, swept_too: bool) -> None:
        """Have the memories of ended consents taken away, if so told; they are hidden before."""
        if swept_too:
            self.all_is_as_it_must_be()
        for tenant in range(2) if swept_too else ():
            people, oracle = self.on(tenant)
            swept = self.fabric.consent.sweep(people.tenant_id)
            assert (swept.consents, swept.memories) == oracle.sweep(self.clock.now)
            assert self.fabric.consent.sweep(people.tenant_id).consents == 0

    @rule(
        by=st.sampled_from(
            (*[{"minutes": 61}] * 2, *[{"days": 1}] * 3, {"days": 21}, {"days": 31}, {"days": 180}, {"days": 366})
        )
    )
    def wait(self, by: dict[str, float]) -> None:
        self.until(self.clock.now + timedelta(**by))
