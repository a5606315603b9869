"""A tenant with a row in every table, for tests that knock at the database itself."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.testing import People
from tests.pipeline.stories import CONSENT, promoted, proposed, refused


@pytest.fixture
def furnished(fabric: Fabric, people: People) -> dict[str, Any]:
    """Every table has something of this tenant."""
    subject = "customer:cust_1"
    consent = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL", idempotency_key="k1")
    fabric.consolidate(people.tenant_id)
    first = promoted(fabric, people, "email")
    second = promoted(fabric, people, "phone")
    sensitive = promoted(
        fabric, people, "+49 30 1234567", predicate="phone_number", subject=subject, classification="PII"
    )
    refused(fabric, people.run(), entity="customer:x", predicate="p", value="v", classification="PII")
    waiting = proposed(fabric, people.run(), entity="customer:cust_1", predicate="likes", value="tea")
    gone = promoted(fabric, people, "blue", predicate="favourite_colour")
    fabric.retract(people.reviewer, gone, reason="wrong")
    fabric.recall(people.run())
    return {
        "consent": consent,
        "memories": [first, second, sensitive],
        "waiting": waiting.proposal_id,
        "retracted": gone,
    }
