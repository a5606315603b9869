"""JOB-5: how much each source's confidence is worth, from what people made of its proposals (CAN-6)."""

from collections import defaultdict

from muniment.candidates import calibration_store as calibrations
from muniment.candidates.rules import calibration_curve, dump_points
from muniment.job import Done
from muniment.opening import Opened

# Of each source the latest verdicts count: what it was worth years ago says little.
MOST = 1000


async def run(opened: Opened, tenant_id: str) -> Done:
    """A new curve for each source with enough verdicts, where it differs from the last."""
    context = opened.context
    rule = (await context.current_pack(tenant_id)).memory_layer.promotion_thresholds
    since = context.now() - rule.calibrate_over
    async with context.transaction(tenant_id, "jobs") as tx:
        outcomes, last = await tx.gather(
            ("jobs.outcomes", {"most": MOST, "since": since}), ("jobs.last_calibrations", {})
        )
        by_source: dict[str, list[tuple[float, bool]]] = defaultdict(list)
        for row in outcomes:
            by_source[row["source"]].append((row["raw_confidence"], row["approved"]))
        known = {row["source"]: row["points"] for row in last}
        made = 0
        for source in sorted({*by_source, *known}):
            judged = by_source[source]
            # Too few, or none any more: it has no history again, and can earn another.
            points = calibration_curve(judged) if len(judged) >= rule.calibrate_from else ()
            if dump_points(points) != known.get(source, []):
                await calibrations.record(tx, source, points)
                made += 1
    return Done({"sources": made})
