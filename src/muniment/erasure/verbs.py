"""The verbs of erasure, which `AsyncFabric` has: forget a person, the receipts, search texts for a name."""

from muniment.context import FabricContext
from muniment.erasure import erase as erasing
from muniment.erasure import name_search
from muniment.model.context import Asker
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.fields import build
from muniment.model.name_search import NameSearch, NameSearchInput
from muniment.verbs import arguments as checks


class ErasureVerbs:
    """What a privacy officer does about a person who asks to be forgotten."""

    @property
    def _context(self) -> FabricContext:
        raise NotImplementedError

    async def erase(self, asker: Asker, *, subject: str | None = None, user_id: str | None = None) -> Erasure:
        """Forget a subject, an end user, or both where they are one person.

        Keys are destroyed, content is gone, tombstones stay: from the moment this returns no interface and no dump
        yields the content. A job then cleans what lies beneath and sets `purged_at` on the receipt.
        """
        return await erasing.erase(self._context, asker, build(ErasureInput, {"subject": subject, "user_id": user_id}))

    async def erasures(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Erasure]:
        """The receipts of erasures, the latest first; `after` is the id of the last of the page before."""
        return await erasing.receipts(self._context, asker, *checks.page(limit, after))

    async def search_texts(
        self, asker: Asker, name: str, *, erasure_id: str | None = None, limit: int = 50, after: str | None = None
    ) -> NameSearch:
        """Look for a name in every opened text: what others say of a person in passing, which no erasure finds by ids.

        A page of hits, with how far the search has come; `after` of a page goes on with it. Each page is recorded, the
        name as a keyed hash alone; a search that is finished for an `erasure_id` stands on its receipt. A privacy
        officer takes a memory away with `retract(..., reason="erased")`.
        """
        given = {"name": name, "erasure_id": erasure_id, "limit": limit, "after": after}
        return await name_search.search(self._context, asker, build(NameSearchInput, given))
