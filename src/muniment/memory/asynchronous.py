"""AsyncMemory: what one user told, kept and found again, through the verbs of a fabric or of a server."""

import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, Unpack

from muniment.client import AsyncClient
from muniment.client.connection import secret_of
from muniment.errors import Denied, InvalidInput
from muniment.fabric import AsyncFabric
from muniment.memory.corrections import approve_correction
from muniment.memory.messages import Messages, captures_of, name_as_message
from muniment.memory.opening import (
    AGENT,
    CHANNEL,
    PROFILE,
    TENANT,
    Borrowed,
    Terms,
    channel_of,
    person_of,
    run_on_fabric,
    server_run,
)
from muniment.memory.outcomes import added_of, waiting_of
from muniment.memory.results import Added, Asked, Context, Kept, NotKept, Waiting, Why
from muniment.memory.words import why_refused
from muniment.model.candidate import Refusal
from muniment.model.consent import Consent
from muniment.model.context import Principal, RunContext
from muniment.model.promoted import Retraction, Undone
from muniment.model.recall import Record
from muniment.model.subject import Decided, ErasureRequest, MyExport, MyMemory, MyRefusal
from muniment.pack import profile_pack

if TYPE_CHECKING:
    from muniment.settings import OpenOptions

log = logging.getLogger("muniment.memory")

_OWN_ACT = "is the person's own act, who signs in, or gives the one-time code that was sent to them"
_AGENTS_WORD = (
    "this key may not speak for the user's channel: what was added counts as the agent's word, and waits for a person"
)


@dataclass(frozen=True)
class AsyncFact:
    """A fact that a search found."""

    record: Record
    recall_id: str
    _memory: "AsyncMemory" = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """The memory's id, which `forget` and `correct` take."""
        return self.record.id

    @property
    def text(self) -> str:
        """The fact, as it was said."""
        return self.record.text

    async def why(self) -> Why:
        """Explain why it is remembered, and why this search found it."""
        return await self._memory.explain(self.record, self.recall_id)

    def __str__(self) -> str:
        return self.text


