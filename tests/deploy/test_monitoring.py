"""The dashboard and the alerts ask for metrics that a server really exports, with labels that they really have."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from muniment.http.server_metrics import ServerMetrics
from muniment.job import JobResult
from muniment.metrics.prometheus import FAMILIES
from muniment.testing import People, TestServer
from muniment.worker.due import Due
from tests.docs.test_deploy import DEPLOY, PAGE
from tests.interfaces.http import RunningServer
from tests.stories import promoted

FOLDER = DEPLOY / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"] for rule in group["rules"]
]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
# What Prometheus itself adds to what it scrapes.
ADDED = {"job", "instance"}
# Only several processes of one server are told apart.
OF_PROCESSES = {"pid"}
PROMETHEUS = {"Accept": "text/plain;version=0.0.4"}


def queries() -> Iterator[str]:
    for rule in ALERTS:
        yield rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "5m").replace("$__range", "1h")
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
            yield f"count by ({label}) ({selector})"


def metrics_in(query: str) -> Iterator[tuple[str, set[str]]]:
    """Every metric that a query selects, with the labels that it compares there."""
    for text in re.findall(r"(?:muniment|process)_\w+(?:\{[^}]*\})?|\bup\{[^}]*\}", query):
        selector = promql_parser.parse(text)
        assert isinstance(selector, promql_parser.VectorSelector)
        assert selector.name is not None
        yield selector.name, {matcher.name for matcher in selector.matchers.matchers}


def grouped_in(query: str) -> set[str]:
    found = re.findall(r"\b(?:by|ignoring|on)\s*\(([^)]*)\)", query)
    return {label.strip() for labels in found for label in labels.split(",") if label.strip()}


@pytest.fixture(scope="module")
def exported(server: TestServer, database: str) -> dict[str, set[str]]:
    """Every metric with its labels, as a server that has answered exports them; `up` is Prometheus' own."""
    people = People("tenant_monitored")
    with RunningServer(server, database) as running:
        memory = promoted(running.local, people)
        key = running.key(people.auditor)
        running.ask("GET", f"/v1/memories/{memory}", key=key)
        texts = [running.ask("GET", path, key=key, headers=PROMETHEUS).text for path in ("/metrics", "/v1/metrics")]
    jobs = ServerMetrics()
    jobs.count_job(Due(people.tenant_id, "seal"), JobResult({}))
    found = {"up": set[str]()} | {name: {"tenant", *labels} for name, (_, labels) in FAMILIES.items()}
    for text in (*texts, jobs.text().decode()):
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    assert {"muniment_http_requests_total", "muniment_memories", "process_open_fds"} <= found.keys()
    return found


def test_every_metric_that_is_asked_for_is_exported_with_the_labels_that_are_compared(
    exported: dict[str, set[str]],
) -> None:
    asked = [one for query in queries() for one in metrics_in(query)]
    assert len(asked) > 50
    assert {name for name, _ in asked} <= exported.keys()
    for name, labels in asked:
        assert labels <= exported[name] | ADDED, name


def test_what_is_grouped_by_and_shown_are_labels_of_the_metrics_of_that_query(exported: dict[str, set[str]]) -> None:
    shown = [
        (target["expr"], set(re.findall(r"{{(\w+)}}", target["legendFormat"])))
        for panel in PANELS
        for target in panel["targets"]
    ]
    shown += [(rule["expr"], set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))) for rule in ALERTS]
    for query, labels in shown:
        there = ADDED | OF_PROCESSES | {label for name, _ in metrics_in(query) for label in exported[name]}
        assert grouped_in(query) | labels <= there, query
        if grouped := set(re.findall(r"\bby \(([^)]*)\)", query)):
            assert labels <= {one.strip() for group in grouped for one in group.split(",")}, query


def test_routes_that_alerts_compare_are_routes_of_the_server(server: TestServer, database: str) -> None:
    with RunningServer(server, database) as running:
        routes = set(running.document["paths"])
    for rule in ALERTS:
        for pattern in re.findall(r'route=~?"([^"]+)"', rule["expr"]):
            assert any(re.fullmatch(pattern, route) for route in routes), pattern
    (slow,) = [rule["expr"] for rule in ALERTS if rule["alert"] == "MunimentSlow"]
    (pattern,) = re.findall(r'route=~"([^"]+)"', slow)
    matched = {route for route in routes if re.fullmatch(pattern, route)}
    assert {"/v1/recall", "/v1/compile", "/v1/captures"} <= matched


@pytest.mark.parametrize("query", list(queries()))
def test_every_query_is_valid(query: str) -> None:
    promql_parser.parse(query)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "action"}
    assert f"`{rule['alert']}`" in PAGE.read_text("utf-8"), "the page about production lists every alert"


def test_panels_do_not_overlap_and_say_what_they_show() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["description"] and panel["datasource"]["uid"] == "${source}" for panel in PANELS)
