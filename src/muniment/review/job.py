"""JOB-6: review a random sample of what policy promoted alone; suspend a class whose samples are wrong too often."""

from muniment.candidates.intake import enqueue_drafts
from muniment.candidates.store import redraft
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database import cursors
from muniment.database.locks import block_erasures
from muniment.database.sealing import SubjectKey
from muniment.job import JobResult
from muniment.model.metrics import wilson
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.review import store as review

AT_ONCE = 200
CURSOR = "sample"


@retry_on_pack_change
async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Draw samples from new memories, and judge each class by the verdicts on its samples."""
    context = opened.context
    pack = await context.current_pack(tenant_id)
    seen, drawn = await _draw(context, tenant_id, pack)
    stopped = await _judge(context, tenant_id, pack)
    return JobResult({"samples": drawn, "suspended": stopped}, more=seen == AT_ONCE)


async def _draw(context: FabricContext, tenant_id: str, pack: Pack) -> tuple[int, int]:
    """Propose a random share of the next memories for review; returns how many were read, and how many drawn."""
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        if await context.vault.tenant(tx) is None:
            return 0, 0
        await block_erasures(tx)
        read = await cursors.lock(tx, CURSOR)
        rows = await tx.rows("jobs.promoted_alone", seq=read["seq"], memory_id=read["place"], count=AT_ONCE)
        if not rows:
            return 0, 0
        key = await context.vault.tenant_data_key(tx)
        share = pack.memory_layer.audit.sample_share
        chosen = {row["proposal_id"]: row["memory_id"] for row in rows if chance(key, row["memory_id"]) < share}
        proposals = await review.load_many(tx, context.vault, sorted(chosen), skip_broken=True)
        drafts, drawn = await redraft(tx, context.vault, proposals, pack, audits=chosen), 0
        if drafts:
            drawn = len((await enqueue_drafts(context, tx, pack, drafts))[0])
        cursors.move(tx, CURSOR, rows[-1]["born_seq"], rows[-1]["memory_id"])
        return len(rows), drawn


def chance(key: SubjectKey, memory_id: str) -> float:
    """Return a number between 0 and 1, the same every time, that nobody can predict without the key."""
    return int.from_bytes(key.digest(b"sample\0" + memory_id.encode())[:8], "big") / 2**64


async def _judge(context: FabricContext, tenant_id: str, pack: Pack) -> int:
    """Suspend each class whose accuracy may lie below the floor; returns how many."""
    rule, stopped = pack.memory_layer.audit, 0
    async with context.transaction(tenant_id, "jobs") as tx:
        already = await review.suspended_classes(tx)
        for row in await tx.rows("jobs.audited"):
            low, _ = wilson(row["correct"], row["samples"])
            # Samples that were all right, however few, are no reason to suspend.
            wrong = row["samples"] - row["correct"]
            if wrong and row["samples"] >= rule.min_samples and low < rule.floor and row["class"] not in already:
                await review.suspend_class(tx, row["class"], row["samples"], row["correct"], low)
                stopped += 1
    return stopped
