"""How proposals, memories and their papers are drawn for people."""

from collections.abc import Iterable
from datetime import UTC, datetime

from muniment.cli.output import Facts, Screen, due, listed, moment, shortened
from muniment.model.candidate import Candidate, Consolidation, Refusal, Scope
from muniment.model.capture import Capture
from muniment.model.consent import Consent
from muniment.model.contradiction import Contradiction
from muniment.model.events import Event
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal
from muniment.model.recall import Recall, Record
from muniment.model.trail import Trail

_REFUSALS_SHOWN = 20
_RECALLS_SHOWN = 5
_STYLES = {"promoted": "green", "rejected": "red", "blocked": "red", "held": "yellow", "duplicate": "yellow"}


def in_queue(screen: Screen, proposals: Iterable[Proposal]) -> None:
    """The queue, a few lines for each proposal."""
    for proposal in proposals:
        open_ = proposal.status in ("pending", "held")
        screen.line(
            (proposal.proposal_id, "bold cyan"),
            f"  {proposal.write_class}  {proposal.tier_target}  {proposal.priority:.2f}  ",
            due(proposal.due_at) if open_ else (proposal.status, _STYLES.get(proposal.status, "")),
        )
        room = screen.width - 18 if screen.is_terminal else 160
        screen.facts(
            [
                ("text", shortened(proposal.candidate.text, room)),
                ("reasons", listed(proposal.human_reasons) if open_ else None),
                ("status", proposal.status if proposal.status == "held" else None),
                ("assigned to", proposal.assignee),
            ]
        )


def proposal(screen: Screen, shown: Proposal) -> None:
    """One proposal with everything a reviewer needs."""
    candidate, check = shown.candidate, shown.contradiction_check
    screen.line((shown.proposal_id, "bold cyan"), "  ", (shown.status, _STYLES.get(shown.status, "bold")))
    overridden = f" (derived: {shown.tier_derived})" if shown.tier_derived != shown.tier_target else ""
    screen.facts(
        [
            ("text", candidate.text),
            *_key(candidate),
            ("class", f"{shown.write_class}, risk {shown.risk}"),
            ("tier", f"{shown.tier_target}{overridden}"),
            ("priority", shown.priority),
            ("label", f"{candidate.classification}{', sensitive' if shown.sensitive else ''}"),
            ("confidence", f"{shown.confidence:.2f} (raw {candidate.raw_confidence:.2f}), trust {shown.trust:.2f}"),
            ("about", candidate.subject),
            ("scope", _scope(candidate.scope)),
            ("author", f"{candidate.source} {candidate.author}"),
            ("edited by", candidate.editor),
            ("evidence", listed(candidate.evidence_refs)),
            ("consent", f"{shown.consent_check} {candidate.consent_id or ''}".strip()),
            ("contradicts", listed(check.contradicted)),
            ("duplicate of", shown.duplicate_check),
            ("reasons", listed(shown.human_reasons)),
            ("due", f"{moment(shown.due_at)}, {due(shown.due_at)}" if shown.status in ("pending", "held") else None),
            ("assigned to", shown.assignee),
            ("capture", candidate.capture_id),
            ("edit of", shown.edit_of),
            ("memory", shown.memory_id),
            ("pack", shown.pack),
            *_verdicts(shown),
        ]
    )


def all_decided(screen: Screen, proposals: Iterable[Proposal]) -> None:
    """What verdicts made of several proposals."""
    for one in proposals:
        decided(screen, one)


def decided(screen: Screen, shown: Proposal) -> None:
    """What a verdict made of a proposal, in a few lines."""
    screen.line((shown.proposal_id, "bold cyan"), "  ", (shown.status, _STYLES.get(shown.status, "bold")))
    last = shown.verdicts[-1] if shown.verdicts else None
    screen.facts(
        [
            ("text", shortened(shown.candidate.text)),
            ("memory", shown.memory_id or (last.memory_id if last else None)),
            ("tier", shown.tier_target),
            ("priority", shown.priority),
            ("assigned to", shown.assignee),
            ("reason", last.reason if last else None),
            ("by", f"{last.by} at {moment(last.at)}" if last else None),
            ("edit of", shown.edit_of),
        ]
    )


def refusal(screen: Screen, shown: Refusal) -> None:
    """A candidate that a gate refused."""
    screen.line(("refused", "bold red"), f" by the gate {shown.gate}: {shown.reason}")
    screen.facts([("capture", shown.capture_id), ("at", shown.at)])


