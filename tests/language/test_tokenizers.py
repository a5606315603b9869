"""Tokenizers by name: counts and cuts of the built-in one and the others, and what is said when one is missing."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding import tokenizers
from muniment.language.embedding.tokenizers import (
    CharacterTokenizer,
    TiktokenTokenizer,
    Tokenizer,
    builtin_tokenizer,
    tokenizer,
)

# One token a byte, of which characters beyond ASCII have several.
BYTES = SimpleNamespace(name="bytes", encode_ordinary=lambda text: list(text.encode()), decode_bytes=bytes)
ALL: list[Callable[[], Tokenizer]] = [builtin_tokenizer, CharacterTokenizer, lambda: TiktokenTokenizer(BYTES)]

texts = st.text(max_size=60) | st.lists(
    st.sampled_from(["word ", "🚀", "é", "é", "<s>", "\n", "ab", "用户", "  "]), max_size=20
).map("".join)


@pytest.mark.rule("REC-11")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("word", 1),
        ("The customer prefers email.", 6),
        ("30 days", 4),
        ("🚀", 5),
        ("half \ud83d", 2),
        ("<s>", 3),
    ],
)
def test_the_builtin_tokenizer_counts_real_tokens(text: str, count: int) -> None:
    assert builtin_tokenizer().count(text) == count


@pytest.mark.parametrize("made", ALL)
@given(text=texts, tokens=st.integers(-1, 40))
def test_a_cut_is_a_prefix_within_its_tokens_and_whole_where_the_text_fits(
    made: Callable[[], Tokenizer], text: str, tokens: int
) -> None:
    one = made()
    kept = one.cut(text, tokens)
    assert text.startswith(kept)
    assert one.count(kept) <= max(tokens, 0)
    if one.count(text) <= tokens:
        assert kept == text


@pytest.mark.parametrize("made", ALL)
def test_a_cut_keeps_as_much_as_fits(made: Callable[[], Tokenizer]) -> None:
    text = "The customer prefers email over phone. " * 20
    for tokens in range(1, 60):
        assert made().count(made().cut(text, tokens)) >= tokens - 1


@pytest.mark.parametrize("made", [builtin_tokenizer, lambda: TiktokenTokenizer(BYTES)])
def test_a_cut_never_ends_within_a_character(made: Callable[[], Tokenizer]) -> None:
    cuts = {made().cut("a🚀b", tokens) for tokens in range(8)}
    assert cuts == {"", "a", "a🚀", "a🚀b"}


def test_tokenizers_go_by_name() -> None:
    assert tokenizer("wordllama") is builtin_tokenizer()
    assert tokenizer("wordllama").name == "wordllama@1"
    assert tokenizer("characters").name == "characters@1"
    assert tokenizer("characters").count("12345") == 2
    assert tokenizer("characters").cut("123456789", 2) == "12345678"


@pytest.mark.parametrize("name", ["", "llama", "wordllama:x", "tiktoken", "tiktoken:", "file", "file:", "characters:3"])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="tokenizer: expected wordllama, characters"):
        tokenizer(name)


def described(**changes: object) -> str:
    """A tokenizer of whole words, as the library writes it down."""
    words = {"[UNK]": 0, "the": 1, "channel": 2, "is": 3, "email": 4}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": None,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
            **changes,
        }
    )


def test_a_tokenizer_is_read_from_a_file_and_named_by_its_content(tmp_path: Path) -> None:
    first, second, other = (tmp_path / name / "tokenizer.json" for name in "abc")
    for path, text in ((first, described()), (second, described()), (other, described(normalizer={"type": "NFC"}))):
        path.parent.mkdir()
        path.write_text(text)
    one = tokenizer(f"file:{first}")
    assert one.count("the channel is email") == 4
    assert one.cut("the channel is email", 2) == "the channel "
    assert one.name.startswith("tokenizer.json@")
    assert one.name == tokenizer(f"file:{second}").name
    assert one.name != tokenizer(f"file:{other}").name


def test_what_a_file_says_of_truncation_and_padding_does_not_change_the_counts(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    cut_at_two = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padded = {
        "strategy": {"Fixed": 9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[UNK]",
    }
    path.write_text(described(truncation=cut_at_two, padding=padded))
    assert tokenizer(f"file:{path}").count("the channel is email") == 4


def test_a_file_that_is_missing_or_no_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="that can be read"):
        tokenizer(f"file:{tmp_path / 'none.json'}")
    broken = tmp_path / "broken.json"
    broken.write_bytes(b"\xff{}")
    with pytest.raises(InvalidInput, match=r"expected a tokenizer\.json of the library"):
        tokenizer(f"file:{broken}")


def test_without_the_package_tiktoken_its_name_is_refused_and_the_package_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(InvalidInput, match="tokenizer: the package tiktoken is not installed"):
        tokenizer("tiktoken:none_installed")


def test_an_encoding_that_tiktoken_does_not_know_or_cannot_fetch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_encoding(name: str) -> SimpleNamespace:
        if name == "bytes":
            return BYTES
        raise ValueError if name == "unknown" else OSError

    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=get_encoding))
    assert tokenizer("tiktoken:bytes").name == "tiktoken:bytes"
    assert tokenizer("tiktoken:bytes").count("é") == 2
    with pytest.raises(InvalidInput, match="knows no such encoding"):
        tokenizer("tiktoken:unknown")
    with pytest.raises(InvalidInput, match="cannot load the files"):
        tokenizer("tiktoken:far_away")
    tokenizer.cache_clear()


def test_a_missing_wheel_or_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtin_tokenizer.__wrapped__
    monkeypatch.setattr(tokenizers, "TOKENIZER", "tokenizers/none.json")
    with pytest.raises(EmbedderUnavailable, match="cannot be read: reinstall wordllama"):
        load()
    monkeypatch.setattr(tokenizers, "WHEEL", "no_such_wheel")
    with pytest.raises(EmbedderUnavailable, match="the package no_such_wheel is missing"):
        load()


def test_neither_the_weights_nor_the_code_of_the_wheel_are_needed_to_count() -> None:
    program = (
        "import sys; from muniment.language.embedding.tokenizers import builtin_tokenizer;"
        "assert builtin_tokenizer().count('word') == 1; sys.exit('wordllama' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
