"""Provenance: all that a memory rests on and all that used it, read in one transaction."""

from muniment.archives import store as archives
from muniment.audit import provenance_store as trail
from muniment.capture import store as captures
from muniment.consent import store as ledger
from muniment.context import FabricContext
from muniment.contradictions import store as contradictions
from muniment.model.trail import Trail
from muniment.review import store as review


async def of_memory(context: FabricContext, tenant_id: str, memory_id: str) -> Trail:
    """Follow a memory back to its capture and forward to its recalls; raises `NotFound`."""
    async with context.transaction(tenant_id, "auditor") as tx:
        vault = context.vault
        memory = await trail.memory(tx, vault, memory_id)
        line = await trail.candidates(tx, vault, memory.candidate_id)
        ids = await trail.proposals_of(tx, [candidate.candidate_id for candidate in line])
        proposals = tuple(loaded.proposal for loaded in await review.load_many(tx, vault, ids))
        capture = await captures.read_one(tx, vault, memory.capture_id, context.archives)
        # A capture goes only to an archive, and from there when that is dropped.
        archive = await archives.archive_of(tx, memory.capture_id) if capture is None else None
        seqs = {
            memory.born_seq,
            *(v.seq for p in proposals for v in p.verdicts),
            *(p.seq for p in proposals),
        }
        seqs |= {n for n in (memory.dead_seq, capture.seq if capture else None) if n is not None}
        consent = await ledger.one(tx, vault, memory.consent_id) if memory.consent_id else None
        return Trail(
            memory=memory,
            proposals=proposals,
            candidates=line,
            capture=capture,
            archive=archive,
            consent=consent,
            contradictions=tuple(await contradictions.listed(tx, memory_id=memory_id)),
            recalls=await trail.recalls_with(tx, memory_id),
            recalled=await trail.recalled(tx, memory_id),
            prompts=await trail.prompts_with(tx, memory_id),
            events=await trail.events_at(tx, seqs, {memory_id, *(p.proposal_id for p in proposals)}),
        )
