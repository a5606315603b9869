"""The review queue, and what cannot both hold. Every action is a verdict of a named person."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import Field

from muniment.errors import InvalidInput
from muniment.http.bodies import (
    ActionBody,
    ApproveBody,
    ApproveManyBody,
    AssignBody,
    CheckBody,
    EditBody,
    OverrideBody,
    Page,
    PreviewBody,
    RejectBody,
    ReleaseBody,
    ResolveBody,
    given,
    page,
    run_asked,
)
from muniment.http.caller import Asking, May
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import After, Limit, Listing
from muniment.model.candidate import Refusal
from muniment.model.contradiction import Contradiction, ContradictionShown
from muniment.model.evidence import Evidence
from muniment.model.fields import Artifact, Ceid, Name, Tier, WriteClass
from muniment.model.proposal import HumanReason, Outcome, Proposal
from muniment.model.review_views import EditCheck, OpenStatus, Presence, Preview, QueueCounts, Risk

router = APIRouter(tags=["queue"], route_class=IdempotentRoute)

Reader = Annotated[Asking, Depends(May("read_queue"))]
Reviewer = Annotated[Asking, Depends(May("review"))]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=64,
        description="The `ETag` that was read: if it is another by now, nothing is done (412).",
    ),
]


class QueueListing(Listing):
    """Which proposals."""

    write_class: WriteClass | None = None
    closed: bool = Field(default=False, description="also those that had their final verdict")
    tier: Tier | None = Field(default=None, description="where it would go")
    risk: Risk | None = None
    reason: HumanReason | None = Field(default=None, description="why a person has to look")
    entity: Ceid | None = Field(default=None, description="what it is about")
    assignee: Name | None = Field(default=None, description="whose name is on it")
    status: OpenStatus | None = Field(default=None, description="of the open ones")
    overdue: bool | None = None


@router.get("/queue")
async def list_(asking: Reader, listing: Annotated[QueueListing, Query()]) -> Page[Proposal]:
    """Open proposals, the one due first first."""
    found = await asking.fabric.queue.list(asking.principal, **listing.asked())
    return page(found, listing.limit, "proposal_id")


@router.get("/queue/counts")
async def counts(asking: Reader) -> QueueCounts:
    """How many are open, overdue, soon due, held and one's own; by class, risk, tier and reason."""
    return await asking.fabric.queue.counts(asking.principal)


@router.get("/queue/{proposal_id}")
async def get(asking: Reader, proposal_id: str, response: Response) -> Proposal:
    """One proposal with all its verdicts; its `ETag` is its version."""
    return _tagged(response, await asking.fabric.queue.get(asking.principal, proposal_id))


@router.get("/queue/{proposal_id}/evidence")
async def evidence(asking: Reader, proposal_id: str) -> Evidence:
    """One proposal beside what it rests on: its capture, earlier texts, its consent, the memories it meets."""
    return await asking.fabric.queue.evidence(asking.principal, proposal_id)


@router.post("/queue/approve")
async def approve_many(asking: Reviewer, body: ApproveManyBody) -> list[Outcome]:
    """Approve those of many that are ordinary or acknowledged; what becomes of each, in the order asked for."""
    return list(await asking.fabric.queue.approve_many(asking.principal, **given(body)))


@router.post("/queue/{proposal_id}/approve")
async def approve(
    asking: Reviewer, proposal_id: str, response: Response, body: ApproveBody | None = None, match: IfMatch = None
) -> Proposal:
    """Approve and promote, in one transaction."""
    done = await asking.fabric.queue.approve(asking.principal, proposal_id, **_versioned(body, match))
    return _tagged(response, done)


@router.post("/queue/{proposal_id}/edit")
async def edit(
    asking: Reviewer, proposal_id: str, response: Response, body: EditBody, match: IfMatch = None
) -> Proposal | Refusal:
    """Put an edited candidate in the proposal's place; it passes the gates again."""
    done = await asking.fabric.queue.edit(asking.principal, proposal_id, **_versioned(body, match))
    return done if isinstance(done, Refusal) else _tagged(response, done)


@router.post("/queue/{proposal_id}/check")
async def check(asking: Reviewer, proposal_id: str, body: CheckBody) -> EditCheck:
    """What an edit would become, without making it: refused by which gate, or how it would stand."""
    return await asking.fabric.queue.check(asking.principal, proposal_id, **given(body))


