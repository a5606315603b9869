"""Finds the embedder that a setting names: the built-in one, a model in a folder, a server, or a Python object."""

from importlib import import_module
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

from muniment.errors import EmbedderUnavailable, InvalidInput, MunimentError
from muniment.language.embedding.function import check_dimensions, check_name
from muniment.language.embedding.sentence import SentenceTransformerEmbedder
from muniment.language.embedding.static import Embedder, builtin_embedder

Number = TypeVar("Number", int, float)

FIELD = "embedder"
_FORMS = (
    "builtin, sentence-transformers:/folder, http://host:port/v1#model=...&dimensions=..., https likewise, "
    "or python:package.module:attribute"
)
_SERVER_OPTIONS = ("model", "dimensions", "version", "timeout", "deadline", "allow_private")


def find_embedder(spec: str | Embedder | None) -> Embedder:
    """Return the embedder that a setting names; an embedder is returned as it is, if its name and dimensions are valid.

    Raises `InvalidInput` with the field `embedder` for a setting that names none, and `EmbedderUnavailable` when the
    embedder cannot be loaded, as when its package is not installed. A server is not called yet.
    """
    if spec is None:
        return builtin_embedder()
    try:
        return _named(spec.strip()) if isinstance(spec, str) else _checked(spec)
    except InvalidInput as error:
        inner = f"{error.field}: " if error.field not in (None, FIELD) else ""
        raise InvalidInput(f"{inner}{error.message}", field=FIELD) from error.__cause__


def _named(spec: str) -> Embedder:
    scheme, _, rest = spec.partition(":")
    match scheme.lower():
        case "builtin" if scheme == spec:
            return builtin_embedder()
        case "sentence-transformers" if rest:
            return SentenceTransformerEmbedder(rest)
        case "http" | "https":
            return _server(spec)
        case "python":
            return _attribute(rest)
        case _:
            raise InvalidInput(f"expected {_FORMS}", field=FIELD)


def _server(spec: str) -> Embedder:
    # Imported here, as the built-in embedder needs no HTTP client.
    from muniment.language.embedding.http import DEADLINE, KEY_VARIABLE, TIMEOUT, HttpEmbedder

    url, _, said = spec.partition("#")
    pairs = parse_qsl(said, keep_blank_values=True)
    given = dict(pairs)
    # The message shows no values, as one may be a key.
    if (
        len(given) < len(pairs)
        or not given.keys() <= set(_SERVER_OPTIONS)
        or not {"model", "dimensions"} <= given.keys()
    ):
        raise InvalidInput(
            f"expected after the #, once each: model, dimensions and, if wanted, version, timeout, deadline, "
            f"allow_private; "
            f"a key goes into {KEY_VARIABLE}",
            field=FIELD,
        )
    return HttpEmbedder(
        url,
        model=given["model"],
        dimensions=_number(given["dimensions"], "dimensions", int),
        version=given.get("version"),
        timeout=_number(given.get("timeout", TIMEOUT), "timeout", float),
        deadline=_number(given.get("deadline", DEADLINE), "deadline", float),
        allow_private=_flag(given.get("allow_private", "false"), "allow_private"),
    )


def _number(said: str | float, name: str, kind: type[Number]) -> Number:
    try:
        return kind(said)
    except ValueError:
        raise InvalidInput("expected a number", field=name) from None


def _flag(said: str, name: str) -> bool:
    if said not in ("true", "false"):
        raise InvalidInput("expected true or false", field=name)
    return said == "true"


def _attribute(place: str) -> Embedder:
    module, _, attribute = place.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), attribute]):
        raise InvalidInput("expected python:package.module:attribute", field=FIELD)
    try:
        found: Any = getattr(import_module(module), attribute)
    except Exception as error:
        raise InvalidInput(f"{place} cannot be imported: {type(error).__name__}", field=FIELD) from error
    made = isinstance(found, type) or (callable(found) and not hasattr(found, "embed"))
    if not made:
        return _checked(found)
    try:
        return _checked(cast("Any", found)())
    except MunimentError:
        raise
    except Exception as error:
        raise EmbedderUnavailable(f"{place} raised {type(error).__name__} when called for an embedder") from error


def _checked(given: object) -> Embedder:
    if not callable(getattr(given, "embed", None)):
        raise InvalidInput(f"expected {_FORMS}, or an object with name, dimensions and embed", field=FIELD)
    embedder = cast("Embedder", given)
    check_name(getattr(embedder, "name", ""))
    check_dimensions(getattr(embedder, "dimensions", 0))
    return embedder
