"""The recorded recalls: a page of them, and one with the papers of what it returned."""

from typing import Any, TypedDict, Unpack

from muniment.context import FabricContext, RecallPacks, retry_on_pack_change
from muniment.database import cursors
from muniment.database.rows import provenance_of
from muniment.database.storage import LATEST, Row, Transaction
from muniment.model.context import Asker, RunContext
from muniment.model.explanation import FilterVerdict
from muniment.model.fields import Artifact, Name, build
from muniment.model.recalls import RecallNoted, RecallShown, Returned
from muniment.recall.browse_store import MemoryBrowser, MemorySelection
from muniment.recall.explain import own
from muniment.recall.filters import PointInTime, Request, filters
from muniment.recall.recall import view_now
from muniment.recall.rules import View, filter_verdicts, visibility_of
from muniment.recall.store import RecordedRecall
from muniment.verbs import arguments as checks

# No index leads from a memory or an agent to its recalls: so many of the latest are looked through.
LOOKED_THROUGH = 20_000


class RecallFilters(TypedDict, total=False):
    """What `list` can be narrowed to."""

    user_id: str | None
    run_id: str | None
    agent_id: str | None
    memory_id: str | None


class _Listed(Artifact):
    user_id: Name | None = None
    run_id: Name | None = None
    agent_id: Name | None = None
    memory_id: Name | None = None


class AsyncRecalls:
    """Every recall of the tenant as it was recorded; without the words of its query."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[RecallFilters]
    ) -> list[RecallNoted]:
        """The latest first, for reviewers and auditors: all, or those of a `user_id`, a `run_id`, an `agent_id`.

        With a `memory_id` those that returned it; that and an agent are looked for among the latest 20,000 of the rest.
        `after` is the id of the last of the page before. Raises `NotFound`.
        """
        given = build(_Listed, narrowed)
        count, last = checks.page(limit, after)
        await self._context.authorise(asker, "read_memory")
        most = LOOKED_THROUGH if given.memory_id is not None or given.agent_id is not None else None
        async with self._context.read_only(asker.tenant_id) as tx:
            await cursors.page_start(tx, "audit.recall_place", last)
            asked = {"most": most, "after": last, "count": count, **given.model_dump()}
            return [RecallNoted(**row) for row in await tx.rows("audit.recalls", **asked)]

    @retry_on_pack_change
    async def get(self, asker: Asker, recall_id: str) -> RecallShown:
        """One with what it returned, in its order: each memory's papers, and whether the same run would see it now.

        A run gets its own, and the papers of what it may see now, as if there were no more (REC-7); what they say it
        has by `recall` and `get`, which are recorded. Raises `NotFound`, for what is another's exactly as for what is
        not there.
        """
        checks.name(recall_id, "recall_id")
        await self._context.authorise(asker, "recall" if isinstance(asker, RunContext) else "read_memory")
        async with self._context.read_only(asker.tenant_id, under=await self._context.pack_for(asker)) as tx:
            then = await own(self._context, tx, asker, recall_id)
            memories = await _returned(self._context, tx, then, await _view(self._context, tx, asker, then))
        noted = _noted(then).model_dump()
        if isinstance(asker, RunContext):
            memories = [one.model_copy(update={"text": ""}) for one in memories if one.visible and not one.withheld]
            noted |= {"returned": len(memories), "omitted": None}
        return RecallShown(**noted, memories=tuple(memories))


async def _view(context: FabricContext, tx: Transaction, asker: Asker, then: RecordedRecall) -> View:
    """What the run that asks sees now; to a person, what the run that recalled would see."""
    if isinstance(asker, RunContext):
        return view_now(asker, await context.recall_packs(asker), tx.now)
    today = await context.packs.read_in_force(tx) or context.packs.default
    pinned = await context.registered_pack(tx.tenant_id, then.row["pack"]) if then.pinned else today
    return view_now(then.run, RecallPacks(today, pinned), tx.now, recorded=True)


async def _returned(context: FabricContext, tx: Transaction, then: RecordedRecall, view: View) -> list[Returned]:
    """What it returned, in its order, as that view has it now."""
    now = PointInTime(LATEST, tx.now)
    rows = await tx.rows("recall.filters", **filters(view, Request(limit=1), now), memory_ids=then.result_ids)
    verdicts = {row["memory_id"]: filter_verdicts(row, view, tx.now) for row in rows}
    pack = await context.packs.read_in_force(tx) or context.packs.default
    papers = await MemoryBrowser(tx, context.vault, pack, MemorySelection(), now).papers(then.result_ids)
    return [_told(*papers[memory_id], verdicts[memory_id]) for memory_id in then.result_ids]


def _told(row: Row, fact: dict[str, Any] | None, verdicts: tuple[FilterVerdict, ...]) -> Returned:
    return Returned(
        memory_id=row["memory_id"],
        visibility=visibility_of(verdicts),
        hidden_by=tuple(one.name for one in verdicts if not one.passed),
        text=fact["text"] if fact is not None else "",
        withheld=fact is None,
        write_class=row["class"],
        tier=row["tier"],
        classification=row["classification"],
        provenance=provenance_of(row, tuple(fact["evidence_refs"]) if fact is not None else ()),
    )


def _noted(then: RecordedRecall) -> RecallNoted:
    names = ("recall_id", "at", "seq", "run_id", "agent_id", "user_id", "pack", "as_of", "omitted", "degraded")
    return RecallNoted(
        **{name: then.row[name] for name in names},
        with_query=bool(then.row["request"].get("with_query")),
        returned=len(then.result_ids),
    )
