"""JOB-6: a random share of what was promoted without a person goes to reviewers; too many wrong ones stop the class."""

from muniment.audit import provenance_store as trail
from muniment.candidates import store as candidates
from muniment.candidates.intake import Admission
from muniment.candidates.store import Draft
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database import cursors
from muniment.database.sealing import SubjectKey
from muniment.database.storage import Transaction
from muniment.erasure.store import hold_off_erasure
from muniment.job import Done
from muniment.metrics.intervals import wilson
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.review import breakers
from muniment.review import store as review

AT_ONCE = 200
CURSOR = "sample"


@retry_on_pack_change
async def run(opened: Opened, tenant_id: str) -> Done:
    """Draw from what is new, and judge each class by what people said of its samples."""
    context = opened.context
    pack = await context.current_pack(tenant_id)
    seen, drawn = await _draw(context, tenant_id, pack)
    stopped = await _judge(context, tenant_id, pack)
    return Done({"samples": drawn, "suspended": stopped}, more=seen == AT_ONCE)


async def _draw(context: FabricContext, tenant_id: str, pack: Pack) -> tuple[int, int]:
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        if await context.vault.tenant(tx) is None:
            return 0, 0
        await hold_off_erasure(tx)
        read = await cursors.lock(tx, CURSOR)
        rows = await tx.rows("jobs.promoted_alone", seq=read["seq"], memory_id=read["place"], count=AT_ONCE)
        if not rows:
            return 0, 0
        key = await context.vault.comparing(tx)
        share = pack.memory_layer.audit.sample_share
        chosen = {row["proposal_id"]: row["memory_id"] for row in rows if chance(key, row["memory_id"]) < share}
        drafts, drawn = await _drafts(context, tx, chosen, pack), 0
        if drafts:
            entered, _ = await (await (await Admission.of(context, tx, pack, drafts)).decided(tx)).enter(tx)
            drawn = len(entered)
        cursors.move(tx, CURSOR, rows[-1]["born_seq"], rows[-1]["memory_id"])
        return len(rows), drawn


def chance(key: SubjectKey, memory_id: str) -> float:
    """A number between 0 and 1 that nobody without the key can foresee, the same every time."""
    return int.from_bytes(key.digest(b"sample\0" + memory_id.encode())[:8], "big") / 2**64


async def _drafts(context: FabricContext, tx: Transaction, chosen: dict[str, str], pack: Pack) -> list[Draft]:
    """Each as a candidate of its own, that passes the gates again and waits for a person."""
    found = await review.load_many(tx, context.vault, sorted(chosen), skip_broken=True)
    wanted = sorted({one.proposal.candidate.capture_id for one in found})
    captures = await trail.captures(tx, context.vault, wanted)
    ordinals = await candidates.ordinals(tx, wanted)
    ids = iter(candidates.new_ids(tx, len(found)))
    drafts: list[Draft] = []
    for one in found:
        capture = captures.get(one.proposal.candidate.capture_id)
        if capture is None or capture.content is None or not one.row["content"]:
            continue  # Archived or erased: nobody could say what it rests on.
        again = candidates.afresh(one.proposal.candidate, next(ids), capture, pack)
        drafts.append(Draft(again, capture, ordinals[capture.capture_id], audits=chosen[one.proposal.proposal_id]))
        ordinals[capture.capture_id] += 1
    return drafts


async def _judge(context: FabricContext, tenant_id: str, pack: Pack) -> int:
    """Suspend each class whose accuracy cannot be said to be above the floor."""
    rule, stopped = pack.memory_layer.audit, 0
    async with context.transaction(tenant_id, "jobs") as tx:
        already = await breakers.suspended(tx)
        for row in await tx.rows("jobs.audited"):
            low, _ = wilson(row["correct"], row["samples"])
            # However few they are, samples that were all right speak against nothing.
            wrong = row["samples"] - row["correct"]
            if wrong and row["samples"] >= rule.min_samples and low < rule.floor and row["class"] not in already:
                await breakers.open_(tx, row["class"], row["samples"], row["correct"], low)
                stopped += 1
    return stopped
