"""The commands for a cluster where there is none, and what the status says of one that is there."""

import io

import pytest
from psycopg import errors

from muniment.cli.db import _State
from muniment.cli.output import Screen
from muniment.database.cluster.catalogue import NodeUse
from muniment.database.cluster.distribute import Cluster
from muniment.database.cluster.errors import NodeAway
from muniment.database.cluster.script import COPYING
from muniment.database.cluster.tenants import ReachedTenants, from_answers
from muniment.database.server_liveness import answering
from muniment.errors import StorageUnavailable
from muniment.testing import TestServer
from tests.cluster.server import NODES
from tests.interfaces.command import MASTER_KEY, Terminal, run

on_one_server = pytest.mark.skipif(bool(NODES), reason="the tests' server is a cluster")
URL = "postgresql://muniment_owner@one.example.com/muniment"
COORDINATOR = NodeUse("one.example.com", 5432, coordinator=True, active=True, shards=0, bytes=0)
FIRST = NodeUse("two.example.com", 5433, coordinator=False, active=True, shards=1280, bytes=8_200_000)
SECOND = NodeUse("three.example.com", 5432, coordinator=False, active=False, shards=1280, bytes=0)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the tests' own server."""
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", MASTER_KEY)


@pytest.mark.rule("SCL-1", "SCL-2")
def test_the_script_for_the_superuser_is_printed_without_a_connection() -> None:
    ran = run("db", "distribute", "--script", "--worker", "two.example.com:5433", "--worker", "three", "--url", URL)
    assert (ran.code, ran.err) == (0, "")
    assert "SELECT citus_add_node('two.example.com', 5433);" in ran.out
    assert "SELECT citus_add_node('three', 5432);" in ran.out
    assert all(name in ran.out for name in COPYING)
    document = run("db", "distribute", "--script", "--worker", "two", "--url", URL, "--json").json
    assert list(document) == ["script"] and "citus_add_node('two', 5432)" in document["script"]


@pytest.mark.rule("SCL-1")
@pytest.mark.parametrize(
    ("options", "field", "says"),
    [
        (("--script", "--url", URL), "worker", "name each other node with --worker"),
        (("--script", "--worker", "two'", "--url", URL), "worker", "host"),
        (("--script", "--worker", "two", "--url", "postgresql:///muniment"), "url", "host"),
    ],
)
def test_a_script_that_would_be_wrong_is_refused(options: tuple[str, ...], field: str, says: str) -> None:
    ran = run("db", "distribute", *options, "--json")
    assert (ran.code, ran.out, ran.error["field"]) == (1, "", field)
    assert says in ran.error["message"]


@pytest.mark.rule("SCL-1")
@pytest.mark.parametrize(
    "command", [("distribute",), ("isolate-tenant", "acme"), ("move-tenant", "acme", "--to", "two:5432")], ids=" ".join
)
def test_the_embedded_server_is_no_cluster(terminal: Terminal, command: tuple[str, ...]) -> None:
    ran = run("db", *command, "--home", terminal.home, "--json")
    assert (ran.code, ran.error["code"], ran.error["field"]) == (1, "invalid_input", "url")
    assert "a cluster is an external database" in ran.error["message"]


@on_one_server
@pytest.mark.rule("SCL-1")
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("distribute",), "this database has no extension citus: have a superuser run what muniment db distribute"),
        (("isolate-tenant", "acme"), "this database is on one server; to distribute it, run: muniment db distribute"),
        (("move-tenant", "acme", "--to", "two:5432"), "this database is on one server"),
    ],
)
def test_another_single_server_is_no_cluster_and_stays_as_it_is(
    server: TestServer, database: str, command: tuple[str, ...], says: str
) -> None:
    url = server.url(database)
    ran = run("db", *command, "--url", url, "--json")
    assert (ran.code, ran.error["code"]) == (1, "invalid_input")
    assert says in ran.error["message"]
    status = run("db", "status", "--url", url, "--json").json
    assert (status["ready"], status["cluster"], status["nodes_away"]) == (True, None, [])


def test_a_schema_that_is_not_up_to_date_is_not_distributed(server: TestServer, fresh_database: str) -> None:
    with server.connect(fresh_database, "muniment_owner") as connection:
        connection.execute("DROP SCHEMA muniment CASCADE")
    ran = run("db", "distribute", "--url", server.url(fresh_database), "--json")
    assert (ran.code, ran.error["code"]) == (1, "conflict")
    assert "muniment db migrate" in ran.error["message"]


def drawn(*problems: str, away: tuple[str, ...] = ()) -> list[str]:
    shown = io.StringIO()
    cluster = Cluster((COORDINATOR, FIRST, SECOND), problems)
    state = _State(URL, embedded=False, running=True, schema=None, refusal=None, cluster=cluster, nodes_away=away)
    state.draw(Screen(shown))
    return [" ".join(line.split()) for line in shown.getvalue().splitlines()]


@pytest.mark.rule("SCL-1", "SCL-2")
def test_the_status_shows_each_node_with_its_shards_and_what_is_below_the_promise() -> None:
    lines = drawn()
    assert "node one.example.com:5432 (coordinator, 0 shards, 0 MB)" in lines
    assert "node two.example.com:5433 (1,280 shards, 8 MB)" in lines
    assert "node three.example.com:5432 (1,280 shards, 0 MB, not active)" in lines
    assert "below promise nothing" in lines
    assert "below promise two:5433: 3 restrictive policies, the distribution is not finished" in drawn(
        "two:5433: 3 restrictive policies", "the distribution is not finished"
    )


@pytest.mark.rule("SCL-3")
def test_the_status_shows_which_node_does_not_answer_in_place_of_its_size() -> None:
    lines = drawn(away=(FIRST.name,))
    assert "node two.example.com:5433 (1,280 shards, does not answer)" in lines
    assert "node three.example.com:5432 (1,280 shards, 0 MB, not active)" in lines


@pytest.mark.rule("SCL-3")
def test_tenants_are_listed_without_those_of_nodes_that_do_not_answer() -> None:
    answers = [
        ("three:5432", False, "failed to connect to three:5432"),
        ("two:5433", True, '["globex", "acme"]'),
        ("four:5432", True, None),
    ]
    assert from_answers(answers) == ReachedTenants(("acme", "globex"), ("three:5432",))


@pytest.mark.rule("SCL-3")
def test_a_node_that_is_lost_on_a_connection_without_a_pool_is_our_error() -> None:
    with pytest.raises(NodeAway), answering():
        raise errors.lookup("08006")("connection to the remote node failed")
    with pytest.raises(StorageUnavailable) as caught, answering():
        raise errors.lookup("57014")("canceled")
    assert not isinstance(caught.value, NodeAway)
