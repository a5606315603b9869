"""A point in a tenant's past: its sequence and time, and the packs that decided then."""

from datetime import datetime

from muniment.context import FabricContext, RecallPacks
from muniment.database.storage import Transaction
from muniment.errors import HistoryCollected, InvalidInput, MomentAmbiguous
from muniment.model.context import RunContext
from muniment.pack.combined import replay_horizon
from muniment.packs.store import Packs
from muniment.recall.search import PointInTime


async def point_in_time(
    context: FabricContext, tx: Transaction, as_of: datetime | int, field: str = "as_of"
) -> PointInTime:
    """Return the point in a tenant's history of a time or a sequence.

    Raises `InvalidInput` for the future, `HistoryCollected` beyond the replay horizon, and `MomentAmbiguous` for a time
    that the tenant's clock passed twice, because it was set back; a sequence is never ambiguous.
    """
    if isinstance(as_of, int):
        row = await tx.row("recall.moment_of_number", seq=as_of)
        if row is None:
            raise InvalidInput("is a sequence number that does not exist yet", field=field)
        point = PointInTime(as_of, row["at"])
        await _check_horizon(context, tx, point.at, field)
        return point
    if as_of > tx.now:
        raise InvalidInput("lies in the future", field=field)
    await _check_horizon(context, tx, as_of, field)
    row = await tx.row("recall.moment", at=as_of)
    seq, earlier = (row["seq"] or 0, row["earlier"]) if row is not None else (0, None)
    if earlier is not None:
        raise MomentAmbiguous(
            f"was twice, since the tenant's clock was brought back: as number {earlier} and as number {seq}; "
            "ask by one of the numbers",
            field=field,
            numbers=(earlier, seq),
        )
    return PointInTime(seq, as_of)


async def _check_horizon(context: FabricContext, tx: Transaction, at: datetime, field: str) -> None:
    """Raise `HistoryCollected` for a time beyond the replay horizon."""
    horizon = replay_horizon(await context.packs.within_notice(tx))
    if at < tx.now - horizon:
        raise HistoryCollected(f"lies beyond the replay horizon of {horizon.days} days", field=field)


async def packs_as_of(known: Packs, tx: Transaction, run: RunContext, packs: RecallPacks, seq: int) -> RecallPacks:
    """Return the packs that decide as of a sequence: the one in force then, and the one that the run pins (REC-7)."""
    in_force = await known.in_force_at(tx, seq) or packs.in_force
    return RecallPacks(in_force, packs.pinned if run.pack is not None else in_force)
