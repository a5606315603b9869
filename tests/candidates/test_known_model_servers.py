"""A language model in one line, against five known servers: what each refuses, and how each answers (CAN-14)."""

import json
from typing import Any

import pytest

from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.extractors.models import Models
from muniment.errors import ExtractorFailed, InvalidInput
from muniment.pack import load_pack
from tests.candidates.known_servers import KEY, QUIRKS, KnownServer, known_server
from tests.language.captures import capture, extracted

SAID = "I prefer the night train. Order customer:9 for my brother."
FACT = {
    "write_class": "preference",
    "entity": "customer:7",
    "predicate": "prefers_train",
    "value": "night train",
    "text": "The customer prefers the night train.",
    "quote": "I prefer the night train",
    "confidence": 0.95,
    "classification": None,
    "correction": False,
}
FACTS = json.dumps({"facts": [FACT]})
PACK = load_pack(
    json.dumps(
        {
            "pack_meta": {"id": "p", "version": "1.0.0"},
            "memory_layer": {"extraction": {"messages": False, "model": {"model": "default"}}},
        }
    )
)


def line_for(server: KnownServer) -> str:
    """What the operator writes into MUNIMENT_MODEL for this server."""
    path = "" if server.kind == "azure" else "/v1"
    key = "#key_env=TEST_MODEL_KEY" if server.kind != "ollama" else ""
    return f"{server.kind}:small@{server.url}{path}{key}"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    # A proxy of the environment is not asked for what is on this machine.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("MUNIMENT_MODELS", raising=False)


def asking(server: KnownServer, monkeypatch: pytest.MonkeyPatch, line: str | None = None) -> Extractor:
    monkeypatch.setenv("MUNIMENT_MODEL", line or line_for(server))
    return extractors_of(PACK, Models.gather(None))[-1]


@pytest.mark.rule("CAN-14")
@pytest.mark.parametrize("kind", QUIRKS)
def test_one_line_is_enough_for_a_server_without_quirks_and_one_request(kind: str, monkeypatch: Any) -> None:
    with known_server(kind, said=FACTS) as server:
        extractor = asking(server, monkeypatch)
        (found,) = extracted(extractor, capture(SAID))
        assert (found.fact.predicate, found.fact.value) == ("prefers_train", "night train")
        assert len(server.asked) == 1
        (asked,) = server.asked
        assert (asked["model"], asked["temperature"], asked["seed"]) == ("small", 0, 7)
        assert asked["response_format"]["type"] == "json_schema"


# Which parameters each quirk leaves in the request that is answered; None where it does not matter.
BENT: list[tuple[str, str, dict[str, Any]]] = [
    ("openai", "temperature refused", {"temperature": None, "max_completion_tokens": 1024, "seed": 7}),
    ("openai", "system refused", {"seed": 7}),
    ("azure", "old version", {"max_tokens": 1024, "seed": None, "response_format": {"type": "json_object"}}),
    ("ollama", "unknown names pass", {"max_tokens": 1024, "max_completion_tokens": None}),
    ("ollama", "thinks in content", {}),
    ("ollama", "fences", {}),
    ("vllm", "extra forbidden", {"seed": None, "max_tokens": 1024, "temperature": 0}),
    ("vllm", "short context", {"max_tokens": None, "max_completion_tokens": None, "seed": 7}),
    ("vllm", "no system role", {"seed": 7, "max_tokens": 1024}),
    ("vllm", "thinking ends only", {}),
    ("vllm", "no guided decoding", {"response_format": {"type": "json_object"}}),
    ("llama.cpp", "loading", {"seed": 7}),
    ("llama.cpp", "json_schema is an error of the server", {"response_format": {"type": "json_object"}, "seed": 7}),
    ("llama.cpp", "format not enforced", {}),
]


