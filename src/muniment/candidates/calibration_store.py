"""Calibrations as they are kept: a new row wherever a source's curve changed."""

from psycopg.types.json import Jsonb

from muniment.candidates.rules import Point, dump_points
from muniment.database.storage import Transaction
from muniment.model.ids import make_id


async def record(tx: Transaction, source: str, points: tuple[Point, ...]) -> None:
    """Write down what a source's word is worth from now on."""
    tick = await tx.tick()
    calibration_id = make_id("cal", tick.at)
    verdicts, approved = sum(one.verdicts for one in points), sum(one.approved for one in points)
    said = {"calibration_id": calibration_id, "source": source, "verdicts": verdicts, "approved": approved}
    tx.defer("jobs.calibrate", seq=tick.seq, at=tick.at, points=Jsonb(dump_points(points)), **said)
    tx.emit("memory.note", "auto", about="calibrated", **said)
