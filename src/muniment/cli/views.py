"""Views of proposals, memories and what they come from, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from muniment.cli.output import (
    Fields,
    Screen,
    by_and_at,
    counted,
    fields_of,
    format_age,
    format_due,
    format_time,
    joined,
    shorten,
)
from muniment.model.speakers import is_only_claimed

if TYPE_CHECKING:
    from muniment.model.candidate import Candidate, Consolidation, Refusal, Scope
    from muniment.model.capture import Capture
    from muniment.model.consent import Consent
    from muniment.model.contradiction import Contradiction
    from muniment.model.events import Event
    from muniment.model.promoted import PromotedMemory
    from muniment.model.proposal import Outcome, Proposal
    from muniment.model.recall import Record
    from muniment.model.trail import Trail


_REFUSALS_SHOWN = 20
_USES_SHOWN = 5
_ITEMS_SHOWN = 5
_STYLES = {"promoted": "green", "rejected": "red", "blocked": "red", "held": "yellow", "duplicate": "yellow"}


def approver(name: str) -> str:
    """Name who approved something, for people."""
    return "policy" if name == "auto" else name


def draw_queued(screen: Screen, one: Proposal) -> None:
    """Draw a proposal of the queue, in a few lines."""
    is_open = one.status in ("pending", "held")
    state, style = (format_due(one.due_at), "") if is_open else (one.status, _STYLES.get(one.status, ""))
    details = f"  {one.write_class}  {one.tier_target}  priority {one.priority:.2f}  "
    screen.line((one.proposal_id, "bold cyan"), details, (state, style))
    screen.fields(
        [
            ("text", shorten(one.candidate.text, screen.width - 18 if screen.is_terminal else 160)),
            ("reasons", joined(one.human_reasons) if is_open else None),
            ("masked", _counts(one.candidate.redactions)),
            ("excepted", _counts(one.candidate.exceptions)),
            ("contradicts", joined(one.contradiction_check.contradicted)),
            ("opposites", joined(one.opposites)),
            ("count", f"{one.count} that say the same" if one.count > 1 else None),
            *fields_of(one, "duplicate_of=duplicate_check assigned_to=assignee"),
            ("corrects", one.candidate.corrects),
            ("status", one.status if one.status == "held" else None),
        ]
    )


def draw_proposal(screen: Screen, shown: Proposal, contradictions: Iterable[Contradiction] = ()) -> None:
    """Draw a proposal with everything a reviewer needs, and its open contradictions."""
    candidate = shown.candidate
    by_memory = {one.existing: f": {one.reason}, {one.contradiction_id}" for one in contradictions}
    overridden = f" (derived: {shown.tier_derived})" if shown.tier_derived != shown.tier_target else ""
    is_open = shown.status in ("pending", "held")
    screen.heading(shown.proposal_id, shown.status, _STYLES.get(shown.status, "bold"))
    screen.fields(
        [
            ("text", candidate.text),
            *fact_fields(candidate),
            ("class", f"{shown.write_class}, risk {shown.risk}"),
            ("tier", f"{shown.tier_target}{overridden}"),
            ("priority", shown.priority),
            ("label", f"{candidate.classification}{', sensitive' if shown.sensitive else ''}"),
            ("confidence", f"{shown.confidence:.2f} (raw {candidate.raw_confidence:.2f}), trust {shown.trust:.2f}"),
            ("scope", scope_text(candidate.scope)),
            ("author", f"{candidate.source} {candidate.author}"),
            *fields_of(candidate, "about=subject edited_by=editor evidence=evidence_refs corrects capture=capture_id"),
            ("consent", f"{shown.consent_check} {candidate.consent_id or ''}".strip()),
            ("third party", f"for user {candidate.scope.user_id} alone" if shown.third_party else None),
            ("masked", _counts(candidate.redactions)),
            ("excepted", _counts(candidate.exceptions)),
            *(("gate", _gate(one.gate, one.reason, one.detail)) for one in candidate.gates),
            *(("contradicts", f"{one}{by_memory.get(one, '')}") for one in shown.contradiction_check.contradicted),
            *fields_of(shown, "opposites"),
            ("same", f"{joined(shown.same)}: {shown.count} in all, decided together" if shown.count > 1 else None),
            ("reopens", f"{shown.reopens}, whose original was retracted" if shown.reopens else None),
            ("due", f"{format_time(shown.due_at)}, {format_due(shown.due_at)}" if is_open else None),
            *fields_of(shown, "duplicate_of=duplicate_check reasons=human_reasons assigned_to=assignee version"),
            *fields_of(shown, "edit_of memory=memory_id pack"),
            *_verdicts(shown),
        ]
    )


def _gate(gate: str, reason: str, detail: str | None) -> str:
    """Format what a gate found; a reason that only repeats the gate's name is left out."""
    return f"{gate}: {detail}" if reason == gate and detail else f"{gate}: {reason}{f' ({detail})' if detail else ''}"


