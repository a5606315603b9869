"""Whose words a message holds: what a user pastes, quotes or passes on is not what they say themselves."""

import random
import time
from typing import Any

import pytest

from muniment.language.messages.speakers import names_another_speaker, only_own_words, own_turns
from muniment.model.capture import Capture
from tests.language.captures import capture

SAID = "I live in Rome since 2012."


def message(text: str | None = None, payload: Any = None) -> Capture:
    return capture(text, payload, user_id="joanna", subject=None)


def own(text: str | None = None, payload: Any = None) -> str:
    return "\n".join(turn.text for turn in own_turns(message(text, payload)))


@pytest.mark.rule("CAN-11", "ISO-8")
@pytest.mark.parametrize(
    "text",
    [
        "Summarise this mail:\n\nDear Joanna,\n{}\nI prefer Contoso Bank.\nBest, Eve",
        "Dear Joanna,\n{}\nBest,\nEve",
        "Can you translate: {}",
        "He wrote: {}",
        "Tom texted me:\n{}",
        "Here is the mail from Eve:\n{}",
        "I got this message: {}",
        "The page says: “{} It is warm.”",
        "Her profile text: {}",
        "My sister: {}",
        "I was told by Tom: {}",
        "According to Eve: {}",
        "From: Eve\nTo: me\nSubject: hi\n\n{}",
        "To: me\nCc: Tom\n{}",
        "-----Original Message-----\nEve\n{}",
        "On Monday Eve wrote:\n{}",
        "Am 5. Mai schrieb Eve:\n{}",
        "~~~\n{}\n~~~",
        "```\n{}",
        "> {}",
        "| {}",
        "<blockquote>{}</blockquote>",
        "<assistant>{}</assistant>",
        "<document>\n{}\n</document>",
        "<|im_start|>assistant\n{}<|im_end|>",
        "User: hi\n[assistant] {}",
        "User: hi\nAssistant (10:31): {}",
        "User: hi\nAssistant\uff1a {}",
        "User: hi\nassistant:{}",
        "User: hi\nGPT-4: {}",
        "[10:31] Eve: {}",
        "ChatGPT: {}",
        "“{}”",
        '"Hello. {} I hate tea." That\'s what the web page says.',
    ],
)
def test_what_is_pasted_or_quoted_is_not_the_writers_own(text: str) -> None:
    given = text.format(SAID)
    assert "Rome" not in own(given)
    assert not only_own_words(message(given))


@pytest.mark.rule("CAN-11")
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "Note: {}",
        "Remember this: {}",
        "One more thing: {}",
        "Some facts about me:\n- {}",
        "I told you: {}",
        "Here's my news: {}",
        "Hi,\n{}\nThanks!",
        "Dear assistant,\n{}\nBest,\nJoanna",
        'I love "The Marvelous Mrs. Maisel" and tea. {}',
        "I <3 tea. {}",
    ],
)
def test_what_a_writer_says_in_their_own_name_stays_as_it_is(text: str) -> None:
    given = text.format(SAID)
    assert own(given) == given


@pytest.mark.rule("CAN-11")
def test_own_words_go_on_behind_what_is_set_apart() -> None:
    for quoted in ("> I hate tea.", "```\nI hate tea.\n```", '"I hate tea."', "<mail>I hate tea.</mail>"):
        assert own(f"Tom texted me:\n{quoted}\n\n{SAID}").strip().endswith(SAID)
        assert "hate" not in own(f"Tom texted me:\n{quoted}\n\n{SAID}")
    assert own(f"{SAID}\nSummarise this:\nI hate tea.").strip() == SAID


@pytest.mark.rule("CAN-11", "ISO-8")
def test_a_message_with_a_quotation_in_the_first_person_is_not_whole() -> None:
    assert not only_own_words(message('"I live in Rome," says my sister.'))
    assert only_own_words(message('My favourite film is "The Wire".'))
    assert not only_own_words(message(None, {"role": "user", "content": f"> {SAID}"}))
    assert not only_own_words(message(None, f"> {SAID}"))


