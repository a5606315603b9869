"""A user's newer fact about themselves replaces their older one; each condition of it, one by one (CTR-4)."""

from datetime import timedelta
from typing import Any

import pytest

from muniment.contradictions.rules import OTHER_VALUE, RULE_FAILED, Contradicted, may_supersede
from muniment.language.messages.updates import has_update_words, is_about_speaker
from muniment.model.candidate import Scope
from muniment.model.capture import Capture
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack, profile_pack
from tests.language.candidates import draft
from tests.language.captures import AT, capture

OWN: dict[str, Any] = {"subject": "user:jo", "scope": Scope(user_id="jo")}
FACT: dict[str, Any] = {**OWN, "entity": "user:jo", "predicate": "likes_best", "write_class": "preference"}


def said(**changed: Any) -> Capture:
    """What the user said a day after the memory."""
    later = AT + timedelta(days=1)
    given = {"vouched": "user", "user_id": "jo", "subject": "user:jo", "observed_at": later, "captured_at": later}
    return capture(**{"text": "I like coffee best.", **given, **changed})


def memory(**changed: Any) -> PromotedMemory:
    """What the user said before."""
    ids = {name: f"{name}_1" for name in ("memory_id", "candidate_id", "proposal_id", "verdict_id")}
    given: dict[str, Any] = {
        **ids, **FACT, "capture_id": "cap_0", "tenant_id": "acme", "value": "tea", "text": "user:jo likes best: tea",
        "classification": "INTERNAL", "sensitive": False, "tier": "semantic", "priority": 0.5, "confidence": 0.95,
        "trust": 0.5, "pack": "p@1.0.0", "ontology_version": "1.0.0", "kind": "message", "vouched": "user",
        "source": "agent", "author": "bot", "captured_at": AT, "observed_at": AT, "approver": "auto", "born_seq": 1,
        "promoted_at": AT,
    }  # fmt: skip
    return PromotedMemory(**given | changed)


def replaces(
    old: PromotedMemory,
    by: Capture,
    pack: Pack | None = None,
    *,
    tier: Any = "semantic",
    reason: str = OTHER_VALUE,
    judged: bool = False,
    **fact: Any,
) -> bool:
    new = {**FACT, "value": "coffee", "text": "user:jo likes best: coffee", "extractor": "messages@2", "trust": 0.5}
    return may_supersede(
        draft(**new | fact), tier, by, Contradicted(old, reason, judged), pack or profile_pack("personal")
    ).passed


@pytest.mark.rule("CTR-4")
def test_a_users_newer_fact_replaces_their_older_one_in_personal_alone() -> None:
    assert replaces(memory(), said())
    assert not replaces(memory(), said(), profile_pack("assisted"))
    assert not replaces(memory(), said(), profile_pack("strict"))


@pytest.mark.rule("CTR-4", "PAC-8")
@pytest.mark.parametrize(
    "old",
    [
        {"vouched": None},
        {"vouched": "tool:crm.lookup"},
        {"scope": Scope(user_id="ann")},
        {"scope": Scope()},
        {"subject": "user:ann"},
        {"subject": None},
        {"entity": "customer:ann"},
        {"tier": "durable"},
        {"classification": "CONFIDENTIAL"},
        {"editor": "boris"},
        {"third_party": True},
        {"write_class": "correction"},
        {"observed_at": AT + timedelta(days=2)},
        {"observed_at": AT + timedelta(days=1), "captured_at": AT + timedelta(days=1), "capture_id": "cap_2"},
    ],
)
def test_a_memory_that_is_not_the_users_own_or_not_older_stays(old: dict[str, Any]) -> None:
    assert not replaces(memory(**old), said())


@pytest.mark.rule("CTR-4", "ISO-8")
@pytest.mark.parametrize(
    "fact",
    [
        {"extractor": "direct@1"},
        {"extractor": "messages@0"},
        {"subject": "user:ann"},
        {"entity": "customer:ann"},
        {"scope": Scope(user_id="ann")},
        {"trust": 0.39},
        {"classification": "PUBLIC"},
        {"editor": "boris", "edits": "mc_0"},
        {"third_party": True},
        {"judged": True},
        {"reason": RULE_FAILED},
        {"tier": "working"},
        {"speaker": "Eve"},
        {"speaker": "somebody"},
    ],
)
def test_a_fact_that_is_not_plainly_the_users_own_replaces_nothing(fact: dict[str, Any]) -> None:
    assert not replaces(memory(), said(), **fact)


@pytest.mark.rule("CTR-4", "ISO-8")
@pytest.mark.parametrize("changed", [{"vouched": None}, {"vouched": "tool:crm.lookup"}])
def test_what_nobody_vouches_for_as_the_users_words_replaces_nothing(changed: dict[str, Any]) -> None:
    assert not replaces(memory(), said(**changed))


@pytest.mark.rule("CTR-4")
def test_a_text_replaces_a_text_in_plain_update_words_alone() -> None:
    plain = {"entity": None, "predicate": None, "value": None, "write_class": "statement"}
    old = memory(**plain, text="I drink coffee.")
    assert replaces(old, said(), reason="polarity", **plain, text="I no longer drink coffee.")
    assert not replaces(old, said(), reason="polarity", **plain, text="I do not drink coffee.")


@pytest.mark.rule("CTR-4")
def test_a_text_about_somebody_else_replaces_nothing_of_the_user() -> None:
    plain = {"entity": None, "predicate": None, "value": None, "write_class": "statement"}
    home = memory(predicate="lives_in", value="Berlin", text="I live in Berlin.")
    told = memory(**plain, text="My sister lives in Berlin.")
    assert not replaces(home, said(), reason="polarity", **plain, text="My sister no longer lives in Berlin.")
    assert not replaces(told, said(), reason="polarity", **plain, text="I no longer live in Berlin.")
    assert not replaces(told, said(), reason="polarity", **plain, text="My sister no longer lives in Berlin.")
    assert replaces(home, said(), reason="polarity", **plain, text="I no longer live in Berlin.")


@pytest.mark.rule("CTR-4")
def test_a_name_and_the_users_id_are_two_speakers_and_no_name_is_the_users() -> None:
    assert replaces(memory(speaker="jo"), said(), speaker=None)
    assert replaces(memory(speaker="Eve"), said(), speaker="Eve")
    assert not replaces(memory(speaker="Eve"), said(), speaker=None)


@pytest.mark.rule("CTR-4")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I no longer drink coffee.", True),
        ("Since May I no longer eat meat.", True),
        ("My bank is Contoso now.", True),
        ("I no longer live with Tom.", True),
        ("We moved to Hamburg.", True),
        ("My sister no longer lives in Berlin.", False),
        ("I heard my sister no longer lives in Berlin.", False),
        ("Eve says I live in Rome now.", False),
        ('My sister: "I\'m no longer vegan."', False),
        ("The office closes at 6 now.", False),
        ("She lives in Rome now.", False),
    ],
)
def test_what_is_about_the_speaker_has_the_first_person_as_its_subject(text: str, found: bool) -> None:
    assert is_about_speaker(text) == found


@pytest.mark.rule("CTR-4")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I no longer eat meat.", True),
        ("I don't eat meat anymore.", True),
        ("I live in Bern now.", True),
        ("Actually, it was Tuesday.", True),
        ("These days I run.", True),
        ("I know Bern.", False),
        ("I eat meat.", False),
        ("Do I still live in Bern now?", False),
    ],
)
def test_plain_update_words_are_recognised(text: str, found: bool) -> None:
    assert has_update_words(text) == found