def draw_outcomes(screen: Screen, found: Sequence[Outcome]) -> None:
    """Draw the outcome of each proposal of a batch, and how many there are of each."""
    for one in found:
        state = one.error or one.status or ""
        screen.heading(one.proposal_id, state, _STYLES.get(state, "red" if one.error else "bold"), one.memory_id or "")
    numbers = Counter(one.error or one.status for one in found)
    screen.line(joined(f"{number} {what}" for what, number in numbers.most_common()))


def draw_decision(screen: Screen, shown: Proposal) -> None:
    """Draw a proposal after a verdict, in a few lines."""
    screen.heading(shown.proposal_id, shown.status, _STYLES.get(shown.status, "bold"))
    last = shown.verdicts[-1] if shown.verdicts else None
    screen.fields(
        [
            ("text", shorten(shown.candidate.text)),
            ("memory", shown.memory_id or (last.memory_id if last else None)),
            *fields_of(shown, "tier=tier_target priority assigned_to=assignee edit_of"),
            ("reason", last.reason if last else None),
            ("by", f"{last.by} at {format_time(last.at)}" if last else None),
        ]
    )


def draw_refusal(screen: Screen, shown: Refusal) -> None:
    """Draw a candidate that a gate refused."""
    screen.line(("refused", "bold red"), f" by the gate {shown.gate}: {shown.reason}")
    rejection = shown.rejection
    screen.fields(
        [
            ("capture", shown.capture_id),
            ("at", shown.at),
            ("repeats", f"{rejection}, which was rejected" if rejection else None),
            ("to lift it", f"muniment lift {rejection}" if rejection else None),
        ]
    )


def draw_consolidation(screen: Screen, shown: Consolidation) -> None:
    """Draw how many proposals and refusals a consolidation made."""
    screen.line(
        f"{counted(shown.captures, 'capture')}: {counted(len(shown.proposals), 'proposal')}, "
        f"{len(shown.refusals)} refused, {len(shown.promoted)} promoted by policy"
    )
    draw_refusals(screen, shown.refusals)
    for capture_id in shown.failed:
        screen.line((f"unreadable  {capture_id}", "red"), indent=2)


def draw_refusals(screen: Screen, refusals: Sequence[Refusal], lines: Mapping[str, int] | None = None) -> None:
    """Draw the first refusals of many; `lines` has the line of each capture in an imported file."""
    for one in refusals[:_REFUSALS_SHOWN]:
        place = f"line {lines[one.capture_id]}  " if lines and one.capture_id in lines else ""
        rejection = f" as {one.rejection}" if one.rejection else ""
        screen.line((f"refused  {place}{one.capture_id}", "red"), f"  {one.gate}: {one.reason}{rejection}", indent=2)
    if (more := len(refusals) - _REFUSALS_SHOWN) > 0:
        screen.line(f"and {more} more; --json lists them all", indent=2)


