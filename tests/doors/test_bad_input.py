"""Every field of every call, given wrongly in every way: a clear error that names the field, and nothing written."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment import Fabric, MunimentError, Principal, Refusal, RunContext, Submission
from muniment.errors import InvalidInput, NotFound, PackInvalid
from muniment.model.ids import holds_card_number
from muniment.sync import Consents, Contradictions, Packs, Queue, Webhooks, Work
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.doors.wrong import ASKERS, CALLS, CHOICES, INTENTS, MARK, NAMES, NUL, QUALIFIERS, SUBJECT
from tests.pipeline.stories import CONSENT, promoted, proposed

FACT: dict[str, Any] = {"entity": SUBJECT, "predicate": "eats", "value": "cake"}
# They take the tenant alone, or nobody in particular.
ASKED_BY_NOBODY = {
    "open",
    "close",
    "consolidate",
    "consent.sweep",
    "packs.run_backfill",
    "reindex",
    "scan_pii",
    "seal",
    "webhooks.deliver",
}


@dataclass(frozen=True)
class Door:
    """An open fabric with a story of two tenants."""

    fabric: Fabric
    people: People
    ids: dict[str, Any]

    def attempt(self, name: str, asker: Any, arguments: dict[str, Any]) -> Any:
        """Make the call; ids of the story are put in where they are named."""
        call: Any = self.fabric
        for part in name.split("."):
            call = getattr(call, part)
        return call(asker, **{key: self._meant(value) for key, value in arguments.items()})

    def asker(self, who: str) -> Any:
        return self.people.run() if who == "run" else getattr(self.people, who)

    def events(self) -> int:
        return len(self.fabric.events(self.people.auditor, limit=1000))

    def renew(self) -> None:
        """Another proposal to act on, where a wrong call ended the one before."""
        self.ids["proposal"] = proposed(self.fabric, self.people.run(), **FACT).proposal_id

    def _meant(self, value: Any) -> Any:
        named = value[0] if isinstance(value, list) and len(value) == 1 else value
        if not isinstance(named, str) or named[:1] != "{":
            return value
        return self.ids[named[1:-1]] if named is value else [self.ids[named[1:-1]]]


@pytest.fixture(scope="module")
def door(server: TestServer, database: str) -> Iterator[Door]:
    clock = FakeClock()
    people, others = (People(f"tenant_{uuid4().hex[:12]}") for _ in range(2))
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as fabric:
        ids = {
            "consent": fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT).consent_id,
            "their_consent": fabric.consent.grant(others.officer, subject=SUBJECT, **CONSENT).consent_id,
            "memory": promoted(fabric, people),
            "their_memory": promoted(fabric, others),
            "proposal": proposed(fabric, people.run(), **FACT).proposal_id,
            "their_proposal": proposed(fabric, others.run(), **FACT).proposal_id,
            "contradiction": contradiction(fabric, people),
            "their_contradiction": contradiction(fabric, others),
            "rejected": rejected(fabric, people),
            "recall": fabric.recall(people.run(), "bread").recall_id,
            "their_recall": fabric.recall(others.run(), "bread").recall_id,
            "webhook": fabric.webhooks.add(people.admin, url="https://8.8.8.8/").webhook_id,
            "their_webhook": fabric.webhooks.add(others.admin, url="https://8.8.8.8/").webhook_id,
            "an hour ahead": clock.now + timedelta(hours=1),
            "an hour ago": clock.now - timedelta(hours=1),
        }
        yield Door(fabric, people, ids)


def contradiction(fabric: Fabric, people: People) -> str:
    """The id of an open one, between a memory and a proposal on a key of their own."""
    promoted(fabric, people, "tea", predicate="drinks")
    item = proposed(fabric, people.run(), entity=SUBJECT, predicate="drinks", value="coffee")
    (found,) = [one for one in fabric.contradictions.list(people.auditor) if one.proposal_id == item.proposal_id]
    return found.contradiction_id


def rejected(fabric: Fabric, people: People) -> str:
    """The id of a rejected proposal."""
    item = proposed(fabric, people.run(), entity=SUBJECT, predicate="smokes", value="cigars")
    return fabric.queue.reject(people.reviewer, item.proposal_id, reason="no").proposal_id


def complaint(call: Callable[[], Any], *names: str) -> str | None:
    """What is wrong with how the call took its wrong input; None if it answered as it should."""
    try:
        got = call()
    except PackInvalid as error:
        return _leak(error) if names == ("pack",) else f"PackInvalid for {names}"
    except MunimentError as error:
        if error.code in ("error", "storage_unavailable"):
            return f"answered {error.code}"
        if error.field is None or error.field.split(".")[0] not in names:
            return f"named {error.field!r}: {error}"
        return _leak(error)
    except Exception as error:
        return f"leaked {type(error).__name__}: {str(error)[:100]}"
    return f"accepted it: {str(got)[:100]}"


def _leak(error: MunimentError) -> str | None:
    shown = f"{error} {error.as_dict()}"
    inside = ("Traceback", "pydantic", "psycopg", "https://", "SELECT", "INSERT", "site-packages", "Input should")
    told = [word for word in (*inside, MARK, "\x00", "\x1b") if word in shown]
    return f"shows {told}: {shown[:200]}" if told or len(shown) > 2000 else None


def shown(value: Any) -> str:
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) < 60 else f"{text[:50]}..."


def told(found: dict[str, str | None]) -> str:
    return "\n".join(f"{value}: {said}" for value, said in found.items() if said is not None)


# --- the table


def test_every_public_call_is_in_the_table() -> None:
    groups = {"queue": Queue, "consent": Consents, "contradictions": Contradictions, "packs": Packs}
    groups |= {"webhooks": Webhooks, "work": Work}
    found = {name for name, _ in inspect.getmembers(Fabric, callable) if name[0] != "_"}
    found |= {
        f"{group}.{name}"
        for group, kind in groups.items()
        for name, _ in inspect.getmembers(kind, callable)
        if name[0] != "_"
    }
    assert found == set(CALLS) | ASKED_BY_NOBODY


@pytest.mark.rule("ERR-1", "CAP-2", "ISO-4")
@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, call in CALLS.items() for argument in call.wrong]
)
def test_a_wrong_argument_gets_an_error_that_names_it_and_nothing_is_written(
    door: Door, name: str, argument: str
) -> None:
    door.renew()
    call, before = CALLS[name], door.events()
    known = (argument, "captures") if argument == "items" else (argument,)
    found: dict[str, str | None] = {}
    for value in call.wrong[argument]:
        arguments = call.good | {argument: value}
        said = complaint(lambda given=arguments: door.attempt(name, door.asker(call.who), given), *known)
        if said is not None:
            found[shown(value)] = said
            door.renew()
    assert not found, told(found)
    assert door.events() == before


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("name", CALLS)
def test_whoever_asks_must_be_a_principal_or_a_run(door: Door, name: str) -> None:
    call, before = CALLS[name], door.events()
    found = {
        shown(asker): said
        for asker in ASKERS
        if (said := complaint(lambda a=asker: door.attempt(name, a, call.good), "asker", call.first)) is not None
    }
    assert not found, told(found)
    assert door.events() == before


@pytest.mark.rule("ERR-1", "CAP-2")
@pytest.mark.parametrize(("name", "missing"), [(name, one) for name, call in CALLS.items() for one in call.required])
def test_a_missing_field_is_named(door: Door, name: str, missing: str) -> None:
    arguments = {key: value for key, value in CALLS[name].good.items() if key != missing}
    with pytest.raises(InvalidInput, match="is required") as caught:
        door.attempt(name, door.asker(CALLS[name].who), arguments)
    assert caught.value.field == missing


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("name", ["capture", "propose", "correct", "consent.grant", "queue.edit"])
@pytest.mark.parametrize("unknown", ["colour", "tenant_id", "source", "fact", "reason", "tier", "assignee", "priority"])
def test_an_unknown_field_is_named(door: Door, name: str, unknown: str) -> None:
    door.renew()
    before = door.events()
    with pytest.raises(InvalidInput, match="is not a known field") as caught:
        door.attempt(name, door.asker(CALLS[name].who), CALLS[name].good | {unknown: "x"})
    assert caught.value.field == unknown
    assert door.events() == before


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("tenant", [*NAMES, "x" * 129, None])
def test_work_on_a_whole_tenant_takes_its_name(door: Door, tenant: Any) -> None:
    assert complaint(lambda: door.fabric.consolidate(tenant), "tenant_id") is None
    assert complaint(lambda: door.fabric.consent.sweep(tenant), "tenant_id") is None
    assert complaint(lambda: door.fabric.reindex(tenant), "tenant_id") is None
    assert complaint(lambda: door.fabric.seal(tenant), "tenant_id") is None
    assert complaint(lambda: door.fabric.scan_pii(tenant), "tenant_id") is None
    assert complaint(lambda: door.fabric.packs.run_backfill(tenant), "tenant_id") is None
    assert complaint(lambda: door.fabric.webhooks.deliver(tenant), "tenant_id") is None


@pytest.mark.rule("ERR-1", "COR-1")
@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ("memory_id",)),
        ({"entity": SUBJECT, "value": 1}, ("memory_id",)),
        ({"predicate": "eats", "value": 1}, ("memory_id",)),
        ({"memory_id": "{memory}", "entity": SUBJECT, "predicate": "eats", "value": 1}, ("memory_id",)),
        ({"memory_id": "{memory}"}, ("value",)),
        ({"entity": SUBJECT, "predicate": "eats", "classification": "PUBLIC"}, ("value",)),
        ({"entity": SUBJECT, "predicate": "eats", "value": 1}, ("classification",)),
        ({"entity": "nobody", "predicate": "eats", "value": 1}, ("entity",)),
        ({"entity": SUBJECT, "predicate": "Eats", "value": 1}, ("predicate",)),
    ],
)
def test_a_correction_names_one_target_and_says_what_is_right(
    door: Door, given: dict[str, Any], names: tuple[str, ...]
) -> None:
    before = door.events()
    assert complaint(lambda: door.attempt("correct", door.people.author, given), *names) is None
    assert door.events() == before


@pytest.mark.rule("ERR-1", "CTR-5")
@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"way": "coexist"}, "existing"),
        ({"way": "coexist", "existing": {"region": "de"}}, "incoming"),
        ({"way": "coexist", "existing": {"region": "de"}, "incoming": {"region": "de"}}, "incoming"),
        ({"way": "coexist", "existing": {"region": "de"}, "incoming": {"shop": "fr"}}, "incoming"),
        ({"way": "coexist", "existing": {"a": "1"}, "incoming": {"a": "2"}, "keep": "existing"}, "keep"),
        ({"way": "block", "keep": "existing"}, "keep"),
        ({"way": "block", "existing": {"region": "de"}}, "existing"),
        ({"way": "retract", "incoming": {"region": "de"}}, "incoming"),
    ],
)
def test_each_way_to_settle_a_contradiction_asks_for_its_own(door: Door, given: dict[str, Any], names: str) -> None:
    before = door.events()
    arguments = {"contradiction_id": "{contradiction}", **given}
    assert complaint(lambda: door.attempt("contradictions.resolve", door.people.reviewer, arguments), names) is None
    assert door.events() == before


@pytest.mark.rule("ERR-1", "ISO-2")
@pytest.mark.parametrize(
    ("field_name", "wrong"),
    [
        ("tenant_id", [*NAMES, None, "x" * 129]),
        ("id", [*NAMES, None]),
        ("kind", [*CHOICES, None]),
        ("roles", ["reviewer", 5, ["god"], [5], None, {"reviewer": True}]),
        ("colour", ["red"]),
    ],
)
def test_a_principal_cannot_be_made_wrongly(field_name: str, wrong: list[Any]) -> None:
    good: dict[str, Any] = {"tenant_id": "t", "id": "olga", "kind": "operator", "roles": {"reviewer"}}
    found = {
        shown(value): complaint(lambda v=value: Principal(**good | {field_name: v}), field_name) for value in wrong
    }
    assert not any(found.values()), told(found)


@pytest.mark.rule("ERR-1", "ISO-2")
@pytest.mark.parametrize(
    ("field_name", "wrong"),
    [
        ("tenant_id", [*NAMES, None, "x" * 129]),
        ("run_id", [*NAMES, None]),
        ("agent_id", [*NAMES, None]),
        ("session_id", NAMES),
        ("user_id", NAMES),
        ("role", [*NAMES, None]),
        ("intent_id", INTENTS),
        ("workflow_id", NAMES),
        ("decision_key", NAMES),
        ("classification_allowed", ["PII", 5, [5], [""], [NUL], None, [f"L{n}" for n in range(65)]]),
        ("qualifiers", [*QUALIFIERS, None]),
        ("pack", NAMES),
        ("trace_id", NAMES),
        ("colour", ["red"]),
    ],
)
def test_a_run_cannot_be_made_wrongly(field_name: str, wrong: list[Any]) -> None:
    good: dict[str, Any] = {"tenant_id": "t", "run_id": "r", "agent_id": "a"}
    found = {
        shown(value): complaint(lambda v=value: RunContext(**good | {field_name: v}), field_name) for value in wrong
    }
    assert not any(found.values()), told(found)


@pytest.mark.rule("ERR-1", "REC-1")
@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"role": "stranger"}, "role"),
        ({"classification_allowed": {"PII", "GEHEIM"}}, "classification_allowed"),
        ({"pack": "acme@9.9.9"}, "pack"),
    ],
)
def test_a_run_that_names_what_its_pack_does_not_have_recalls_nothing(
    door: Door, fields: dict[str, Any], names: str
) -> None:
    run = door.people.run(**fields)
    assert complaint(lambda: door.fabric.recall(run), names) is None
    assert complaint(lambda: door.fabric.compile(run, "bread"), names) is None
    assert complaint(lambda: door.fabric.explain(run, memory_id=door.ids["memory"]), names) is None
    assert complaint(lambda: door.fabric.get(run, door.ids["memory"]), names) is None


@pytest.mark.rule("ERR-1", "CAN-1", "CAN-10")
@pytest.mark.parametrize(
    ("fact", "names"),
    [
        ({"write_class": "preference", "predicate": "p", "value": 1}, ("entity",)),
        ({"write_class": "preference", "entity": SUBJECT, "value": 1}, ("predicate",)),
        ({"write_class": "decision_outcome", "entity": SUBJECT, "predicate": "p"}, ("value",)),
        ({"write_class": "statement"}, ("text",)),
        ({"write_class": "statement", "text": "x", "value": 1}, ("value",)),
        ({"write_class": "statement", "text": "x", "entity": SUBJECT}, ("entity",)),
        ({"write_class": "evidence_link", "text": "x"}, ("text",)),
        ({"write_class": "evidence_link", "value": 1}, ("value",)),
        ({"write_class": "correction"}, ("text", "entity")),
        ({"write_class": "correction", "text": "x", "predicate": "p"}, ("entity", "predicate")),
        ({"write_class": "correction", "entity": SUBJECT, "value": 1}, ("predicate",)),
    ],
)
def test_what_a_class_lacks_or_may_not_have_is_named(door: Door, fact: dict[str, Any], names: tuple[str, ...]) -> None:
    before = door.events()
    said = complaint(lambda: door.fabric.propose(door.people.author, classification="INTERNAL", **fact), *names)
    assert said is None
    assert door.events() == before


@pytest.mark.rule("ERR-1")
def test_a_first_call_that_fails_does_not_even_open_the_tenant(door: Door, server: TestServer, database: str) -> None:
    new = People(f"tenant_{uuid4().hex[:12]}")
    fabric = door.fabric
    wrong: list[Callable[[], Any]] = [
        lambda: fabric.capture(new.run(), kind="message", text="x", classification="GEHEIM"),
        lambda: fabric.propose(new.run(), write_class="statement", text="x", classification="GEHEIM"),
        lambda: fabric.consent.grant(
            new.officer, subject=SUBJECT, **CONSENT | {"data_classifications_allowed": ["GEHEIM"]}
        ),
        lambda: fabric.consent.grant(new.officer, subject=SUBJECT, **CONSENT, valid_until=door.ids["an hour ago"]),
        lambda: fabric.packs.register(new.admin, "nonsense"),
    ]
    for call in wrong:
        with pytest.raises(MunimentError):
            call()
    with server.connect(database) as owner:
        found = owner.execute("SELECT count(*) FROM tenants WHERE tenant_id = %s", [new.tenant_id]).fetchone()
    assert found == (0,)


@pytest.mark.rule("ERR-1", "ISO-4")
def test_a_tenant_that_does_not_exist_answers_like_an_empty_one(door: Door) -> None:
    nobody = People(f"tenant_{uuid4().hex[:12]}")
    fabric = door.fabric
    assert (fabric.queue.list(nobody.reviewer), fabric.events(nobody.auditor)) == ([], [])
    assert fabric.recall(nobody.run()).records == fabric.recall(nobody.run(), "bread").records == ()
    assert fabric.compile(nobody.run(), "bread").text == ""
    for call in (
        lambda: fabric.get(nobody.auditor, door.ids["memory"]),
        lambda: fabric.explain(nobody.auditor, memory_id=door.ids["memory"]),
        lambda: fabric.replay(nobody.auditor, door.ids["recall"]),
        lambda: fabric.queue.approve(nobody.reviewer, door.ids["proposal"]),
        lambda: fabric.consent.revoke(nobody.officer, door.ids["consent"]),
        lambda: fabric.retract(nobody.reviewer, door.ids["memory"], reason="wrong"),
    ):
        with pytest.raises(NotFound):
            call()


# --- any text at all

ANY_TEXT = st.text(
    st.one_of(st.characters(), st.sampled_from("\x00\x07\x1b\x7f\x85\u2028\ufffe\ud800\udfff 'a\"\\%{}\t\n")),
    max_size=40,
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=8,
)
SHARED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.rule("ERR-1", "CAN-1")
@SHARED
@given(text=ANY_TEXT)
def test_any_text_comes_back_as_it_was_or_is_refused_by_name(door: Door, text: str) -> None:
    try:
        got = door.fabric.propose(
            door.people.run(), write_class="statement", text=text, classification="INTERNAL", evidence_refs=["e:1"]
        )
    except InvalidInput as error:
        assert error.field == "text"
        assert text == "" or not text.isprintable()
    else:
        if isinstance(got, Refusal):  # It reads like an address or a number of somebody.
            assert (got.gate, got.reason) == ("consent", "anonymous_subject")
            return
        assert door.fabric.queue.get(door.people.reviewer, got.proposal_id).candidate.text == text


@pytest.mark.rule("ERR-1", "CAN-1")
@SHARED
@given(value=ANY_JSON)
def test_any_value_comes_back_as_it_was_or_is_refused_by_name(door: Door, value: Any) -> None:
    fact: dict[str, Any] = {"entity": f"order:{uuid4().hex}", "predicate": "holds", "value": value}
    try:
        got = door.fabric.propose(door.people.run(), write_class="preference", classification="INTERNAL", **fact)
    except InvalidInput as error:
        assert (error.field or "").split(".")[0] == "value"
    else:
        assert isinstance(got, Submission)
        assert door.fabric.queue.get(door.people.reviewer, got.proposal_id).candidate.value == value


@pytest.mark.rule("ERR-1", "ISO-4")
@SHARED
@given(name=ANY_TEXT)
def test_any_name_is_taken_byte_for_byte_or_refused_by_name(door: Door, name: str) -> None:
    try:
        run = door.people.run(name)
    except InvalidInput as error:
        assert error.field == "user_id"
        return
    got = door.fabric.propose(run, write_class="statement", text="x", classification="INTERNAL")
    assert isinstance(got, Submission)
    assert door.fabric.queue.get(door.people.reviewer, got.proposal_id).candidate.scope.user_id == name
    assert door.fabric.queue.get(door.people.reviewer, got.proposal_id).candidate.scope.user_id == name


@pytest.mark.rule("ERA-1", "CAP-2")
def test_a_card_number_is_no_entity_id_and_a_uuid_is_one() -> None:
    for card in ("4111111111111111", "4111-1111-1111-1111", "cus_4111.1111.1111.1111", "378282246310005"):
        assert holds_card_number(card), card
    assert not holds_card_number("4111111111111112")
    for digit in range(10):
        # Within a word of hex digits even a valid number is chance.
        assert not holds_card_number(f"a4111111111111111{digit}")
        assert not holds_card_number("4111111111111111f")
    assert sum(holds_card_number(uuid4().hex) for _ in range(5000)) <= 2