def consolidation(screen: Screen, shown: Consolidation) -> None:
    """What a pass over the captures brought."""
    screen.line(
        f"{_count(shown.captures, 'capture')}: {_count(len(shown.proposals), 'proposal')}, "
        f"{len(shown.refusals)} refused, {len(shown.promoted)} promoted by policy"
    )
    for one in shown.refusals[:_REFUSALS_SHOWN]:
        screen.line((f"refused  {one.capture_id}", "red"), f"  {one.gate}: {one.reason}", indent=2)
    if (more := len(shown.refusals) - _REFUSALS_SHOWN) > 0:
        screen.line(f"and {more} more; --json names them all", indent=2)
    for capture_id in shown.failed:
        screen.line((f"unreadable  {capture_id}", "red"), indent=2)


def recall(screen: Screen, shown: Recall) -> None:
    """What a run may know, with its papers."""
    screen.line(
        (_count(len(shown.records), "record"), "bold"), f"  recall {shown.recall_id}  {moment(shown.at)}  {shown.pack}"
    )
    _records(screen, shown.records)
    if shown.low_confidence:
        screen.line()
        screen.line((f"Low confidence: {_count(len(shown.low_confidence), 'record')}", "bold yellow"))
        _records(screen, shown.low_confidence)
    for number, one in enumerate(shown.conflicts, 1):
        screen.line()
        screen.line((f"Conflict {number}: these cannot all hold", "bold red"), f"  {listed(one.contradiction_ids)}")
        _records(screen, one.records)
    if shown.omitted:
        screen.line()
        screen.line(f"{shown.omitted} more left out by the limit")
    if shown.degraded:
        screen.line(f"degraded: {listed(shown.degraded)}")


def _records(screen: Screen, records: Iterable[Record]) -> None:
    for number, record in enumerate(records, 1):
        papers = record.provenance
        parts = listed(f"{name} {value:.2f}" for name, value in record.score.items())
        screen.line()
        screen.item(f"{number:>2}.", record.text)
        screen.facts(
            [
                *_key(record),
                ("memory", f"{record.id}  {record.write_class}, {record.tier}, {record.classification}"),
                ("approved", f"by {papers.approver} at {moment(papers.promoted_at)}"),
                ("evidence", listed(papers.evidence_refs)),
                ("why", f"{parts}; confidence {record.confidence:.2f}; for {_scope(record.scope) or 'any run'}"),
                ("source", f"{papers.source} {papers.author}, {papers.kind} {papers.capture_id}"),
                ("origin", papers.origin),
                ("consent", papers.consent_id),
                ("expires", papers.expires_at),
            ]
        )


def memory(screen: Screen, shown: PromotedMemory) -> None:
    """One promoted memory."""
    expired = shown.expires_at is not None and shown.expires_at <= datetime.now(UTC)
    state = ("retracted", "red") if shown.retracted_at else ("expired", "yellow") if expired else ("live", "green")
    screen.line((shown.memory_id, "bold cyan"), "  ", state)
    screen.facts(_memory_facts(shown))


def _memory_facts(shown: PromotedMemory) -> Facts:
    gone = shown.retracted_at
    return [
        ("text", shown.text),
        *_key(shown),
        ("class", f"{shown.write_class}, {shown.tier}, {shown.classification}"),
        ("priority", f"{shown.priority:.2f}, confidence {shown.confidence:.2f}, trust {shown.trust:.2f}"),
        ("about", shown.subject),
        ("scope", _scope(shown.scope)),
        ("approved", f"by {shown.approver} at {moment(shown.promoted_at)}"),
        ("evidence", listed(shown.evidence_refs)),
        ("source", f"{shown.source} {shown.author}, {shown.kind} {shown.capture_id}"),
        ("origin", shown.origin),
        ("proposal", shown.proposal_id),
        ("consent", shown.consent_id),
        ("pack", shown.pack),
        ("expires", shown.expires_at),
        ("retracted", f"by {shown.retracted_by} at {moment(gone)}: {shown.retraction_reason}" if gone else None),
        ("superseded by", shown.superseded_by),
    ]


def trail(screen: Screen, shown: Trail) -> None:
    """A memory's papers, from the memory back to its capture, and forward to its recalls."""
    screen.line(("Memory", "bold underline"))
    memory(screen, shown.memory)
    for one in reversed(shown.proposals):
        _title(screen, "Proposal")
        proposal(screen, one)
    for one in reversed(shown.candidates):
        _title(screen, "Candidate")
        _candidate(screen, one)
    _title(screen, "Capture")
    if shown.capture is None:
        screen.line("archived", indent=4)
    else:
        _capture(screen, shown.capture)
    if shown.consent is not None:
        _title(screen, "Consent")
        consents(screen, [shown.consent])
    if shown.contradictions:
        _title(screen, "Contradictions")
        contradictions(screen, shown.contradictions)
    _title(screen, f"Recalled {_count(len(shown.recalls), 'time')}")
    for recall_id in shown.recalls[:_RECALLS_SHOWN]:
        screen.line(recall_id, indent=4)
    if (more := len(shown.recalls) - _RECALLS_SHOWN) > 0:
        screen.line(f"and {more} before", indent=4)
    _title(screen, "Events")
    events(screen, shown.events)


