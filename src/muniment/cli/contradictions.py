"""Contradictions: list them with the texts of both sides, and resolve them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import views
from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.options import ASKER, flag, page_options
from muniment.cli.output import each
from muniment.cli.plain import plain
from muniment.errors import NotFound, SealBroken
from muniment.model.context import Principal
from muniment.model.contradiction import Contradiction

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs

app = typer.Typer()


@command(app, "contradictions", options=(*page_options(50), *ASKER))
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
    call.show_page(found, each(draw), limit=limit, key="contradiction_id", empty=empty)


def _texts(fabric: "Verbs", asker: Principal, found: Sequence[Contradiction]) -> Iterator[tuple[str | None, str]]:
    """Yield the texts of both sides by id; a side that cannot be read is left out."""
    for memory_id in dict.fromkeys(one.existing for one in found):
        with suppress(NotFound, SealBroken):
            yield memory_id, fabric.get(asker, memory_id).text
    for proposal_id in dict.fromkeys(one.proposal_id for one in found):
        with suppress(NotFound, SealBroken):
            yield proposal_id, fabric.queue.get(asker, proposal_id).candidate.text


plain(app, "resolve", draw=views.draw_contradiction)
