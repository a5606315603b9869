"""Notices: what a person is told outside the console."""

from typing import Annotated, cast, get_args

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import ASKER, WHERE, argument, flag
from muniment.cli.output import Screen, counted, fields_of, joined
from muniment.cli.plain import plain
from muniment.model.fields import WriteClass
from muniment.model.notices import DAILY_AT, AlertKind, DigestEvery, Notice, NoticeChannel
from muniment.model.zones import UTC_NAME

_KINDS = ", ".join(get_args(AlertKind))

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
            ("digest", _digest(one)),
            *fields_of(one, "next_digest=digest_at sent=sent_at next_try=next_try_at set=created_at seen=seen_at"),
        ]
    )


def _digest(one: Notice) -> str | None:
    if one.digest is None:
        return None
    return f"hourly, {one.time_zone}" if one.digest == "hourly" else f"daily at {one.at}, {one.time_zone}"


def _draw_tested(screen: Screen, one: Notice) -> None:
    screen.line(f"not sent: {one.last_error}" if one.last_error else "sent")
    _draw(screen, one)


@command(notices, "set", options=ASKER)
def set_notice(
    call: Call,
    channel: Annotated[str, argument("CHANNEL", "mail, chat or browser.")],
    address: Annotated[
        str | None, argument("ADDRESS", "A mail address, or that of a Slack-compatible webhook.")
    ] = None,
    kinds: Annotated[
        list[str] | None, flag("--alert KIND", f"Only alerts of this kind; can be repeated: {_KINDS}.")
    ] = None,
    classes: Annotated[list[str] | None, flag("--class CLASS", "Only about this class; can be repeated.")] = None,
    digest: Annotated[str | None, flag("--digest EVERY", "A digest of what waits: hourly or daily.")] = None,
    at: Annotated[str, flag("--at HH:MM", "The time of the day of a daily digest.")] = DAILY_AT,
    time_zone: Annotated[
        str, flag("--time-zone ZONE", "The time zone of that time and of the day in a digest, such as Europe/Vienna.")
    ] = UTC_NAME,
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
            at=at,
            time_zone=time_zone,
        )
    call.show(made, _draw)


plain(notices, "list", draw=_draw, empty="no notices")
plain(
    notices,
    "remove",
    draw=lambda screen, done: screen.line(f"removed {done['notice_id']}"),
    document=lambda _, values: {**values, "removed": True},
)
plain(notices, "test", draw=_draw_tested)


@command(notices, "deliver", options=WHERE)
def deliver(call: Call) -> None:
    """Send the alerts and digests that are due now. What failed is tried again when it is due."""
    with call.open() as fabric, call.progress("sending"):
        done = fabric.notices.deliver(call.tenant)
    call.show_line(done, f"{counted(done.sent, 'message')} sent, {done.retrying} to retry")
