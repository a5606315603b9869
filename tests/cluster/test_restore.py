"""A tenant's backup comes onto a cluster by the commands: whole, to the node that holds it, or not at all (IMP-3)."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from muniment import Fabric
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase
from tests.stories import promoted, run_job, submitted, values

MASTER_KEY = base64.b64encode(b"a master key for tests, 32 bytes").decode()


class Exported(NamedTuple):
    """Tenants of a home, in files: one whose rows the cluster's last node will hold, and one of another node."""

    folder: Path
    far: People
    near: People
    signed_by: dict[str, str]

    def restored(self, people: People, cluster: ClusterDatabase) -> Any:
        return muniment(
            *("restore", self.folder / f"{people.tenant_id}.backup", "--tenant", people.tenant_id),
            *("--secret-key", self.folder / "receiver.key", "--signed-by", self.signed_by[people.tenant_id]),
            *("--url", cluster.owner),
            MUNIMENT_MASTER_KEY=MASTER_KEY,
        )


def muniment(*arguments: str | Path, **environment: str) -> Any:
    command = [sys.executable, "-m", "muniment", *map(str, arguments), "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


@pytest.fixture(scope="module")
def exported(distributed: ClusterDatabase, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Each with a memory that was corrected: what corrects it and the memory refer to each other."""
    (far_name,), (near_name,) = distributed.tenants(1)
    folder, everybody = tmp_path_factory.mktemp("exported"), (People(far_name), People(near_name))
    made = muniment("export", "key", folder / "receiver.key")
    assert made.returncode == 0, made.stderr
    receiver = json.loads(made.stdout)["public_key"]
    with Fabric.open(home=folder / "home") as fabric:
        signed_by: dict[str, str] = {}
        for people in everybody:
            first = promoted(fabric, people, "email")
            correction = fabric.correct(people.author, memory_id=first, value="phone", classification="INTERNAL")
            fabric.queue.approve(people.reviewer, submitted(correction))
            promoted(fabric, people, "de", predicate="prefers_language")
            run_job(fabric, "seal", people.tenant_id)
            file = folder / f"{people.tenant_id}.backup"
            done = muniment(
                "export", "tenant", file, "--tenant", people.tenant_id, "--to", receiver, "--home", folder / "home"
            )
            assert done.returncode == 0, done.stderr
            signed_by[people.tenant_id] = json.loads(done.stdout)["signed_by"]
    return Exported(folder, *everybody, signed_by)


def rows_of(cluster: ClusterDatabase, people: People) -> int:
    ((count,),) = cluster.execute(f"SELECT count(*) FROM muniment.tenants WHERE tenant_id = '{people.tenant_id}'")
    return int(count)


@pytest.mark.rule("IMP-3", "SCL-3")
def test_a_tenant_whose_node_is_away_is_not_restored_and_nothing_is_kept(
    distributed: ClusterDatabase, exported: Exported
) -> None:
    distributed.last.cut()
    try:
        failed = exported.restored(exported.far, distributed)
    finally:
        distributed.last.restore()
    assert failed.returncode != 0 and "storage_unavailable" in failed.stdout + failed.stderr
    assert rows_of(distributed, exported.far) == 0


@pytest.mark.rule("IMP-3", "SCL-1")
def test_a_tenant_of_a_home_is_restored_on_its_node_and_goes_on_there(
    distributed: ClusterDatabase, exported: Exported
) -> None:
    for people in (exported.far, exported.near):
        done = exported.restored(people, distributed)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["memories"] == 3
    with Fabric.open(distributed.owner, clock=FakeClock(), master_keys=MASTER_KEYS) as fabric:
        for people in (exported.far, exported.near):
            assert set(values(fabric, people)) == {"phone", "de"}
            assert fabric.verify(people.auditor).ok
            assert [one.type for one in fabric.events(people.auditor)][-1] == "memory.restored"
            promoted(fabric, people, "fax", predicate="later")
            run_job(fabric, "seal", people.tenant_id)
            assert set(values(fabric, people)) == {"phone", "de", "fax"}
            assert fabric.verify(people.auditor).ok
    left = distributed.execute("SELECT pg_relation_size('muniment.events'), pg_relation_size('muniment.captures_3')")
    assert left == [(0, 0)], "the rows are on the nodes, and none at the coordinator"


@pytest.mark.rule("IMP-3")
def test_a_tenant_that_is_on_the_cluster_is_not_written_over(distributed: ClusterDatabase, exported: Exported) -> None:
    for people in (exported.far, exported.near):
        if not rows_of(distributed, people):
            assert exported.restored(people, distributed).returncode == 0
        again = exported.restored(people, distributed)
        assert again.returncode != 0 and "has a tenant of that name" in again.stdout + again.stderr
        with Fabric.open(distributed.owner, clock=FakeClock(), master_keys=MASTER_KEYS) as fabric:
            assert "phone" in values(fabric, people)
            assert fabric.verify(people.auditor).ok
