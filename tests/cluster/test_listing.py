"""Only the two statements that list the tenants go to several shards: the jobs go to their tenant's (SCL-1)."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment import Fabric
from muniment.database.statements import Statement
from muniment.promotion import reindex
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from muniment.worker.registry import JOBS
from tests.cluster.databases import ClusterDatabase
from tests.cluster.listing import LISTING
from tests.stories import promoted, run_job, run_worker


@pytest.fixture
def fabric(distributed: ClusterDatabase) -> Iterator[Fabric]:
    with Fabric.open(distributed.owner, clock=FakeClock(), master_keys=MASTER_KEYS) as opened:
        yield opened


@pytest.mark.rule("SCL-1")
def test_every_job_goes_to_its_tenant_s_shard_alone(
    fabric: Fabric, distributed: ClusterDatabase, to_many_shards: list[str]
) -> None:
    everybody = [People(names[0]) for names in distributed.tenants(1)]
    for people in everybody:
        promoted(fabric, people)
        fabric.capture(people.run(None), kind="statement", text="A parcel is late.", classification="INTERNAL")
    for people in everybody:
        for job in JOBS:
            run_job(fabric, job, people.tenant_id)
        run_worker(fabric, people.tenant_id)
    opened: Any = fabric._fabric._opened
    assert {one.tenant_id for one in everybody} <= set(fabric._portal.call(reindex.tenants, opened.context))
    assert to_many_shards == []


@pytest.mark.rule("SCL-1")
def test_what_asks_several_shards_and_lists_no_tenants_is_caught(
    fabric: Fabric, distributed: ClusterDatabase, to_many_shards: list[str]
) -> None:
    opened: Any = fabric._fabric._opened
    ((tenant,), _) = distributed.tenants(1)
    fabric.capture(People(tenant).run(), kind="statement", text="The depot is closed.", classification="INTERNAL")

    async def ask(text: str, name: str) -> None:
        async with opened.context.transaction(tenant, "jobs") as tx:
            await tx.connection.exchange([(Statement(name, text), [])])

    fabric._portal.call(ask, f"SELECT count(*) FROM memories WHERE tenant_id = '{tenant}'", "memories.of_one")
    for name in LISTING:
        fabric._portal.call(ask, "SELECT count(*) FROM tenant_clock", name)
    assert to_many_shards == []
    fabric._portal.call(ask, "SELECT count(*) FROM memories", "memories.all")
    assert to_many_shards == ["memories.all"]
    to_many_shards.clear()
