"""JOB-5: calibrate each source's confidence by the verdicts on its proposals (CAN-6)."""

from collections import defaultdict

from muniment.candidates.calibration import calibration_curve, calibration_source, dump_points
from muniment.candidates.store import record_calibration
from muniment.job import JobResult
from muniment.opening import Opened

# The latest verdicts of each source count: what it was worth years ago says little.
MOST = 1000


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Record a new curve for each source whose curve changed; one with too few verdicts has none.

    What a source is, the pack says (`calibrate_by`). A curve of a source that is none under this pack ends.
    """
    context = opened.context
    pack = await context.current_pack(tenant_id)
    rule = pack.memory_layer.promotion_thresholds
    since = context.now() - rule.calibrate_over
    async with context.transaction(tenant_id, "jobs") as tx:
        outcomes, last = await tx.gather(
            ("jobs.outcomes", {"most": MOST, "since": since}), ("jobs.last_calibrations", {})
        )
        by_source: dict[str, list[tuple[float, bool]]] = defaultdict(list)
        for row in outcomes:
            verdicts = by_source[calibration_source(row["source"], pack)]
            if len(verdicts) < MOST:
                verdicts.append((row["raw_confidence"], row["approved"]))
        known = {row["source"]: row["points"] for row in last}
        made = 0
        for source in sorted({*by_source, *known}):
            verdicts = by_source[source]
            points = calibration_curve(verdicts) if len(verdicts) >= rule.calibrate_from else ()
            if dump_points(points) != known.get(source, []):
                await record_calibration(tx, source, points)
                made += 1
    return JobResult({"sources": made})
