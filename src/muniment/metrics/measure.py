"""The metrics of a tenant over a window (MET-1 to MET-10): counted in the database, in few round trips."""

from datetime import datetime

from muniment.corrections import adoption
from muniment.database.sealing import Vault
from muniment.database.storage import Transaction
from muniment.metrics import flow, hits, review, storage, tokens, writebacks
from muniment.metrics.window import Window, asked
from muniment.model.metrics import Metrics
from muniment.pack import Pack
from muniment.packs.store import Packs


async def measure(tx: Transaction, vault: Vault, packs: Packs, pack: Pack, since: datetime, until: datetime) -> Metrics:
    """All of them. One round trip asks for nearly all; sealed content, of which little is opened, takes some more."""
    window = await Window.of(tx, since, until)
    groups = (flow, review, storage, hits, tokens, writebacks)
    found = await asked(
        tx, *(one for group in groups for one in group.questions(window)), window.ask("metrics.corrections")
    )
    kept = storage.stored(found)
    corrections = frozenset(row["memory_id"] for row in found["metrics.corrections"])
    return Metrics(
        tenant_id=tx.tenant_id,
        since=since,
        until=until,
        at=tx.now,
        pack=pack.ref,
        golden=review.golden(found),
        hits=await hits.measure(tx, vault, packs, window, found),
        tokens=await tokens.measure(tx, vault, packs, found),
        pii=await writebacks.measure(tx, vault, packs, window, found),
        contradictions=review.contradictions(found),
        adoption=await adoption.measure(tx, vault, only=corrections),
        queue=review.queue(found),
        auto=review.auto(found),
        telling=flow.telling(found),
        storage=kept,
        budgets=storage.budgets(kept, pack),
        model_calls=storage.model_calls(found),
        calibrations=storage.calibrations(found),
        captures=flow.captures(window, found),
        flow=flow.flow(found),
        recalls=flow.recalls(found),
        erasures=flow.erasures(found),
    )
