"""Who acts about themselves: the signed-in end user, or the user of an agent's run, who proves it by a code (SUB-5)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muniment.access import codes
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import Denied
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.subject import LOCAL_OWNER, Act
from muniment.pack import Pack
from muniment.subject.rules import names_of
from muniment.subject.store import PersonReader


@dataclass(frozen=True)
class Person:
    """A person who acts about themselves, under the pack in force; with a code if somebody else carries the act."""

    principal: Principal
    pack: Pack
    code: str | None = None
    # The fabric was opened by who holds its home, and is taken for its one user (MEM-5).
    is_local_owner: bool = False

    @property
    def user_id(self) -> str:
        """The user that they are."""
        return self.principal.id

    @property
    def names(self) -> tuple[str, ...]:
        """The names that rows about them may have."""
        return names_of(self.user_id, self.pack)

    @property
    def how(self) -> str:
        """How it is known that the act is theirs, as evidence."""
        if self.code is not None:
            return "me:one_time_code"
        return f"me:{LOCAL_OWNER}" if self.is_local_owner else "me:signed_in"

    async def hold_code(self, context: FabricContext, tx: Transaction, act: Act, target: str) -> str | None:
        """Lock the code, if the act came with one, and return its id; raises `Denied`."""
        if self.code is None:
            return None
        return await codes.hold(tx, context.vault, self.code, self.user_id, act, target)


async def person_of(context: FabricContext, asker: Asker, code: str | None) -> Person:
    """Return who acts. An agent's run acts for its own user, and only with a code; raises `Denied`."""
    pack = await context.pack_for(asker)
    if not isinstance(asker, RunContext) and asker.kind == "end_user":
        return Person(asker, pack, is_local_owner=context.local_owner)
    user_id = asker.user_id if isinstance(asker, RunContext) else None
    agent = asker.principal if isinstance(asker, RunContext) else asker
    async with context.reported(agent, "me_by_code"):
        if user_id is None:
            raise Denied("a run without a user has nobody whose act it could be", field="user_id")
        if code is None:
            raise Denied("is the person's own act: they sign in, or give the one-time code sent to them", field="code")
    own = Principal(tenant_id=asker.tenant_id, id=user_id, kind="end_user", roles={"subject"})
    return Person(own, pack, code)


@asynccontextmanager
async def reading(context: FabricContext, person: Person) -> AsyncGenerator[PersonReader]:
    """Open a transaction that sees rows of that person alone."""
    async with context.as_person(person.principal.tenant_id, person.names) as tx:
        yield PersonReader(tx, context.vault, person.pack, person.user_id, person.names)
