"""How proposals, memories and their papers are drawn for people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from muniment.capture.rules import is_only_claimed
from muniment.cli.output import Facts, Screen, age, due, listed, moment, shortened
from muniment.model.adoption import Adoption
from muniment.model.candidate import Candidate, Consolidation, Refusal, Scope
from muniment.model.capture import Capture
from muniment.model.consent import Consent, Sweep
from muniment.model.contradiction import Contradiction
from muniment.model.events import Event
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Outcome, Proposal
from muniment.model.recall import Record
from muniment.model.trail import Trail

_REFUSALS_SHOWN = 20
_USES_SHOWN = 5
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
                ("masked", _masked(proposal.candidate)),
                ("contradicts", listed(proposal.contradiction_check.contradicted)),
                ("duplicate of", proposal.duplicate_check),
                ("corrects", proposal.candidate.corrects),
                ("status", proposal.status if proposal.status == "held" else None),
                ("assigned to", proposal.assignee),
            ]
        )


def proposal(screen: Screen, shown: Proposal, against: Iterable[Contradiction] = ()) -> None:
    """One proposal with everything a reviewer needs; `against` are its open contradictions."""
    candidate = shown.candidate
    open_ = {one.existing: one for one in against}
    screen.line((shown.proposal_id, "bold cyan"), "  ", (shown.status, _STYLES.get(shown.status, "bold")))
    overridden = f" (derived: {shown.tier_derived})" if shown.tier_derived != shown.tier_target else ""
    screen.facts(
        [
            ("text", candidate.text),
            *key_of(candidate),
            ("class", f"{shown.write_class}, risk {shown.risk}"),
            ("tier", f"{shown.tier_target}{overridden}"),
            ("priority", shown.priority),
            ("label", f"{candidate.classification}{', sensitive' if shown.sensitive else ''}"),
            ("confidence", f"{shown.confidence:.2f} (raw {candidate.raw_confidence:.2f}), trust {shown.trust:.2f}"),
            ("about", candidate.subject),
            ("scope", scope_of(candidate.scope)),
            ("author", f"{candidate.source} {candidate.author}"),
            ("edited by", candidate.editor),
            ("evidence", listed(candidate.evidence_refs)),
            ("consent", f"{shown.consent_check} {candidate.consent_id or ''}".strip()),
            ("masked", _masked(candidate)),
            *_gates(candidate),
            ("corrects", candidate.corrects),
            *(
                (
                    "contradicts",
                    f"{one}{f': {open_[one].reason}, {open_[one].contradiction_id}' if one in open_ else ''}",
                )
                for one in shown.contradiction_check.contradicted
            ),
            ("duplicate of", shown.duplicate_check),
            ("returned", f"as {shown.reopens}, whose original was withdrawn" if shown.reopens else None),
            ("reasons", listed(shown.human_reasons)),
            ("due", f"{moment(shown.due_at)}, {due(shown.due_at)}" if shown.status in ("pending", "held") else None),
            ("assigned to", shown.assignee),
            ("version", shown.version),
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


def outcomes(screen: Screen, found: Sequence[Outcome]) -> None:
    """What became of each of many, and how many of each."""
    for one in found:
        if one.error is None:
            status = one.status or ""
            screen.line(
                (one.proposal_id, "bold cyan"), "  ", (status, _STYLES.get(status, "bold")), f"  {one.memory_id or ''}"
            )
        else:
            screen.line((one.proposal_id, "bold cyan"), "  ", (one.error, "red"))
    counted = Counter(one.error or one.status for one in found)
    screen.line(listed(f"{number} {what}" for what, number in counted.most_common()))


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
    again = shown.rejection
    screen.facts(
        [
            ("capture", shown.capture_id),
            ("at", shown.at),
            ("repeats", f"{again}, which was rejected" if again else None),
            ("to lift it", f"muniment lift {again}" if again else None),
        ]
    )


def consolidation(screen: Screen, shown: Consolidation) -> None:
    """What a pass over the captures brought."""
    screen.line(
        f"{count(shown.captures, 'capture')}: {count(len(shown.proposals), 'proposal')}, "
        f"{len(shown.refusals)} refused, {len(shown.promoted)} promoted by policy"
    )
    _refusals(screen, shown.refusals, {})
    for capture_id in shown.failed:
        screen.line((f"unreadable  {capture_id}", "red"), indent=2)


def imported(screen: Screen, words: str, refusals: Sequence[Refusal], lines: Mapping[str, int]) -> None:
    """What an import brought, with the lines that were refused."""
    screen.line(words)
    _refusals(screen, refusals, lines)


def _refusals(screen: Screen, refusals: Sequence[Refusal], lines: Mapping[str, int]) -> None:
    for one in refusals[:_REFUSALS_SHOWN]:
        place = f"line {lines[one.capture_id]}  " if one.capture_id in lines else ""
        again = f" as {one.rejection}" if one.rejection else ""
        screen.line((f"refused  {place}{one.capture_id}", "red"), f"  {one.gate}: {one.reason}{again}", indent=2)
    if (more := len(refusals) - _REFUSALS_SHOWN) > 0:
        screen.line(f"and {more} more; --json names them all", indent=2)


def memory(screen: Screen, shown: PromotedMemory) -> None:
    """One promoted memory."""
    screen.line((shown.memory_id, "bold cyan"), "  ", _state(shown))
    screen.facts(_memory_facts(shown))


def _state(shown: PromotedMemory) -> tuple[str, str]:
    if shown.tombstoned_at is not None:
        return ("tombstoned: its content is gone", "red")
    if shown.retracted_at is not None:
        return ("retracted", "red")
    expired = shown.expires_at is not None and shown.expires_at <= datetime.now(UTC)
    return ("expired", "yellow") if expired else ("live", "green")


def _memory_facts(shown: PromotedMemory) -> Facts:
    gone = shown.retracted_at
    return [
        ("text", shown.text),
        *key_of(shown),
        ("class", f"{shown.write_class}, {shown.tier}, {shown.classification}"),
        ("priority", f"{shown.priority:.2f}, confidence {shown.confidence:.2f}, trust {shown.trust:.2f}"),
        ("about", shown.subject),
        ("scope", scope_of(shown.scope)),
        ("approved", f"by {shown.approver} at {moment(shown.promoted_at)}"),
        ("evidence", listed(shown.evidence_refs)),
        ("source", f"{shown.source} {shown.author}, {shown.kind} {shown.capture_id}"),
        ("origin", origin_of(shown.origin, shown.vouched)),
        ("proposal", shown.proposal_id),
        ("consent", shown.consent_id),
        ("pack", shown.pack),
        ("expires", shown.expires_at),
        ("retracted", f"by {shown.retracted_by} at {moment(gone)}: {shown.retraction_reason}" if gone else None),
        ("superseded by", shown.superseded_by),
        ("tombstoned", shown.tombstoned_at),
    ]


def trail(screen: Screen, shown: Trail) -> None:
    """A memory's papers, from the memory back to its capture, and forward to its recalls and prompts."""
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
        screen.line(f"dropped with archive {shown.archive}" if shown.archive else "gone", indent=4)
    else:
        _capture(screen, shown.capture)
    if shown.consent is not None:
        _title(screen, "Consent")
        consents(screen, [shown.consent])
    if shown.contradictions:
        _title(screen, "Contradictions")
        contradictions(screen, shown.contradictions)
    _uses(screen, f"Recalled {count(len(shown.recalls), 'time')}", shown.recalls)
    _uses(screen, f"In {count(len(shown.prompts), 'prompt')}", shown.prompts)
    _title(screen, "Events")
    events(screen, shown.events)


