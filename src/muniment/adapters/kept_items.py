"""What adapters of stores have in common: a fabric, a run, and how items are put, read, waited for and deleted."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from muniment.adapters.packs import pack_for_tool
from muniment.client import Client
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.memory.opening import TENANT, Terms, person_of
from muniment.memory.words import why_refused
from muniment.model.context import Principal, RunContext
from muniment.model.fields import build
from muniment.model.item import Item, Items, ItemWaiting, ItemWritten
from muniment.model.subject import MyRefusal
from muniment.sync import Fabric

if TYPE_CHECKING:
    from pathlib import Path

# Between two looks at whether a person has decided.
_PAUSE_SECONDS = 0.2
# Values of one key that contradict each other, of which each is forgotten by itself.
_MOST_ON_A_KEY = 8


class PutRefused(InvalidInput):
    """A gate refused what was put: nothing was kept. `outcome` says which gate, and why."""

    def __init__(self, outcome: ItemWritten) -> None:
        why = why_refused(MyRefusal(gate=outcome.gate or "allow_list", reason=outcome.reason or ""))
        super().__init__(f"the item was not kept: {why}", field="value")
        self.outcome = outcome


class KeptItems:
    """The items of a run. Of a fabric or a client that was given the caller stays the owner."""

    def __init__(
        self,
        fabric: Fabric | Client,
        run: RunContext,
        *,
        tool: str,
        person: Principal | None = None,
        classification: str = "INTERNAL",
        wait: float = 0.0,
        user_part: int | None = None,
        owned: bool = False,
    ) -> None:
        if isinstance(fabric, Fabric | Client) is False:
            raise InvalidInput("expected a Fabric or a Client, which block", field="fabric")
        if user_part is not None and run.user_id is not None:
            raise InvalidInput("give a run without a user, or leave out user_part", field="user_part")
        self.fabric = fabric
        self.run = run
        self.person = person
        self.tool = tool
        self.classification = classification
        self.wait = wait
        self.user_part = user_part
        self._owned = owned

    @classmethod
    def open(
        cls,
        user: str,
        *,
        tool: str,
        profile: str = "personal",
        home: "str | Path | None" = None,
        wait: float = 0.0,
        classification: str = "INTERNAL",
    ) -> Self:
        """Open the home of one user, who is taken for whoever holds it (MEM-5).

        The pack is the profile with the tool's items proven, unless another pack is in force there. Raises
        `InvalidInput`.
        """
        options: Any = {} if home is None else {"home": home}
        Terms.gather(user, (), options)
        fabric = Fabric.open(**options, pack=pack_for_tool(profile, tool), local_owner=True)
        run = RunContext(
            tenant_id=TENANT,
            agent_id=tool,
            run_id=f"run_{uuid4().hex}",
            session_id=f"process_{os.getpid()}_{uuid4().hex[:12]}",
            user_id=user,
            speaks_for={"tools": [tool]},
        )
        person = person_of(TENANT, user)
        return cls(fabric, run, tool=tool, person=person, wait=wait, classification=classification, owned=True)

    def close(self) -> None:
        """Close the fabric, if it was opened here."""
        if self._owned:
            self.fabric.close()

    def run_for(self, namespace: Sequence[str]) -> RunContext:
        """Return the run that reads and writes there: where a part names the user, that user's (ADP-3).

        A namespace that ends before that part is the tenant's own: nothing of any user is seen from there. Raises
        `InvalidInput` for a part that is no user's id.
        """
        if self.user_part is None or len(namespace) <= self.user_part:
            return self.run
        known: dict[str, Any] = {name: getattr(self.run, name) for name in self.run.model_fields_set}
        return build(RunContext, known | {"user_id": namespace[self.user_part]})

    def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Any,
        *,
        text: str | None = None,
        seconds: float | None = None,
        wait: float | None = None,
    ) -> ItemWritten:
        """Put a value, and wait up to that many seconds for its promotion; returns what became of it.

        Raises `PutRefused`.
        """
        run = self.run_for(namespace)
        done = self.fabric.items.put(
            run,
            tuple(namespace),
            key,
            value,
            text=text,
            ttl=seconds,
            origin=f"tool:{self.tool}",
            classification=self.classification,
        )
        if done.status == "refused":
            raise PutRefused(done)
        if done.status == "pending" and (patience := self.wait if wait is None else wait) > 0:
            return self._wait(run, done, patience)
        return done

    def _wait(self, run: RunContext, done: ItemWritten, seconds: float) -> ItemWritten:
        last = time.monotonic() + seconds
        while any(one.proposal_id == done.proposal_id for one in self._waiting(run, done.namespace, done.key)):
            if time.monotonic() >= last:
                return done
            time.sleep(_PAUSE_SECONDS)
        found = self.fabric.items.get(run, done.namespace, done.key)
        if found is None:
            return done
        return done.model_copy(update={"status": "kept", "memory_id": found.memory_id})

    def get(self, namespace: Sequence[str], key: str) -> Item | None:
        """Return the promoted item, or None."""
        return self.fabric.items.get(self.run_for(namespace), tuple(namespace), key)

    def search(
        self,
        namespace: Sequence[str],
        *,
        query: str | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Items:
        """Search the promoted items in a namespace and below it."""
        if limit <= 0:
            return Items()
        asked: dict[str, Any] = {"query": query or None, "where": where or None, "limit": limit, "offset": offset}
        return self.fabric.items.search(self.run_for(namespace), tuple(namespace), **asked)

    def delete(self, namespace: Sequence[str], key: str) -> ItemWritten | None:
        """Have an item forgotten by its person; without one, ask for it. None if there was nothing to delete.

        What is only asked for stays until a person decides (ADP-4).
        """
        run = self.run_for(namespace)
        if self.person is None or self.person.id != run.user_id:
            try:
                return self.fabric.items.delete(run, tuple(namespace), key, origin=f"tool:{self.tool}")
            except NotFound:
                return None
        forgotten: ItemWritten | None = None
        for _ in range(_MOST_ON_A_KEY):
            if (found := self.get(namespace, key)) is None:
                break
            try:
                self.fabric.me.forget(self.person, found.memory_id)
            except Conflict:  # Somebody else was first.
                continue
            forgotten = ItemWritten(namespace=tuple(namespace), key=key, status="kept", memory_id=found.memory_id)
        return forgotten

    def pending(self, namespace: Sequence[str] = (), key: str | None = None) -> list[ItemWaiting]:
        """List what was put there, or asked to be deleted, that waits for a person."""
        return self._waiting(self.run_for(namespace), namespace, key)

    def _waiting(self, run: RunContext, namespace: Sequence[str], key: str | None) -> list[ItemWaiting]:
        return self.fabric.items.status(run, tuple(namespace), key)
