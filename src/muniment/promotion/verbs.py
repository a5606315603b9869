"""The verbs of promotion: retract a memory, undo a promotion by policy, end a session, complete the search index."""

from muniment.access.roles import Right as Right
from muniment.context import FabricContext
from muniment.erasure import name_search
from muniment.errors import InvalidInput
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.fields import Name, Note, OpenName
from muniment.model.inputs import VerbInput
from muniment.model.promoted import Reindexed, Retraction, SessionEnd, StatedReason, Undone
from muniment.promotion import reindex as reindexing
from muniment.promotion.retract import retract_memory
from muniment.promotion.retraction_store import end_session as end
from muniment.promotion.undo import undo_promotion
from muniment.verbs.declaration import verb


class Retract(VerbInput):
    """Which memory to retract, and why."""

    memory_id: Name
    reason: StatedReason


def _right(asker: Asker, request: Retract) -> Right:
    """A privacy officer erases a memory; everything else is a reviewer's retraction."""
    officer = isinstance(asker, Principal) and "privacy_officer" in asker.roles
    return "erase" if officer and request.reason == "erased" else "retract"


@verb(
    "retract",
    right="retract",
    other_right="erase",
    right_for=_right,
    http="POST /memories/{memory_id}/retract",
    retry=True,
)
async def retract(context: FabricContext, principal: Principal, request: Retract) -> Retraction:
    """Retract a memory for good; its row stays. Raises `NotFound`, or `Conflict` the second time.

    A privacy officer retracts only with the reason `erased`: then the memory's text, words and vectors are removed.
    """
    if _right(principal, request) == "erase":
        return await name_search.take_away(context, principal, request.memory_id)
    pack = await context.pack_for(principal)
    async with context.write_once(principal.tenant_id, "writer", under=pack) as tx:
        return await retract_memory(context, tx, request.memory_id, by=principal.id, reason=request.reason, pack=pack)


class Undo(VerbInput):
    """Which promotion to undo."""

    memory_id: Name
    note: Note | None = None


@verb("undo", right="retract", http="POST /memories/{memory_id}/undo", retry=True, cli="undo")
async def undo(context: FabricContext, reviewer: Principal, request: Undo) -> Undone:
    """Undo what policy promoted, and promote again what it had superseded.

    It is retracted with the reason `undone`, and then refused like a rejected fact until that is lifted. What cannot
    come back at once waits for a person. Raises `NotFound`; `Conflict` if a person approved it, if it was retracted, or
    if the pack's term is over.
    """
    pack = await context.pack_for(reviewer)
    async with context.write_once(reviewer.tenant_id, "writer", under=pack) as tx:
        return await undo_promotion(context, tx, request.memory_id, reviewer, pack, request.note)


class EndSession(VerbInput):
    """Which session to end."""

    session_id: OpenName


@verb("sessions.end", right="end_session", http="POST /sessions/{session_id}/end")
async def end_session(context: FabricContext, run: RunContext, request: EndSession) -> SessionEnd:
    """End a session of the run's user for good: what is in its working tier is no longer recalled.

    Ending it again changes nothing. Raises `InvalidInput` for another session than the run's own.
    """
    if run.session_id not in (None, request.session_id):
        raise InvalidInput("is another session than the run's own", field="session_id")
    await context.open_tenant(run.tenant_id)
    async with context.write_once(run.tenant_id, "writer") as tx:
        return await end(tx, request.session_id, run.user_id, by=run.agent_id)


@verb("reindex", right="work", effect="pass", http="POST /work/reindex")
async def reindex(
    context: FabricContext, tenant_id: str, *, on_progress: reindexing.Progress | None = None
) -> Reindexed:
    """Add the words and vectors that a tenant's memories lack, for example after a change of embedder.

    Until it is done, recall uses the earlier vectors. Safe to run twice, concurrently, or to be killed.
    """
    return await reindexing.reindexed(context, tenant_id, on_progress)