def _uses(screen: Screen, title: str, ids: Sequence[str]) -> None:
    _title(screen, title)
    for one in ids[:_USES_SHOWN]:
        screen.line(one, indent=4)
    if (more := len(ids) - _USES_SHOWN) > 0:
        screen.line(f"and {more} before", indent=4)


def _candidate(screen: Screen, shown: Candidate) -> None:
    screen.line((shown.candidate_id, "bold cyan"))
    screen.facts(
        [
            ("text", shown.text),
            *key_of(shown),
            ("extractor", shown.extractor),
            ("masked", _masked(shown)),
            ("corrects", shown.corrects),
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
                ("swept", f"at {moment(one.swept_at)}: the content of its memories is gone" if one.swept_at else None),
                ("supersedes", one.supersedes),
                ("evidence", listed(one.evidence_refs)),
                ("recorded", f"by {one.auditor_id} at {moment(one.captured_at)}"),
            ]
        )


def contradictions(screen: Screen, found: Iterable[Contradiction], said: Mapping[str, str] | None = None) -> None:
    """What cannot both hold; `said` has the texts of memories and proposals by their ids."""
    texts = said or {}
    for one in found:
        state = ("open", "bold red") if one.open else (one.outcome or "a side expired", "green")
        screen.line((one.contradiction_id, "bold cyan"), "  ", state)
        settled = one.closed_at and f"at {moment(one.closed_at)}{f' by {one.resolved_by}' if one.resolved_by else ''}"
        screen.facts(
            [
                ("about", f"{one.entity} {one.predicate}" if one.entity else None),
                ("reason", one.reason),
                ("existing", _side(one.existing, texts.get(one.existing))),
                ("incoming", _side(one.incoming or f"{one.proposal_id}, proposed", texts.get(one.proposal_id))),
                ("proposal", one.proposal_id if one.incoming else None),
                ("opened", f"{moment(one.opened_at)}, {age(one.opened_at)}"),
                ("settled", settled),
            ]
        )


