"""The evidence of a proposal: what it rests on and what it contradicts, read in one transaction."""

from collections.abc import Iterator

from muniment.archives import store as archives
from muniment.audit import provenance_store as trail
from muniment.capture import store as captures
from muniment.consent import store as ledger
from muniment.context import FabricContext, retry_on_pack_change
from muniment.contradictions import store as contradictions
from muniment.database.storage import Transaction
from muniment.errors import NotFound, SelfApproval
from muniment.language.instructions import addressing_spans
from muniment.model.context import Principal
from muniment.model.contradiction import Contradiction
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal
from muniment.model.trail import Evidence
from muniment.pack import Pack
from muniment.promotion.promote import four_eyes
from muniment.review import store as review
from muniment.review.dangers import with_dangers
from muniment.review.item_store import Item

# A statement can contradict or repeat more memories than anybody reads.
MEMORIES_SHOWN = 20


@retry_on_pack_change
async def evidence_of(context: FabricContext, principal: Principal, proposal_id: str) -> Evidence:
    """Collect a proposal's capture, edits, consent and contradictions, with their memories; raises `NotFound`."""
    pack = await context.pack_for(principal)
    async with context.transaction(principal.tenant_id, "auditor", under=pack) as tx:
        loaded = await review.load(tx, context.vault, proposal_id)
        proposal, candidate = loaded.proposal, loaded.proposal.candidate
        consent_id = candidate.consent_id
        versions = await trail.candidates(tx, context.vault, candidate.candidate_id)
        capture = await captures.read_one(tx, context.vault, candidate.capture_id, context.archives)
        met = await contradictions.listed(tx, proposal_id=proposal_id, limit=MEMORIES_SHOWN)
        (proposal,) = await with_dangers(tx, [proposal], pack)
        return Evidence(
            proposal=proposal,
            capture=capture,
            archive=await archives.archive_of(tx, candidate.capture_id) if capture is None else None,
            edits=tuple(one for one in versions if one.candidate_id != candidate.candidate_id),
            contradictions=tuple(met),
            memories=await _memories(context, tx, proposal, met),
            consent=await ledger.one(tx, context.vault, consent_id) if consent_id is not None else None,
            labels=tuple(one for one in pack.labels if pack.at_least(one, candidate.classification)),
            suspicious=addressing_spans(candidate.text),
            trust_floor=pack.memory_layer.trust.floor,
            barred=await _barred(context, tx, principal, loaded, pack),
        )


async def _memories(
    context: FabricContext, tx: Transaction, proposal: Proposal, met: list[Contradiction]
) -> dict[str, PromotedMemory]:
    wanted = [one for one in dict.fromkeys(_named(proposal, met)) if one is not None][:MEMORIES_SHOWN]
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