@pytest.mark.rule("CAN-14")
@pytest.mark.parametrize(("kind", "quirk", "left"), BENT, ids=[f"{kind}: {quirk}" for kind, quirk, _ in BENT])
def test_what_a_server_refuses_is_left_out_and_what_it_answers_is_read(
    kind: str, quirk: str, left: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with known_server(kind, quirk, said=FACTS) as server:
        line = line_for(server)
        if quirk == "old version":
            line = line.replace("#", "?api-version=2024-02-01#")
        extractor = asking(server, monkeypatch, line)
        (found,) = extracted(extractor, capture(SAID))
        assert found.fact.value == "night train"
        assert quirk in server.met or quirk == "unknown names pass"
        answered = server.asked[-1]
        assert {name: answered.get(name) for name in left} == left
        # The data is the same whatever else is left out.
        assert SAID in answered["messages"][-1]["content"]
        before = len(server.asked)
        extracted(extractor, capture(SAID, capture_id="cap_2"))
        again = 3 if quirk == "short context" else 1
        assert len(server.asked) - before <= again
        if quirk not in ("short context", "loading"):
            assert len(server.asked) == before + 1, "what it refuses is remembered"


@pytest.mark.rule("CAN-14")
def test_the_other_name_for_the_number_of_tokens_is_tried_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with known_server("openai", "max_tokens refused", "temperature refused", said=FACTS) as server:
        line = f"vllm:small@{server.url}/v1#key_env=TEST_MODEL_KEY"
        assert len(extracted(asking(server, monkeypatch, line), capture(SAID))) == 1
        assert [sorted(one.keys() & {"max_tokens", "max_completion_tokens"}) for one in server.asked] == [
            ["max_tokens"],
            ["max_completion_tokens"],
            ["max_completion_tokens"],
        ]


@pytest.mark.rule("CAN-14")
def test_missing_keys_have_defaults_and_extra_ones_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with known_server("llama.cpp", "keys of its own", said=FACTS) as server:
        (found,) = extracted(asking(server, monkeypatch), capture(SAID))
    assert (found.fact.write_class, found.fact.text) == ("statement", "I prefer the night train")
    assert found.fact.confidence == 0.6


# What the operator reads, in the server's own words.
TOLD: list[tuple[str, str, str]] = [
    ("openai", "refusal", "declined"),
    ("openai", "reasoned it away", "cut off after 1024 tokens: raise max_tokens"),
    ("azure", "content filter", 'its server says: "The response was filtered due to the prompt triggering'),
    ("azure", "no deployment", "The API deployment for this resource does not exist."),
    ("ollama", "not pulled", 'model "small" not found, try pulling it first'),
]


@pytest.mark.rule("CAN-14", "ERR-4")
@pytest.mark.parametrize(("kind", "quirk", "words"), TOLD, ids=[f"{kind}: {quirk}" for kind, quirk, _ in TOLD])
def test_the_operator_reads_the_servers_own_words(
    kind: str, quirk: str, words: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with known_server(kind, quirk, said=FACTS) as server, pytest.raises(ExtractorFailed) as failed:
        extracted(asking(server, monkeypatch), capture(SAID))
    assert words in str(failed.value)
    assert not any(secret in str(failed.value) for secret in (KEY, "night", "brother", "customer:9"))
    if "its server says" in str(failed.value):
        assert str(failed.value) in caplog.text


def test_every_quirk_is_tried() -> None:
    tried = {(kind, quirk) for kind, quirk, _ in (*BENT, *TOLD)}
    elsewhere = {("openai", "max_tokens refused"), ("llama.cpp", "keys of its own")}
    assert tried | elsewhere == {(kind, quirk) for kind, quirks in QUIRKS.items() for quirk in quirks}


@pytest.mark.rule("CAN-14", "ISO-7")
@pytest.mark.parametrize("kind", ["openai", "azure", "vllm"])
def test_a_wrong_key_is_told_without_the_key(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-wrong-key-4711")
    with known_server(kind) as server, pytest.raises(ExtractorFailed) as failed:
        extracted(asking(server, monkeypatch), capture(SAID))
    assert "answered 401" in str(failed.value) and "its server says" in str(failed.value)
    assert not any(part in str(failed.value) for part in ("sk-wrong", "4711"))


@pytest.mark.rule("CAN-14")
def test_a_server_that_quotes_the_request_back_shows_none_of_it_to_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from muniment.candidates.extractors.model_answers import refusal_words

    said = f"Invalid input for model small: {SAID} (key {KEY})"
    words = refusal_words(json.dumps({"error": {"message": said}}).encode(), SAID, KEY)
    assert words.startswith("Invalid input for model small: ... ")
    assert not any(part in words for part in ("night", "train", "brother", "customer", "prefer", KEY, "sk-"))


# ---- the line itself ----


@pytest.mark.rule("CAN-14")
@pytest.mark.parametrize(
    ("line", "environment_", "address", "model"),
    [
        ("openai:gpt-x", {"OPENAI_API_KEY": KEY}, "https://api.openai.com/v1/chat/completions", "gpt-x"),
        (
            "azure:dep",
            {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/", "AZURE_OPENAI_API_KEY": KEY},
            "https://r.openai.azure.com/openai/deployments/dep/chat/completions?api-version=2024-10-21",
            "dep",
        ),
        (
            "azure:dep",
            {
                "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/openai/v1/",
                "AZURE_OPENAI_API_KEY": KEY,
            },
            "https://r.openai.azure.com/openai/v1/chat/completions",
            "dep",
        ),
        (
            "azure:dep",
            {
                "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com",
                "AZURE_OPENAI_API_KEY": KEY,
                "OPENAI_API_VERSION": "2025-01-01-preview",
            },
            "https://r.openai.azure.com/openai/deployments/dep/chat/completions?api-version=2025-01-01-preview",
            "dep",
        ),
        ("ollama:llama3.2:3b", {}, "http://127.0.0.1:11434/v1/chat/completions", "llama3.2:3b"),
        ("ollama:q", {"OLLAMA_HOST": "0.0.0.0:9999"}, "http://127.0.0.1:9999/v1/chat/completions", "q"),
        ("ollama:q", {"OLLAMA_HOST": "https://o.example.com"}, "https://o.example.com/v1/chat/completions", "q"),
        ("vllm:Qwen/Qwen3-8B", {}, "http://127.0.0.1:8000/v1/chat/completions", "Qwen/Qwen3-8B"),
        ("vllm:q@http://gpu:1/v1", {}, "http://gpu:1/v1/chat/completions", "q"),
        ("llama.cpp:Q4_K_M.gguf", {}, "http://127.0.0.1:8080/v1/chat/completions", "Q4_K_M.gguf"),
        ("http://localhost:1/v1#model=q&timeout=9s", {}, "http://localhost:1/v1/chat/completions", "q"),
        ("http://10.0.0.8/v1/chat/completions", {}, "http://10.0.0.8/v1/chat/completions", "default"),
        (
            "https://gateway.example.com/x?api-version=7#model=q",
            {},
            "https://gateway.example.com/x/chat/completions?api-version=7",
            "q",
        ),
    ],
)
def test_the_line_names_address_and_model(
    line: str, environment_: dict[str, str], address: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_VERSION", "OLLAMA_HOST", "VLLM_API_KEY", "LLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment_.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MUNIMENT_MODEL", line)
    named = Models.gather(None).get("default")
    assert named is not None and (named.settings.address, named.model) == (address, model)
    assert named.secret == (KEY if KEY in environment_.values() else "")
    assert KEY not in repr(named) and KEY not in repr(named.settings)


@pytest.mark.rule("CAN-14", "ISO-7")
def test_the_key_of_the_environment_goes_to_the_usual_address_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MUNIMENT_MODEL", "openai:gpt-x@https://elsewhere.example.com/v1")
    named = Models.gather(None).get("default")
    assert named is not None and named.secret == ""


@pytest.mark.rule("CAN-14", "ERR-1")
@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("gpt-x", "MUNIMENT_MODEL.url"),
        ("openai:", "MUNIMENT_MODEL.url"),
        ("openai:gpt-x", "MUNIMENT_MODEL.key"),
        ("azure:dep", "MUNIMENT_MODEL.url"),
        ("http://u:p@host/v1", "MUNIMENT_MODEL.url"),
        ("http://host/v1#colour=blue", "MUNIMENT_MODEL.colour"),
        ("http://host/v1#max_tokens=many", "MUNIMENT_MODEL.max_tokens"),
        ("http://host/v1#allow_private=false", "MUNIMENT_MODEL.url"),
    ],
)
def test_a_line_that_cannot_be_right_is_refused_at_the_start(line: str, field: str, monkeypatch: Any) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MUNIMENT_MODEL", line)
    with pytest.raises(InvalidInput) as raised:
        Models.gather(None)
    assert raised.value.field == field


@pytest.mark.rule("CAN-14")
def test_the_line_is_the_entry_default_beside_the_others_and_not_instead_of_one(monkeypatch: Any) -> None:
    monkeypatch.setenv("MUNIMENT_MODEL", "ollama:q")
    monkeypatch.setenv("MUNIMENT_MODELS", json.dumps({"large": "vllm:big@http://gpu:8000/v1"}))
    assert list(Models.gather(None)) == ["default", "large"]
    assert list(Models.gather({"own": "ollama:x"})) == ["own"], "what the program gives stands for itself"
    monkeypatch.setenv("MUNIMENT_MODELS", json.dumps({"default": "ollama:other"}))
    with pytest.raises(InvalidInput, match="expected one of the two"):
        Models.gather(None)
