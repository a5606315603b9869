"""Contradictions: listed with what both sides say, and settled."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated

import typer

from muniment.cli import views
from muniment.cli.asking import Call, pairs, verb
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen
from muniment.errors import NotFound, SealBroken
from muniment.model.context import Principal
from muniment.model.contradiction import Contradiction, ResolutionMethod, Side
from muniment.sync_verbs import Verbs

app = typer.Typer()
_OPTIONS = (*WHO, *WHERE)


@verb(app, "contradictions", panel="Review", options=_OPTIONS, example="muniment contradictions --all --limit 20")
def contradictions(
    call: Call,
    closed: Annotated[bool, typer.Option("--all", help="Also those that are settled.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="The last one of the page before.")] = None,
) -> None:
    """List what cannot both hold, the oldest first: a memory, and what was proposed or promoted against it."""
    asker = call.principal("reviewer")
    with call.open() as fabric:
        found = fabric.contradictions.list(asker, closed=closed, limit=limit, after=after)
        said = {} if call.as_json else dict(_said(fabric, asker, found))
    call.show(found, lambda: views.contradictions(Screen(), found, said))
    if not found:
        call.note("no contradictions" if closed else "no open contradictions")
    elif len(found) == limit:
        call.note(f"there may be more: muniment contradictions --after {found[-1].contradiction_id}")


def _said(fabric: Verbs, asker: Principal, found: Sequence[Contradiction]) -> Iterator[tuple[str, str]]:
    """What the sides say, by their ids; a side that cannot be opened any more says nothing."""
    for memory_id in dict.fromkeys(one.existing for one in found):
        with suppress(NotFound, SealBroken):
            yield memory_id, fabric.get(asker, memory_id).text
    for proposal_id in dict.fromkeys(one.proposal_id for one in found):
        with suppress(NotFound, SealBroken):
            yield proposal_id, fabric.queue.get(asker, proposal_id).candidate.text


@verb(
    app,
    "resolve",
    panel="Review",
    options=_OPTIONS,
    example="muniment resolve ctr_01a1def7baf34253982507120f77 coexist --existing region=de --incoming region=fr",
)
def resolve(
    call: Call,
    contradiction_id: Annotated[
        str, typer.Argument(metavar="CONTRADICTION", help="The id of a contradiction, ctr_...")
    ],
    way: Annotated[ResolutionMethod, typer.Argument(metavar="WAY", help="supersede, coexist, retract or block.")],
    keep: Annotated[
        Side | None,
        typer.Option("--keep", help="The side that stands, to supersede or retract; the incoming when not said."),
    ] = None,
    existing: Annotated[
        list[str] | None,
        typer.Option("--existing", metavar="NAME=VALUE", help="To coexist: what a run says to see the existing side."),
    ] = None,
    incoming: Annotated[
        list[str] | None,
        typer.Option("--incoming", metavar="NAME=VALUE", help="To coexist: what a run says to see the incoming side."),
    ] = None,
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A note that is kept, sealed.")] = None,
) -> None:
    """Settle a contradiction: supersede, coexist, retract or block.

    supersede: the side kept takes the other's place. coexist: both stand, each for the runs that say its qualifiers.
    retract: the side not kept is withdrawn as wrong. block: what is still a proposal never becomes a memory.
    Where the incoming side waits in the queue and is kept, this approves it, so its author cannot.
    """
    with call.open() as fabric:
        settled = fabric.contradictions.resolve(
            call.principal("reviewer"),
            contradiction_id,
            way,
            keep=keep,
            existing=pairs(existing, "existing") if existing else None,
            incoming=pairs(incoming, "incoming") if incoming else None,
            note=note,
        )
    call.show(settled, lambda: views.contradictions(Screen(), [settled]))
