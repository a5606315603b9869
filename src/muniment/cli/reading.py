"""Reading: recall, get, trail, events, adoption; and retract."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from muniment.cli import views
from muniment.cli.asking import RUN, RUN_OR_PERSON, WHERE, WHO, Call, verb
from muniment.cli.output import Screen
from muniment.model.promoted import RetractionReason

if TYPE_CHECKING:
    from muniment.model.fields import Tier, WriteClass

app = typer.Typer()
_PANEL = "Read"

MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="The id of a memory, pm_...")]


@verb(
    app,
    "recall",
    panel=_PANEL,
    options=(*RUN, *WHERE),
    example="muniment recall --user cust_8861 --intent support.refund.execute --allow PII --allow INTERNAL",
)
def recall(
    call: Call,
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many; the pack bounds it.")] = None,
    tier: Annotated[list[str] | None, typer.Option("--tier", metavar="TIER", help="Only of this tier.")] = None,
    write_class: Annotated[
        list[str] | None, typer.Option("--class", metavar="CLASS", help="Only of this class.")
    ] = None,
    entity: Annotated[
        list[str] | None, typer.Option("--entity", metavar="CEID", help="Only about this entity.")
    ] = None,
) -> None:
    """Show what a run may know now: promoted memory through every filter, with its papers."""
    run = call.run()
    # The fabric says which names it knows.
    tiers, classes = cast("list[Tier]", tier), cast("list[WriteClass]", write_class)
    with call.open() as fabric:
        answer = fabric.recall(run, limit=limit, tiers=tiers or None, classes=classes or None, entities=entity or None)
    call.show(answer, lambda: views.recall(Screen(), answer))


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
    """Show a memory's papers: back to its capture, with every verdict, and forward to the recalls that used it."""
    with call.open() as fabric:
        papers = fabric.trail(call.principal("auditor"), memory_id)
    call.show(papers, lambda: views.trail(Screen(), papers))


@verb(app, "events", panel=_PANEL, options=(*WHO, *WHERE), example="muniment events --after 40 --limit 20")
def events(
    call: Call,
    after: Annotated[int, typer.Option("--after", metavar="NUMBER", help="Those after this number.")] = 0,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 100,
) -> None:
    """Show the tenant's event log: every change of state, and every denied attempt."""
    with call.open() as fabric:
        found = fabric.events(call.principal("auditor"), after=after, limit=limit)
    call.show(found, lambda: views.events(Screen(), found))
    if not found:
        call.note("no events")
    elif len(found) >= limit:
        call.note(f"there may be more: muniment events --after {found[-1].seq}")


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
    """Withdraw a memory for good, with a reason; its row stays."""
    with call.open() as fabric:
        gone = fabric.retract(call.principal("reviewer"), memory_id, reason=reason)
    words = f"retracted {gone.memory_id}: {gone.reason}, by {gone.retracted_by}, number {gone.seq}"
    call.show(gone, lambda: Screen().line(words))
