"""Second look: a sample of what others decided is judged again without knowing how, to measure agreement."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.pages.proposal import conflicts_of
from muniment.console.quotes import quotes_of
from muniment.console.rendering import page
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput

router = APIRouter()
Reviewer = Annotated[Visitor, Depends(Requires("review"))]


@router.get("/queue/second-look")
async def second_look(visitor: Reviewer) -> Response:
    """The next proposal to judge again with its evidence, without its verdicts."""
    found = (await visitor.fabric.queue.second_look(visitor.principal)).evidence
    progress = await visitor.fabric.queue.progress(visitor.principal, zone=visitor.zone)
    context: dict[str, Any] = {"proposal": None}
    if found is not None:
        shown = {"quoted": quotes_of(found), "conflicts": conflicts_of(found)}
        context = {"evidence": found, "proposal": found.proposal, "candidate": found.proposal.candidate, **shown}
    return page("second_look.html", visitor, progress=progress, **context)


@router.post("/queue/{proposal_id}/second-look")
async def look_again(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """Record how the visitor would have decided, and say how it was decided."""
    would = text_field(await read_form(request, visitor), "would")
    try:
        if would not in ("approve", "reject"):
            raise InvalidInput("expected approve or reject", field="would")
        found = await visitor.fabric.queue.look_again(visitor.principal, proposal_id, would=would)
    except (Conflict, InvalidInput) as error:
        return redirect(visitor, "queue/second-look", error_text(error))
    done = {"approve": "approved", "reject": "rejected"}[found.decided]
    notice = (
        f"You agree with {found.by}, who {done} it" if found.agreed else f"You differ from {found.by}, who {done} it"
    )
    return redirect(visitor, "queue/second-look", notice)
