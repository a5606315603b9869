"""Consents as the oracle knows them: records, unbroken chains of them, and which chains have been swept."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Agreed:
    """A grant. A renewal that leaves no gap belongs to the chain of the one before."""

    consent_id: str
    root: str
    subject: str
    predicates: tuple[str, ...]
    since: datetime
    until: datetime | None
    renewed: bool = False

    def runs(self, now: datetime) -> bool:
        return not self.renewed and self.since <= now and (self.until is None or now < self.until)

    def about(self, predicate: str | None) -> bool:
        return "*" in self.predicates or predicate in self.predicates


@dataclass
class Ledger:
    """All grants of a tenant, the oldest first."""

    grants: dict[str, Agreed] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    swept: set[str] = field(default_factory=set)

    def grant(
        self, consent_id: str, subject: str, predicates: tuple[str, ...], now: datetime, until: datetime | None
    ) -> None:
        self.grants[consent_id] = Agreed(consent_id, consent_id, subject, predicates, now, until)

    def renew(self, earlier: Agreed, consent_id: str, now: datetime, until: datetime | None) -> None:
        self.grant(consent_id, earlier.subject, earlier.predicates, now, until)
        earlier.renewed = True
        if earlier.root not in self.swept and (earlier.until is None or now <= earlier.until):
            self.grants[consent_id].root = earlier.root

    def changed(self, consent_id: str) -> bool:
        """Whether a later record stands in its place."""
        grant = self.grants[consent_id]
        return grant.renewed or grant.root in self.revoked

    def allows(self, root: str, predicate: str | None, now: datetime) -> bool:
        """Whether the chain that a memory rests on still holds it."""
        return root not in self.revoked and any(
            grant.root == root and grant.runs(now) and grant.about(predicate) for grant in self.grants.values()
        )

    def may_return(self, root: str, now: datetime) -> bool:
        """Whether the chain can still be renewed without a gap."""
        return root not in self.revoked and any(
            grant.root == root and not grant.renewed and (grant.until is None or now <= grant.until)
            for grant in self.grants.values()
        )

    def covering(self, subject: str | None, predicate: str | None, now: datetime) -> Agreed | None:
        """The latest consent that lets something be remembered."""
        found = [
            grant
            for grant in self.grants.values()
            if grant.subject == subject
            and grant.root not in self.revoked
            and grant.runs(now)
            and grant.about(predicate)
        ]
        return found[-1] if found else None

    def ended(self, now: datetime) -> set[str]:
        """The chains that allow nothing any more and have not been swept."""
        roots = {grant.root for grant in self.grants.values()} - self.swept
        going = {grant.root for grant in self.grants.values() if grant.runs(now)} - self.revoked
        return roots - going
