"""Items on a server: what a key may speak for, and whom it may act for, is the key's to say."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment import Fabric
from muniment.adapters.kept_items import KeptItems
from muniment.adapters.packs import pack_for_tool
from muniment.client import Client
from muniment.errors import InvalidInput, MunimentError
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.items.stores import run_of
from tests.pack_activation import put_in_force
from tests.server_thread import RemoteFabric, ServerThread


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[ServerThread]:
    with ServerThread.on(server.url(database)) as running:
        yield running


@pytest.fixture
def remote(server: TestServer, database: str, served: ServerThread, people: People) -> Iterator[RemoteFabric]:
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as local:
        put_in_force(local, people.tenant_id, pack_for_tool("personal", "langgraph"))
        yield RemoteFabric(local, served.url)


def opened(remote: RemoteFabric, people: People, **fields: Any) -> Client:
    return Client.open(remote.url, remote.token(run_of(people, None), **fields))


@pytest.mark.rule("ADP-1", "ADP-3")
def test_items_are_kept_found_and_listed_through_a_client(remote: RemoteFabric, people: People) -> None:
    with opened(remote, people) as client:
        items = KeptItems(client, run_of(people, None, speaks_for=None), tool="langgraph", user_part=1)
        assert items.put(("memories", "ann"), "food", {"likes": "pizza"}).status == "kept"
        assert items.put(("memories", "bob"), "food", {"likes": "tea"}).status == "kept"
        found = items.get(("memories", "ann"), "food")
        assert found is not None
        assert (found.value, found.namespace) == ({"likes": "pizza"}, ("memories", "ann"))
        assert [one.value for one in items.search(("memories", "bob"), where={"likes": "tea"}).items] == [
            {"likes": "tea"}
        ]
        assert items.search(("memories",)).items == ()
        assert items.get(("memories", "ann"), "nothing") is None
        asked = items.delete(("memories", "ann"), "food")
        assert asked is not None
        assert asked.status == "pending"
        assert [one.asks for one in items.pending(("memories", "ann"))] == ["delete"]


@pytest.mark.rule("ISO-8")
def test_a_key_that_may_not_speak_for_the_tool_has_its_items_wait(remote: RemoteFabric, people: People) -> None:
    with opened(remote, people, speaks_for={}) as client:
        items = KeptItems(client, run_of(people, speaks_for=None), tool="langgraph")
        assert items.put(("prefs",), "food", {"likes": "pizza"}).status == "pending"
        # What the run claims for itself does not count.
        claiming = KeptItems(client, run_of(people), tool="langgraph")
        try:
            assert claiming.put(("prefs",), "drink", {"likes": "tea"}).status == "pending"
        except MunimentError as error:
            assert "speaks_for" in str(error)


@pytest.mark.rule("ISO-5")
def test_a_key_bound_to_one_user_reaches_no_other_users_items(remote: RemoteFabric, people: People) -> None:
    with opened(remote, people) as client:
        KeptItems(client, run_of(people, "bob", speaks_for=None), tool="langgraph").put(("p",), "k", {"of": "bob"})
    with opened(remote, people, user_id="ann") as client:
        own = KeptItems(client, run_of(people, speaks_for=None), tool="langgraph")
        assert own.put(("p",), "k", {"of": "ann"}).status == "kept"
        found = own.get(("p",), "k")
        assert found is not None
        assert found.value == {"of": "ann"}
        for user in ("bob", None):
            other = KeptItems(client, run_of(people, user, speaks_for=None), tool="langgraph")
            with pytest.raises(MunimentError):
                other.put(("p",), "k", {"of": "mallory"})
            with pytest.raises(MunimentError):
                assert other.get(("p",), "k") is None
                raise InvalidInput("nothing of bob's was seen")


def test_a_fabric_that_is_awaited_is_refused(people: People) -> None:
    with pytest.raises(InvalidInput, match="fabric"):
        KeptItems(object(), run_of(people), tool="langgraph")
