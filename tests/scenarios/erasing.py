"""Generated histories of a person who is erased: what is captured about them, by whom, and what the erasure covers."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from muniment import Fabric, Refusal
from muniment.errors import MunimentError
from muniment.testing import FakeClock, People
from tests.stories import run_job

PACK = """
pack_meta: {id: acme.erasing, version: "1.0.0", ontology_version: "1.0.0"}
identity:
  namespaces: [customer, order, shop, supplier]
  aliases: {cust: customer, client: customer}
memory_layer:
  retention: {captures: {statement: 10d, tool_result: 10d, message: 10d}}
  extractors:
    - name: crm
      version: 1.0.0
      fields:
        - {each: "$.items[*]", entity: "$.who", predicate: "$.predicate", value: "$.said", write_class: preference}
"""
# The person, under every namespace that is the same, and as a user; and somebody else of the same kind.
PERSON = ("customer:c_1", "cust:c_1", "client:c_1")
USER = "u_1"
NAMES = {*PERSON, f"@{USER}"}
SUBJECTS = (None, *PERSON, "customer:c_2", "order:o_1", "supplier:c_1")
ENTITIES = (*PERSON, "customer:c_2", "order:o_1", "supplier:c_1")


@dataclass(frozen=True)
class Fact:
    """One fact of a capture; `names` is an entity that stands in its value."""

    entity: str | None
    names: str | None
    secret: str = field(
        default_factory=lambda: "q" + uuid4().hex[:12].translate(str.maketrans("0123456789", "ghijklmnop"))
    )


@dataclass(frozen=True)
class Happening:
    """A capture and what becomes of what it says."""

    kind: str
    subject: str | None
    user: str | None
    facts: tuple[Fact, ...]
    label: str
    late: bool
    then: str

    def covered(self) -> bool:
        """Whether the erasure covers the capture."""
        return self._concerned() or any({fact.entity, fact.names} & NAMES for fact in self.facts)

    def covered_facts(self) -> list[Fact]:
        """The facts whose own rows it covers; what a covered capture held of the others goes with the capture."""
        return [
            fact
            for fact in self.facts
            if self._concerned() or {fact.entity, fact.names} & NAMES or (fact.entity is None and self.covered())
        ]

    def _concerned(self) -> bool:
        return self.subject in NAMES or self.user == USER


facts = st.builds(Fact, st.sampled_from(ENTITIES), st.sampled_from((None, None, *ENTITIES)))
happenings = st.one_of(
    st.builds(
        Happening,
        st.just("tool_result"),
        st.sampled_from(SUBJECTS),
        st.sampled_from((None, USER, "u_2")),
        st.lists(facts, min_size=1, max_size=3).map(tuple),
        st.sampled_from(("INTERNAL", "INTERNAL", "PII")),
        st.booleans(),
        st.sampled_from(("leave", "approve", "reject", "edit", "correct")),
    ),
    st.builds(
        Happening,
        st.just("proposal"),
        st.sampled_from(SUBJECTS),
        st.sampled_from((None, USER, "u_2")),
        st.tuples(facts),
        st.sampled_from(("INTERNAL", "INTERNAL", "PII")),
        st.just(False),
        st.sampled_from(("leave", "approve", "reject", "edit", "correct")),
    ),
    st.builds(
        Happening,
        st.sampled_from(("statement", "message")),
        st.sampled_from(SUBJECTS),
        st.sampled_from((None, USER, "u_2")),
        st.tuples(st.builds(Fact, st.none(), st.none())),
        st.just("INTERNAL"),
        st.booleans(),
        st.sampled_from(("leave", "approve", "reject", "edit", "correct")),
    ),
)


@dataclass(frozen=True)
class Life:
    """What happened, whether it was archived, and how the person was named to be erased."""

    happenings: tuple[Happening, ...]
    archived: bool
    named: str
    by_user: bool


lives = st.builds(
    Life,
    st.lists(happenings, min_size=2, max_size=7).map(tuple),
    st.booleans(),
    st.sampled_from(PERSON),
    st.just(True),
)


def live(fabric: Fabric, people: People, clock: FakeClock, life: Life) -> dict[str, Happening]:
    """Let it all happen, up to the erasure; gives the captures."""
    captures = {tell(fabric, people, one, number): one for number, one in enumerate(life.happenings) if not one.late}
    fabric.consolidate(people.tenant_id)
    for number, item in enumerate(fabric.queue.list(people.reviewer, limit=200)):
        one = captures[item.candidate.capture_id]
        secret = next((fact.secret for fact in one.facts if fact.secret in item.candidate.text), one.facts[0].secret)
        # Not every verdict can be given; what matters is that something of it was written.
        with suppress(MunimentError):
            decide(fabric, people, item.proposal_id, one, secret, number)
    for number, one in enumerate(life.happenings):
        run = people.run(one.user, run_id=f"run_{number}")
        named = [fact.entity for fact in one.facts if fact.entity in PERSON and fact.entity is not None]
        if one.user == USER or named:
            fabric.recall(run, f"tell me of {one.facts[0].secret}", **({"entities": named} if named else {}))
    if life.archived:
        clock.advance(days=11)
        run_job(fabric, "compact", people.tenant_id)
    captures |= {tell(fabric, people, one, 100 + n): one for n, one in enumerate(life.happenings) if one.late}
    return captures


def tell(fabric: Fabric, people: People, one: Happening, number: int) -> str:
    run = people.run(one.user, run_id=f"run_{number}")
    common: dict[str, Any] = {"classification": one.label, "idempotency_key": f"key_{number}"}
    if one.subject is not None:
        common["subject"] = one.subject
    match one.kind:
        case "tool_result":
            items = [
                {"who": fact.entity, "predicate": f"p_{number}_{n}", "said": _value(fact)}
                for n, fact in enumerate(one.facts)
            ]
            return fabric.capture(
                run, kind="tool_result", origin="tool:crm", payload={"items": items}, **common
            ).capture_id
        case "proposal":
            (fact,) = one.facts
            typed = {"entity": fact.entity, "predicate": f"p_{number}", "value": _value(fact)}
            outcome = fabric.propose(run, write_class="preference", confidence=0.7, **typed, **common)
            assert outcome is not None
            return outcome.capture_id
        case _:
            text = f"I like the {one.facts[0].secret} lamp of the year {1900 + number}"
            return fabric.capture(run, kind=one.kind, text=text, **common).capture_id  # type: ignore[arg-type]


def _value(fact: Fact) -> Any:
    return {"text": f"the {fact.secret}", "by": [fact.names]} if fact.names else f"the {fact.secret}"


def decide(fabric: Fabric, people: People, proposal_id: str, one: Happening, secret: str, number: int) -> None:
    match one.then:
        case "reject":
            fabric.queue.reject(people.reviewer, proposal_id, reason="hearsay", note=f"heard of {secret}")
        case "edit":
            item = fabric.queue.get(people.reviewer, proposal_id)
            changed = {"text": f"edited {secret}"} if item.candidate.entity is None else {"value": f"edited {secret}"}
            edited = fabric.queue.edit(people.reviewer, proposal_id, note=f"note {secret}", **changed)
            if not isinstance(edited, Refusal):
                fabric.queue.approve(people.second_reviewer, edited.proposal_id)
        case "approve" | "correct":
            done = fabric.queue.approve(people.reviewer, proposal_id, note=f"note {secret}")
            if one.then == "correct" and done.memory_id is not None:
                memory = fabric.get(people.auditor, done.memory_id)
                said = {"text": f"rather {secret}"} if memory.entity is None else {"value": f"rather {secret}"}
                fabric.correct(people.author, memory_id=done.memory_id, **said)
        case _:
            pass


def shown(fabric: Fabric, people: People) -> Iterator[str]:
    """All that the interfaces say about the tenant."""
    memories = fabric.memories.list(people.auditor, limit=200, state="all")
    yield from (one.model_dump_json() for one in memories)
    for one in memories:
        yield fabric.trail(people.auditor, one.memory_id).model_dump_json()
        yield fabric.explain(people.auditor, memory_id=one.memory_id, run=people.run(USER)).model_dump_json()
    for event in fabric.events(people.auditor, limit=1000):
        yield event.model_dump_json()
        for proposal_id in {item["proposal_id"] for item in event.items if "proposal_id" in item}:
            yield fabric.queue.get(people.reviewer, str(proposal_id)).model_dump_json()
            with suppress(MunimentError):
                yield fabric.queue.evidence(people.reviewer, str(proposal_id)).model_dump_json()
    for user in (None, USER, "u_2"):
        yield fabric.recall(people.run(user)).model_dump_json()
    for one in fabric.recalls.list(people.auditor, limit=200):
        yield fabric.recalls.get(people.auditor, one.recall_id).model_dump_json()
        with suppress(MunimentError):
            yield fabric.replay(people.auditor, one.recall_id).model_dump_json()
