"""The built-in profiles: what each promotes at once, and that nothing else passes without a person (PAC-8)."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from muniment import Fabric
from muniment.candidates.extractors.messages import MESSAGES
from muniment.errors import InvalidInput, SecondPersonRequired
from muniment.model.speakers import SpeaksFor
from muniment.pack import PROFILES, Pack, builtin_pack, profile_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.packs.profile_packs import CRM_IS_PROVEN, made_of
from tests.stories import proposed, run_job

Opener = Callable[..., AbstractContextManager[Fabric]]


@pytest.fixture
def opened(server: TestServer, database: str, clock: FakeClock) -> Opener:
    @contextmanager
    def opened(pack: Pack | str) -> Generator[Fabric]:
        with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
            yield fabric

    return opened


def say(fabric: Fabric, people: People, text: str | None = None, *, run: Any = None, **fields: Any) -> list[str]:
    """What a user of the app says; returns the ids of what was promoted."""
    payload = {"role": "user", **({"say": text} if text else {}), **fields.pop("payload", {})}
    asker = run or people.run()
    about = {"subject": f"user:{asker.user_id}", "classification": "INTERNAL"}
    fabric.capture(asker, **{"kind": "message", "payload": payload, **about, **fields})
    return list(fabric.consolidate(people.tenant_id).promoted)


def look_up(fabric: Fabric, people: People, *, run: Any = None, **answer: Any) -> list[str]:
    """What the tool crm.lookup answers in a session; returns the ids of what was promoted."""
    asker = run or people.run(session_id="s1")
    about = {"subject": f"user:{asker.user_id}", "classification": "INTERNAL", "origin": "tool:crm.lookup"}
    fabric.capture(asker, **{"kind": "tool_result", "payload": answer, **about})
    return list(fabric.consolidate(people.tenant_id).promoted)


def waiting(fabric: Fabric, people: People) -> dict[str, set[str]]:
    """Why each text in the queue waits."""
    return {one.candidate.text: set(one.human_reasons) for one in fabric.queue.list(people.reviewer)}


# ---- names and numbers ----


@pytest.mark.rule("PAC-8", "PAC-2")
def test_strict_is_the_built_in_pack_and_promotes_nothing_without_a_person() -> None:
    strict = profile_pack("strict")
    assert strict == builtin_pack()
    layer = strict.memory_layer
    assert {one.approval for one in layer.classes.values()} == {"human"}
    assert (layer.proven_sources, layer.promotion_thresholds.working, layer.contradiction.own_updates) == (
        (),
        None,
        False,
    )


@pytest.mark.rule("PAC-8", "CAN-6")
@pytest.mark.parametrize("name", PROFILES[1:])
def test_the_numbers_of_a_profile_fit_together(name: str) -> None:
    layer = profile_pack(name).memory_layer
    thresholds = layer.promotion_thresholds
    said = {"assisted": 0.90, "personal": 0.95}[name]
    for source in layer.proven_sources:
        for write_class in source.classes:
            automatic = layer.classes[write_class].auto_promotion
            assert automatic is not None and thresholds.uncalibrated_cap < automatic.threshold <= said
    assert thresholds.working is not None and thresholds.working <= thresholds.uncalibrated_cap
    assert layer.classes["correction"].approval == "human"


@pytest.mark.rule("PAC-8", "CAN-6")
def test_user_is_proven_for_preferences_in_assisted_and_for_statements_too_in_personal() -> None:
    (assisted,) = profile_pack("assisted").memory_layer.proven_sources
    (personal,) = profile_pack("personal").memory_layer.proven_sources
    assert (assisted.vouched, assisted.classes) == ("user", ("preference",))
    assert (personal.vouched, set(personal.classes)) == ("user", {"preference", "statement"})
    for source in (assisted, personal):
        assert MESSAGES in source.extractors, "the version of the extractor that reads messages now"
        assert "direct@1" not in source.extractors, "an agent's typed fact is not the user's word"
        assert source.declared_by and source.reason


@pytest.mark.rule("PAC-8")
def test_a_fabric_is_opened_with_a_profile_by_its_name(opened: Opener, people: People) -> None:
    with opened("assisted") as fabric:
        fabric.capture(people.run(), kind="message", text="hello", classification="PUBLIC")
        assert fabric.packs.in_force(people.admin).pack == profile_pack("assisted").ref
    with pytest.raises(InvalidInput, match="no profile: strict, assisted, personal"), opened("assistant"):
        pass


@pytest.mark.rule("PAC-8", "PAC-5")
def test_a_profile_is_registered_by_its_name_and_a_looser_one_needs_a_second_admin(
    fabric: Fabric, people: People
) -> None:
    fabric.capture(people.run(), kind="message", text="hello", classification="PUBLIC")
    ref = fabric.packs.register(people.admin, "personal").ref
    with pytest.raises(SecondPersonRequired, match="proven_sources: also user by messages@2"):
        fabric.packs.activate(people.admin, ref, reason="for my own assistant")
    made = fabric.packs.activate(people.person("zoe", "admin"), ref, reason="for my own assistant")
    assert made.second_person


# ---- what is promoted at once ----


@pytest.mark.rule("PAC-8", "CAN-6", "REV-3")
def test_assisted_promotes_a_stated_preference_at_once_and_lets_a_statement_wait(
    opened: Opener, people: People
) -> None:
    with opened(made_of("assisted")) as fabric:
        (memory_id,) = say(fabric, people, "The app is slow on Mondays.", payload={"likes": "tea"})
        memory = fabric.get(people.auditor, memory_id)
        assert (memory.write_class, memory.value, memory.tier, memory.confidence) == (
            "preference",
            "tea",
            "semantic",
            0.95,
        )
        assert (memory.approver, memory.vouched) == ("auto", "user")
        gates = fabric.queue.get(people.reviewer, memory.proposal_id).candidate.gates
        assert [one.detail for one in gates if one.reason == "proven_source"] == ["0.95"]
        assert waiting(fabric, people) == {"The app is slow on Mondays.": {"low_confidence"}}
        assert [one.value for one in fabric.recall(people.run()).records] == ["tea"]


@pytest.mark.rule("PAC-8", "CAN-6")
def test_personal_promotes_what_the_user_says_at_once_whoever_is_named_as_speaker(
    opened: Opener, people: People
) -> None:
    with opened(made_of("personal")) as fabric:
        said = say(fabric, people, "We moved the piano to the cellar.", payload={"speaker": "Joanna"})
        said += say(fabric, people, "Ravens like walnuts.", payload={"name": "Nate", "likes": "tea"})
        assert len(said) == 3
        assert waiting(fabric, people) == {}


@pytest.mark.rule("CAN-6", "ISO-8", "PAC-8")
@pytest.mark.parametrize("profile", ["assisted", "personal"])
def test_only_the_words_of_the_runs_own_user_are_proven(opened: Opener, people: People, profile: str) -> None:
    with opened(made_of(profile)) as fabric:
        unvouched = people.run(speaks_for=SpeaksFor())
        assert say(fabric, people, "Ravens like walnuts.", payload={"likes": "tea"}, run=unvouched) == []
        assert say(fabric, people, "Owls like mice.", payload={"role": "assistant", "likes": "rum"}) == []
        typed = {"write_class": "preference", "predicate": "p", "value": "v", "entity": "user:cust_1"}
        item = proposed(fabric, people.run(), kind="message", **typed, confidence=1.0)
        assert (item.confidence, item.auto_promote_eligible) == (0.8, False), "an agent's typed fact within a message"
        assert fabric.consolidate(people.tenant_id).promoted == ()


@pytest.mark.rule("CAN-6", "PAC-8")
def test_a_company_adds_its_tool_as_a_proven_source_by_extractor_version(opened: Opener, people: People) -> None:
    other = CRM_IS_PROVEN | {"extractors": ["crm@0.9.0"]}
    no_session = people.run()
    with opened(made_of("assisted", proven=(other,))) as fabric:
        assert look_up(fabric, people, run=no_session, channel="email") == []
    others = People(people.tenant_id + "_other")
    with opened(made_of("assisted", proven=(CRM_IS_PROVEN,))) as fabric:
        assert len(look_up(fabric, others, run=others.run(), channel="email", note="A regular.")) == 2


@pytest.mark.rule("CAN-6")
def test_a_source_can_be_proven_by_its_credential(opened: Opener, people: People) -> None:
    importer = {"credential": "importer", "extractors": ["direct@1"], "declared_by": "us", "reason": "it is our own"}
    with opened(made_of("assisted", proven=(importer,))) as fabric:
        fact = {"write_class": "statement", "text": "Parcels leave at noon.", "confidence": 0.93}
        assert proposed(fabric, people.service, **fact).auto_promote_eligible
        assert not proposed(fabric, people.run(), **fact | {"text": "Snow closes the pass."}).auto_promote_eligible


# ---- people's verdicts, and the breaker ----


@pytest.mark.rule("CAN-6", "JOB-5")
def test_from_enough_verdicts_on_a_proven_source_counts_as_people_judged_it(opened: Opener, people: People) -> None:
    few = {"promotion_thresholds": {"calibrate_from": 4}}
    importer = {"credential": "importer", "extractors": ["direct@1"], "declared_by": "us", "reason": "it is our own"}
    with opened(made_of("assisted", proven=(importer,), **few)) as fabric:
        for n in range(4):
            text = f"Door {n} of the hall is painted blue."
            item = proposed(
                fabric, people.service, write_class="statement", text=text, confidence=0.93, user_id=f"u{n}"
            )
            if n % 2:
                fabric.queue.reject(people.reviewer, item.proposal_id, reason="wrong")
            else:
                fabric.queue.approve(people.reviewer, item.proposal_id)
        run_job(fabric, "calibrate", people.tenant_id)
        item = proposed(fabric, people.service, write_class="statement", text="Herons nest here.", confidence=0.93)
        assert item.confidence == pytest.approx(3 / 6)
        assert not item.auto_promote_eligible


@pytest.mark.rule("CAN-6", "JOB-6")
def test_an_open_breaker_ends_a_proven_source(opened: Opener, people: People) -> None:
    strictly = {"audit": {"sample_share": 1.0, "min_samples": 1}}
    with opened(made_of("personal", **strictly)) as fabric:
        assert len(say(fabric, people, "The cellar has three windows.")) == 1
        run_job(fabric, "sample", people.tenant_id)
        (sample,) = fabric.queue.list(people.reviewer)
        fabric.queue.reject(people.reviewer, sample.proposal_id, reason="not said")
        run_job(fabric, "sample", people.tenant_id)
        assert say(fabric, people, "The attic has two doors.") == []
        (item,) = fabric.queue.list(people.reviewer)
        assert (item.confidence, set(item.human_reasons)) == (0.8, {"low_confidence", "suspended"})


@pytest.mark.rule("CAN-6", "JOB-5")
def test_verdicts_count_per_tool_and_extractor_where_the_pack_says_so(opened: Opener, people: People) -> None:
    few = {"promotion_thresholds": {"calibrate_from": 4, "working": None}}
    with opened(made_of("assisted", **few)) as fabric:
        for n in range(4):
            run = people.run(f"u{n}", agent_id=f"bot_{n}")
            look_up(fabric, people, run=run, channel="email")
            (item,) = fabric.queue.list(people.reviewer)
            fabric.queue.approve(people.reviewer, item.proposal_id)
        run_job(fabric, "calibrate", people.tenant_id)
        look_up(fabric, people, run=people.run("u9", agent_id="bot_9"), channel="post")
        (item,) = fabric.queue.list(people.reviewer)
        assert item.confidence == pytest.approx(5 / 6), "four agents, one tool"
        look_up(fabric, people, run=people.run("u9", agent_id="bot_1", speaks_for=SpeaksFor()), channel="fax")
        claimed = next(one for one in fabric.queue.list(people.reviewer) if one.candidate.value == "fax")
        assert claimed.candidate.calibration is None, "whoever only claims to be the tool has no part in it"
