"""What people look at, through a server: the same answers as the fabric's own."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.server_thread import RemoteFabric, ServerThread
from tests.stories import CONSENT, KEY, promoted, proposed


@pytest.fixture(scope="module")
def local(server: TestServer, database: str) -> Iterator[Fabric]:
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as opened:
        yield opened


@pytest.fixture(scope="module")
def remote(server: TestServer, database: str, local: Fabric) -> Iterator[RemoteFabric]:
    with ServerThread.on(server.url(database)) as running, RemoteFabric(local, running.url) as opened:
        yield opened


def test_every_view_is_the_same_through_a_server(local: Fabric, remote: RemoteFabric, people: People) -> None:
    before = datetime.now(UTC) - timedelta(hours=1)
    memory_id = promoted(local, people, "company:acme", predicate="works_at", text="She works at Acme.")
    promoted(local, people, "email")
    item = proposed(local, people.run(), **KEY, value="phone").proposal_id
    local.queue.assign(people.second_reviewer, item)
    local.queue.attend(people.second_reviewer, item)
    (against,) = local.contradictions.list(people.reviewer)
    recall = local.recall(people.run(), "Acme").recall_id
    consent = local.consent.grant(people.officer, subject=KEY["entity"], **CONSENT).consent_id
    queue: dict[str, Any] = {"tier": "semantic", "risk": "low", "reason": "contradiction", "entity": KEY["entity"]}
    queue |= {"assignee": "clara", "status": "pending", "overdue": False, "write_class": "preference"}
    looks = (
        lambda fabric: fabric.queue.list(people.reviewer, **queue),
        lambda fabric: fabric.queue.list(people.reviewer, status="held", closed=True),
        lambda fabric: fabric.queue.counts(people.reviewer),
        lambda fabric: fabric.queue.check(people.reviewer, item, value="post").contradicts,
        lambda fabric: fabric.queue.check(people.reviewer, item, text="Reach her by post.").tier,
        lambda fabric: fabric.queue.preview(people.reviewer, item, run=people.run("cust_2")).after,
        lambda fabric: fabric.queue.preview(people.reviewer, item, query="Acme").before.all_ids,
        lambda fabric: fabric.queue.attend(people.reviewer, item),
        lambda fabric: fabric.contradictions.get(people.reviewer, against.contradiction_id),
        lambda fabric: fabric.memories.list(people.auditor, user_id="cust_1", tier="semantic", state="all", limit=1),
        lambda fabric: fabric.memories.list(people.auditor, query="Acme", as_of=datetime.now(UTC)),
        lambda fabric: fabric.memories.changes(people.auditor, since=before, until=None).added,
        lambda fabric: fabric.memories.moments(people.auditor, entity=KEY["entity"]),
        lambda fabric: fabric.memories.graph(people.auditor, "company:acme", hops=2),
        lambda fabric: fabric.recalls.list(people.auditor, user_id="cust_1", memory_id=memory_id, limit=1),
        lambda fabric: fabric.recalls.list(people.reviewer, run_id=people.run().run_id, agent_id=people.run().agent_id),
        lambda fabric: fabric.recalls.get(people.auditor, recall),
        lambda fabric: fabric.recalls.get(people.run(), recall),
        lambda fabric: fabric.consent.reach(people.auditor, consent_id=consent),
        lambda fabric: fabric.consent.reach(people.auditor, subject=KEY["entity"]),
        lambda fabric: fabric.trail(people.auditor, memory_id).recalled,
        lambda fabric: fabric.events(people.auditor, types=["memory.promoted", "memory.proposed"], limit=2),
        lambda fabric: fabric.events(people.auditor, types=["memory.promoted"], about=memory_id, latest=True),
    )
    for place, look in enumerate(looks):
        here, there = look(local), look(remote)
        assert here == there, place
        assert here or place == 1, place
