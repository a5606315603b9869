"""Captures and refusals at the keyboard: list captures, read one, have one run again, list what gates refused."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from muniment.cli.asking import Call, ListsByDefault, instant, verb
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, moment
from muniment.cli.views import count
from muniment.model.candidate import GateName
from muniment.model.capture_history import CaptureEntry, CaptureHistory, CaptureState, RefusalEntry, RerunReason
from muniment.model.fields import CaptureKind, Source

app = typer.Typer()
captures = typer.Typer(cls=ListsByDefault)
app.add_typer(
    captures, name="captures", rich_help_panel="Review", help="Captures: lists them, shows one, runs one again."
)
_OPTIONS = (*WHO, *WHERE)

CaptureId = Annotated[str, typer.Argument(metavar="CAPTURE", help="The id of a capture, cap_...")]
Limit = Annotated[int, typer.Option("--limit", help="At most so many.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="From this moment on, in ISO 8601.")]


@verb(captures, "list", options=_OPTIONS, example="muniment captures --capture-kind message --state refused --limit 20")
def list_captures(
    call: Call,
    capture_kind: Annotated[CaptureKind | None, typer.Option("--capture-kind", help="Only this kind.")] = None,
    source: Annotated[Source | None, typer.Option("--source", help="Only from this kind of principal.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", metavar="CEID", help="Only about this one.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Only of this end user.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="SESSION", help="Only of this session.")] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only of this run.")] = None,
    since: Since = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Before this moment, in ISO 8601.")
    ] = None,
    state: Annotated[CaptureState | None, typer.Option("--state", help="Only those that stand so.")] = None,
    limit: Limit = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="The last capture of the page before.")
    ] = None,
) -> None:
    """List captures without their content, the latest first.

    An auditor sees all, a reviewer those that a proposal or a refusal came from. What went to an archive is listed with
    --state archived alone.
    """
    with call.open() as fabric:
        found = fabric.captures.list(
            call.principal("auditor"),
            kind=capture_kind,
            source=source,
            subject=subject,
            user_id=user,
            session_id=session,
            run_id=run,
            since=instant(since, "since") if since is not None else None,
            until=instant(until, "until") if until is not None else None,
            state=state,
            limit=limit,
            after=after,
        )
    call.show(found, lambda: _draw_captures(found))
    if not found:
        call.note("no captures")
    elif len(found) == limit:
        call.note(f"there may be more: muniment captures --after {found[-1].capture_id}")


@verb(captures, "get", options=_OPTIONS, example="muniment captures get cap_01a1de60ebda060e4c4895463c41")
def get_capture(call: Call, capture_id: CaptureId) -> None:
    """Show one capture with its content and what came of it. That it was read is recorded."""
    with call.open() as fabric:
        found = fabric.captures.get(call.principal("auditor"), capture_id)
    call.show(found, lambda: _draw_history(found))


@verb(
    captures,
    "rerun",
    options=_OPTIONS,
    example="muniment captures rerun cap_01a1de60ebda060e4c4895463c41 --reason consent_changed",
)
def rerun(
    call: Call,
    capture_id: CaptureId,
    reason: Annotated[RerunReason, typer.Option("--reason", help="What changed since.")] = "requested",
) -> None:
    """Have a capture consolidated again, after a consent, an extractor or the pack changed.

    It passes the same gates. What was proposed from it before is not proposed again. The worker carries it out, or
    muniment consolidate.
    """
    with call.open() as fabric:
        ordered = fabric.captures.rerun(call.principal("reviewer"), capture_id, reason)
    words = f"{ordered.capture_id} waits for its consolidation number {ordered.number}"
    call.show(ordered, lambda: Screen().line(words))


@verb(app, "refusals", panel="Review", options=_OPTIONS, example="muniment refusals --gate consent --limit 20")
def refusals(
    call: Call,
    gate: Annotated[GateName | None, typer.Option("--gate", help="Only by this gate.")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="CODE", help="Only for this reason, such as consent_missing.")
    ] = None,
    since: Since = None,
    capture: Annotated[str | None, typer.Option("--capture", metavar="ID", help="Only from this capture.")] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Only where the capture was not consolidated again since.")
    ] = False,
    limit: Limit = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="The last refusal of the page before.")
    ] = None,
) -> None:
    """List what gates refused, the latest first: which gate and why. What was said is not kept."""
    with call.open() as fabric:
        found = fabric.refusals.list(
            call.principal("reviewer"),
            gate=gate,
            reason=reason,
            since=instant(since, "since") if since is not None else None,
            capture_id=capture,
            latest=latest,
            limit=limit,
            after=after,
        )
    call.show(found, lambda: _draw_refusals(found))
    if not found:
        call.note("no refusals")
    elif len(found) == limit:
        call.note(f"there may be more: muniment refusals --after {found[-1].refusal_id}")


def _draw_captures(found: Sequence[CaptureEntry]) -> None:
    screen = Screen()
    for one in found:
        about = one.subject or (f"user {one.user_id}" if one.user_id else "the tenant")
        screen.line(f"{one.capture_id}  {moment(one.captured_at)}  {one.kind}  {one.state}")
        by = f"by {one.author} ({one.source}), " if one.author is not None else ""
        screen.line(f"{by}about {about}: {one.proposed} proposed, {one.refused} refused", indent=4)


def _draw_history(found: CaptureHistory) -> None:
    screen = Screen()
    capture = found.capture
    screen.line(f"{found.capture_id}  {found.state}" + (f"  in {found.archive}" if found.archive else ""))
    if capture is not None:
        screen.line(f"{capture.kind} by {capture.author} ({capture.source}), {moment(capture.captured_at)}", indent=4)
        screen.line(f"{capture.classification}, pack {capture.pack}", indent=4)
        content: dict[str, Any] = capture.content.model_dump(exclude_defaults=True) if capture.content else {}
        if (text := content.pop("text", None)) is not None:
            screen.line(text, indent=4)
        if content:
            screen.line(json.dumps(content, ensure_ascii=False, default=str), indent=4)
    for one in found.consolidations:
        asked = f", asked for by {one.by}: {one.reason}" if one.by is not None else ""
        screen.line(f"consolidation {one.number} at {moment(one.at)}{asked}", indent=4)
    for proposal_id in found.proposals:
        screen.line(f"proposed as {proposal_id}", indent=4)
    for refusal in found.refusals:
        said = f"refused by {refusal.gate}: {refusal.reason}, consolidation {refusal.consolidation}"
        screen.line(said, indent=4)


def _draw_refusals(found: Sequence[RefusalEntry]) -> None:
    screen = Screen()
    for one in found:
        after = f" after {count(one.consolidation, 'consolidation')}" if one.consolidation > 1 else ""
        rejection = f", as rejected in {one.rejection}" if one.rejection else ""
        screen.line(f"{one.capture_id}  {moment(one.at)}  {one.gate}: {one.reason}{rejection}{after}")