class AsyncMemory:
    """The memory of one user. Use `async with AsyncMemory.open(user=...) as memory`, or await it and close it."""

    def __init__(self, terms: Terms, borrowed: Borrowed | None = None) -> None:
        self._terms = terms
        self._borrowed = borrowed
        self._stack: AsyncExitStack | None = None
        self._fabric: AsyncFabric | AsyncClient | None = None
        self._own: AsyncFabric | AsyncClient | None = None
        self._run: RunContext | None = None
        self._person: Principal | None = None
        # Who is asked what became of captures; where the person's own acts are not possible, these two are None.
        self._reader: tuple[AsyncFabric | AsyncClient, Principal] | None = None
        self._channel = CHANNEL
        self.notes: tuple[str, ...] = ()
        """What `open` has to say: that another pack than the profile `personal` decides, for example."""

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
        """Open the memory of a user: in a home of their own (MUNIMENT_HOME, else ./.muniment), or on a server.

        In a home, whoever opens it is taken for its one user. The profile `personal` decides, unless another pack is in
        force or is named (`pack`, MUNIMENT_PACK): `notes` then says so. `allow` names labels, such as `PII`, to whose
        keeping the user consents at the first opening. The other `options` are those of `AsyncFabric.open`.

        On a server (`url`, else MUNIMENT_SERVER) `key` is the key of an agent, which adds and searches, and `own_key`
        the user's own, which confirms, corrects and forgets; without it these make a request to the person. `channel`
        is the channel that the agent's key may speak for, if it is not the only one; `allow` then names the labels that
        a search may show. Raises `InvalidInput`.
        """
        given: dict[str, Any] = {"url": url, "key": key, "own_key": own_key, "channel": channel}
        return cls(Terms.gather(user, allow, options, **given))

    @classmethod
    def over(
        cls,
        fabric: AsyncFabric | AsyncClient,
        user: str | None = None,
        *,
        tenant: str | None = None,
        agent: str = AGENT,
        channel: str | None = None,
        tools: Iterable[str] = (),
        allow: Iterable[str] = (),
        own: AsyncClient | None = None,
    ) -> Self:
        """Take the memory of a user on a fabric or a client that is open already, and that stays open when this closes.

        On a fabric of one's own the program says who acts: `agent` in the tenant `tenant`, which speaks for the user's
        channel `channel` and for the `tools` that are named. If the fabric was opened as the home of its owner
        (`local_owner`), the tenant is `local`, and the person's own acts are possible as with `open`. On any other
        fabric they make a request, and `tenant` is required; `allow` names the labels that a search may show. On a
        client the key says who acts, and `own` is a client with the user's own key. Raises `InvalidInput`.
        """
        if not isinstance(fabric, AsyncFabric | AsyncClient):
            raise InvalidInput("expected an AsyncFabric or an AsyncClient", field="fabric")
        is_fabric = isinstance(fabric, AsyncFabric)
        borrowed = Borrowed.checked(fabric, own, tenant, agent, tuple(tools), is_fabric=is_fabric)
        return cls(Terms.over(user, allow, channel, is_fabric=is_fabric), borrowed)

    def in_session(self, session_id: str | None = None, **fields: Any) -> Self:
        """Return the same memory in another session, for which facts of the working tier are kept apart.

        `fields` are others of its run, such as `run_id` and `qualifiers`. Raises `InvalidInput`.
        """
        given: dict[str, Any] = {name: getattr(self.run, name) for name in self.run.model_fields_set}
        given |= fields | ({"session_id": session_id} if session_id is not None else {})
        other = copy(self)
        other._run, other._stack = RunContext(**given), None
        return other

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        if self._fabric is None:
            async with AsyncExitStack() as stack:
                lent = self._borrowed
                self._fabric = lent.fabric if lent else await stack.enter_async_context(self._terms.fabric())
                try:
                    if isinstance(self._fabric, AsyncFabric):
                        await self._begin_local(self._fabric)
                    else:
                        await self._begin_remote(self._fabric, stack)
                except BaseException:
                    self._fabric = None
                    raise
                self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the embedded server stops with the last process that uses it."""
        if self._stack is not None:
            stack, self._stack, self._fabric = self._stack, None, None
            await stack.aclose()

    def secret(self, purpose: str) -> bytes:
        """Return a secret for one purpose: on a fabric of its master key, on a server of the agent's key."""
        if isinstance(self.fabric, AsyncFabric):
            return self.fabric.opened.context.vault.shared(f"{purpose}/{self.run.tenant_id}")
        return secret_of(self.fabric, purpose)

    async def _begin_local(self, fabric: AsyncFabric) -> None:
        user, lent, context = self._terms.user, self._borrowed, fabric.opened.context
        assert user is not None, "the terms were checked"
        tenant = lent.tenant if lent is not None and lent.tenant is not None else TENANT
        agent, tools = (lent.agent, lent.tools) if lent is not None else (AGENT, ())
        self._channel = self._terms.channel or CHANNEL
        person = person_of(tenant, user)
        self._reader = (fabric, person)
        if not context.local_owner or tenant != TENANT:
            if lent is None or lent.tenant is None:
                raise InvalidInput("is required: this fabric is no home of one user", field="tenant")
            self._run = run_on_fabric(tenant, agent, user, self._terms.labels, self._channel, tools)
            return
        pack = await context.current_pack(TENANT)
        self._run = run_on_fabric(tenant, agent, user, pack.labels, self._channel, tools)
        self._person, self._own = person, fabric
        if pack.ref != profile_pack(PROFILE).ref:
            self.notes = (f"the pack {pack.ref} decides here, not the profile {PROFILE}",)
            log.warning("%s", self.notes[0])
        asked_before = {
            label
            for consent in (await fabric.me.consents(self._person) if self._terms.allow else ())
            for label in consent.data_classifications_allowed
        }
        if labels := [label for label in self._terms.allow if label not in asked_before]:
            await self._consent(labels)

    async def _begin_remote(self, fabric: AsyncClient, stack: AsyncExitStack) -> None:
        agent = await fabric.whoami()
        user = self._terms.user
        own = fabric if agent.kind != "agent" else self._borrowed.own if self._borrowed is not None else None
        if own is None and self._terms.own_key is not None:
            own = await stack.enter_async_context(AsyncClient.open(self._terms.url, self._terms.own_key))
        if own is not None:
            person = await own.whoami()
            if person.kind != "end_user" or user not in (None, person.id):
                raise InvalidInput("expected the key of the user whose memory it is", field="own_key")
            self._own, self._person, user = own, person, person.id
            self._reader = (own, person)
        if agent.kind == "agent":
            # INVARIANT: what is added and searched is of one user: the one who is named, or whose own key is given.
            user = user if user is not None else await fabric.bound_user()
            if user is None:
                raise InvalidInput("is required: whose memory it is; this key acts for several users", field="user")
            self._run = server_run(agent, user, self._terms.allow)
            self._channel = channel_of(agent, self._terms.channel)
            if not agent.speaks_for.has_channel(self._channel):
                self.notes = (_AGENTS_WORD,)

    @property
    def fabric(self) -> AsyncFabric | AsyncClient:
        """The fabric, or the client of the server, with all its verbs; raises `InvalidInput` if it is not open."""
        if self._fabric is None:
            raise InvalidInput("the memory is not open")
        return self._fabric

    @property
    def run(self) -> RunContext:
        """The run in which the agent adds and searches; raises `Denied` where only the person's own key is given."""
        if self._run is None:
            raise Denied("is an agent's: give the key of an agent", field="key")
        return self._run

    @property
    def channel(self) -> str:
        """The channel by which the user's words come."""
        return self._channel

    # ---- telling and asking ----

    async def add(self, messages: Messages, *, classification: str = "INTERNAL") -> Added:
        """Add a text of the user, one chat message, or a list of them (`role`, `content`, `name`, `at`).

        Returns what was promoted, what waits and why, and what was refused and why. All messages are stored, or none.
        On a server its worker reads them later, and they are counted as `unread`. Raises `InvalidInput` and `TooLarge`,
        which name the message.
        """
        return await self.keep(captures_of(messages, channel=self._channel, classification=classification))

    async def keep(self, captures: Sequence[Mapping[str, Any]]) -> Added:
        """Store captures of this run as the verb `capture_many` takes them, and say what became of them like `add`.

        On a fabric they are read at once. A repeated capture, by its idempotency key, is stored once.
        """
        fabric = self.fabric
        if not captures:
            return Added()
        asker = self._run if self._run is not None else self._person
        assert asker is not None, "an open memory has a run or a person"
        try:
            receipts = await fabric.capture_many(asker, captures)
        except InvalidInput as error:
            error.field = name_as_message(error.field)
            raise
        if isinstance(fabric, AsyncFabric):
            await fabric.consolidate(asker.tenant_id)
        ids = [one.capture_id for one in receipts]
        return await self.outcomes(dict(zip(ids, [str(one.get("text") or "") for one in captures], strict=True)))

    async def outcomes(self, captures: Mapping[str, str]) -> Added:
        """Say what has become of captures of this memory by now; each id has the text by which a refusal names it.

        With an agent's key alone nobody is told: all of them are counted as `unread`.
        """
        ids = list(captures)
        notes = tuple(note for note in self.notes if note == _AGENTS_WORD)
        if self._reader is None:
            return Added(unread=len(ids), notes=notes, captures=tuple(ids))
        return await added_of(*self._reader, captures, notes)

    async def search(self, query: str, limit: int = 10) -> list[AsyncFact]:
        """Find what is remembered that bears on a question, the most relevant first; it is recorded as a recall.

        What is in doubt comes last: facts that contradict each other, and those of low confidence.
        """
        answer = await self.fabric.recall(self.run, query, limit=limit)
        in_conflict = tuple(record for conflict in answer.conflicts for record in conflict.records)
        found = (*answer.records, *in_conflict, *answer.low_confidence)
        return [AsyncFact(record, answer.recall_id, self) for record in found]

    async def context(self, query: str, tokens: int = 500) -> Context:
        """Return what is remembered that bears on a question as the memory section of a prompt, marked as data.

        `note` says what did not fit; a warning is logged if nothing did.
        """
        made = Context.of(await self.fabric.compile(self.run, query, token_budget=tokens))
        if not made and made.note is not None:
            log.warning("%s", made.note)
        return made

    async def explain(self, record: Record, recall_id: str) -> Why:
        """Explain why a record is remembered, and why that recall returned it."""
        return Why.of(record, await self.fabric.explain(self.run, memory_id=record.id, recall_id=recall_id))

    # ---- the person's own acts ----

    async def allow(self, *labels: str) -> Consent | None:
        """Record the user's own consent that facts of these labels, such as `PII`, may be kept.

        From then on they wait in `pending` until the user confirms them, and so do those that were refused for lack of
        this consent in the last 30 days. Returns None if a live consent covers the labels already.
        """
        own, person = self._own_place("allow")
        covered = {
            label
            for consent in await own.me.consents(person)
            if consent.state == "active" and "*" in consent.predicates_allowed
            for label in consent.data_classifications_allowed
        }
        if not labels:
            raise InvalidInput("name at least one label, such as PII", field="labels")
        return await self._consent(labels) if set(labels) - covered else None

    async def _consent(self, labels: Sequence[str]) -> Consent:
        own, person = self._own_place("allow")
        try:
            granted = await own.me.consent(
                person, data_classifications_allowed=list(labels), evidence_refs=["memory:allow"]
            )
        except InvalidInput as error:
            error.field = "labels"
            raise
        if isinstance(own, AsyncFabric):
            await own.consolidate(person.tenant_id)
        return granted

    async def pending(self) -> list[Waiting]:
        """List the facts that wait for a person, and which of them the user may confirm."""
        own, person = self._own_place("pending")
        return list(await waiting_of(own, person, await own.me.pending(person)))

    async def confirm(self, proposal_id: str, *, code: str | None = None) -> Decided | Asked:
        """Confirm a fact that waits; it is promoted if the pack lets its user confirm it (SUB-2).

        With an agent's key it takes the one-time `code` that was sent to the person; without one it is a request.
        Raises `NotFound`, `Denied` for what takes a reviewer, `AlreadyDecided`.
        """
        if self._own is not None and self._person is not None:
            return await self._own.me.confirm(self._person, proposal_id)
        if code is not None:
            return await self.fabric.me.confirm(self.run, proposal_id, code=code)
        return self._ask("confirm", proposal_id, proposal_id)

    async def correct(self, memory_id: str, text: str) -> Waiting | Kept | NotKept | Asked:
        """Say what is right instead of a fact.

        It is a proposal that replaces the fact once it is approved. In a home of one's own whoever holds it approves it
        at once, as `local_owner`, where the pack lets its user confirm facts; what is sensitive, low in trust, or
        contradicts something else waits. With an agent's key it is proposed as the agent's word, as a request. Raises
        `NotFound`, and `Conflict` for a fact that has ended.
        """
        if self._own is None or self._person is None:
            evidence = [f"memory:{memory_id}"]
            old = await self.fabric.get(self.run, memory_id)
            made = await self.fabric.propose(
                self.run, write_class="statement", text=text, classification=old.classification, evidence_refs=evidence
            )
            if isinstance(made, Refusal):
                return NotKept(message=text, why=why_refused(MyRefusal(gate=made.gate, reason=made.reason)))
            return self._ask("correct", memory_id, made.proposal_id)
        made = await self._own.me.correct(self._person, memory_id, text=text)
        if isinstance(made, Refusal):
            return NotKept(message=text, why=why_refused(MyRefusal(gate=made.gate, reason=made.reason)))
        if isinstance(self._own, AsyncFabric):
            done = await approve_correction(self._own, made.proposal_id, memory_id)
            if done.memory_id is not None:
                return Kept(id=done.memory_id, text=text)
        found = [one for one in await self.pending() if one.id == made.proposal_id]
        return found[0] if found else Waiting(id=made.proposal_id, text=text, why="a person decides", classification="")

    async def undo(self, memory_id: str) -> Undone:
        """Undo what was remembered without a person's decision; what it had replaced comes back (PRO-8).

        It is possible for as long as the pack says, a day by default. Raises `NotFound`, and `Conflict` after that.
        """
        own, person = self._own_place("undo")
        return await own.me.undo(person, memory_id)

    async def forget(self, memory_id: str, *, code: str | None = None) -> Retraction | Asked:
        """Have one fact forgotten at once: it is retracted, and refused until `fabric.me.allow_again`.

        With an agent's key it takes the one-time `code` that was sent to the person; without one it is a request.
        Raises `NotFound`, and `Conflict` the second time.
        """
        if self._own is not None and self._person is not None:
            return await self._own.me.forget(self._person, memory_id)
        if code is not None:
            return await self.fabric.me.forget(self.run, memory_id, code=code)
        return self._ask("forget", memory_id, None)

    async def forget_everything(self) -> ErasureRequest | Asked:
        """Ask that everything about the user is erased; the pack releases it, or a privacy officer (SUB-3)."""
        if self._own is not None and self._person is not None:
            return await self._own.me.forget_everything(self._person)
        return self._ask("forget_everything", None, None)

    async def history(self, *, limit: int = 50, after: str | None = None) -> list[MyMemory]:
        """List what is and was remembered, the latest first: also what ended or was forgotten, and why."""
        own, person = self._own_place("history")
        return await own.me.list(person, limit=limit, after=after)

    async def export(self) -> MyExport:
        """Return everything that is held about the user, to take along; the export is recorded."""
        own, person = self._own_place("export")
        return await own.me.export(person)

    def _own_place(self, what: str) -> tuple[AsyncFabric | AsyncClient, Principal]:
        if self._fabric is None:
            raise InvalidInput("the memory is not open")
        if self._own is None or self._person is None:
            raise Denied(f"{what} is the person's own: give the user's own key (own_key)", field="own_key")
        return self._own, self._person

    def _ask(self, act: str, target: str | None, proposal_id: str | None) -> Asked:
        address = f"{(self._terms.url or '').rstrip('/')}/console/me" if self._terms.url else None
        if address is not None and proposal_id is not None:
            address += f"?proposal={proposal_id}"
        return Asked(act=act, target=target, proposal_id=proposal_id, address=address, why=_OWN_ACT)