def draw_memory(screen: Screen, shown: PromotedMemory) -> None:
    """Draw a promoted memory."""
    screen.heading(shown.memory_id, *_memory_state(shown))
    retracted = by_and_at(shown.retracted_by, shown.retracted_at)
    screen.fields(
        [
            ("text", shown.text),
            *fact_fields(shown),
            ("class", f"{shown.write_class}, {shown.tier}, {shown.classification}"),
            ("priority", f"{shown.priority:.2f}, confidence {shown.confidence:.2f}, trust {shown.trust:.2f}"),
            ("scope", scope_text(shown.scope)),
            ("approved", by_and_at(shown.approver, shown.promoted_at)),
            ("source", f"{shown.source} {shown.author}, {shown.kind} {shown.capture_id}"),
            ("origin", origin_text(shown.origin, shown.vouched)),
            *fields_of(shown, "about=subject evidence=evidence_refs proposal=proposal_id consent=consent_id pack"),
            ("retracted", f"{retracted}: {shown.retraction_reason}" if retracted else None),
            *fields_of(shown, "valid_from valid_until expires=expires_at superseded_by tombstoned=tombstoned_at"),
        ]
    )


def _memory_state(shown: PromotedMemory) -> tuple[str, str]:
    if shown.tombstoned_at is not None:
        return "tombstoned: its content is gone", "red"
    if shown.retracted_at is not None:
        return "retracted", "red"
    expired = shown.expires_at is not None and shown.expires_at <= datetime.now(UTC)
    return ("expired", "yellow") if expired else ("live", "green")


def draw_trail(screen: Screen, shown: Trail) -> None:
    """Draw a memory, everything it comes from, and the recalls and prompts that used it."""
    screen.line(("Memory", "bold underline"))
    draw_memory(screen, shown.memory)
    for one in reversed(shown.proposals):
        _title(screen, "Proposal")
        draw_proposal(screen, one)
    for one in reversed(shown.candidates):
        _title(screen, "Candidate")
        _candidate(screen, one)
    _title(screen, "Capture")
    if shown.capture is None:
        screen.line(f"dropped with archive {shown.archive}" if shown.archive else "gone", indent=4)
    else:
        _capture(screen, shown.capture)
    if shown.consent is not None:
        _title(screen, "Consent")
        draw_consent(screen, shown.consent)
    if shown.contradictions:
        _title(screen, "Contradictions")
    for one in shown.contradictions:
        draw_contradiction(screen, one)
    _uses(screen, f"Recalled {counted(len(shown.recalls), 'time')}", shown.recalls)
    _uses(screen, f"In {counted(len(shown.prompts), 'prompt')}", shown.prompts)
    _title(screen, "Events")
    for one in shown.events:
        draw_event(screen, one)


def _uses(screen: Screen, title: str, ids: Sequence[str]) -> None:
    _title(screen, title)
    for one in ids[:_USES_SHOWN]:
        screen.line(one, indent=4)
    if (more := len(ids) - _USES_SHOWN) > 0:
        screen.line(f"and {more} earlier", indent=4)


def _candidate(screen: Screen, shown: Candidate) -> None:
    screen.heading(shown.candidate_id)
    screen.fields(
        [
            ("text", shown.text),
            *fact_fields(shown),
            ("masked", _counts(shown.redactions)),
            ("excepted", _counts(shown.exceptions)),
            ("confidence", f"{shown.confidence:.2f} (raw {shown.raw_confidence:.2f}), trust {shown.trust:.2f}"),
            *fields_of(shown, "extractor corrects edit_of=edits edited_by=editor"),
        ]
    )


def _capture(screen: Screen, shown: Capture) -> None:
    content = shown.content
    screen.heading(shown.capture_id, rest=f"{shown.kind} by {shown.source} {shown.author}")
    screen.fields(
        [
            ("text", content.text if content else None),
            ("payload", content.payload if content else None),
            ("fact", content.fact if content else None),
            *fields_of(shown, "label=classification origin about=subject run=run_id captured=captured_at sequence=seq"),
            ("observed", shown.observed_at if shown.observed_at != shown.captured_at else None),
            *fields_of(shown, "valid_from valid_until"),
        ]
    )


