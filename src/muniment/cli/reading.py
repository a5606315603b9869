"""Reading: get, trail, events, adoption; and retract."""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer
from pydantic_core import to_jsonable_python

from muniment.cli import views
from muniment.cli.asking import Call, verb
from muniment.cli.options import RUN_OR_PERSON, WHERE, WHO
from muniment.cli.output import Screen
from muniment.errors import RateLimited, ServerUnavailable, StorageUnavailable
from muniment.model.events import Event
from muniment.model.promoted import RetractionReason
from muniment.webhooks.messages import cloud_event

app = typer.Typer()
_PANEL = "Read"
# Seconds between two looks at the log, of who follows it.
_LOOKS_EVERY = 1.0

MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="The id of a memory, pm_...")]


@verb(
    app,
    "get",
    panel=_PANEL,
    options=(*RUN_OR_PERSON, *WHERE),
    example="muniment get pm_01a1de60ebfc2d3c4b5a69788796",
)
def get(call: Call, memory_id: MemoryId) -> None:
    """Show one memory: any of the tenant's to a reviewer or auditor, to a run only what it could recall.

    A run asks when --kind is agent or any option of a run is given.
    """
    asker = call.run() if call.is_run() else call.principal("auditor")
    with call.open() as fabric:
        memory = fabric.get(asker, memory_id)
    call.show(memory, lambda: views.memory(Screen(), memory))


@verb(
    app,
    "trail",
    panel=_PANEL,
    options=(*WHO, *WHERE),
    example="muniment trail pm_01a1de60ebfc2d3c4b5a69788796",
)
def trail(call: Call, memory_id: MemoryId) -> None:
    """Show a memory's papers: back to its capture, with every verdict, and forward to the recalls and prompts.

    Those are the ones that used it, the latest first.
    """
    with call.open() as fabric:
        papers = fabric.trail(call.principal("auditor"), memory_id)
    call.show(papers, lambda: views.trail(Screen(), papers))


@verb(app, "events", panel=_PANEL, options=(*WHO, *WHERE), example="muniment events --after 40 --limit 20")
def events(
    call: Call,
    after: Annotated[int, typer.Option("--after", metavar="NUMBER", help="Those after this number.")] = 0,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes, until interrupted.")] = False,
    cloudevents: Annotated[bool, typer.Option("--cloudevents", help="As CloudEvents in JSON, one a line.")] = False,
) -> None:
    """Show the tenant's event log: every change of state, and every denied attempt.

    With --follow it goes on with what comes, as JSON one event a line; also when the server or the database was away.
    """
    if follow or cloudevents:
        _stream(call, after, limit, cloudevents=cloudevents, follow=follow)
        return
    with call.open() as fabric:
        found = fabric.events(call.principal("auditor"), after=after, limit=limit)
    call.show(found, lambda: views.events(Screen(), found))
    if not found:
        call.note("no events")
    elif len(found) >= limit:
        call.note(f"there may be more: muniment events --after {found[-1].seq}")


def _stream(call: Call, after: int, limit: int, *, cloudevents: bool, follow: bool) -> None:
    screen, asker = Screen(), call.principal("auditor")
    with call.open() as fabric:
        found = fabric.events(asker, after=after, limit=limit)
        while True:
            if cloudevents or call.as_json:
                for one in found:
                    screen.write(json.dumps(cloud_event(one) if cloudevents else to_jsonable_python(one)) + "\n")
            else:
                views.events(screen, found)
            if not follow:
                return
            after = found[-1].seq if found else after
            if len(found) < limit:
                time.sleep(_LOOKS_EVERY)
            found = _next(call, partial(fabric.events, asker, after=after, limit=limit))


def _next(call: Call, look: Callable[[], list[Event]]) -> list[Event]:
    """What comes next; what is away for now is waited for, and nothing is missed."""
    told = False
    while True:
        try:
            return look()
        except (ServerUnavailable, StorageUnavailable, RateLimited) as error:
            if not told:
                call.note(f"{error.message}; going on once it answers")
            told = True
            time.sleep(_LOOKS_EVERY)


@verb(app, "adoption", panel=_PANEL, options=(*WHO, *WHERE), example="muniment adoption --tenant tenant_acme_prod")
def adoption(call: Call) -> None:
    """Tell whether corrections change decisions.

    Measured are corrections that a decision got, where one on the same intent and decision key had rested on what was
    replaced. A decision names its recall with --recall.
    """
    with call.open() as fabric:
        found = fabric.adoption(call.principal("auditor"))
    call.show(found, lambda: views.adoption(Screen(), found))


@verb(
    app,
    "retract",
    panel="Govern",
    options=(*WHO, *WHERE),
    example="muniment retract pm_01a1de60ebfc2d3c4b5a69788796 --reason wrong",
)
def retract(
    call: Call,
    memory_id: MemoryId,
    reason: Annotated[RetractionReason, typer.Option("--reason", help="Why it is withdrawn.")],
) -> None:
    """Withdraw a memory for good, with a reason; its row stays.

    With the reason erased a privacy officer takes its text away, too.
    """
    with call.open() as fabric:
        role = "privacy_officer" if reason == "erased" else "reviewer"
        gone = fabric.retract(call.principal(role), memory_id, reason=reason)
    words = f"retracted {gone.memory_id}: {gone.reason}, by {gone.retracted_by}, number {gone.seq}"
    call.show(gone, lambda: Screen().line(words))
