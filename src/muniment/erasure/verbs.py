"""The verbs of erasure: erase a person, list the receipts, search texts for a name."""

from muniment.context import FabricContext
from muniment.erasure import name_search
from muniment.erasure import store as erasure
from muniment.model.context import Principal
from muniment.model.erasure import Erasure, ErasureInput, NameSearch, NameSearchInput
from muniment.model.inputs import Listing
from muniment.verbs.declaration import verb


@verb("erase", right="erase", http="POST /erasures", status=201, retry=True, slow=True)
async def erase(context: FabricContext, officer: Principal, request: ErasureInput) -> Erasure:
    """Erase a subject, an end user, or both if they are the same person. This cannot be undone.

    Their keys are destroyed and the content is gone; tombstones stay. Once this returns, no interface and no dump
    yields the content. A job then purges what lies beneath the tables and sets `purged_at` on the receipt.
    """
    await context.open_tenant(officer.tenant_id)
    pack = await context.pack_for(officer)
    async with context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
        receipt, sessions = await erasure.erase(tx, context.vault, officer, request, pack)
    # A session store that is away keeps sealed bytes that nothing opens any more; the purge comes again.
    for session_id, memory_ids in sessions.items():
        await context.sessions.forget(officer.tenant_id, session_id, memory_ids)
    return receipt


@verb("erasures", right="read_erasures", http="GET /erasures", page_key="erasure_id", cli="erasures")
async def erasures(context: FabricContext, reader: Principal, request: Listing) -> list[Erasure]:
    """List the receipts of erasures, the latest first; `after` is the id of the last of the previous page."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await erasure.receipts(tx, request.limit, request.after)


@verb("search_texts", right="erase", effect="read", http="POST /erasures/search", positional=("name",), slow=True)
async def search_texts(context: FabricContext, officer: Principal, request: NameSearchInput) -> NameSearch:
    """Search all texts for a name, to find what others said about a person, which an erasure by ids does not find.

    Returns a page of hits and how far the search has come; `after` of a page continues it. Each page is recorded, the
    name only as a keyed hash; a search that is finished for an `erasure_id` is recorded on its receipt. A privacy
    officer removes a memory with `retract(..., reason="erased")`.
    """
    return await name_search.search(context, officer, request)
