"""What an adapter says when its framework is not installed."""

from importlib.util import find_spec
from typing import get_args

import pytest

from muniment.extras import Framework
from tests.adapters.conftest import without

ADAPTERS = [one for one in get_args(Framework) if find_spec(f"muniment.adapters.{one.replace('-', '_')}") is not None]


@pytest.mark.rule("ADP-1")
@pytest.mark.parametrize("extra", ADAPTERS)
def test_an_adapter_without_its_framework_says_how_to_install_it(extra: Framework) -> None:
    assert f"pip install 'muniment[{extra}]'" in without(extra)
