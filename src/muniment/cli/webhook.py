"""Webhooks: where a tenant's events are posted."""

from typing import Annotated, cast

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import ASKER, WHERE, argument, flag
from muniment.cli.output import Screen, by_and_at, counted, fields_of, joined
from muniment.cli.plain import plain
from muniment.model.events import EventType, Webhook

app = typer.Typer()
webhook = group(app, "webhook", lists=True)
_STYLES = {"active": "green", "retrying": "yellow", "parked": "bold red"}
_SHOWN_ONCE = "save the secret now: it is not shown again"


def _draw(screen: Screen, one: Webhook) -> None:
    screen.heading(one.webhook_id, one.state, _STYLES[one.state])
    screen.fields(
        [
            ("url", one.url),
            ("types", joined(one.types) or "all"),
            ("up to", f"sequence {one.seq}"),
            ("tries", f"{one.tries}, last error {one.last_error}" if one.tries else None),
            *fields_of(one, "next_try=next_try_at parked=parked_at"),
            ("added", by_and_at(one.created_by, one.created_at)),
            ("secret", one.secret),
        ]
    )


@command(webhook, "add", options=ASKER)
def add(
    call: Call,
    target: Annotated[str, argument("URL", "Where events are posted, with https.")],
    types: Annotated[list[str] | None, flag("--type TYPE", "Only events of this type; can be repeated.")] = None,
) -> None:
    """Add a webhook: it gets the tenant's events from now on, in order, signed.

    Its secret is shown once.
    """
    with call.open() as fabric:
        # The fabric checks the types.
        made = fabric.webhooks.add(call.principal("admin"), url=target, types=cast("list[EventType]", types) or None)
    call.show(made, _draw)
    call.note(_SHOWN_ONCE)


plain(webhook, "list", draw=_draw, empty="no webhooks")
plain(
    webhook,
    "remove",
    draw=lambda screen, done: screen.line(f"removed {done['webhook_id']}"),
    document=lambda _, values: {**values, "removed": True},
)
plain(webhook, "rotate", draw=_draw, note=_SHOWN_ONCE)
plain(webhook, "resume", draw=_draw)
plain(webhook, "replay", draw=_draw)


@command(webhook, "deliver", options=WHERE)
def deliver(call: Call, limit: Annotated[int, flag("--limit", "At most this many events to each.")] = 1000) -> None:
    """Post waiting events to each webhook now. A failed delivery is retried when it is due."""
    with call.open() as fabric, call.progress("posting"):
        done = fabric.webhooks.deliver(call.tenant, max_events=limit)
    more = ", there are more" if done.more else ""
    words = f"{counted(done.delivered, 'event')} posted, {done.retrying} to retry, {done.parked} parked{more}"
    call.show_line(done, words)
