"""kill -9 between any two statements of a promotion leaves all of it or nothing."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muniment import Fabric
from muniment.testing import People, TestServer
from tests.security.catalogue import Connection
from tests.stories import proposed

CHILD = Path(__file__).parent / "killed_child.py"
MOST_STATEMENTS = 64


def _traces(owner: Connection, tenant: str, proposal_ids: list[str]) -> list[list[int]]:
    """How much of each promotion is there: verdict, memory, body, filters, retraction, event."""
    rows = owner.execute(
        """SELECT (SELECT count(*) FROM verdicts v WHERE v.tenant_id = %(t)s AND v.proposal_id = p),
          (SELECT count(*) FROM memories m WHERE m.tenant_id = %(t)s AND m.proposal_id = p),
          (SELECT count(*) FROM memories m JOIN memory_bodies b USING (tenant_id, memory_id) WHERE m.tenant_id = %(t)s AND m.proposal_id = p),
          (SELECT count(*) FROM memories m JOIN memory_scope f USING (tenant_id, memory_id) WHERE m.tenant_id = %(t)s AND m.proposal_id = p),
          (SELECT count(*) FROM memories m JOIN retractions r ON r.tenant_id = m.tenant_id AND r.superseded_by = m.memory_id WHERE m.tenant_id = %(t)s AND m.proposal_id = p),
          (SELECT count(*) FROM events e WHERE e.tenant_id = %(t)s AND e.type = 'memory.promoted' AND position(p IN convert_from(e.body, 'UTF8')) > 0)
        FROM unnest(%(p)s::text[]) AS asked (p)""",
        {"t": tenant, "p": proposal_ids},
    ).fetchall()
    return [[int(str(count)) for count in row] for row in rows]


@pytest.mark.rule("ERR-2", "PRO-1", "PRO-5")
def test_a_promotion_killed_before_any_of_its_statements_leaves_all_or_nothing(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    # Each is a correction of a live memory of its own, so that a promotion has everything a promotion can have.
    keys = [{"entity": "customer:cust_1", "predicate": f"p{n}"} for n in range(MOST_STATEMENTS)]
    old = [proposed(fabric, people.run(), value="old", **key).proposal_id for key in keys]
    assert {one.status for one in fabric.queue.approve_many(people.reviewer, old)} == {"promoted"}
    correction: dict[str, Any] = {"write_class": "correction", "value": "new", "user_id": "cust_1"}
    waiting = [proposed(fabric, people.author, **correction, **key).proposal_id for key in keys]
    child = subprocess.run(
        [sys.executable, str(CHILD), server.url(database), people.tenant_id, *waiting],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    statements = int(child.stdout)
    assert 15 <= statements < MOST_STATEMENTS
    done, killed = waiting[0], waiting[1 : statements + 1]
    whole, nothing = [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]
    with server.connect(database) as owner:
        assert _traces(owner, people.tenant_id, [done, *killed]) == [whole, *[nothing] * statements]
        for proposal_id in killed:
            assert fabric.queue.approve(people.reviewer, proposal_id).status == "promoted"
        assert _traces(owner, people.tenant_id, killed) == [whole] * statements
    seqs = [event.seq for event in fabric.events(people.auditor, limit=1000)]
    assert sorted(set(seqs)) == list(range(1, max(seqs) + 1))
