"""Rules by which packs are registered, put in force, retired and pinned."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from muniment.errors import Conflict, NotFound, PinRefused, SecondPersonRequired
from tests.pack_activation import admin
from tests.scenarios.consenting import Consenting
from tests.scenarios.stage import tenants
from tests.scenarios.world import FIRST, VERSIONS, pack_id, version_of

versions = st.sampled_from((*VERSIONS, "2.0.0", "3.0.0"))


class Packing(Consenting):
    """The admins: `ada` registers, `ada` and `zoe` put in force."""

    def open(self, unresolved: str) -> None:
        super().open(unresolved)
        self.unresolved = unresolved

    def ref(self, version: str) -> str:
        return f"{pack_id(self.unresolved)}@{version}"

    @rule(tenant=tenants, version=versions)
    def register(self, tenant: int, version: str) -> None:
        """A draft decides nothing: whatever is looked at after this step is as it was before."""
        people, oracle = self.on(tenant)
        self.fabric.packs.register(admin(people.tenant_id), version_of(self.unresolved, version))
        oracle.registered.add(version)

    @rule(tenant=tenants, version=versions, registered=st.booleans())
    def activate(self, tenant: int, version: str, registered: bool) -> None:
        people, oracle = self.on(tenant)
        if registered and version not in oracle.registered:
            self.register(tenant, version)
        alone, second = (admin(people.tenant_id, name) for name in ("ada", "zoe"))

        def activated(by: Any) -> str:
            return self.fabric.packs.activate(by, self.ref(version), reason="the story wants it").pack

        if version not in oracle.registered:
            with pytest.raises(NotFound):
                activated(second)
            return
        if version == oracle.in_force or version in oracle.retired:
            with pytest.raises(Conflict):
                activated(second)
            return
        # The first version was registered by the program, the others by `ada`.
        if self._loosens(oracle.in_force, version) and version != FIRST:
            with pytest.raises(SecondPersonRequired):
                activated(alone)
        assert activated(second) == self.ref(version)
        oracle.activate(version, self.clock.now)
        assert self.fabric.packs.in_force(people.auditor).pack == self.ref(version)

    @staticmethod
    def _loosens(before: str, after: str) -> bool:
        was, now = VERSIONS[before], VERSIONS[after]
        return now.floor < was.floor or now.trust_floor < was.trust_floor or not now.cleared <= was.cleared

    @rule(tenant=tenants, version=versions)
    def retire(self, tenant: int, version: str) -> None:
        people, oracle = self.on(tenant)
        by, ref = admin(people.tenant_id), self.ref(version)
        usable = version in oracle.registered and version not in oracle.retired and version != oracle.in_force
        if not usable:
            with pytest.raises(NotFound if version not in oracle.registered else Conflict):
                self.fabric.packs.retire(by, ref, reason="the story wants it")
            return
        self.fabric.packs.retire(by, ref, reason="the story wants it")
        oracle.retired.add(version)

    @rule(tenant=tenants, version=versions, user=st.sampled_from((None, "u1")))
    def pin(self, tenant: int, version: str, user: str | None) -> None:
        """A pin is refused, or shows no more than the pack in force does, and no more than the pinned one would."""
        people, oracle = self.on(tenant)
        run = people.run(user, pack=self.ref(version))
        if not oracle.may_pin(version):
            for verb in (self.fabric.recall, self.fabric.compile):
                with pytest.raises(PinRefused):
                    verb(run)
            return
        shown = {record.id: record for record in self.fabric.recall(run).all_records}
        unpinned = {record.id for record in self.fabric.recall(people.run(user)).all_records}
        allowed = VERSIONS[version].cleared & VERSIONS[oracle.in_force].cleared
        assert shown.keys() == {memory_id for memory_id in unpinned if oracle.memories[memory_id].fact.label in allowed}
        # What is written under a pin is decided by the pack in force.
        receipt = self.fabric.capture(run, kind="message", text="hello", classification="INTERNAL")
        rows = self.superuser.execute(
            "SELECT pack FROM muniment.captures WHERE tenant_id = %s AND capture_id = %s",
            [people.tenant_id, receipt.capture_id],
        ).fetchall()
        assert rows == [(self.ref(oracle.in_force),)]
