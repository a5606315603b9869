"""The review queue at the keyboard: list, show, approve, edit, reject, lift, override, assign, release."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import views
from muniment.cli.asking import REFUSED, Call, ListsByDefault, verb
from muniment.cli.inputs import json_value
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, failure, progress
from muniment.errors import Conflict, InvalidInput, MunimentError, NotFound, NotPromotable, SelfApproval
from muniment.model.candidate import Refusal
from muniment.model.context import Principal
from muniment.model.fields import Tier, WriteClass
from muniment.model.proposal import HumanReason, Outcome, Proposal
from muniment.model.review_views import OpenStatus, Risk
from muniment.review.verbs import AT_ONCE
from muniment.sync_verbs import Verbs

if TYPE_CHECKING:
    from muniment.verbs.keywords import EditFields

app = typer.Typer()
queue = typer.Typer(cls=ListsByDefault)
app.add_typer(queue, name="queue", rich_help_panel="Review", help="The review queue: lists it, or shows one proposal.")
_PANEL = "Review"
_OPTIONS = (*WHO, *WHERE)
# What is wrong with one proposal, and not with the next.
_OF_ONE = (NotFound, SelfApproval, Conflict, NotPromotable)

ProposalId = Annotated[str, typer.Argument(metavar="PROPOSAL", help="The id of a proposal, mwp_...")]
ProposalIds = Annotated[list[str], typer.Argument(metavar="PROPOSAL...", help="Ids of proposals, mwp_...")]
Version = Annotated[
    int | None,
    typer.Option(
        "--version", metavar="N", help="The version that you read: where it is another by now, nothing is done."
    ),
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A note that is kept, sealed.")]


@verb(queue, "list", options=_OPTIONS, example="muniment queue --class correction --limit 20")
def list_queue(
    call: Call,
    write_class: Annotated[WriteClass | None, typer.Option("--class", help="Only this class.")] = None,
    closed: Annotated[bool, typer.Option("--all", help="Also those that had their final verdict.")] = False,
    tier: Annotated[Tier | None, typer.Option("--tier", help="Only what would go to this tier.")] = None,
    risk: Annotated[Risk | None, typer.Option("--risk", help="Only of this risk.")] = None,
    reason: Annotated[
        HumanReason | None, typer.Option("--reason", help="Only what waits for a person for this reason.")
    ] = None,
    entity: Annotated[str | None, typer.Option("--entity", metavar="CEID", help="Only what is about this one.")] = None,
    assignee: Annotated[
        str | None, typer.Option("--assignee", metavar="NAME", help="Only what is assigned to this person.")
    ] = None,
    status: Annotated[OpenStatus | None, typer.Option("--status", help="Only those that stand so.")] = None,
    overdue: Annotated[
        bool | None, typer.Option("--overdue/--not-overdue", help="Only what is past its term, or what is not.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="The last proposal of the page before.")
    ] = None,
) -> None:
    """List what waits for a person, the one due first first."""
    with call.open() as fabric:
        found = fabric.queue.list(
            call.principal("reviewer"),
            write_class=write_class,
            closed=closed,
            tier=tier,
            risk=risk,
            reason=reason,
            entity=entity,
            assignee=assignee,
            status=status,
            overdue=overdue,
            limit=limit,
            after=after,
        )
    call.show(found, lambda: views.in_queue(Screen(), found))
    if not found:
        call.note("nothing waits in the queue")
    elif len(found) == limit:
        call.note(f"there may be more: muniment queue --after {found[-1].proposal_id}")


@verb(queue, "show", options=_OPTIONS, example="muniment queue show mwp_01a1de60ebe944d4dad32871beef")
def show(call: Call, proposal_id: ProposalId) -> None:
    """Show one proposal with everything it rests on and every verdict."""
    reviewer = call.principal("reviewer")
    with call.open() as fabric:
        found = fabric.queue.get(reviewer, proposal_id)
        against = [] if call.as_json else fabric.contradictions.list(reviewer, proposal_id=found.proposal_id)
    call.show(found, lambda: views.proposal(Screen(), found, against))


@verb(
    app,
    "approve",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment approve mwp_01a1de60ebe944d4dad32871beef mwp_01a1de60ec0155e0a3c9471d02fa --note 'in the log'",
)
def approve(
    call: Call,
    proposal_ids: ProposalIds,
    note: Note = None,
    supersedes: Annotated[
        str | None, typer.Option("--supersedes", metavar="MEMORY", help="The memory it takes the place of.")
    ] = None,
    version: Version = None,
    acknowledge: Annotated[
        list[str] | None,
        typer.Option(
            "--acknowledge",
            metavar="PROPOSAL=REASON",
            help="Take in one that is not ordinary, with a reason that its verdict records. Several times, if needed.",
        ),
    ] = None,
) -> None:
    """Approve proposals and promote them; one that cannot be approved stops no other.

    What is durable or sensitive needs another person than its author. Of several only those are taken that are
    ordinary: not sensitive, not high risk, not low in trust, without contradiction, not assigned to somebody else. The
    rest is left out, with the reasons. Ends with 1 if one could not be approved, with 3 if one was not promoted after
    all, because it repeats or contradicts a memory.
    """
    # Twice the same id would be told as somebody else's doing.
    ids = list(dict.fromkeys(proposal_ids))
    for name, given in (("supersedes", supersedes), ("version", version)):
        if given is not None and len(ids) > 1:
            raise InvalidInput("takes one proposal at a time", field=name)
    taken_in = _acknowledged(acknowledge or [], ids)
    reviewer = call.principal("reviewer")
    with call.open() as fabric:
        if len(ids) > 1 or taken_in:
            done, broken = _approve_many(call, fabric, reviewer, ids, note, taken_in)
            call.show(done, lambda: views.outcomes(Screen(), done))
        else:
            one, proposal = _approve_one(
                ids[0],
                lambda: fabric.queue.approve(reviewer, ids[0], note=note, supersedes=supersedes, version=version),
            )
            done, broken = [one], None
            call.show(done, lambda: views.decided(Screen(), proposal) if proposal is not None else None)
    for one in done:
        if one.error is not None:
            told = {"code": one.error, "message": _message(one), "field": "proposal_id", "place": one.proposal_id}
            failure(told, as_json=call.as_json)
    if broken is not None:
        raise broken
    if any(one.error is not None for one in done):
        raise typer.Exit(1)
    if any(one.status != "promoted" for one in done):
        raise typer.Exit(REFUSED)


def _approve_one(proposal_id: str, approve: Callable[[], Proposal]) -> tuple[Outcome, Proposal | None]:
    try:
        proposal = approve()
    except _OF_ONE as error:
        return Outcome(proposal_id=proposal_id, error=error.code, message=error.message), None
    return Outcome(proposal_id=proposal_id, status=proposal.status, memory_id=proposal.memory_id), proposal


def _acknowledged(given: list[str], ids: list[str]) -> dict[str, str]:
    """The reasons by proposal; raises `InvalidInput` for another form, or one that is not among those to approve."""
    found: dict[str, str] = {}
    for one in given:
        proposal_id, parted, reason = one.partition("=")
        if not parted or not reason or proposal_id not in ids:
            raise InvalidInput("expected PROPOSAL=REASON, of a proposal to approve", field="acknowledge")
        found[proposal_id] = reason
    return found


def _approve_many(
    call: Call, fabric: Verbs, reviewer: Principal, ids: list[str], note: str | None, acknowledge: dict[str, str]
) -> tuple[list[Outcome], MunimentError | None]:
    """What became of each, and what broke off the rest: the portions before it are committed."""
    done: list[Outcome] = []
    with progress("approving", len(ids), as_json=call.as_json) as steps:
        for first in range(0, len(ids), AT_ONCE):
            try:
                some = ids[first : first + AT_ONCE]
                taken_in = {one: acknowledge[one] for one in some if one in acknowledge}
                done += fabric.queue.approve_many(reviewer, some, note=note, acknowledge=taken_in)
            except MunimentError as error:
                if not done:
                    raise
                return done, error
            steps.at(f"{len(done)} of {len(ids)}", len(done))
    return done, None


def _message(one: Outcome) -> str:
    # Of which proposal, the place says.
    return (one.message or "").removeprefix("proposal_id: ")


@verb(
    app,
    "reject",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment reject mwp_01a1de60ebe944d4dad32871beef --reason not_confirmed",
)
def reject(
    call: Call,
    proposal_ids: ProposalIds,
    reason: Annotated[str, typer.Option("--reason", metavar="WORD", help="Why, in a word or two.")],
    note: Note = None,
    version: Version = None,
) -> None:
    """End proposals without promotion, with a reason.

    It is remembered: the same fact, in other words too, is refused for as long as the pack says, or until it is lifted.
    """
    if version is not None and len(set(proposal_ids)) > 1:
        raise InvalidInput("takes one proposal at a time", field="version")
    reviewer = call.principal("reviewer")
    with call.open() as fabric:
        done, failed = _each(
            call,
            proposal_ids,
            lambda one: fabric.queue.reject(reviewer, one, reason=reason, note=note, version=version),
        )
    call.show(done, lambda: views.all_decided(Screen(), done))
    if failed:
        raise typer.Exit(1)


@verb(
    app,
    "lift",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment lift mwp_01a1de60ebe944d4dad32871beef --note 'the policy changed'",
)
def lift(call: Call, proposal_id: ProposalId, note: Note = None, version: Version = None) -> None:
    """Forget a rejection: the same fact can be proposed again."""
    with call.open() as fabric:
        outcome = fabric.queue.lift(call.principal("reviewer"), proposal_id, note=note, version=version)
    call.show(outcome, lambda: views.decided(Screen(), outcome))


def _each(call: Call, proposal_ids: list[str], act: Callable[[str], Proposal]) -> tuple[list[Proposal], int]:
    """Act on each; what is wrong with one is told and does not keep the others from their turn."""
    done: list[Proposal] = []
    failed = 0
    # Twice the same id would be told as somebody else's doing.
    for proposal_id in dict.fromkeys(proposal_ids):
        try:
            done.append(act(proposal_id))
        except MunimentError as error:
            failed += 1
            failure(error.as_dict() | {"place": proposal_id}, as_json=call.as_json)
            if not isinstance(error, _OF_ONE):
                break
    return done, failed


@verb(
    app,
    "edit",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment edit mwp_01a1de60ebe944d4dad32871beef --text 'Returns are accepted within 14 days.'",
)
def edit(
    call: Call,
    proposal_id: ProposalId,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The text instead.")] = None,
    value: Annotated[str | None, typer.Option("--value", metavar="TEXT", help="The value instead, a text.")] = None,
    value_json: Annotated[
        str | None, typer.Option("--value-json", metavar="JSON", help="The value instead, as JSON.")
    ] = None,
    classification: Annotated[
        str | None, typer.Option("--classification", "-c", metavar="LABEL", help="A higher label.")
    ] = None,
    evidence: Annotated[
        list[str] | None, typer.Option("--evidence", metavar="REF", help="The evidence instead.")
    ] = None,
    note: Note = None,
    version: Version = None,
) -> None:
    """Put an edited candidate in a proposal's place; it passes the gates again, and both texts are kept.

    Ends with 3 if a gate refuses the edit; the proposal is then as it was.
    """
    changes: EditFields = {}
    if text is not None:
        changes["text"] = text
    if value is not None or value_json is not None:
        changes["value"] = json_value(value, value_json)
    if classification is not None:
        changes["classification"] = classification
    if evidence:
        changes["evidence_refs"] = evidence
    with call.open() as fabric:
        outcome = fabric.queue.edit(call.principal("reviewer"), proposal_id, note=note, version=version, **changes)
    if isinstance(outcome, Refusal):
        call.refuse({"refusal": outcome}, lambda: views.refusal(Screen(), outcome))
    call.show(outcome, lambda: views.decided(Screen(), outcome))


@verb(
    app,
    "override",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment override mwp_01a1de60ebe944d4dad32871beef --tier semantic --priority 0.8",
)
def override(
    call: Call,
    proposal_id: ProposalId,
    tier: Annotated[Tier | None, typer.Option("--tier", help="Where it shall go.")] = None,
    priority: Annotated[float | None, typer.Option("--priority", help="From 0 to 1.")] = None,
    note: Note = None,
    version: Version = None,
) -> None:
    """Change where a proposal would go, or how much it would count."""
    with call.open() as fabric:
        outcome = fabric.queue.override(
            call.principal("reviewer"), proposal_id, tier=tier, priority=priority, note=note, version=version
        )
    call.show(outcome, lambda: views.decided(Screen(), outcome))


@verb(
    app,
    "assign",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment assign mwp_01a1de60ebe944d4dad32871beef --to operator_b",
)
def assign(
    call: Call,
    proposal_id: ProposalId,
    to: Annotated[
        str | None, typer.Option("--to", metavar="ID", help="Whose it shall be; yours when not said.")
    ] = None,
    version: Version = None,
) -> None:
    """Put a name on a proposal: one's own, or another's."""
    with call.open() as fabric:
        outcome = fabric.queue.assign(call.principal("reviewer"), proposal_id, to=to, version=version)
    call.show(outcome, lambda: views.decided(Screen(), outcome))


@verb(app, "release", panel=_PANEL, options=_OPTIONS, example="muniment release mwp_01a1de60ebe944d4dad32871beef")
def release(call: Call, proposal_id: ProposalId, version: Version = None) -> None:
    """Take the name off a proposal, or bring it back from being held."""
    with call.open() as fabric:
        outcome = fabric.queue.release(call.principal("reviewer"), proposal_id, version=version)
    call.show(outcome, lambda: views.decided(Screen(), outcome))
