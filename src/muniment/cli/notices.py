"""Notices: what a person is told outside the console."""

from typing import Annotated, cast

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import ASKER, WHERE, argument, flag
from muniment.cli.output import Screen, counted, fields_of, joined
from muniment.cli.plain import plain
from muniment.model.fields import WriteClass
from muniment.model.notices import AlertKind, DigestEvery, Notice, NoticeChannel

app = typer.Typer()
notices = group(app, "notices", lists=True)


def _draw(screen: Screen, one: Notice) -> None:
    screen.heading(one.notice_id, one.channel, "yellow" if one.last_error else "green")
    screen.fields(
        [
            ("person", one.person),
            ("address", one.address),
            ("alerts", joined(one.kinds) or "none"),
            ("classes", joined(one.classes) or "all"),
            ("as", joined(one.roles)),
            ("tries", f"{one.tries}, last error {one.last_error}" if one.last_error else None),
            *fields_of(one, "digest next_digest=digest_at sent=sent_at next_try=next_try_at set=created_at"),
        ]
    )


@command(notices, "set", options=ASKER)
def set_notice(
    call: Call,
    channel: Annotated[str, argument("CHANNEL", "mail, chat or browser.")],
    address: Annotated[
        str | None, argument("ADDRESS", "A mail address, or that of a Slack-compatible webhook.")
    ] = None,
    kinds: Annotated[list[str] | None, flag("--alert KIND", "Only alerts of this kind; can be repeated.")] = None,
    classes: Annotated[list[str] | None, flag("--class CLASS", "Only about this class; can be repeated.")] = None,
    digest: Annotated[str | None, flag("--digest EVERY", "A summary of what waits: hourly or daily.")] = None,
) -> None:
    """Set what you are told by a channel, in place of what you set for it before.

    Messages hold counts, classes, ids and links, and only of what your roles may read.
    """
    with call.open() as fabric:
        # The fabric checks the words.
        made = fabric.notices.set(
            call.principal("reviewer"),
            channel=cast("NoticeChannel", channel),
            address=address,
            kinds=cast("list[AlertKind]", kinds) or None,
            classes=cast("list[WriteClass]", classes) or None,
            digest=cast("DigestEvery | None", digest),
        )
    call.show(made, _draw)


plain(notices, "list", draw=_draw, empty="no notices")
plain(
    notices,
    "remove",
    draw=lambda screen, done: screen.line(f"removed {done['notice_id']}"),
    document=lambda _, values: {**values, "removed": True},
)
plain(notices, "test", draw=_draw)


@command(notices, "deliver", options=WHERE)
def deliver(call: Call) -> None:
    """Send the alerts and summaries that are due now. What failed is tried again when it is due."""
    with call.open() as fabric, call.progress("sending"):
        done = fabric.notices.deliver(call.tenant)
    call.show_line(done, f"{counted(done.sent, 'message')} sent, {done.retrying} to retry")
