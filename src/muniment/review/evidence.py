"""The evidence of a proposal: what it rests on and what it contradicts, read in one transaction."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from muniment.archives import store as archives
from muniment.audit import provenance_store as trail
from muniment.candidates.audience import audience_of
from muniment.capture import store as captures
from muniment.capture.read_log import record_reads
from muniment.consent import store as ledger
from muniment.context import FabricContext, retry_on_pack_change
from muniment.contradictions import store as contradictions
from muniment.contradictions.recommendation import recommend
from muniment.database.storage import Transaction
from muniment.errors import NotFound, SelfApproval
from muniment.language.instructions import addressing_spans
from muniment.model.audience import Audience
from muniment.model.capture import Capture
from muniment.model.context import Principal
from muniment.model.contradiction import Contradiction, Recommendation
from muniment.model.promoted import Ending, PromotedMemory
from muniment.model.proposal import Proposal
from muniment.model.speakers import TOOL, USER
from muniment.model.trail import Basis, Evidence, EvidenceTurn, SourceVerdict
from muniment.pack import Pack
from muniment.promotion.promote import four_eyes
from muniment.review import store as review
from muniment.review import team_store
from muniment.review.dangers import with_dangers
from muniment.review.item_store import Item

# A statement can contradict or repeat more memories than anybody reads.
MEMORIES_SHOWN = 20
# Turns of the conversation before and after the one that a fact came from (REV-16).
TURNS_SHOWN = 3
KNOWN_SHOWN = 8
OPPOSITES_SHOWN = 5
# Verdicts on the same source, and how many of the latest are looked through for them.
VERDICTS_SHOWN, VERDICTS_SEARCHED = 8, 400


async def evidence_of(context: FabricContext, principal: Principal, proposal_id: str) -> Evidence:
    """Collect a proposal's capture, edits, consent and contradictions, with their memories; raises `NotFound`.

    The reading of the capture and of the turns around it is recorded.
    """
    found, archived = await _collect(context, principal, proposal_id)
    shown = {turn.capture_id: False for turn in found.around if turn.text is not None or turn.payload is not None}
    if found.capture is not None and found.capture.content is not None:
        shown[found.capture.capture_id] = archived
    await record_reads(context, principal, shown)
    return found


@retry_on_pack_change
async def _collect(context: FabricContext, principal: Principal, proposal_id: str) -> tuple[Evidence, bool]:
    """Return the evidence of a proposal, and whether its capture came from an archive."""
    pack = await context.pack_for(principal)
    async with context.transaction(principal.tenant_id, "auditor", under=pack) as tx:
        loaded = await review.load(tx, context.vault, proposal_id)
        named = await team_store.with_names(tx, context.vault, [loaded.proposal])
        (proposal,) = await with_dangers(tx, named, pack)
        candidate = proposal.candidate
        consent_id = candidate.consent_id
        versions = await trail.candidates(tx, context.vault, candidate.candidate_id)
        capture, archived = await captures.find(tx, context.vault, candidate.capture_id, context.archives)
        met = await contradictions.listed(tx, proposal_id=proposal_id, limit=MEMORIES_SHOWN)
        memories = await _memories(context, tx, dict.fromkeys(_named(proposal, met)))
        found = Evidence(
            proposal=proposal,
            capture=capture,
            archive=await archives.archive_of(tx, candidate.capture_id) if capture is None else None,
            edits=tuple(one for one in versions if one.candidate_id != candidate.candidate_id),
            contradictions=tuple(met),
            memories=memories,
            consent=await ledger.one(tx, context.vault, consent_id) if consent_id is not None else None,
            labels=tuple(one for one in pack.labels if pack.at_least(one, candidate.classification)),
            basis=basis_of(capture),
            around=await _around(context, tx, capture) if capture is not None else (),
            links=_links(proposal, pack),
            known=await _known(context, tx, proposal, memories, pack),
            source_verdicts=await _source_verdicts(tx, proposal),
            opposites=await _opposites(context, tx, proposal),
            recommendations=_recommendations(proposal, capture, met, memories, pack),
            suspicious=addressing_spans(candidate.text),
            audience=_audience(proposal, memories, pack),
            trust_floor=pack.memory_layer.trust.floor,
            barred=await _barred(context, tx, principal, loaded, pack),
        )
        return found, archived


def _audience(proposal: Proposal, memories: dict[str, PromotedMemory], pack: Pack) -> Audience:
    """Return which recalls show the fact; the memory it became may ask for qualifiers since (CTR-5)."""
    became = memories.get(proposal.memory_id or "")
    required = became.scope.required if became is not None else None
    return audience_of(proposal.candidate, proposal.tier_target, pack, required)


def without_verdicts(found: Evidence, pack: Pack) -> Evidence:
    """Return evidence as it was before anybody decided: without verdicts, and without what followed from them."""
    proposal = found.proposal
    came = proposal.enqueued_at
    check = proposal.contradiction_check
    before = {check.existing, *check.others, proposal.candidate.corrects, proposal.audits}
    before |= {one.existing for one in found.contradictions}
    memories = {name: _not_ended_since(one, came) for name, one in found.memories.items() if name in before}
    reopened = {"incoming": None, "closed_at": None, "outcome": None, "resolved_by": None}
    blinded: dict[str, Any] = {
        "proposal": proposal.model_copy(
            update={"verdicts": (), "status": "pending", "memory_id": None, "duplicate_check": None}
        ),
        "contradictions": tuple(one.model_copy(update=reopened) for one in found.contradictions),
        "memories": memories,
        "known": tuple(one for one in found.known if one.proposal_id != proposal.proposal_id),
        "source_verdicts": (),
        "audience": audience_of(proposal.candidate, proposal.tier_derived, pack),
        "recommendations": {},
        "barred": None,
    }
    return found.model_copy(update=blinded)


def _not_ended_since(memory: PromotedMemory, came: datetime) -> PromotedMemory:
    if memory.retracted_at is None or memory.retracted_at < came:
        return memory
    return memory.model_copy(update={"dead_seq": None, **dict.fromkeys(Ending.model_fields)})


def basis_of(capture: Capture | None) -> Basis:
    """Return what a fact rests on; what an agent says, and its credential does not vouch for, is its claim (REV-16)."""
    if capture is None:
        return "record"
    said = capture.kind == "message"
    returned = capture.kind == "tool_result" or (capture.origin or "").startswith(TOOL)
    stated = capture.kind == "statement" or (capture.content is not None and capture.content.fact is not None)
    if (said or returned or stated) and capture.source == "agent" and capture.vouched is None:
        return "claim"
    return "message" if said else "tool_result" if returned else "record"


async def _around(context: FabricContext, tx: Transaction, capture: Capture) -> tuple[EvidenceTurn, ...]:
    """Return the conversation around a capture, itself included; nothing where it stands alone."""
    beside = await captures.around(tx, context.vault, capture, TURNS_SHOWN)
    if not beside:
        return ()
    turns = sorted([*beside, capture], key=lambda one: (one.seq, one.capture_id))
    return tuple(_turn(one, capture.capture_id) for one in turns)


def _turn(capture: Capture, source: str) -> EvidenceTurn:
    by_user = capture.vouched == USER or capture.source == "end_user"
    content = capture.content
    fact = content.fact if content is not None else None
    return EvidenceTurn(
        capture_id=capture.capture_id,
        kind=capture.kind,
        speaker=(capture.user_id if by_user else None) or capture.author,
        by_user=by_user,
        observed_at=capture.observed_at,
        text=content.text if content is not None else None,
        payload=(fact.model_dump(mode="json", exclude_none=True) if fact is not None else content.payload)
        if content is not None
        else None,
        is_source=capture.capture_id == source,
    )


def _links(proposal: Proposal, pack: Pack) -> dict[str, str]:
    """Return the addresses of references such as ticket:812, by the templates that the pack has for their prefixes."""
    found: dict[str, str] = {}
    for reference in proposal.candidate.evidence_refs:
        prefix, _, rest = reference.partition(":")
        # A browser would leave out the last part of the path for one of dots alone.
        if rest.strip(".") and (template := pack.identity.reference_links.get(prefix)) is not None:
            found[reference] = template.replace("{id}", quote(rest, safe=""))
    return found


async def _known(
    context: FabricContext, tx: Transaction, proposal: Proposal, shown: dict[str, PromotedMemory], pack: Pack
) -> tuple[PromotedMemory, ...]:
    """Return the latest live memories about whom the proposal is about, without those that are shown anyway."""
    about = proposal.candidate.entity or proposal.candidate.subject
    if about is None:
        return ()
    names = pack.identity.spellings(about)
    which = {"about": names, "known": sorted(shown), "count": KNOWN_SHOWN, "sensitive": pack.sensitive_labels}
    rows = await tx.rows("review.known_of", **which)
    return tuple((await _memories(context, tx, [row["memory_id"] for row in rows])).values())


async def _source_verdicts(tx: Transaction, proposal: Proposal) -> tuple[SourceVerdict, ...]:
    claimed_by = proposal.candidate.claimed_by
    if not claimed_by:
        return ()
    counts = {"latest": VERDICTS_SEARCHED, "count": VERDICTS_SHOWN}
    rows = await tx.rows("review.of_source", claimed_by=claimed_by, proposal_id=proposal.proposal_id, **counts)
    return tuple(SourceVerdict.model_validate(dict(row)) for row in rows)


async def _opposites(context: FabricContext, tx: Transaction, proposal: Proposal) -> tuple[Proposal, ...]:
    found = await review.load_many(tx, context.vault, proposal.opposites[:OPPOSITES_SHOWN], skip_broken=True)
    return tuple(one.proposal for one in found)


def _recommendations(
    proposal: Proposal,
    capture: Capture | None,
    met: list[Contradiction],
    memories: dict[str, PromotedMemory],
    pack: Pack,
) -> dict[str, Recommendation]:
    """Return which side to keep for each memory that the proposal contradicts."""
    observed_at = capture.observed_at if capture is not None else proposal.enqueued_at
    against = dict.fromkeys((*proposal.contradiction_check.contradicted, *(one.existing for one in met if one.open)))
    found = {one: memories[one] for one in against if one in memories and memories[one].retracted_at is None}
    return {name: recommend(memory, proposal.candidate, observed_at, pack) for name, memory in found.items()}


async def _memories(context: FabricContext, tx: Transaction, names: Iterable[str | None]) -> dict[str, PromotedMemory]:
    wanted = [one for one in names if one is not None][:MEMORIES_SHOWN]
    found: dict[str, PromotedMemory] = {}
    for memory_id in wanted:
        try:
            found[memory_id] = await trail.memory(tx, context.vault, memory_id)
        except NotFound:  # Collected since.
            continue
    return found


def _named(proposal: Proposal, met: list[Contradiction]) -> Iterator[str | None]:
    check = proposal.contradiction_check
    yield from (proposal.memory_id, proposal.candidate.corrects, proposal.audits, proposal.duplicate_check)
    yield from (check.existing, *check.others)
    yield from (one.existing for one in met)
    yield from (one.memory_id for one in proposal.verdicts)


async def _barred(
    context: FabricContext, tx: Transaction, principal: Principal, loaded: review.Loaded, pack: Pack
) -> str | None:
    """Return why the principal cannot approve a proposal, nor another that says the same."""
    if not pack.has_label(loaded.proposal.candidate.classification):
        return f"the pack in force, {pack.ref}, declares no label {loaded.proposal.candidate.classification}"
    try:
        four_eyes(principal, loaded, pack)
    except SelfApproval as error:
        others = await review.load_many(tx, context.vault, loaded.proposal.same, skip_broken=True)
        first = Item(loaded, tuple(others)).to_promote(principal)[0]
        return error.message if first is loaded else None
    return None
