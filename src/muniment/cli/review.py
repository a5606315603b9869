"""The review queue: list, show, approve, edit, reject, lift, override, assign, release."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import views
from muniment.cli.call import FAILED, REFUSED, Call
from muniment.cli.command import command, group
from muniment.cli.options import ASKER, VALUE, Evidence, Note, ProposalId, ProposalIds, Version, flag
from muniment.cli.output import draw_document, each, write_error
from muniment.cli.plain import plain
from muniment.errors import Conflict, InvalidInput, MunimentError, NotFound, NotPromotable, SelfApproval
from muniment.model.candidate import Refusal
from muniment.model.context import Principal
from muniment.model.proposal import APPROVED_AT_ONCE, Outcome, Proposal

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs
    from muniment.verbs.keywords import EditFields

app = typer.Typer()
queue = group(app, "queue", lists=True)
# Errors that concern one proposal and not the next.
_OF_ONE = (NotFound, SelfApproval, Conflict, NotPromotable)


plain(queue, "list", draw=views.draw_queued, empty="the queue is empty")
plain(queue, "document", draw=draw_document)


@command(queue, "show", options=ASKER)
def show(call: Call, proposal_id: ProposalId) -> None:
    """Show one proposal with everything it is based on and every verdict."""
    reviewer = call.principal("reviewer")
    with call.open() as fabric:
        found = fabric.queue.get(reviewer, proposal_id)
        against = [] if call.as_json else fabric.contradictions.list(reviewer, proposal_id=found.proposal_id)
    call.show(found, partial(views.draw_proposal, contradictions=against))


@command(app, "approve", options=ASKER)
def approve(
    call: Call,
    proposal_ids: ProposalIds,
    note: Note = None,
    supersedes: Annotated[str | None, flag("--supersedes MEMORY", "The memory that this one replaces.")] = None,
    version: Version = None,
    acknowledge: Annotated[
        list[str] | None,
        flag(
            "--acknowledge PROPOSAL=REASON",
            "Approve a proposal that is not ordinary, with a reason for its verdict; can be repeated.",
        ),
    ] = None,
) -> None:
    """Approve proposals and promote them.

    What is durable or sensitive needs another person than its author; what is low in trust or addresses the model, a
    --note that says why it may be trusted. Of several proposals only ordinary ones are approved: not sensitive, not
    about a third party, not high risk, not low in trust, nothing that addresses the model, without a contradiction, not
    assigned to somebody else. The others are left, with the reasons. A proposal that cannot be approved does not stop
    the others. Ends with 1 if one could not be approved, with 3 if one was not promoted because it repeats or
    contradicts a memory.
    """
    # Approved twice, a proposal would look changed by somebody else.
    ids = list(dict.fromkeys(proposal_ids))
    for name, given in (("supersedes", supersedes), ("version", version)):
        if given is not None and len(ids) > 1:
            raise InvalidInput("takes one proposal at a time", field=name)
    reasons = _parse_reasons(acknowledge or [], ids)
    reviewer = call.principal("reviewer")
    with call.open() as fabric:
        if len(ids) > 1 or reasons:
            done, broken = _approve_many(call, fabric, reviewer, ids, note, reasons)
            call.show(done, views.draw_outcomes)
        else:
            one, proposal = _approve_one(
                ids[0],
                lambda: fabric.queue.approve(reviewer, ids[0], note=note, supersedes=supersedes, version=version),
            )
            done, broken = [one], None
            call.show(done, lambda screen, _: views.draw_decision(screen, proposal) if proposal is not None else None)
    for one in done:
        if one.error is not None:
            # The place is the proposal, so the message need not name it.
            message = (one.message or "").removeprefix("proposal_id: ")
            error = {"code": one.error, "message": message, "field": "proposal_id", "place": one.proposal_id}
            write_error(error, as_json=call.as_json)
    if broken is not None:
        raise broken
    if any(one.error is not None for one in done):
        raise typer.Exit(FAILED)
    if any(one.status != "promoted" for one in done):
        raise typer.Exit(REFUSED)


def _approve_one(proposal_id: str, approve: Callable[[], Proposal]) -> tuple[Outcome, Proposal | None]:
    try:
        proposal = approve()
    except _OF_ONE as error:
        return Outcome(proposal_id=proposal_id, error=error.code, message=error.message), None
    return Outcome(proposal_id=proposal_id, status=proposal.status, memory_id=proposal.memory_id), proposal


def _parse_reasons(given: list[str], ids: list[str]) -> dict[str, str]:
    """Parse PROPOSAL=REASON of proposals that are to be approved; raises `InvalidInput`."""
    found: dict[str, str] = {}
    for one in given:
        proposal_id, sign, reason = one.partition("=")
        if not sign or not reason or proposal_id not in ids:
            raise InvalidInput("expected PROPOSAL=REASON, of a proposal to approve", field="acknowledge")
        found[proposal_id] = reason
    return found


def _approve_many(
    call: Call, fabric: "Verbs", reviewer: Principal, ids: list[str], note: str | None, reasons: dict[str, str]
) -> tuple[list[Outcome], MunimentError | None]:
    """Approve in batches; return the outcomes, and the error that stopped the rest. Earlier batches are committed."""
    done: list[Outcome] = []
    with call.progress("approving", len(ids)) as steps:
        for first in range(0, len(ids), APPROVED_AT_ONCE):
            some = ids[first : first + APPROVED_AT_ONCE]
            acknowledged = {one: reasons[one] for one in some if one in reasons}
            try:
                done += fabric.queue.approve_many(reviewer, some, note=note, acknowledge=acknowledged)
            except MunimentError as error:
                if not done:
                    raise
                return done, error
            steps.update(f"{len(done)} of {len(ids)}", len(done))
    return done, None


@command(app, "reject", options=ASKER)
def reject(
    call: Call,
    proposal_ids: ProposalIds,
    reason: Annotated[str, flag("--reason WORD", "Why, in a word or two.")],
    note: Note = None,
    version: Version = None,
) -> None:
    """Reject proposals, with a reason.

    The same fact, also in other words, is then refused for as long as the pack says, or until the rejection is lifted.
    """
    if version is not None and len(set(proposal_ids)) > 1:
        raise InvalidInput("takes one proposal at a time", field="version")
    reviewer = call.principal("reviewer")
    done: list[Proposal] = []
    failed = False
    with call.open() as fabric:
        for one in dict.fromkeys(proposal_ids):
            try:
                done.append(fabric.queue.reject(reviewer, one, reason=reason, note=note, version=version))
            except MunimentError as error:
                failed = True
                write_error(error.as_dict() | {"place": one}, as_json=call.as_json)
                if not isinstance(error, _OF_ONE):
                    break
    call.show(done, each(views.draw_decision))
    if failed:
        raise typer.Exit(FAILED)


@command(app, "edit", options=(*VALUE, *ASKER))
def edit(
    call: Call,
    proposal_id: ProposalId,
    text: Annotated[str | None, flag("--text TEXT", "The new text.")] = None,
    classification: Annotated[str | None, flag("--classification -c LABEL", "A higher label.")] = None,
    evidence: Evidence = None,
    note: Note = None,
    version: Version = None,
) -> None:
    """Replace the candidate of a proposal by an edited one.

    It has to pass the gates again, and both texts are kept. Ends with 3 if a gate refuses the edit; the proposal is
    then unchanged.
    """
    changes: EditFields = {}
    if text is not None:
        changes["text"] = text
    if call.options["value"] is not None or call.options["value_json"] is not None:
        changes["value"] = call.value()
    if classification is not None:
        changes["classification"] = classification
    if evidence:
        changes["evidence_refs"] = evidence
    with call.open() as fabric:
        outcome = fabric.queue.edit(call.principal("reviewer"), proposal_id, note=note, version=version, **changes)
    if isinstance(outcome, Refusal):
        call.refuse({"refusal": outcome}, lambda screen, _: views.draw_refusal(screen, outcome))
    call.show(outcome, views.draw_decision)


plain(app, "lift", draw=views.draw_decision)
plain(app, "override", draw=views.draw_decision)
plain(app, "assign", draw=views.draw_decision)
plain(app, "release", draw=views.draw_decision)
