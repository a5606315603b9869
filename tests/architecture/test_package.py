"""The package as it is imported."""

import subprocess
import sys

import pytest

import muniment


@pytest.mark.parametrize("name", muniment.__all__)
def test_every_name_of_the_package_is_there(name: str) -> None:
    assert getattr(muniment, name) is not None
    assert name in dir(muniment)


def test_a_name_that_is_not_there_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'remember_everything'"):
        _ = muniment.remember_everything  # pyright: ignore[reportAttributeAccessIssue]


def test_parts_are_reached_by_their_own_names() -> None:
    program = "import muniment; muniment.pack.pack_schema(); muniment.errors.NotFound; muniment.client.Client"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_who_uses_a_part_does_not_wait_for_all_of_it() -> None:
    program = (
        "import sys; from muniment import MunimentError, Principal;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'psycopg', 'muniment.fabric')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_blocking_fabric_imports_the_verbs_only_when_it_is_opened() -> None:
    program = "import sys; from muniment import Fabric; sys.exit('muniment.fabric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_verbs_are_imported_without_the_http_client_and_the_parser_of_json_paths() -> None:
    program = "import sys, muniment.fabric; sys.exit('httpx2' in sys.modules or 'jsonpath' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
