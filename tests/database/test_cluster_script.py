"""The superuser's script for a cluster: what stands in a command of psql is checked first."""

import pytest

from muniment.database.address import Address
from muniment.database.cluster.script import COPYING, superuser_script
from muniment.errors import InvalidInput

SECRET = b"x" * 32


def _script(url: str = "postgresql://muniment_owner@one.example.com/muniment", *workers: str) -> str:
    return superuser_script(Address.parse(url, SECRET), workers or ("two.example.com:5433",))


@pytest.mark.rule("SCL-1", "SCL-2")
def test_the_script_prepares_every_node_and_keeps_the_owner_from_moving_shards() -> None:
    script = _script()
    assert "\\connect -reuse-previous=on 'dbname=muniment host=one.example.com port=5432'" in script
    assert "SELECT citus_add_node('two.example.com', 5433);" in script
    assert script.count("REVOKE EXECUTE ON FUNCTION") == 2
    assert all(name in script for name in COPYING)


def test_without_a_secret_it_holds_no_password() -> None:
    with_secret = _script()
    assert "password=" in with_secret
    without = superuser_script(Address.parse("postgresql://muniment_owner@one.example.com/muniment", None), ["two"])
    assert "password=" not in without


@pytest.mark.parametrize("worker", ["two\n\\! rm", "`reboot`", "a b", "two:x", "", "two'", "-h", "fe80::1"])
def test_a_worker_that_is_no_host_name_is_refused(worker: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        superuser_script(Address.parse("postgresql://muniment_owner@one.example.com/muniment", SECRET), [worker])
    assert caught.value.field == "worker"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///muniment",
        "postgresql://one.example.com,two.example.com/muniment",
        "host=/run/postgresql dbname=muniment",
        "postgresql://one.example.com/a%20b",
    ],
)
def test_an_address_that_other_nodes_cannot_use_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _script(url)
    assert caught.value.field == "url"
