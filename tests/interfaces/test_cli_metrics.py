"""The command line at metrics: for people, as JSON, for Prometheus, over a window."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.interfaces.command import Terminal


@pytest.mark.rule("MET-7", "MET-10")
def test_metrics_are_shown_to_people_to_programs_and_to_prometheus(terminal: Terminal) -> None:
    terminal.promoted("email")
    terminal.proposed("tea", "--predicate", "drinks")
    terminal.json("recall", "--workflow", "refunds")
    shown = terminal("metrics")
    assert (shown.code, shown.err) == (0, "")
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    for line in (
        "refunds 1 1 1 0 0 1",
        "durable preference false 1",
    ):
        assert line in lines, shown.out
    document = terminal.json("metrics", "--since", "2h")
    assert (document["queue"]["decided"], document["recalls"]["recalls"]) == (1, 1)
    text = terminal("metrics", "--prometheus").out
    samples = {one.name: one.value for family in text_string_to_metric_families(text) for one in family.samples}
    assert (samples["muniment_memories"], samples["muniment_queue_waiting"]) == (1, 1)
    assert (
        terminal.json("metrics", "--since", "2020-01-01T00:00:00Z", "--until", "2020-02-01T00:00:00Z")["storage"] == []
    )


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("--since", "soon"), "since"),
        (("--since", "2026-13-01"), "since"),
        (("--until", "now"), "until"),
        (("--prometheus",), "prometheus"),
    ],
)
def test_an_invalid_window_is_reported_by_its_name(terminal: Terminal, options: tuple[str, ...], field: str) -> None:
    ran = terminal("metrics", *options, "--json")
    assert (ran.code, ran.error["field"]) == (1, field)
