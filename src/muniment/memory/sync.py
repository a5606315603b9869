"""Memory: AsyncMemory with methods that block."""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from muniment.blocking import BlockingLifecycle
from muniment.database import embedded
from muniment.home_folder import home_folder
from muniment.memory.messages import Messages
from muniment.memory.opening import Terms
from muniment.memory.results import Added, Asked, Context, Kept, NotKept, Waiting, Why
from muniment.model.consent import Consent
from muniment.model.context import RunContext
from muniment.model.promoted import Retraction, Undone
from muniment.model.recall import Record
from muniment.model.subject import Decided, ErasureRequest, MyExport, MyMemory
from muniment.sync import Fabric

if TYPE_CHECKING:
    from typing import Unpack

    from muniment.client import Client
    from muniment.fabric import AsyncFabric
    from muniment.memory.asynchronous import AsyncFact, AsyncMemory
    from muniment.settings import OpenOptions


@dataclass(frozen=True)
class Fact:
    """A fact that a search found."""

    record: Record
    recall_id: str
    _memory: "Memory" = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """The memory's id, which `forget` and `correct` take."""
        return self.record.id

    @property
    def text(self) -> str:
        """The fact, as it was said."""
        return self.record.text

    def why(self) -> Why:
        """Explain why it is remembered, and why this search found it."""
        return self._memory.explain(self.record, self.recall_id)

    def __str__(self) -> str:
        return self.text


class Memory(BlockingLifecycle):
    """The memory of one user. Use `with Memory.open(user=...) as memory`, or open it and close it.

    See `AsyncMemory`: the methods are the same.
    """

    @classmethod
    def open(
        cls,
        user: str | None = None,
        url: str | None = None,
        key: str | None = None,
        *,
        own_key: str | None = None,
        allow: Iterable[str] = (),
        channel: str | None = None,
        **options: "Unpack[OpenOptions]",
    ) -> Self:
        """Open the memory of a user; the arguments are those of `AsyncMemory.open`."""
        given: dict[str, Any] = {"url": url, "key": key, "own_key": own_key, "channel": channel}
        terms = Terms.gather(user, allow, options, **given)
        if terms.is_embedded:
            # In the caller's thread, which may be the main one: signals are handled there, and not where the loop runs.
            embedded.release_before_ending()
        with embedded.starting(home_folder(options.get("home"))) if terms.is_embedded else nullcontext():
            # Takes about as long as making a new database, which goes on meanwhile.
            from muniment.memory.asynchronous import AsyncMemory

            return cls._started(cast("AsyncFabric", AsyncMemory(terms)))

    @property
    def _memory(self) -> "AsyncMemory":
        return cast("AsyncMemory", self._fabric)

    @cached_property
    def fabric(self) -> "Fabric | Client":
        """The fabric, or the client of the server, with all its verbs. It closes with the memory."""
        from muniment.client import AsyncClient, Client

        whole = self._memory.fabric
        kind = Client if isinstance(whole, AsyncClient) else Fabric
        return kind(self._portal, nullcontext(self._portal), cast("AsyncFabric", whole))

    @property
    def notes(self) -> tuple[str, ...]:
        """What `open` has to say: that another pack than the profile `personal` decides, for example."""
        return self._memory.notes

    @property
    def run(self) -> RunContext:
        """The run in which the agent adds and searches."""
        return self._memory.run

    def add(self, messages: Messages, *, classification: str = "INTERNAL") -> Added:
        """Add a text of the user, one chat message, or a list of them (`role`, `content`, `name`, `at`).

        Returns what was promoted, what waits and why, and what was refused and why.
        """
        return self._wait(self._memory.add, messages, classification=classification)

    def search(self, query: str, limit: int = 10) -> list[Fact]:
        """Find what is remembered that bears on a question, the most relevant first; it is recorded as a recall."""
        found: list[AsyncFact] = self._wait(self._memory.search, query, limit)
        return [Fact(one.record, one.recall_id, self) for one in found]

    def context(self, query: str, tokens: int = 500) -> Context:
        """Return what is remembered that bears on a question as the memory section of a prompt, marked as data."""
        return self._wait(self._memory.context, query, tokens)

    def explain(self, record: Record, recall_id: str) -> Why:
        """Explain why a record is remembered, and why that recall returned it."""
        return self._wait(self._memory.explain, record, recall_id)

    def allow(self, *labels: str) -> Consent | None:
        """Record the user's own consent that facts of these labels, such as `PII`, may be kept."""
        return self._wait(self._memory.allow, *labels)

    def pending(self) -> list[Waiting]:
        """List the facts that wait for a person, and which of them the user may confirm."""
        return self._wait(self._memory.pending)

    def confirm(self, proposal_id: str, *, code: str | None = None) -> Decided | Asked:
        """Confirm a fact that waits; it is promoted if the pack lets its user confirm it (SUB-2)."""
        return self._wait(self._memory.confirm, proposal_id, code=code)

    def correct(self, memory_id: str, text: str) -> Waiting | Kept | NotKept | Asked:
        """Say what is right instead of a fact."""
        return self._wait(self._memory.correct, memory_id, text)

    def undo(self, memory_id: str) -> Undone:
        """Undo what was remembered without a person's decision; what it had replaced comes back."""
        return self._wait(self._memory.undo, memory_id)

    def forget(self, memory_id: str, *, code: str | None = None) -> Retraction | Asked:
        """Have one fact forgotten at once: it is retracted, and refused until `fabric.me.allow_again`."""
        return self._wait(self._memory.forget, memory_id, code=code)

    def forget_everything(self) -> ErasureRequest | Asked:
        """Ask that everything about the user is erased; the pack releases it, or a privacy officer (SUB-3)."""
        return self._wait(self._memory.forget_everything)

    def history(self, *, limit: int = 50, after: str | None = None) -> list[MyMemory]:
        """List what is and was remembered, the latest first: also what ended or was forgotten, and why."""
        return self._wait(self._memory.history, limit=limit, after=after)

    def export(self) -> MyExport:
        """Return everything that is held about the user, to take along; the export is recorded."""
        return self._wait(self._memory.export)
