"""AsyncMemory: what one user told, kept and found again, through the verbs of a fabric or of a server."""

import logging
from collections.abc import Generator, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, Unpack

from muniment.client import AsyncClient
from muniment.errors import Denied, InvalidInput, NotFound
from muniment.fabric import AsyncFabric
from muniment.memory.messages import Messages, captures_of, name_as_message
from muniment.memory.opening import (
    CHANNEL,
    PROFILE,
    TENANT,
    Terms,
    channel_of,
    local_owner,
    local_person,
    local_run,
    server_run,
)
from muniment.memory.results import Added, Asked, Context, Kept, Known, NotKept, Waiting, Why
from muniment.memory.words import why_refused, why_waiting
from muniment.model.candidate import Refusal
from muniment.model.consent import Consent
from muniment.model.context import Principal, RunContext
from muniment.model.promoted import Retraction, Undone
from muniment.model.proposal import Proposal
from muniment.model.recall import Record
from muniment.model.subject import Decided, ErasureRequest, MyExport, MyMemory, MyOutcome, MyProposal, MyRefusal
from muniment.pack import profile_pack

if TYPE_CHECKING:
    from muniment.model.capture import Receipt
    from muniment.settings import OpenOptions

log = logging.getLogger("muniment.memory")

# Captures whose outcome is asked for at once.
_AT_ONCE = 1000
_OPEN = ("pending", "held")
_KEPT = ("promoted", "duplicate")
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

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._stack: AsyncExitStack | None = None
        self._fabric: AsyncFabric | AsyncClient | None = None
        self._own: AsyncFabric | AsyncClient | None = None
        self._run: RunContext | None = None
        self._person: Principal | None = None
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

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        if self._stack is None:
            async with AsyncExitStack() as stack:
                self._fabric = await stack.enter_async_context(self._terms.fabric())
                if isinstance(self._fabric, AsyncFabric):
                    await self._begin_local(self._fabric)
                else:
                    await self._begin_remote(self._fabric, stack)
                self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the embedded server stops with the last process that uses it."""
        if self._stack is not None:
            stack, self._stack, self._fabric = self._stack, None, None
            await stack.aclose()

    async def _begin_local(self, fabric: AsyncFabric) -> None:
        user = self._terms.user
        assert user is not None, "the terms were checked"
        pack = await fabric.opened.context.current_pack(TENANT)
        self._run, self._person, self._own = local_run(user, pack.labels), local_person(user), fabric
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
        own = fabric if agent.kind != "agent" else None
        if own is None and self._terms.own_key is not None:
            own = await stack.enter_async_context(AsyncClient.open(self._terms.url, self._terms.own_key))
        if own is not None:
            person = await own.whoami()
            if person.kind != "end_user" or user not in (None, person.id):
                raise InvalidInput("expected the key of the user whose memory it is", field="own_key")
            self._own, self._person, user = own, person, person.id
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

    # ---- telling and asking ----

    async def add(self, messages: Messages, *, classification: str = "INTERNAL") -> Added:
        """Add a text of the user, one chat message, or a list of them (`role`, `content`, `name`, `at`).

        Returns what was promoted, what waits and why, and what was refused and why. All messages are stored, or none.
        On a server its worker reads them later, and they are counted as `unread`. Raises `InvalidInput` and `TooLarge`,
        which name the message.
        """
        fabric = self.fabric
        items = captures_of(messages, channel=self._channel, classification=classification)
        if not items:
            return Added()
        asker = self._run if self._run is not None else self._person
        assert asker is not None, "an open memory has a run or a person"
        try:
            receipts = await fabric.capture_many(asker, items)
        except InvalidInput as error:
            error.field = name_as_message(error.field)
            raise
        if isinstance(fabric, AsyncFabric):
            await fabric.consolidate(TENANT)
        return await self._added(receipts, [item["text"] for item in items])

    async def _added(self, receipts: "Sequence[Receipt]", texts: Sequence[str]) -> Added:
        ids = [one.capture_id for one in receipts]
        notes = tuple(note for note in self.notes if note == _AGENTS_WORD)
        if self._own is None or self._person is None:
            return Added(unread=len(ids), notes=notes, captures=tuple(ids))
        said = dict(zip(ids, texts, strict=True))
        outcomes: list[MyOutcome] = []
        for first in range(0, len(ids), _AT_ONCE):
            outcomes += await self._own.me.outcomes(self._person, ids[first : first + _AT_ONCE])
        facts = [fact for one in outcomes for fact in one.facts]
        refused = [(said[one.capture_id], refusal) for one in outcomes for refusal in one.refusals]
        return Added(
            promoted=tuple(
                Kept(id=one.memory_id, text=one.text, known=one.status == "duplicate")
                for one in facts
                if one.status in _KEPT and one.memory_id is not None
            ),
            waiting=await self._waiting([one for one in facts if one.status in _OPEN]),
            refused=tuple(
                NotKept(message=text, why=why)
                for text, why in dict.fromkeys((text, why_refused(refusal)) for text, refusal in refused)
            ),
            unread=sum(not one.read for one in outcomes),
            notes=notes,
            captures=tuple(ids),
        )

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
            await own.consolidate(TENANT)
        return granted

    async def pending(self) -> list[Waiting]:
        """List the facts that wait for a person, and which of them the user may confirm."""
        own, person = self._own_place("pending")
        return list(await self._waiting(await own.me.pending(person)))

    async def _waiting(self, facts: Sequence[MyProposal]) -> tuple[Waiting, ...]:
        """Say why each fact waits, with the memories that it contradicts or is about."""
        own, person = self._own_place("pending")
        texts: dict[str, str] = {}
        for memory_id in dict.fromkeys(name for fact in facts for name in (*fact.contradicts, *fact.targets)):
            with suppress(NotFound):  # It is not of this user alone.
                texts[memory_id] = (await own.me.get(person, memory_id)).text
        waiting: list[Waiting] = []
        for fact in facts:
            names = dict.fromkeys((*fact.contradicts, *fact.targets))
            known = tuple(Known(id=name, text=texts[name]) for name in names if name in texts)
            why, may_confirm = why_waiting(fact, known), fact.may_confirm
            one = Waiting(
                id=fact.proposal_id,
                text=fact.text,
                why=why,
                may_confirm=may_confirm,
                classification=fact.classification,
                known=known,
            )
            waiting.append(one)
        return tuple(waiting)

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
            done = await self._approve_correction(self._own, made.proposal_id, memory_id)
            if done.memory_id is not None:
                return Kept(id=done.memory_id, text=text)
        found = [one for one in await self.pending() if one.id == made.proposal_id]
        return found[0] if found else Waiting(id=made.proposal_id, text=text, why="a person decides", classification="")

    async def _approve_correction(self, fabric: AsyncFabric, proposal_id: str, replaces: str) -> Proposal:
        """Approve a correction as `local_owner`, if nothing else holds it and the pack lets its user confirm facts.

        INVARIANT: the owner is the one who said it, so never the second person of REV-4.
        """
        owner = local_owner()
        waits = await fabric.queue.get(owner, proposal_id)
        pack = await fabric.opened.context.current_pack(TENANT)
        others = set(waits.contradiction_check.contradicted) - {replaces}
        reasons = set(waits.human_reasons) - {"user_correction", "contradiction", "low_confidence"}
        strict = waits.sensitive or waits.tier_target == "durable" or waits.trust < pack.memory_layer.trust.floor
        if reasons or others or strict or not pack.memory_layer.subject.confirms:
            return waits
        return await fabric.queue.approve(owner, proposal_id, note="the user's own correction")

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