def _candidate(screen: Screen, shown: Candidate) -> None:
    screen.line((shown.candidate_id, "bold cyan"))
    screen.facts(
        [
            ("text", shown.text),
            *_key(shown),
            ("extractor", shown.extractor),
            ("confidence", f"{shown.confidence:.2f} (raw {shown.raw_confidence:.2f}), trust {shown.trust:.2f}"),
            ("edit of", shown.edits),
            ("edited by", shown.editor),
        ]
    )


def _capture(screen: Screen, shown: Capture) -> None:
    content = shown.content
    screen.line((shown.capture_id, "bold cyan"), f"  {shown.kind} by {shown.source} {shown.author}")
    screen.facts(
        [
            ("text", content.text if content else None),
            ("payload", content.payload if content else None),
            ("fact", content.fact if content else None),
            ("label", shown.classification),
            ("origin", shown.origin),
            ("about", shown.subject),
            ("run", shown.run_id),
            ("captured", shown.captured_at),
            ("observed", shown.observed_at if shown.observed_at != shown.captured_at else None),
            ("number", shown.seq),
        ]
    )


def consents(screen: Screen, records: Iterable[Consent]) -> None:
    """Records of the consent ledger."""
    for one in records:
        style = "green" if one.state == "active" else "red"
        what = "revocation" if one.action == "revoke" else one.state
        screen.line((one.consent_id, "bold cyan"), f"  {one.subject}  ", (what, style))
        until = f" until {moment(one.valid_until)}" if one.valid_until else ""
        screen.facts(
            [
                ("purpose", f"{one.purpose} ({one.basis})"),
                ("labels", listed(one.data_classifications_allowed)),
                ("predicates", listed(one.predicates_allowed)),
                ("valid", f"from {moment(one.valid_from)}{until}" if one.action == "grant" else None),
                ("revoked", one.revoked_at),
                ("supersedes", one.supersedes),
                ("evidence", listed(one.evidence_refs)),
                ("recorded", f"by {one.auditor_id} at {moment(one.captured_at)}"),
            ]
        )


def contradictions(screen: Screen, found: Iterable[Contradiction]) -> None:
    """Memories that cannot both hold."""
    for one in found:
        screen.line(
            (one.contradiction_id, "bold cyan"), "  ", ("open", "bold red") if one.open else ("closed", "green")
        )
        screen.facts(
            [
                ("about", f"{one.entity} {one.predicate}" if one.entity else None),
                ("existing", one.existing),
                ("incoming", one.incoming),
                ("reason", one.reason),
                ("opened", one.opened_at),
                ("closed", one.closed_at),
            ]
        )


def events(screen: Screen, found: Iterable[Event]) -> None:
    """A log of events, two lines each."""
    for one in found:
        style = "bold red" if one.type == "memory.security" else "bold"
        screen.line(f"{one.seq:>6}  {moment(one.at)}  ", (one.type, style), f"  by {one.actor}")
        said = "  ".join(f"{name}={_short(value)}" for name, value in one.data.items() if value not in (None, [], ""))
        if said:
            screen.line(said, indent=8)


def _short(value: object) -> str:
    return listed(str(one) for one in value) if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _title(screen: Screen, words: str) -> None:
    screen.line()
    screen.line((words, "bold underline"))


def _key(shown: Candidate | Record | PromotedMemory) -> Facts:
    if shown.entity is None and shown.predicate is None:
        return []
    return [("fact", f"{shown.entity or ''} {shown.predicate or ''}".strip()), ("value", shown.value)]


def _scope(scope: Scope) -> str:
    parts = (
        ("user", scope.user_id),
        ("session", scope.session_id),
        ("workflow", scope.workflow_id),
        ("intent", scope.intent_id),
        *scope.qualifiers.items(),
    )
    return listed(f"{name} {value}" for name, value in parts if value is not None)


def _verdicts(shown: Proposal) -> Facts:
    return [
        (
            "verdict",
            f"{one.action} by {one.by} at {moment(one.at)}"
            + "".join(f", {name} {value}" for name, value in (("tier", one.tier), ("priority", one.priority)) if value)
            + "".join(f"; {words}" for words in (one.reason, one.note) if words),
        )
        for one in shown.verdicts
    ]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
