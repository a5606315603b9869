"""The rules for messages: what people state of themselves, and what must not be taken for it."""

import asyncio
import random
import string
import time
from typing import Any

import pytest

from muniment.candidates.extractors import Extracted
from muniment.candidates.extractors.messages import MessageExtractor
from muniment.model.capture import Content, TypedFact
from tests.language.captures import Kept, capture, extracted

# The typed rules by themselves.
EXTRACTOR = MessageExtractor(said=False)


def read(text: str | None = None, payload: Any = None, **fields: Any) -> list[Extracted]:
    return extracted(EXTRACTOR, capture(text, payload, **fields))


# said, then each fact: predicate and value; the text is the sentence
STATED: list[tuple[str, list[tuple[str | None, Any]]]] = [
    ("I love hiking.", [("likes_hiking", True)]),
    ("I really can't stand loud music!", [("likes_loud_music", False)]),
    ("I'm not a fan of cruises", [("likes_cruise", False)]),
    ("I have a strong aversion to horror films.", [("likes_horror_film", False)]),
    ("I avoid hotels near airports because of the noise.", [("likes_hotel_near_airport", False)]),
    ("I only eat organic food", [("likes_organic_food", True)]),
    ("I never buy leather.", [("likes_leather", False)]),
    ("I prefer not to share my data.", [("likes_share_data", False)]),
    ("I prefer tea to coffee.", [("prefers_coffee_or_tea", "tea")]),
    ("I'd rather fly than drive.", [("prefers_drive_or_fly", "fly")]),
    ("I prefer aisle seats, can you book one?", [("prefers_seat", "aisle seats")]),
    ("Golf doesn't appeal to me.", [("likes_golf", False)]),
    ("I find podcasts too slow.", [("likes_podcast", False)]),
    ("I dislike reptiles and prefer birds.", [("likes_reptile", False), ("likes_bird", True)]),
    (
        "As someone who follows a vegan diet and avoids honey, I read labels.",
        [("diet", "vegan"), ("likes_honey", False)],
    ),
    ("My favourite colour is blue.", [("favourite_colour", "blue")]),
    ("I'm allergic to peanuts.", [("allergic_to_peanut", True)]),
    ("I love the taste of mint.", [("likes_taste_mint", True)]),
    ("I'm allergic to wool and avoid it, and can't eat nuts.", [("allergic_to_wool", True), ("likes_nut", False)]),
    ("I'm vegan", [("diet", "vegan")]),
    ("Please call me Bob.", [("name_to_use", "Bob")]),
    ("Please contact me by email.", [("prefers_communication_channel", "email")]),
    ("Don't call me.", [("contact_by_phone", False)]),
    ("Please always answer in German.", [("wants_answer_german", True)]),
    ("Please never send me newsletters.", [("wants_send_newsletter", False)]),
    ("Games I like to play: chess", [("likes_chess", True)]),
    ("My name is Anna Schmidt.", [(None, None)]),
    ("I live in Berlin.", [("lives_in", "Berlin")]),
    ("I live in Berlin near my sister.", [(None, None)]),
    ("I work at Siemens as an engineer.", [(None, None)]),
    ("I'm a backend developer.", [(None, None)]),
    ("My birthday is May 4.", [(None, None)]),
    ("I have two kids.", [(None, None)]),
]


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize(("said", "facts"), STATED, ids=[said for said, _ in STATED])
def test_what_is_stated_becomes_a_fact_in_the_words_of_its_sentence(said: str, facts: list[tuple[Any, ...]]) -> None:
    found = read(said)
    assert [(one.fact.predicate, one.fact.value) for one in found] == facts
    for one in found:
        assert one.fact.text == said
        typed = one.fact.predicate is not None
        assert (one.fact.write_class, one.fact.entity) == (
            ("preference", "customer:7") if typed else ("statement", None)
        )
        assert not one.user_correction


UPDATES: list[tuple[str, str | None, Any]] = [
    ("I no longer like hiking.", "likes_hiking", False),
    ("I don't like hiking any more.", "likes_hiking", False),
    ("I'm not into jazz anymore", "likes_jazz", False),
    ("I used to love sushi, but not anymore.", "likes_sushi", False),
    ("I stopped eating meat.", "likes_meat", False),
    ("I've started to enjoy running.", "likes_running", True),
    ("These days I prefer trains.", "likes_train", True),
    ("Actually, I prefer trains.", "likes_train", True),
    ("I switched from Android to iPhone.", "prefers_android_or_iphone", "iPhone"),
    ("Stop sending me newsletters.", "wants_send_newsletter", False),
    ("We moved to Hamburg.", None, None),
    ("I changed my email to bob@example.com", None, None),
    ("My new address is 5 Main Road.", None, None),
    ("That's wrong. My address is 5 Main Road.", None, None),
    ("No, it's Thursday, not Friday.", None, None),
]


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize(("said", "predicate", "value"), UPDATES, ids=[update[0] for update in UPDATES])
def test_an_update_is_marked_for_review_and_is_never_a_correction(said: str, predicate: Any, value: Any) -> None:
    (found,) = read(said)
    assert (found.fact.predicate, found.fact.value) == (predicate, value)
    assert said.endswith(found.fact.text or "?")
    assert found.user_correction
    assert found.fact.write_class in ("preference", "statement")


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize(
    "said",
    [
        "Do I like hiking?",
        "Should I avoid dairy?",
        "What if I prefer tea?",
        "If I preferred tea, I would say so.",
        "If I like it I will buy it, and unless I hate jazz I will come.",
        "I wish I loved running.",
        "My wife prefers window seats.",
        "My wife says I hate jazz.",
        "He told me I avoid conflicts.",
        'She said "I love jazz" and left.',
        "> I love jazz",
        "```\nI love jazz\n```",
        "I don't think I like sushi.",
        "It's not that I dislike cats.",
        "I like the idea.",
        "I especially like the book swap and the quiz.",
        "I love that! I love it. I love your suggestions.",
        "I'd love to learn more.",
        "I would like a refund.",
        "I used to love sushi.",
        "I loved the concert yesterday.",
        "I hate it when that happens.",
        "No, it's fine.",
        "Actually, never mind.",
        "I'm a bit tired.",
        "I never eat after eight.",
        "Can you call me back?",
        "I prefer?",
        "",
    ],
)
def test_questions_suppositions_other_people_and_small_talk_give_nothing(said: str) -> None:
    assert read(said) == []


