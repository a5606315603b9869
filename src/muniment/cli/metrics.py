"""Metrics: what memory does and how well, for people, for programs and for Prometheus."""

from typing import Annotated

import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.inputs import parse_since, parse_time
from muniment.cli.options import ASKER, flag
from muniment.cli.output import Screen, draw_figures
from muniment.errors import InvalidInput
from muniment.extras import require

app = typer.Typer()


@command(app, "metrics", options=ASKER)
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
    if prometheus:
        require("server", "--prometheus")
    end = parse_time(until, "until")
    start = parse_since(since, end)
    with call.open() as fabric, call.progress("counting"):
        found = fabric.metrics(call.principal("auditor"), since=start, until=end)
    if prometheus:
        from muniment.metrics.prometheus import prometheus_text

        Screen().write(prometheus_text({found.tenant_id: found}))
        return
    call.show(found, lambda screen, _: draw_figures(screen, found.model_dump(mode="json")))