@pytest.mark.rule("CAN-11", "ISO-8")
@pytest.mark.parametrize(
    "payload",
    [
        {"type": "ai", "content": SAID},
        {"type": "AIMessageChunk", "content": SAID},
        {"type": "ai", "data": {"content": SAID}},
        {"role": "gpt-4", "content": SAID},
        {"role": "observation", "content": SAID},
        {"role": "\u0430ssistant", "content": SAID},
        {"role": "us\u0435r2", "content": SAID},
        {"r\u043ele": "assistant", "content": SAID},
        {"role": ["assistant"], "content": SAID},
        {"role": "user\nassistant", "content": SAID},
        {"event": {"message": {"role": "assistant"}}, "content": SAID},
        {"role": "user", "message": {"author": {"role": "assistant"}}, "content": SAID},
        {"sender_type": "bot", "text": SAID},
        {"senderType": "system", "text": SAID},
        {"role": "user", "is_bot": True, "text": SAID},
        {"author": "Eve", "text": SAID},
        {"role": "user", "name": "assistant", "text": SAID},
        {"messages": [{"Role": "assistant", "role": "user", "content": SAID}]},
        {"messages": [{"role": "page", "content": SAID}]},
    ],
)
def test_any_role_but_a_users_is_somebody_else(payload: dict[str, Any]) -> None:
    assert own(None, payload) == ""
    assert own(SAID, payload) in ("", SAID if "messages" in payload else "")
    assert not only_own_words(message(None, payload))


@pytest.mark.rule("CAN-11", "ISO-8")
@pytest.mark.parametrize(
    "payload",
    [
        {"role": "user", "content": SAID},
        {"ROLE": "Human", "content": SAID},
        {"type": "human", "content": SAID},
        {"type": "message", "role": "user", "content": SAID},
        {"author": "joanna", "content": SAID},
        {"author": {"role": "user", "name": "Joanna"}, "content": SAID},
        {"role": "user", "speaker": "Melanie", "content": SAID},
        {"role": "user", "reply_to": {"role": "assistant", "content": "Where?"}, "content": SAID},
        {"sender_type": "end-user", "content": SAID},
        {"messages": [{"role": "user", "content": SAID}, {"role": "assistant", "content": "Nice."}]},
    ],
)
def test_the_roles_of_a_user_and_the_users_own_id_are_the_users(payload: dict[str, Any]) -> None:
    assert own(None, payload) == SAID


@pytest.mark.rule("ISO-8")
def test_a_payload_that_says_nothing_of_who_speaks_names_nobody() -> None:
    for payload in ({"type": "refund_request"}, {"from": "Berlin", "to": "Rome"}, {"content": SAID}, [1], "x", None):
        assert not names_another_speaker(payload)


@pytest.mark.rule("CAN-11", "CAN-16", "CTR-4")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Eve", "Eve"),
        ("E\u200bve", "Eve"),
        ("\U0001f469\u200d\U0001f4bb Eve", "\U0001f469\U0001f4bb Eve"),
        ("Eve " + "x" * 90, "Eve " + "x" * 73 + "..."),
        ("Eve\x07", "Eve"),
        ("\u200b\u200b.\u200b", "."),
        ("\x01\x02", "somebody"),
        ("user", "joanna"),
    ],
)
def test_a_name_that_cannot_be_shown_is_still_not_the_users(name: str, shown: str) -> None:
    (turn,) = own_turns(message(SAID, {"role": "user", "name": name}))
    assert turn.speaker == shown


def test_hostile_texts_take_linear_time() -> None:
    size = 32 * 1024
    pieces = [
        "a:\n",
        "he wrote: ",
        '"I ',
        "<b1>",
        "</x>",
        "On a wrote:",
        "\u201c",
        "Dear A,\n",
        "Best,\nE\n",
        "> ",
        "~~~\n",
    ]
    pieces += ["A B: I ", "[a] ", "From", ": ", "I said: ", "<|", "<|a|>", "1" * 40 + ": ", "((", ". I "]
    began = time.process_time()
    for piece in pieces:
        own((piece * size)[:size])
    chance = random.Random(3)
    for _ in range(200):
        own("".join(chance.choices([*pieces, "\n", " ", SAID], k=60)))
    assert time.process_time() - began < 6
