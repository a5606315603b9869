"""A connection for rows that only jobs write."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment.testing import TestServer
from tests.metrics.figures import Sql


@pytest.fixture
def sql(server: TestServer, database: str) -> Iterator[Sql]:
    """Run SQL as the superuser, for rows that only a job or an accident would write."""
    with server.connect(database) as owner:

        def run(text: str, *given: Any) -> list[tuple[Any, ...]]:
            done = owner.execute(text, given)
            return done.fetchall() if done.description else []

        yield run
