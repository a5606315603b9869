"""Muniment's built-in embedder inside a peer's environment, where Muniment itself is not installed."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

DIMENSIONS = 256


def _bare_packages() -> None:
    """Let `static.py` be imported without the two `__init__.py` above it, which want all that Muniment needs."""
    source = Path(__file__).parents[2] / "src"
    for name in ("muniment", "muniment.language.embedding"):
        package = ModuleType(name)
        package.__path__ = [str(source.joinpath(*name.split(".")))]
        sys.modules.setdefault(name, package)


_bare_packages()

from muniment.language.embedding.static import builtin_embedder  # noqa: E402  the packages have to be there first

# Loaded before anything is timed.
_embedder = builtin_embedder()


def embed(texts: Sequence[str]) -> list[list[float]]:
    """One vector per text, as lists, which is what all peers take."""
    return _embedder.embed(list(texts)).tolist()
