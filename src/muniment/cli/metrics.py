"""Metrics: what memory does and how well, for people, for programs and for Prometheus."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.inputs import parse_time
from muniment.cli.options import ASKER, flag
from muniment.cli.output import Screen, draw_figures, progress
from muniment.errors import InvalidInput

app = typer.Typer()


@command(app, "metrics", options=ASKER, example="muniment metrics --since 7d")
def metrics(
    call: Call,
    since: Annotated[
        str | None, flag("--since TIME", "How far back, such as 7d, or a time in ISO 8601; by default 30d.")
    ] = None,
    until: Annotated[str | None, flag("--until TIME", "The end of the window, in ISO 8601; by default now.")] = None,
    prometheus: Annotated[bool, flag("--prometheus", "Write the text format of Prometheus.")] = False,
) -> None:
    """Show metrics of recall, review, contradictions, storage and personal data.

    They are counted over a window of time: numbers, names and ids, no content.
    """
    if prometheus and call.as_json:
        raise InvalidInput("give --prometheus or --json, not both", field="prometheus")
    end = parse_time(until, "until")
    start = _parse_since(since, end) if since is not None else None
    with call.open() as fabric, progress("counting", as_json=call.as_json):
        found = fabric.metrics(call.principal("auditor"), since=start, until=end)
    if prometheus:
        from muniment.metrics.prometheus import prometheus_text

        Screen().write(prometheus_text({found.tenant_id: found}))
        return
    call.show(found, lambda screen, _: draw_figures(screen, found.model_dump(mode="json")))


def _parse_since(since: str, end: datetime | None) -> datetime | None:
    """Parse a time, or a duration before the end of the window; raises `InvalidInput`."""
    from muniment.pack.durations import parse_duration

    try:
        return (end or datetime.now(UTC)) - parse_duration(since)
    except ValueError:
        if not since[:1].isdecimal() or "-" not in since:
            raise InvalidInput("expected a duration such as 7d or 12h, or a time in ISO 8601", field="since") from None
        return parse_time(since, "since")
