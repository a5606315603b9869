"""Captures and refusals: list captures, show one, consolidate one again, list refusals."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.command import group, list_command, verb_command
from muniment.cli.inputs import parse_time
from muniment.cli.options import CaptureId, flag, option
from muniment.cli.output import Screen, format_time
from muniment.model.candidate import GateName
from muniment.model.capture_history import CaptureEntry, CaptureHistory, CaptureState, RefusalEntry, Rerun, RerunReason
from muniment.model.context import Principal
from muniment.model.fields import CaptureKind, Source

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs

app = typer.Typer()
captures = group(app, "captures", lists=True)


_SINCE = option("since", str | None, "--since", "TIME", "Only those from this time on, in ISO 8601.")
_FILTERS = (
    option("capture_kind", CaptureKind | None, "--capture-kind", "Only this kind."),
    option("source", Source | None, "--source", "Only from this kind of principal."),
    option("subject", str | None, "--subject", "CEID", "Only about this subject."),
    option("user_id", str | None, "--user", "USER", "Only those of this end user."),
    option("session_id", str | None, "--session", "SESSION", "Only those of this session."),
    option("run_id", str | None, "--run", "RUN", "Only those of this run."),
    _SINCE,
    option("until", str | None, "--until", "TIME", "Only those before this time, in ISO 8601."),
    option("state", CaptureState | None, "--state", "Only this state."),
)


@list_command(
    captures,
    "list",
    "auditor",
    draw="capture_id captured_at kind state author source subject user_id proposed refused",
    key="capture_id",
    empty="no captures",
    filters=_FILTERS,
    example="muniment captures --capture-kind message --state refused --limit 20",
)
def list_captures(fabric: "Verbs", auditor: Principal, **filters: Any) -> list[CaptureEntry]:
    """List captures without their content, the latest first.

    An auditor sees all, a reviewer those with a proposal or a refusal. Archived captures are listed only with
    --state archived.
    """
    times = {name: parse_time(filters.pop(name), name) for name in ("since", "until")}
    return fabric.captures.list(auditor, kind=filters.pop("capture_kind"), **times, **filters)


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


@verb_command(captures, "get", "auditor", draw=_draw_history, example="muniment captures get cap_01a1de60")
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
    example="muniment captures rerun cap_01a1de60 --reason consent_changed",
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


_REFUSAL_FILTERS = (
    option("gate", GateName | None, "--gate", "Only by this gate."),
    option("reason", str | None, "--reason", "CODE", "Only for this reason, such as consent_missing."),
    _SINCE,
    option("capture_id", str | None, "--capture", "ID", "Only from this capture."),
    option("latest", bool, "--latest", "Only from the last consolidation of each capture.", default=False),
)


@list_command(
    app,
    "refusals",
    "reviewer",
    draw="capture_id at gate reason consolidation rejection",
    key="refusal_id",
    empty="no refusals",
    filters=_REFUSAL_FILTERS,
    example="muniment refusals --gate consent --limit 20",
)
def refusals(fabric: "Verbs", reviewer: Principal, **filters: Any) -> list[RefusalEntry]:
    """List what the gates refused, the latest first.

    Each refusal names its gate and its reason; the refused text is not kept.
    """
    return fabric.refusals.list(reviewer, since=parse_time(filters.pop("since"), "since"), **filters)
