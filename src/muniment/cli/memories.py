"""Memories and what is known of them: get, trail, events, adoption, retract."""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer
from pydantic_core import to_jsonable_python

from muniment.cli import views
from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.inputs import parse_time
from muniment.cli.options import ASKER, RUN_OR_PERSON, WHERE, MemoryId, flag
from muniment.cli.output import Screen, counted, each
from muniment.cli.plain import plain
from muniment.errors import InvalidInput, RateLimited, ServerUnavailable, StorageUnavailable
from muniment.model.events import Event
from muniment.model.metrics import Adoption
from muniment.model.promoted import StatedReason, Undone

app = typer.Typer()
# Seconds between two requests of `events --follow`.
_POLL_INTERVAL = 1.0


@command(app, "get", options=(*RUN_OR_PERSON, *WHERE))
def get(call: Call, memory_id: MemoryId) -> None:
    """Show one memory.

    Reviewers and auditors can read any memory of the tenant, a run only what it could recall. A run asks if --kind is
    agent or an option describes a run.
    """
    asker = call.run() if call.is_run() else call.principal("auditor")
    with call.open() as fabric:
        memory = fabric.get(asker, memory_id)
    call.show(memory, views.draw_memory)


plain(app, "trail", draw=views.draw_trail)


@command(app, "events", options=ASKER)
def events(
    call: Call,
    after: Annotated[int, flag("--after SEQ", "Only events after this sequence number.")] = 0,
    limit: Annotated[int, flag("--limit", "At most this many.")] = 100,
    since: Annotated[str | None, flag("--since TIME", "Only events from this moment on, in ISO 8601.")] = None,
    until: Annotated[str | None, flag("--until TIME", "Only events from before this moment.")] = None,
    follow: Annotated[bool, flag("--follow", "Keep printing new events until interrupted.")] = False,
    cloudevents: Annotated[bool, flag("--cloudevents", "Write CloudEvents in JSON, one per line.")] = False,
) -> None:
    """Show the event log of the tenant: every change, and every denied attempt.

    With --follow it prints new events as they come, with --json one per line, and continues after the server or the
    database was unavailable.
    """
    if (follow or cloudevents) and (since is not None or until is not None):
        raise InvalidInput("a stream has all events, in their order: leave --since and --until out", field="since")
    if follow or cloudevents:
        _stream(call, after, limit, cloudevents=cloudevents, follow=follow)
        return
    with call.open() as fabric:
        begin, end = parse_time(since, "since"), parse_time(until, "until")
        found = fabric.events(call.principal("auditor"), after=after, limit=limit, since=begin, until=end)
    call.show_page(found, each(views.draw_event), limit=limit, key="seq", empty="no events")


def _stream(call: Call, after: int, limit: int, *, cloudevents: bool, follow: bool) -> None:
    from muniment.webhooks.messages import cloud_event

    screen, asker = Screen(), call.principal("auditor")
    with call.open() as fabric:
        found = fabric.events(asker, after=after, limit=limit)
        while True:
            if cloudevents or call.as_json:
                for one in found:
                    screen.write(json.dumps(cloud_event(one) if cloudevents else to_jsonable_python(one)) + "\n")
            else:
                each(views.draw_event)(screen, found)
            if not follow:
                return
            after = found[-1].seq if found else after
            if len(found) < limit:
                time.sleep(_POLL_INTERVAL)
            found = _retry(call, partial(fabric.events, asker, after=after, limit=limit))


def _retry(call: Call, read: Callable[[], list[Event]]) -> list[Event]:
    """Read the next events, and wait while the server or the database is unavailable; none is missed."""
    noted = False
    while True:
        try:
            return read()
        except (ServerUnavailable, StorageUnavailable, RateLimited) as error:
            if not noted:
                call.note(f"{error.message}; waiting until it answers")
            noted = True
            time.sleep(_POLL_INTERVAL)


def _draw_adoption(screen: Screen, shown: Adoption) -> None:
    share = f": {shown.share:.0%}" if shown.share is not None else ""
    screen.line(
        f"{counted(shown.corrections, 'correction')}, {shown.measured} measured, {shown.adopted} adopted{share}"
    )


plain(app, "adoption", draw=_draw_adoption)


def _draw_undone(screen: Screen, done: Undone) -> None:
    screen.line(f"undone {done.retraction.memory_id}, by {done.retraction.retracted_by}")
    for old, new in done.restored.items():
        screen.line(f"restored {old} as {new}")
    for one in done.not_restored:
        waits = f"; a person decides on {one.proposal_id}" if one.proposal_id else ""
        screen.line(f"not restored {one.memory_id}: {one.reason}{waits}")


plain(app, "undo", draw=_draw_undone)


@command(app, "retract", options=ASKER)
def retract(
    call: Call, memory_id: MemoryId, reason: Annotated[StatedReason, flag("--reason", "Why it is retracted.")]
) -> None:
    """Retract a memory for good, with a reason.

    Its record stays. With the reason erased, which takes a privacy officer, its text is deleted too.
    """
    with call.open() as fabric:
        role = "privacy_officer" if reason == "erased" else "reviewer"
        done = fabric.retract(call.principal(role), memory_id, reason=reason)
    words = f"retracted {done.memory_id}: {done.reason}, by {done.retracted_by}, sequence {done.seq}"
    call.show_line(done, words)
