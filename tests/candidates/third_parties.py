"""What tests of third parties have in common: captures, consents and what a gate said."""

from typing import Any

from muniment import Fabric
from muniment.model.proposal import Proposal
from muniment.testing import People
from tests.stories import CONSENT

OWN: dict[str, Any] = {"write_class": "statement", "kind": "message"}
NOTE: dict[str, Any] = {"write_class": "statement", "kind": "statement"}
MESSAGES = "memory_layer: {statements_from: [message, statement]}"


def grant(fabric: Fabric, people: People, subject: str) -> str:
    return fabric.consent.grant(people.officer, subject=subject, **CONSENT).consent_id


def gate(item: Proposal, name: str) -> str:
    (found,) = [one for one in item.candidate.gates if one.gate == name]
    return f"{found.reason} {found.detail}"
