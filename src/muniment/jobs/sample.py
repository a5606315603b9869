"""JOB-6: a random share of what was promoted without a person goes to reviewers; too many wrong ones stop the class."""

from muniment.fabric.admission import Admission
from muniment.fabric.connect import Opened
from muniment.fabric.desk import Desk, decided_again
from muniment.governance import breakers, cursors, trail
from muniment.governance.erasure import hold_off_erasure
from muniment.jobs.job import Done
from muniment.pack import Pack
from muniment.pipeline import candidate as candidates
from muniment.pipeline import review
from muniment.pipeline.candidate import Draft
from muniment.policy.intervals import wilson
from muniment.storage.sealing import SubjectKey
from muniment.storage.session import Transaction

AT_ONCE = 200
CURSOR = "sample"


@decided_again
async def run(opened: Opened, tenant_id: str) -> Done:
    """Draw from what is new, and judge each class by what people said of its samples."""
    desk = opened.desk
    pack = await desk.current_pack(tenant_id)
    seen, drawn = await _draw(desk, tenant_id, pack)
    stopped = await _judge(desk, tenant_id, pack)
    return Done({"samples": drawn, "suspended": stopped}, more=seen == AT_ONCE)


async def _draw(desk: Desk, tenant_id: str, pack: Pack) -> tuple[int, int]:
    async with desk.transaction(tenant_id, "writer", under=pack) as tx:
        if await desk.vault.tenant(tx) is None:
            return 0, 0
        await hold_off_erasure(tx)
        read = await cursors.take(tx, CURSOR)
        rows = await tx.rows("jobs.promoted_alone", seq=read["seq"], memory_id=read["place"], count=AT_ONCE)
        if not rows:
            return 0, 0
        key = await desk.vault.comparing(tx)
        share = pack.memory_layer.audit.sample_share
        chosen = {row["proposal_id"]: row["memory_id"] for row in rows if chance(key, row["memory_id"]) < share}
        drafts, drawn = await _drafts(desk, tx, chosen, pack), 0
        if drafts:
            entered, _ = await (await (await Admission.of(desk, tx, pack, drafts)).decided(tx)).enter(tx)
            drawn = len(entered)
        cursors.move(tx, CURSOR, rows[-1]["born_seq"], rows[-1]["memory_id"])
        return len(rows), drawn


def chance(key: SubjectKey, memory_id: str) -> float:
    """A number between 0 and 1 that nobody without the key can foresee, the same every time."""
    return int.from_bytes(key.digest(b"sample\0" + memory_id.encode())[:8], "big") / 2**64


async def _drafts(desk: Desk, tx: Transaction, chosen: dict[str, str], pack: Pack) -> list[Draft]:
    """Each as a candidate of its own, that passes the gates again and waits for a person."""
    found = await review.load_many(tx, desk.vault, sorted(chosen), skip_broken=True)
    wanted = sorted({one.proposal.candidate.capture_id for one in found})
    captures = await trail.captures(tx, desk.vault, wanted)
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


async def _judge(desk: Desk, tenant_id: str, pack: Pack) -> int:
    """Suspend each class whose accuracy cannot be said to be above the floor."""
    rule, stopped = pack.memory_layer.audit, 0
    async with desk.transaction(tenant_id, "jobs") as tx:
        already = await breakers.suspended(tx)
        for row in await tx.rows("jobs.audited"):
            low, _ = wilson(row["correct"], row["samples"])
            # However few they are, samples that were all right speak against nothing.
            wrong = row["samples"] - row["correct"]
            if wrong and row["samples"] >= rule.min_samples and low < rule.floor and row["class"] not in already:
                await breakers.open_(tx, row["class"], row["samples"], row["correct"], low)
                stopped += 1
    return stopped