@router.post("/queue/{proposal_id}/preview")
async def preview(asking: Reviewer, proposal_id: str, body: PreviewBody | None = None) -> Preview:
    """What a recall would give before and after an approval; nothing is kept of either."""
    about = given(body, "run") if body is not None else {}
    if body is not None and body.run is not None:
        about["run"] = run_asked(body.run, asking.tenant_id)
    return await asking.fabric.queue.preview(asking.principal, proposal_id, **about)


@router.post("/queue/{proposal_id}/attend")
async def attend(asking: Reviewer, proposal_id: str) -> list[Presence]:
    """Say that one looks at it, and hear who else did in the last 30 seconds."""
    return list(await asking.fabric.queue.attend(asking.principal, proposal_id))


@router.post("/queue/{proposal_id}/reject")
async def reject(
    asking: Reviewer, proposal_id: str, response: Response, body: RejectBody, match: IfMatch = None
) -> Proposal:
    """End it without promotion, with a reason."""
    done = await asking.fabric.queue.reject(asking.principal, proposal_id, **_versioned(body, match))
    return _tagged(response, done)


@router.post("/queue/{proposal_id}/lift")
async def lift(
    asking: Reviewer, proposal_id: str, response: Response, body: ActionBody | None = None, match: IfMatch = None
) -> Proposal:
    """Forget a rejection: the same fact can be proposed again."""
    done = await asking.fabric.queue.lift(asking.principal, proposal_id, **_versioned(body, match))
    return _tagged(response, done)


@router.post("/queue/{proposal_id}/override")
async def override(
    asking: Reviewer, proposal_id: str, response: Response, body: OverrideBody, match: IfMatch = None
) -> Proposal:
    """Give it another tier or priority."""
    done = await asking.fabric.queue.override(asking.principal, proposal_id, **_versioned(body, match))
    return _tagged(response, done)


@router.post("/queue/{proposal_id}/assign")
async def assign(
    asking: Reviewer, proposal_id: str, response: Response, body: AssignBody | None = None, match: IfMatch = None
) -> Proposal:
    """Say who works on it."""
    done = await asking.fabric.queue.assign(asking.principal, proposal_id, **_versioned(body, match))
    return _tagged(response, done)


@router.post("/queue/{proposal_id}/release")
async def release(
    asking: Reviewer, proposal_id: str, response: Response, body: ReleaseBody | None = None, match: IfMatch = None
) -> Proposal:
    """Let a held one go on."""
    done = await asking.fabric.queue.release(asking.principal, proposal_id, **_versioned(body, match))
    return _tagged(response, done)


@router.get("/contradictions")
async def contradictions(
    asking: Reader,
    proposal_id: Annotated[str | None, Query(max_length=256)] = None,
    closed: Annotated[bool, Query(description="also those that were settled")] = False,
    limit: Limit = 50,
    after: After = None,
) -> Page[Contradiction]:
    """What cannot both hold, the oldest first."""
    found = await asking.fabric.contradictions.list(
        asking.principal, proposal_id=proposal_id, closed=closed, limit=limit, after=after
    )
    return page(found, limit, "contradiction_id")


@router.get("/contradictions/{contradiction_id}")
async def contradiction(asking: Reader, contradiction_id: str) -> ContradictionShown:
    """One with both its sides opened."""
    return await asking.fabric.contradictions.get(asking.principal, contradiction_id)


@router.post("/contradictions/{contradiction_id}/resolve")
async def resolve(asking: Reviewer, contradiction_id: str, body: ResolveBody) -> Contradiction:
    """Settle one: supersede, coexist, retract or block."""
    return await asking.fabric.contradictions.resolve(asking.principal, contradiction_id, **given(body))


def _tagged(response: Response, proposal: Proposal) -> Proposal:
    response.headers["ETag"] = f'"{proposal.version}"'
    return proposal


def _versioned(body: Artifact | None, match: str | None) -> dict[str, Any]:
    """The body with the version that the header names; raises `InvalidInput` where the two differ."""
    said = given(body) if body is not None else {}
    if match is None or match == "*":
        return said
    number = match.removeprefix("W/").strip('"')
    if not number.isascii() or not number.isdigit():
        raise InvalidInput("expected the ETag of a proposal", field="If-Match")
    if said.get("version", int(number)) != int(number):
        raise InvalidInput("is another version than If-Match names", field="version")
    return said | {"version": int(number)}