def draw_consent(screen: Screen, one: Consent) -> None:
    """Draw a record of the consent ledger."""
    state = "revocation" if one.action == "revoke" else one.state
    screen.heading(one.consent_id, state, "green" if one.state == "active" else "red", one.subject)
    until = f" until {format_time(one.valid_until)}" if one.valid_until else ""
    swept = f"at {format_time(one.swept_at)}: the content of its memories is gone" if one.swept_at else None
    screen.fields(
        [
            ("purpose", f"{one.purpose} ({one.basis})"),
            *fields_of(one, "labels=data_classifications_allowed predicates=predicates_allowed revoked=revoked_at"),
            ("valid", f"from {format_time(one.valid_from)}{until}" if one.action == "grant" else None),
            ("swept", swept),
            *fields_of(one, "supersedes evidence=evidence_refs"),
            ("recorded", by_and_at(one.auditor_id, one.captured_at)),
        ]
    )


def draw_contradiction(screen: Screen, one: Contradiction, texts: Mapping[str | None, str] | None = None) -> None:
    """Draw a contradiction; `texts` has the texts of memories and proposals by their ids."""
    state, style = ("open", "bold red") if one.open else (one.outcome or "one side expired", "green")
    screen.heading(one.contradiction_id, state, style)
    texts = texts or {}
    screen.fields(
        [
            ("about", f"{one.entity} {one.predicate}" if one.entity else None),
            ("reason", one.reason),
            ("existing", _side(one.existing, texts.get(one.existing))),
            ("incoming", _side(one.incoming or f"{one.proposal_id}, proposed", texts.get(one.proposal_id))),
            ("proposal", one.proposal_id if one.incoming else None),
            ("opened", f"{format_time(one.opened_at)}, {format_age(one.opened_at)}"),
            ("resolved", by_and_at(one.resolved_by, one.closed_at)),
        ]
    )


def _side(id_: str, text: str | None) -> str:
    return f"{id_}: {shorten(text)}" if text else id_


def draw_event(screen: Screen, one: Event) -> None:
    """Draw an event of the log: a line for it, and one for each of its first items."""
    style = "bold red" if one.type == "memory.security" else "bold"
    screen.line(f"{one.seq:>6}  {format_time(one.at)}  ", (one.type, style), f"  by {one.actor}")
    for item in one.items[:_ITEMS_SHOWN]:
        data = "  ".join(f"{name}={_short(value)}" for name, value in item.items() if value not in (None, [], ""))
        if data:
            screen.line(data, indent=8)
    if len(one.items) > _ITEMS_SHOWN:
        screen.line(f"and {len(one.items) - _ITEMS_SHOWN} more", indent=8)


def _short(value: object) -> str:
    if isinstance(value, list | tuple):
        return joined(str(one) for one in cast("Sequence[object]", value))
    return str(value)


def _title(screen: Screen, words: str) -> None:
    screen.line()
    screen.line((words, "bold underline"))


def fact_fields(shown: Candidate | Record | PromotedMemory) -> Fields:
    """Return the fields of a typed fact: what it is about, and its value."""
    if shown.entity is None and shown.predicate is None:
        return []
    return [("fact", f"{shown.entity or ''} {shown.predicate or ''}".strip()), ("value", shown.value)]


def origin_text(origin: str | None, vouched: str | None) -> str | None:
    """Format an origin, and whether the author's credential vouches for it."""
    return f"{origin} (claimed, not vouched for)" if is_only_claimed(origin, vouched) else origin


def scope_text(scope: Scope) -> str:
    """Format the runs that something is for."""
    parts = (
        ("user", scope.user_id),
        ("session", scope.session_id),
        ("workflow", scope.workflow_id),
        ("intent", scope.intent_id),
        *scope.qualifiers.items(),
    )
    shown = [f"{name} {value}" for name, value in parts if value is not None]
    return joined([*shown, *(f"only for runs with {name} {value}" for name, value in scope.required.items())])


def _counts(counts: Mapping[str, int]) -> str:
    return joined(f"{kind} {number}" for kind, number in counts.items())


def _verdicts(shown: Proposal) -> Fields:
    return [
        (
            "verdict",
            f"{one.action} by {one.by} at {format_time(one.at)}"
            + "".join(f", {name} {value}" for name, value in (("tier", one.tier), ("priority", one.priority)) if value)
            + "".join(f"; {words}" for words in (one.reason, one.note) if words),
        )
        for one in shown.verdicts
    ]