@pytest.mark.rule("CAN-2")
def test_likings_of_other_topics_coexist_and_one_that_is_taken_back_meets_the_first() -> None:
    hiking, jazz, again = read("I love hiking. I love jazz. I no longer like hiking.")
    assert hiking.fact.predicate == again.fact.predicate != jazz.fact.predicate
    assert (hiking.fact.value, again.fact.value) == (True, False)


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize(
    ("text", "payload", "likes"),
    [
        ("assistant: I love jazz\nuser: I love rock", None, ["rock"]),
        ("user: I love rock\nIt is loud. I hate pop.\nbot: I love jazz", None, ["rock", "pop"]),
        ("Anna: I love rock\nTom: I love jazz", None, []),
        ("bob: I love rock\nassistant: I love jazz", None, ["rock"]),
        ("I love rock", {"role": "assistant"}, []),
        ("I love rock", {"role": "user"}, ["rock"]),
        (None, {"role": "user", "content": "I love rock"}, ["rock"]),
        (
            None,
            {"messages": [{"role": "assistant", "content": "I love jazz"}, {"role": "user", "content": "I love rock"}]},
            ["rock"],
        ),
        (None, {"messages": [{"content": "I love jazz"}, "I love pop"]}, []),
        (None, [1, "I love rock"], []),
    ],
)
def test_only_the_speakers_own_turns_are_read(text: Any, payload: Any, likes: list[str]) -> None:
    found = read(text, payload, user_id="bob")
    assert [one.fact.predicate for one in found] == [f"likes_{topic}" for topic in likes]


def test_without_a_subject_the_user_is_the_entity_and_without_either_all_is_a_statement() -> None:
    assert read("I love jazz.", subject=None, user_id="u-1")[0].fact.entity == "user:u-1"
    for nobody in (None, "not a ceid"):
        (found,) = read("I love jazz.", subject=None, user_id=nobody)
        assert (found.fact.write_class, found.fact.text) == ("statement", "I love jazz.")


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize(
    ("said", "dates"),
    [
        ("I stopped eating meat yesterday.", {"yesterday": "2024-05-07"}),
        ("I've lived in Rome since last Monday.", {"last Monday": "2024-05-06"}),
        ("We moved to Hamburg last month.", {"last month": "2024-04"}),
        ("I moved to Rome three weeks ago.", {"three weeks ago": "the week of 2024-04-15"}),
        ("I moved to Rome last Wednesday.", {"last Wednesday": "2024-05-01"}),
        ("I'm moving to Paris next month.", {"next month": "2024-06"}),
        ("I'm moving to Paris next Wednesday.", {"next Wednesday": "2024-05-15"}),
        ("I'm moving to Paris in two years.", {"in two years": "2026"}),
        ("I moved to Rome 999 years ago.", {"999 years ago": "1025"}),
    ],
)
def test_relative_dates_stay_as_said_with_what_they_mean_beside(said: str, dates: dict[str, str]) -> None:
    (found,) = read(said)
    assert found.fact.text == said
    assert found.said is not None
    assert found.said.dates == dates


def test_who_leaves_it_open_is_believed_less_and_a_habit_less_than_a_word() -> None:
    said, shown, open_ = (
        read(text)[0].fact.confidence for text in ("I love jazz", "I never eat meat", "I think I like jazz")
    )
    assert (said, shown, open_) == (0.70, 0.60, 0.50)


def test_other_kinds_and_direct_proposals_are_not_read() -> None:
    assert EXTRACTOR.reads(capture("I love jazz"))
    assert not EXTRACTOR.reads(capture("I love jazz", kind="statement"))
    fact = TypedFact(write_class="statement", text="x")
    assert extracted(EXTRACTOR, capture(content=Content(text="I love jazz", fact=fact))) == []
    assert extracted(EXTRACTOR, capture(content=None)) == []


@pytest.mark.rule("CAN-2")
def test_the_same_message_gives_the_same_facts_in_the_same_order() -> None:
    text = " ".join(said for said, _ in STATED)
    assert read(text) == read(text)
    assert len(read(text)) > 20


def test_hostile_messages_take_linear_time_and_never_fail() -> None:
    size = 32 * 1024
    pieces = [
        "I prefer ",
        ".",
        '"I ',
        "a",
        "I love x, ",
        "(",
        "Actually, ",
        "my new a is ",
        "a: ",
        "I like a but ",
        "\u202e",
        "I'm a ",
    ]
    begun = time.process_time()
    for piece in pieces:
        asyncio.run(EXTRACTOR.extract(capture((piece * size)[:size]), Kept()))
    chance = random.Random(7)
    words = [
        "I",
        "love",
        "don't",
        "my",
        "is",
        "and",
        "but",
        ",",
        ".",
        "?",
        '"',
        "prefer",
        "to",
        "over",
        "not",
        "jazz",
        "\n",
        "\U0001f600",
    ]
    for _ in range(300):
        read(" ".join(chance.choices([*words, *string.punctuation], k=40)))
    assert time.process_time() - begun < 6
