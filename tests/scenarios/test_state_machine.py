"""A machine drives the whole fabric, tenants, people and a clock, and compares it with the oracle after every step."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.scenarios.watching import Watching
from tests.soak import examples


@pytest.mark.rule(
    "REC-1", "REC-2", "REC-3", "REC-4", "REC-6", "REC-7", "REC-9", "REC-10", "ISO-1", "ISO-4", "REV-4", "REV-6", "REV-7", "REV-8", "REV-9", "PRO-1", "PRO-3",
    "PRO-4", "PRO-5", "PRO-6", "CON-1", "CON-2", "CON-3", "CON-4", "CON-5", "CTR-1", "CTR-2", "CTR-3", "CTR-4", "CTR-5",
    "CTR-6", "COR-1", "COR-2", "RED-1", "CAN-4", "TIR-2", "CAP-1",
)  # fmt: skip
def test_whatever_is_done_recall_shows_what_was_promoted_and_may_be_seen_and_nothing_else(staged: None) -> None:
    run_state_machine_as_test(
        Watching,
        settings=settings(
            max_examples=examples(4),
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # Each step is a dozen transactions: a failing story is told as found, not shrunk for minutes.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            print_blob=True,
        ),
    )
