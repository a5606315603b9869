"""Contradictions: list them with the texts of both sides, and resolve them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import views
from muniment.cli.call import Call
from muniment.cli.command import command, draw_all, verb_command
from muniment.cli.inputs import parse_pairs
from muniment.cli.options import ASKER, Note, argument, flag, page_options
from muniment.errors import NotFound, SealBroken
from muniment.model.context import Principal
from muniment.model.contradiction import Contradiction, ResolutionMethod, Side

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs

app = typer.Typer()


@command(app, "contradictions", options=(*page_options(50), *ASKER), example="muniment contradictions --all --limit 20")
def contradictions(call: Call, closed: Annotated[bool, flag("--all", "Also those that are resolved.")] = False) -> None:
    """List pairs of facts that cannot both be true, the oldest first.

    One side is a memory, the other a proposal or another memory.
    """
    asker, limit, after = call.principal("reviewer"), call.options["limit"], call.options["after"]
    with call.open() as fabric:
        found = fabric.contradictions.list(asker, closed=closed, limit=limit, after=after)
        texts = {} if call.as_json else dict(_texts(fabric, asker, found))
    empty = "no contradictions" if closed else "no open contradictions"
    draw = partial(views.draw_contradiction, texts=texts)
    call.show_page(found, lambda: draw_all(draw, found), limit=limit, key="contradiction_id", empty=empty)


def _texts(fabric: "Verbs", asker: Principal, found: Sequence[Contradiction]) -> Iterator[tuple[str | None, str]]:
    """Yield the texts of both sides by id; a side that cannot be read is left out."""
    for memory_id in dict.fromkeys(one.existing for one in found):
        with suppress(NotFound, SealBroken):
            yield memory_id, fabric.get(asker, memory_id).text
    for proposal_id in dict.fromkeys(one.proposal_id for one in found):
        with suppress(NotFound, SealBroken):
            yield proposal_id, fabric.queue.get(asker, proposal_id).candidate.text


@verb_command(
    app,
    "resolve",
    "reviewer",
    draw=views.draw_contradiction,
    example="muniment resolve ctr_01a1de60 coexist --existing region=de --incoming region=fr",
)
def resolve(
    fabric: "Verbs",
    reviewer: Principal,
    contradiction_id: Annotated[str, argument("CONTRADICTION", "The id of a contradiction, ctr_...")],
    way: Annotated[ResolutionMethod, argument("WAY", "supersede, coexist, retract or block.")],
    keep: Annotated[
        Side | None, flag("--keep", "For supersede and retract: the side that stays; by default the incoming one.")
    ] = None,
    existing: Annotated[
        list[str] | None,
        flag("--existing", "NAME=VALUE", "For coexist: the qualifier of runs that see the existing side."),
    ] = None,
    incoming: Annotated[
        list[str] | None,
        flag("--incoming", "NAME=VALUE", "For coexist: the qualifier of runs that see the incoming side."),
    ] = None,
    note: Note = None,
) -> Contradiction:
    """Resolve a contradiction: supersede, coexist, retract or block.

    supersede: the kept side replaces the other. coexist: both stay, each for runs with its qualifiers. retract: the
    other side is retracted as wrong. block: a proposal is never promoted. If the incoming side is a proposal and is
    kept, this approves it, so its author cannot do it.
    """
    return fabric.contradictions.resolve(
        reviewer,
        contradiction_id,
        way,
        keep=keep,
        existing=parse_pairs(existing, "existing") if existing else None,
        incoming=parse_pairs(incoming, "incoming") if incoming else None,
        note=note,
    )
