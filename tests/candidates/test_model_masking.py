"""A language model gets masked text only, and what it says must be found there (CAN-14)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.extractors.models import Models
from muniment.candidates.masking import mask_content
from muniment.pack import load_pack
from tests.candidates.known_servers import known_server
from tests.language.captures import capture, extracted
from tests.language.tiny_readers import tiny_readers

MAIL, PHONE = "jane.doe@example.org", "+49 30 1234567"
SAID = f"Write to me at {MAIL}, I moved to Berlin in 2019 with three cats."


def fact(**changed: Any) -> dict[str, Any]:
    return {"quote": "I moved to Berlin", "text": "The customer moved to Berlin.", "confidence": 0.5} | changed


def asking(url: str) -> Extractor:
    extraction = {"messages": False, "model": {"model": "default", "kinds": ["message", "tool_result"]}}
    document = {"pack_meta": {"id": "p", "version": "1.0.0"}, "memory_layer": {"extraction": extraction}}
    return extractors_of(load_pack(json.dumps(document)), Models.gather({"default": f"ollama:small@{url}/v1"}))[-1]


@pytest.mark.rule("CAN-14", "RED-1")
def test_what_redaction_masks_is_masked_before_it_leaves() -> None:
    with known_server("ollama") as server:
        extracted(asking(server.url), capture(SAID, {"phone": PHONE, "note": f"mail {MAIL}", "n": 4}))
        sent = json.dumps(server.asked[0], ensure_ascii=False)
    assert not any(part in sent for part in (MAIL, "jane.doe", PHONE, "1234567"))
    assert "Write to me at [EMAIL], I moved to Berlin" in sent
    assert "[PHONE]" in sent and "mail [EMAIL]" in sent


@pytest.mark.rule("CAN-14", "RED-1")
def test_a_value_that_is_masked_in_the_payload_is_masked_in_the_text_too() -> None:
    with known_server("ollama") as server:
        extracted(asking(server.url), capture("It is under 467 3395 1.", {"phone": "467 3395 1"}))
        sent = json.dumps(server.asked[0])
    assert "3395" not in sent


@pytest.mark.rule("CAN-14", "RED-2")
def test_what_the_trained_tagger_finds_is_masked_before_it_leaves_too(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path / "weights", tags={"jane": "B-PERSON", "doe": "I-PERSON"})
    pack = load_pack(
        'pack_meta: {id: p, version: "1.0.0"}\n'
        "policy_layer: {guardrails: {redaction_rules: [{name: person, detector: person}]}}\n"
    )
    given = ("I met Jane Doe today.", {"with": ["Jane Doe"], "n": 4})
    masked = asyncio.run(mask_content(readers, *given, pack))
    assert masked == ("I met [PERSON] today.", {"with": ["[PERSON]"], "n": 4})
    assert asyncio.run(mask_content(None, *given, pack)) == given, "the rules find no names"


@pytest.mark.rule("CAN-14")
@pytest.mark.parametrize(
    ("stated", "stays"),
    [
        (fact(), True),
        (fact(quote="Write to me at [EMAIL]", text="The customer is written to at [EMAIL]."), True),
        (fact(quote=f"Write to me at {MAIL}"), False),
        (fact(text="The customer moved to Hamburg."), False),
        (fact(text="The customer moved to Berlin in 2018."), False),
        (fact(text="The customer moved to Berlin in 2019."), True),
        (fact(text="The customer has 3 cats."), True),
        (fact(write_class="preference", predicate="city", value="Hamburg"), False),
        (fact(write_class="preference", predicate="year", value=2018), False),
        (fact(write_class="preference", predicate="year", value=2019), True),
    ],
    ids=str,
)
def test_what_it_says_must_be_found_in_the_masked_text(stated: dict[str, Any], stays: bool) -> None:
    with known_server(
        "ollama", said=json.dumps({"facts": [stated, fact(text="The customer once moved to Berlin.")]})
    ) as server:
        found = extracted(asking(server.url), capture(SAID))
    assert len(found) == (2 if stays else 1)