def _side(named: str, said: str | None) -> str:
    return f"{named}: {shortened(said)}" if said else named


def adoption(screen: Screen, shown: Adoption) -> None:
    """Whether corrections change decisions."""
    share = f": {shown.share:.0%}" if shown.share is not None else ""
    screen.line(f"{count(shown.corrections, 'correction')}, {shown.measured} measured, {shown.adopted} adopted{share}")


def sweep(screen: Screen, shown: Sweep) -> None:
    """What a pass over ended consents took away."""
    memories = "1 memory is" if shown.memories == 1 else f"{shown.memories} memories is"
    screen.line(f"{count(shown.consents, 'ended consent')}: the content of {memories} gone")


def events(screen: Screen, found: Iterable[Event]) -> None:
    """A log of events, two lines each."""
    for one in found:
        style = "bold red" if one.type == "memory.security" else "bold"
        screen.line(f"{one.seq:>6}  {moment(one.at)}  ", (one.type, style), f"  by {one.actor}")
        said = "  ".join(f"{name}={_short(value)}" for name, value in one.data.items() if value not in (None, [], ""))
        if said:
            screen.line(said, indent=8)


def _short(value: object) -> str:
    if isinstance(value, list | tuple):
        return listed(str(one) for one in cast("Sequence[object]", value))
    return str(value)


def _title(screen: Screen, words: str) -> None:
    screen.line()
    screen.line((words, "bold underline"))


def key_of(shown: Candidate | Record | PromotedMemory) -> Facts:
    """What a typed fact is about, and its value."""
    if shown.entity is None and shown.predicate is None:
        return []
    return [("fact", f"{shown.entity or ''} {shown.predicate or ''}".strip()), ("value", shown.value)]


def origin_of(origin: str | None, vouched: str | None) -> str | None:
    """Where something came from, and whether that is only what its author says."""
    return f"{origin} (claimed, not vouched for)" if is_only_claimed(origin, vouched) else origin


def scope_of(scope: Scope) -> str:
    """The runs that something is for."""
    parts = (
        ("user", scope.user_id),
        ("session", scope.session_id),
        ("workflow", scope.workflow_id),
        ("intent", scope.intent_id),
        *scope.qualifiers.items(),
    )
    said = [f"{name} {value}" for name, value in parts if value is not None]
    return listed([*said, *(f"only where a run says {name} {value}" for name, value in scope.required.items())])


def _masked(shown: Candidate) -> str:
    return listed(f"{kind} {count}" for kind, count in shown.redactions.items())


def _gates(shown: Candidate) -> Facts:
    return [("passed", f"{one.gate}: {one.reason}{f' ({one.detail})' if one.detail else ''}") for one in shown.gates]


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


def count(number: int, thing: str) -> str:
    """So many of them."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
