"""What end users see and do about themselves, and the one-time codes that are sent to them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from muniment.cli import views
from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.inputs import parse_time
from muniment.cli.options import ASKER, Evidence, MemoryId, argument, flag
from muniment.cli.output import Screen, counted, format_time
from muniment.cli.plain import plain
from muniment.model.candidate import Refusal
from muniment.model.promoted import Retraction, Undone
from muniment.model.subject import (
    Act,
    Decided,
    ErasureRequest,
    MyCapture,
    MyConsentRequest,
    MyExport,
    MyMemory,
    MyMemoryDetails,
    MyProposal,
    MyRecall,
    OneTimeCode,
)

app = typer.Typer()
me = group(app, "me", lists=True)
codes = group(app, "codes")

# Verdicts in words.
_DECIDED = {
    "approve": "approved",
    "edit": "edited",
    "reject": "rejected",
    "hold": "held",
    "block": "blocked",
    "duplicate": "found to be a duplicate",
    "withdraw": "withdrawn",
    "undo": "undone",
    "lift": "allowed again",
}
_WITHHELD = "(sealed under another key: about somebody else, or kept under another of your ids)"


def _draw_memory(screen: Screen, one: MyMemory) -> None:
    screen.line(f"{one.memory_id}  {one.state}")
    screen.line(_WITHHELD if one.withheld else one.text, indent=4)
    origin = "you said it" if one.said_by_you else f"from {one.author}"
    by = views.approver(one.approver)
    screen.line(f"{one.write_class}, {one.tier}, {one.classification}, {origin}, approved by {by}", indent=4)


def _draw_details(screen: Screen, one: MyMemoryDetails) -> None:
    _draw_memory(screen, one)
    if one.capture is not None:
        screen.line(f"from {one.capture.capture_id}, {format_time(one.capture.captured_at)}", indent=4)
    for decision in one.decisions:
        by = views.approver(decision.by)
        screen.line(f"{_DECIDED.get(decision.action, decision.action)} by {by}, {format_time(decision.at)}", indent=4)
    if one.consent is not None:
        screen.line(f"on your consent {one.consent.consent_id}, {one.consent.state}", indent=4)
    screen.line(f"recalled {counted(one.recalled.times, 'time')}", indent=4)


def _draw_proposal(screen: Screen, one: MyProposal) -> None:
    screen.line(f"{one.proposal_id}  {'you may confirm it' if one.may_confirm else 'waits for a reviewer'}")
    screen.line(_WITHHELD if one.withheld else one.text, indent=4)
    for why in one.why_not:
        screen.line(why.detail or why.code, indent=4)


def _draw_capture(screen: Screen, one: MyCapture) -> None:
    screen.line(f"{one.capture_id}  {format_time(one.captured_at)}  {'you' if one.said_by_you else one.author}")
    screen.line(_WITHHELD if one.withheld else one.text, indent=4)


def _draw_recall(screen: Screen, one: MyRecall) -> None:
    screen.line(f"{one.recall_id}  {format_time(one.at)}  {one.agent_id}  {counted(len(one.memory_ids), 'record')}")
    if one.query is not None:
        screen.line(one.query, indent=4)


def _draw_request(screen: Screen, one: MyConsentRequest) -> None:
    screen.line(f"{one.request_id}  {one.label}  {one.answer or f'answer until {format_time(one.ends_at)}'}")
    screen.line(one.question or "(archived)", indent=4)


def _draw_decided(screen: Screen, one: Decided) -> None:
    screen.line(f"{one.proposal_id}  {one.status}" + (f"  {one.memory_id}" if one.memory_id else ""))


def _draw_forgotten(screen: Screen, one: Retraction) -> None:
    screen.line(f"{one.memory_id} is forgotten; the same fact is refused until you allow it again")


def _draw_undone(screen: Screen, one: Undone) -> None:
    screen.line(f"{one.retraction.memory_id} is undone; the same fact is refused until you allow it again")
    for old, new in one.restored.items():
        screen.line(f"{old} is remembered again, as {new}", indent=4)
    for left in one.not_restored:
        screen.line(
            f"{left.memory_id} waits for a person" if left.proposal_id else f"{left.memory_id} has ended", indent=4
        )


def _draw_erasure_request(screen: Screen, one: ErasureRequest) -> None:
    screen.line(f"{one.request_id}  {one.answer or 'waits for its release'}" + (f"  {one.erasure_id or ''}").rstrip())


plain(me, "list", draw=_draw_memory, empty="nothing is held about you")
plain(me, "why", draw=_draw_details)
plain(me, "pending", draw=_draw_proposal, empty="nothing waits")
plain(me, "captures", draw=_draw_capture, empty="nothing was captured")
plain(me, "recalls", draw=_draw_recall, empty="nothing was recalled")
plain(me, "consents", draw=views.draw_consent, empty="no consents")
plain(me, "requests", draw=_draw_request, empty="nobody asks you anything")
plain(me, "confirm", draw=_draw_decided)
plain(me, "decline", draw=_draw_decided)
plain(me, "forget", draw=_draw_forgotten)
plain(me, "undo", draw=_draw_undone)
plain(me, "allow-again", draw=_draw_memory)
plain(me, "revoke", draw=views.draw_consent)


@command(me, "forget-everything", options=ASKER)
def forget_everything(call: Call, yes: Annotated[bool, flag("--yes", "Do not ask for confirmation.")] = False) -> None:
    """Ask that everything about you is erased. A privacy officer releases it, unless the pack does at once."""
    person = call.principal("subject")
    call.confirm(f"Ask to erase everything about {person.id} in tenant {call.tenant}, for good?", yes=yes)
    with call.open() as fabric:
        call.show(fabric.me.forget_everything(person), _draw_erasure_request)


@command(me, "correct", options=ASKER)
def correct(
    call: Call,
    memory_id: MemoryId,
    text: Annotated[str | None, flag("--text TEXT", "The right statement, for a plain text.")] = None,
    value: Annotated[str | None, flag("--value TEXT", "The right value, for a typed fact.")] = None,
) -> None:
    """Say what is right instead of a memory about yourself. A reviewer decides."""
    with call.open() as fabric:
        made = fabric.me.correct(call.principal("subject"), memory_id, text=text, value=value)
    if isinstance(made, Refusal):
        call.refuse(made, views.draw_refusal)
    call.show_line(made, f"{made.proposal_id} waits for a reviewer")


@command(me, "consent", options=ASKER)
def consent(
    call: Call,
    label: Annotated[list[str], flag("--label LABEL", "A classification that it covers; can be repeated.")],
    purpose: Annotated[str | None, flag("--purpose NAME", "What for; by default as the pack names it.")] = None,
    until: Annotated[str | None, flag("--until TIME", "When it ends, in ISO 8601.")] = None,
    evidence: Evidence = None,
) -> None:
    """Consent yourself that facts of a label are kept about you."""
    with call.open() as fabric:
        made = fabric.me.consent(
            call.principal("subject"),
            data_classifications_allowed=label,
            purpose=purpose,
            valid_until=parse_time(until, "valid_until"),
            evidence_refs=evidence or [],
        )
    call.show(made, views.draw_consent)


@command(me, "answer", options=ASKER)
def answer(
    call: Call,
    request_id: Annotated[str, argument("REQUEST", "The id of a consent request, crq_...")],
    given: Annotated[Literal["grant", "refuse"], argument("ANSWER", "Whether it may be kept.")],
) -> None:
    """Answer whether something may be kept about you."""
    with call.open() as fabric:
        done = fabric.me.answer(call.principal("subject"), request_id, given)
    call.show(done, _draw_request)


@command(me, "export", options=ASKER)
def export(
    call: Call,
    page: Annotated[
        Path | None, flag("--page FILE", "Also write it as a web page to read, into this new file.")
    ] = None,
) -> None:
    """Take along everything that is held about you: with --json as data, with --page as a page to read."""
    with call.open() as fabric:
        whole = fabric.me.export(call.principal("subject"))
    if page is not None:
        from muniment.subject.page import render

        with page.open("x", encoding="utf-8") as file:
            file.write(render(whole))
    call.show(whole, _draw_export)


def _draw_export(screen: Screen, whole: MyExport) -> None:
    for name in ("memories", "proposals", "captures", "consents", "consent_requests", "recalls"):
        screen.line(f"{name.replace('_', ' ')}: {len(getattr(whole, name))}")


@command(codes, "create", options=ASKER)
def create_code(
    call: Call,
    user_id: Annotated[str, argument("USER", "The end user that it is sent to.")],
    act: Annotated[Act, argument("ACT", "What the person does by it.")],
    target: Annotated[str, argument("ID", "The proposal, memory or consent request that the act is on.")],
) -> None:
    """Make a one-time code for a person. Send it by a channel that no agent can read; it is shown once."""
    with call.open() as fabric:
        made = fabric.codes.create(call.principal("admin"), user_id, act, target)
    call.show(made, _draw_code)


def _draw_code(screen: Screen, made: OneTimeCode) -> None:
    screen.line(f"{made.code}  valid until {format_time(made.expires_at)}")
