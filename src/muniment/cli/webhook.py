"""Webhooks: where a tenant's events are posted."""

from collections.abc import Iterable
from typing import Annotated, cast

import typer

from muniment.cli.asking import Call, ListsByDefault, verb
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, listed, moment, progress
from muniment.cli.views import count
from muniment.model.events import EventType
from muniment.model.webhook import Deliveries, Webhook

app = typer.Typer(cls=ListsByDefault)
_OPTIONS = (*WHO, *WHERE)
_STYLES = {"active": "green", "retrying": "yellow", "parked": "bold red"}
_ONCE = "keep the secret now: it is not shown again"

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The id of a webhook, whk_...")]


@verb(app, "add", options=_OPTIONS, example="muniment webhook add https://example.com/memory --type memory.promoted")
def add(
    call: Call,
    target: Annotated[str, typer.Argument(metavar="URL", help="Where events are posted, over https.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only events of this type; several times for several."),
    ] = None,
) -> None:
    """Register a webhook: it gets the tenant's events from now on, one after the other, signed.

    Its secret is shown this once.
    """
    with call.open() as fabric:
        made = fabric.webhooks.add(call.principal("admin"), url=target, types=_types(types))
    call.show(made, lambda: _draw([made]))
    call.note(_ONCE)


@verb(app, "list", options=_OPTIONS, example="muniment webhook list")
def list_webhooks(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="The last one of the page before.")] = None,
) -> None:
    """List the webhooks, each with its place in the log and what went wrong last."""
    with call.open() as fabric:
        found = fabric.webhooks.list(call.principal("admin"), limit=limit, after=after)
    call.show(found, lambda: _draw(found))
    if not found:
        call.note("no webhooks")
    elif len(found) == limit:
        call.note(f"there may be more: muniment webhook list --after {found[-1].webhook_id}")


@verb(app, "remove", options=_OPTIONS, example="muniment webhook remove whk_01a1de60ebda060e4c4895463c41")
def remove(call: Call, webhook_id: WebhookId) -> None:
    """Take a webhook away for good, with its secret."""
    with call.open() as fabric:
        fabric.webhooks.remove(call.principal("admin"), webhook_id)
    call.show({"webhook_id": webhook_id, "removed": True}, lambda: Screen().line(f"removed {webhook_id}"))


@verb(app, "rotate", options=_OPTIONS, example="muniment webhook rotate whk_01a1de60ebda060e4c4895463c41")
def rotate(call: Call, webhook_id: WebhookId) -> None:
    """Give a webhook another secret, shown this once; for a day messages are signed with the old one too."""
    with call.open() as fabric:
        changed = fabric.webhooks.rotate_secret(call.principal("admin"), webhook_id)
    call.show(changed, lambda: _draw([changed]))
    call.note(_ONCE)


@verb(app, "resume", options=_OPTIONS, example="muniment webhook resume whk_01a1de60ebda060e4c4895463c41")
def resume(call: Call, webhook_id: WebhookId) -> None:
    """Let a webhook that is parked go on, with the event it stands at."""
    with call.open() as fabric:
        changed = fabric.webhooks.resume(call.principal("admin"), webhook_id)
    call.show(changed, lambda: _draw([changed]))


@verb(app, "replay", options=_OPTIONS, example="muniment webhook replay whk_01a1de60ebda060e4c4895463c41 --after 40")
def replay(
    call: Call,
    webhook_id: WebhookId,
    after: Annotated[int, typer.Option("--after", metavar="NUMBER", help="What comes after this number; 0 is all.")],
) -> None:
    """Post again to a webhook, from any number of the log."""
    with call.open() as fabric:
        changed = fabric.webhooks.replay(call.principal("admin", "auditor"), webhook_id, after=after)
    call.show(changed, lambda: _draw([changed]))


@verb(app, "deliver", options=WHERE, example="muniment webhook deliver --tenant tenant_acme_prod")
def deliver(
    call: Call,
    most: Annotated[int, typer.Option("--limit", help="At most so many events to each.")] = 1000,
) -> None:
    """Post to each webhook what it lacks, now; what fails is tried again when it is due."""
    with call.open() as fabric, progress("posting", as_json=call.as_json):
        done = fabric.webhooks.deliver(call.tenant, max_events=most)
    call.show(done, lambda: _draw_deliveries(done))


def _types(given: list[str] | None) -> list[EventType] | None:
    return cast("list[EventType]", given) or None  # which there are is the fabric's to say


def _draw(found: Iterable[Webhook]) -> None:
    screen = Screen()
    for one in found:
        screen.line((one.webhook_id, "bold cyan"), "  ", (one.state, _STYLES[one.state]))
        screen.facts(
            [
                ("url", one.url),
                ("types", listed(one.types) or "all"),
                ("up to", f"number {one.seq}"),
                ("tries", f"{one.tries}, last error {one.last_error}" if one.tries else None),
                ("next try", one.next_try_at),
                ("parked", one.parked_at),
                ("added", f"by {one.created_by} at {moment(one.created_at)}"),
                ("secret", one.secret),
            ]
        )


def _draw_deliveries(done: Deliveries) -> None:
    more = ", there are more" if done.more else ""
    Screen().line(f"{count(done.delivered, 'event')} posted, {done.retrying} to try again, {done.parked} parked{more}")
