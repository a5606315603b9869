"""Captures and refusals: list captures, show one, consolidate one again, list refusals."""

import json
from typing import Annotated, Any

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import ASKER, CaptureId, flag
from muniment.cli.output import Screen, format_time
from muniment.cli.plain import plain
from muniment.model.capture import CaptureHistory, RerunReason

app = typer.Typer()
captures = group(app, "captures", lists=True)


plain(
    captures,
    "list",
    draw="capture_id captured_at kind state author source subject user_id proposed refused",
    empty="no captures",
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


plain(captures, "get", draw=_draw_history)


@command(captures, "rerun", options=ASKER)
def rerun(
    call: Call,
    capture_id: CaptureId,
    reason: Annotated[RerunReason, flag("--reason", "What has changed.")] = "requested",
) -> None:
    """Have a capture consolidated again, after a consent, an extractor or the pack changed.

    It passes the same gates. Facts that were proposed from it before are not proposed again. The worker carries it out,
    or muniment consolidate.
    """
    with call.open() as fabric:
        ordered = fabric.captures.rerun(call.principal("reviewer"), capture_id, reason)
    call.show_line(ordered, f"{ordered.capture_id} waits for consolidation {ordered.number}")


plain(app, "refusals", draw="capture_id at gate reason consolidation rejection", empty="no refusals")
