"""Captures and refusals: list captures, show one, consolidate one again, list refusals."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.command import group, list_command, verb_command
from muniment.cli.inputs import parse_time
from muniment.cli.options import CaptureId, Since, flag
from muniment.cli.output import Screen, format_time
from muniment.model.candidate import GateName
from muniment.model.capture_history import CaptureEntry, CaptureHistory, CaptureState, RefusalEntry, Rerun, RerunReason
from muniment.model.context import Principal
from muniment.model.fields import CaptureKind, Source

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs

app = typer.Typer()
captures = group(app, "captures", lists=True)


@list_command(
    captures,
    "list",
    "auditor",
    draw="capture_id captured_at kind state author source subject user_id proposed refused",
    key="capture_id",
    empty="no captures",
    example="muniment captures --capture-kind message --state refused --limit 20",
)
def list_captures(
    fabric: "Verbs",
    auditor: Principal,
    capture_kind: Annotated[CaptureKind | None, flag("--capture-kind", "Only this kind.")] = None,
    source: Annotated[Source | None, flag("--source", "Only from this kind of principal.")] = None,
    subject: Annotated[str | None, flag("--subject", "CEID", "Only about this subject.")] = None,
    user: Annotated[str | None, flag("--user", "USER", "Only those of this end user.")] = None,
    session: Annotated[str | None, flag("--session", "SESSION", "Only those of this session.")] = None,
    run: Annotated[str | None, flag("--run", "RUN", "Only those of this run.")] = None,
    since: Since = None,
    until: Annotated[str | None, flag("--until", "TIME", "Only those before this time, in ISO 8601.")] = None,
    state: Annotated[CaptureState | None, flag("--state", "Only this state.")] = None,
    **page: Any,
) -> list[CaptureEntry]:
    """List captures without their content, the latest first.

    An auditor sees all, a reviewer those with a proposal or a refusal. Archived captures are listed only with
    --state archived.
    """
    return fabric.captures.list(
        auditor,
        kind=capture_kind,
        source=source,
        subject=subject,
        user_id=user,
        session_id=session,
        run_id=run,
        since=parse_time(since, "since"),
        until=parse_time(until, "until"),
        state=state,
        **page,
    )


def _draw_history(screen: Screen, found: CaptureHistory) -> None:
    capture = found.capture
    screen.line(f"{found.capture_id}  {found.state}" + (f"  in {found.archive}" if found.archive else ""))
    if capture is not None:
        by = f"{capture.kind} by {capture.author} ({capture.source}), {format_time(capture.captured_at)}"
        screen.line(by, indent=4)
        screen.line(f"{capture.classification}, pack {capture.pack}", indent=4)
        content: dict[str, Any] = capture.content.model_dump(exclude_defaults=True) if capture.content else {}
        if (text := content.pop("text", None)) is not None:
            screen.line(text, indent=4)
        if content:
            screen.line(json.dumps(content, ensure_ascii=False, default=str), indent=4)
    for one in found.consolidations:
        cause = f", requested by {one.by}: {one.reason}" if one.by is not None else ""
        screen.line(f"consolidation {one.number} at {format_time(one.at)}{cause}", indent=4)
    for proposal_id in found.proposals:
        screen.line(f"proposed as {proposal_id}", indent=4)
    for refusal in found.refusals:
        words = f"refused by {refusal.gate}: {refusal.reason}, consolidation {refusal.consolidation}"
        screen.line(words, indent=4)


@verb_command(
    captures,
    "get",
    "auditor",
    draw=_draw_history,
    example="muniment captures get cap_01a1de60ebda060e4c4895463c41",
)
def get_capture(fabric: "Verbs", auditor: Principal, capture_id: CaptureId) -> CaptureHistory:
    """Show one capture with its content and its proposals and refusals. The access is recorded."""
    return fabric.captures.get(auditor, capture_id)


def _draw_rerun(screen: Screen, ordered: Rerun) -> None:
    screen.line(f"{ordered.capture_id} waits for consolidation {ordered.number}")


@verb_command(
    captures,
    "rerun",
    "reviewer",
    draw=_draw_rerun,
    example="muniment captures rerun cap_01a1de60ebda060e4c4895463c41 --reason consent_changed",
)
def rerun(
    fabric: "Verbs",
    reviewer: Principal,
    capture_id: CaptureId,
    reason: Annotated[RerunReason, flag("--reason", "What has changed.")] = "requested",
) -> Rerun:
    """Have a capture consolidated again, after a consent, an extractor or the pack changed.

    It passes the same gates. Facts that were proposed from it before are not proposed again. The worker carries it out,
    or muniment consolidate.
    """
    return fabric.captures.rerun(reviewer, capture_id, reason)


@list_command(
    app,
    "refusals",
    "reviewer",
    draw="capture_id at gate reason consolidation rejection",
    key="refusal_id",
    empty="no refusals",
    example="muniment refusals --gate consent --limit 20",
)
def refusals(
    fabric: "Verbs",
    reviewer: Principal,
    gate: Annotated[GateName | None, flag("--gate", "Only by this gate.")] = None,
    reason: Annotated[str | None, flag("--reason", "CODE", "Only for this reason, such as consent_missing.")] = None,
    since: Since = None,
    capture: Annotated[str | None, flag("--capture", "ID", "Only from this capture.")] = None,
    latest: Annotated[bool, flag("--latest", "Only from the last consolidation of each capture.")] = False,
    **page: Any,
) -> list[RefusalEntry]:
    """List what the gates refused, the latest first.

    Each refusal names its gate and its reason; the refused text is not kept.
    """
    return fabric.refusals.list(
        reviewer,
        gate=gate,
        reason=reason,
        since=parse_time(since, "since"),
        capture_id=capture,
        latest=latest,
        **page,
    )
