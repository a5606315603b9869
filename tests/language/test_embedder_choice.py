"""Which embedder is meant: by a word, a folder, an address or a place in Python."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding import builtin_embedder
from muniment.language.embedding.choose import find_embedder
from muniment.language.embedding.function import FunctionEmbedder
from muniment.language.embedding.http import HttpEmbedder
from muniment.language.embedding.sentence import SentenceTransformerEmbedder
from tests.language.embedding_model import model, theirs
from tests.language.embedding_server import Remote, remote
from tests.language.embedding_texts import KEY, unit

__all__ = ["model", "remote", "theirs"]  # fixtures


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "acme_embedders.py").write_text(
        "from muniment.language.embedding.function import FunctionEmbedder\n"
        "from muniment.errors import EmbedderUnavailable\n"
        "one = FunctionEmbedder(lambda texts: [[1, 0, 0]] * len(texts), name='acme/one@7', dimensions=3)\n"
        "def make(): return one\n"
        "class Own:\n"
        "    name = 'own@1'\n"
        "    dimensions = 2\n"
        "    def embed(self, texts): ...\n"
        "number = 7\n"
        "def fails(): raise ZeroDivisionError\n"
        "def away(): raise EmbedderUnavailable('not today')\n"
        "def needs(what): ...\n"
        "def nothing(): ...\n"
    )
    (tmp_path / "acme_broken.py").write_text("import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("acme_embedders", "acme_broken"):
        sys.modules.pop(name, None)


def test_nothing_said_means_the_builtin_embedder() -> None:
    assert find_embedder(None) is find_embedder("builtin") is find_embedder(" builtin\n") is builtin_embedder()


def test_an_embedder_is_given_back_as_it_is() -> None:
    mine = FunctionEmbedder(lambda _: [], name="mine@1", dimensions=3)
    assert find_embedder(mine) is mine
    assert find_embedder(builtin_embedder()) is builtin_embedder()


@pytest.mark.usefixtures("theirs")
def test_a_folder_is_named_after_sentence_transformers(model: Path) -> None:
    assert find_embedder(f"sentence-transformers:{model}").name == SentenceTransformerEmbedder(model).name


def test_a_server_is_named_by_its_address_with_model_and_dimensions(remote: Remote) -> None:
    found = find_embedder(
        f"{remote.url}/#model=BAAI/bge-m3&dimensions=3&version=2&timeout=1.5&deadline=9&allow_private=true"
    )
    assert (type(found), found.name, found.dimensions) == (HttpEmbedder, "BAAI/bge-m3@2", 3)
    assert found.embed(["ab"])[0] == pytest.approx(unit("ab"), abs=1e-6)
    assert remote.asked[0].path == "/v1/embeddings"
    assert find_embedder("HTTPS://h#model=a%3Ab&dimensions=12").name == "a:b@12"


@pytest.mark.usefixtures("installed")
def test_an_object_or_what_makes_one_is_named_by_its_place_in_python() -> None:
    one = find_embedder("python:acme_embedders:one")
    assert one.name == "acme/one@7"
    assert find_embedder("python:acme_embedders:make") is one
    made = find_embedder("python:acme_embedders:Own")
    assert (type(made).__name__, made.dimensions) == ("Own", 2)


class Odd:
    """An embedder that says of itself what it is told to."""

    def __init__(self, name: Any, dimensions: Any) -> None:
        self.name = name
        self.dimensions = dimensions

    def embed(self, _: Any) -> Any: ...


@pytest.mark.usefixtures("installed", "theirs")
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "expected builtin"),
        ("builtin:x", "expected builtin"),
        ("openai", "expected builtin"),
        ("sentence-transformers:", "expected builtin"),
        ("sentence-transformers:/no/such/folder", "path: there is no folder"),
        ("http://h/v1", "after the #"),
        ("http://h/v1#model=m", "after the #"),
        ("http://h/v1#model=m&dimensions=3&dimensions=4", "after the #"),
        (f"http://h/v1#model=m&dimensions=3&api_key={KEY}", "MUNIMENT_EMBEDDER_KEY"),
        (f"http://me:{KEY}@h/v1#model=m&dimensions=3", "url: "),
        ("http://h/v1#model=m&dimensions=three", "dimensions: expected a number"),
        ("https://h/v1#model=m&dimensions=4001", "dimensions: expected a whole number"),
        ("http://h/v1#model=m&dimensions=3&timeout=soon", "timeout: expected a number"),
        ("https://h/v1#model=&dimensions=3", "model: "),
        ("http://h/v1#model=m&dimensions=3", "url: expected a public address"),
        ("https://127.0.0.1/v1#model=m&dimensions=3", "url: expected a public address"),
        ("http://h/v1#model=m&dimensions=3&allow_private=yes", "allow_private: expected true or false"),
        ("python:", "python:package.module:attribute"),
        ("python:acme_embedders", "python:package.module:attribute"),
        ("python:acme_embedders:one.embed", "python:package.module:attribute"),
        ("python:acme_embedders:absent", "AttributeError"),
        ("python:no_such_module:one", "ModuleNotFoundError"),
        ("python:acme_broken:one", "ModuleNotFoundError"),
        ("python:acme_embedders:number", "name, dimensions and embed"),
        ("python:acme_embedders:nothing", "name, dimensions and embed"),
        (7, "name, dimensions and embed"),
        (Odd("odd", 3), "name: "),
        (Odd(None, 3), "name: "),
        (Odd("odd@1", 0), "dimensions: "),
        (Odd("odd@1", True), "dimensions: "),
        (Odd("odd@1", 3.0), "dimensions: "),
    ],
)
def test_what_names_no_embedder_is_invalid_input_and_secrets_in_it_are_not_shown(spec: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        find_embedder(spec)
    assert raised.value.field == "embedder"
    assert said in raised.value.message
    assert KEY not in raised.value.message


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("spec", "said"), [("fails", "ZeroDivisionError"), ("needs", "TypeError"), ("away", "not today")]
)
def test_what_should_make_an_embedder_and_does_not_is_unavailable(spec: str, said: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=said):
        find_embedder(f"python:acme_embedders:{spec}")
