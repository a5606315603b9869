"""Metrics: a small history with known numbers, counted by window and tenant, and shown in three forms."""

from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from muniment import Fabric
from muniment.errors import InvalidInput, RoleMissing
from muniment.governance.metrics.prometheus import FAMILIES, prometheus_text
from muniment.model.metrics import GoldenResult, Metrics
from muniment.testing import FakeClock, People
from tests.pipeline.stories import promoted, proposed


def now(fabric: Fabric, people: People, **window: Any) -> Metrics:
    return fabric.metrics(people.auditor, **window)


def test_smoke(fabric: Fabric, people: People, clock: FakeClock) -> None:
    promoted(fabric, people, "email")
    fabric.recall(people.run())
    fabric.compile(people.run(), "Which channel?")
    m = now(fabric, people)
    print(m.model_dump_json(indent=1))
    print(prometheus_text({people.tenant_id: m}))
    assert 0
