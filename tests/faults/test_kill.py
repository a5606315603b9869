"""kill -9 between any two statements of a promotion leaves all of it or nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from muniment import Fabric
from muniment.testing import People, TestServer
from tests.pipeline.stories import promoted, proposed

CHILD = Path(__file__).parent / "killed_child.py"
MOST_STATEMENTS = 48


def _traces(owner: Connection, tenant: str, proposal_id: str) -> list[int]:
    """How much of a promotion is there: verdict, memory, body, filters, retraction, contradiction, event."""
    row = owner.execute(
        """SELECT (SELECT count(*) FROM verdicts v WHERE v.tenant_id = %(t)s AND v.proposal_id = %(p)s),
              (SELECT count(*) FROM memories m WHERE m.tenant_id = %(t)s AND m.proposal_id = %(p)s),
              (SELECT count(*) FROM memories m JOIN memory_bodies b USING (tenant_id, memory_id) WHERE m.tenant_id = %(t)s AND m.proposal_id = %(p)s),
              (SELECT count(*) FROM memories m JOIN memory_scope f USING (tenant_id, memory_id) WHERE m.tenant_id = %(t)s AND m.proposal_id = %(p)s),
              (SELECT count(*) FROM memories m JOIN retractions r ON r.tenant_id = m.tenant_id AND r.superseded_by = m.memory_id WHERE m.tenant_id = %(t)s AND m.proposal_id = %(p)s),
              (SELECT count(*) FROM events e WHERE e.tenant_id = %(t)s AND e.type = 'memory.promoted' AND position(%(p)s IN convert_from(e.body, 'UTF8')) > 0)""",
            {"t": tenant, "p": proposal_id},
        ).fetchone()
    assert row is not None
    return [int(str(count)) for count in row]


@pytest.mark.rule("ERR-2", "PRO-1", "PRO-5")
def test_a_promotion_killed_before_any_of_its_statements_leaves_all_or_nothing(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    waiting: list[str] = []
    for n in range(MOST_STATEMENTS):
        # Each is a correction of a live memory of its own, so that a promotion has everything a promotion can have.
        promoted(fabric, people, "old", predicate=f"p{n}")
        item = proposed(
            fabric, people.author, write_class="correction", entity="customer:cust_1", predicate=f"p{n}", value="new",
            user_id="cust_1",
        )  # fmt: skip
        waiting.append(item.proposal_id)
    child = subprocess.run(
        [sys.executable, str(CHILD), server.url(database), people.tenant_id, *waiting],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    statements = int(child.stdout)
    assert 15 <= statements < MOST_STATEMENTS
    assert _traces(server, database, people.tenant_id, waiting[0]) == [1, 1, 1, 1, 1, 1]
    for proposal_id in waiting[1 : statements + 1]:
        assert _traces(server, database, people.tenant_id, proposal_id) == [0, 0, 0, 0, 0, 0]
    for proposal_id in waiting[1 : statements + 1]:
        assert fabric.queue.approve(people.reviewer, proposal_id).status == "promoted"
        assert _traces(server, database, people.tenant_id, proposal_id) == [1, 1, 1, 1, 1, 1]
    seqs = [event.seq for event in fabric.events(people.auditor, limit=1000)]
    assert sorted(set(seqs)) == list(range(1, max(seqs) + 1))
