"""`muniment db status` on a cluster (SCL-3)."""

import pytest

from muniment import Fabric
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase
from tests.interfaces.command import MASTER_KEY, run


@pytest.mark.rule("SCL-3")
def test_a_node_that_is_away_is_named_and_the_rest_is_shown(
    distributed: ClusterDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", MASTER_KEY)
    (far,), (near,) = distributed.tenants(1)
    with Fabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:
        for tenant in (far, near):
            fabric.capture(People(tenant).run(None), kind="statement", text="It is late.", classification="INTERNAL")
    # A version that nobody has, so that both tenants are named while both can be read.
    distributed.execute("UPDATE muniment.language_versions SET version = 'readers-none'")
    place = ("--url", distributed.owner)
    last = f"127.0.0.1:{distributed.last.port}"
    before = run("db", "status", *place, "--json").json
    assert {one["tenant_id"] for one in before["missing_languages"]} == {far, near}
    assert before["nodes_away"] == []
    distributed.last.cut()
    try:
        shown, found = run("db", "status", *place), run("db", "status", *place, "--json")
    finally:
        distributed.last.restore()
    assert (shown.code, found.code, found.json["ready"]) == (0, 0, True), "other tenants are served"
    assert found.json["nodes_away"] == [last]
    assert {one["tenant_id"] for one in found.json["missing_languages"]} == {near}
    assert any(last in one for one in found.json["cluster"]["problems"])
    assert any(last in one for one in found.json["purge_waits"])
    assert f"{last} (" in shown.out and "shards, does not answer)" in shown.out
    assert f"the node {last} does not answer: its tenants are not served" in " ".join(shown.err.split())
    assert run("db", "status", *place, "--json").json["nodes_away"] == []
