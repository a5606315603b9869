"""The language models that the operator configures: the address, key and limits of each (ISO-7).

A pack only names one of them. A key is sent to the address it was set for and to no other. An address is allowed by
standing in the server's own settings, one on this machine too.
"""

import json
import os
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Self, cast
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from muniment import outbound
from muniment.candidates.extractors.model_dialect import Dialect
from muniment.candidates.extractors.model_names import Kind, settings_in
from muniment.errors import InvalidInput
from muniment.model.fields import field_error, invalid
from muniment.pack.durations import Duration
from muniment.pack.fields import PositiveCount, TokenCount

VARIABLE, DEFAULT_VARIABLE = "MUNIMENT_MODELS", "MUNIMENT_MODEL"
FIELD = "models"
# The name of the model that MUNIMENT_MODEL sets.
DEFAULT = "default"
_MOST = 256
_MOST_BYTES = 1 << 20
_KEY = r"[!-~]{1,4096}"


def _key(value: str) -> str:
    if not re.fullmatch(_KEY, value):
        raise ValueError("has characters that no key has")
    return value


Key = Annotated[str, AfterValidator(_key)]

_ADDRESS = (
    r"https?://(?:[A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?"
    r"(?:/[!-~]{0,400})?(?:\?[!-~]{1,400})?"
)


def _address(value: str) -> str:
    path, mark, query = value.partition("?")
    if not re.fullmatch(_ADDRESS, value) or any(sign in value for sign in "@#") or "?" in query:
        # Not shown: there could be a password in it.
        raise ValueError("expected http://host:port/path or https, without a password or a #")
    return path.rstrip("/").removesuffix("/chat/completions") + mark + query


Address = Annotated[str, AfterValidator(_address)]
# Servers name their models as they like, after files too.
ServerName = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
_AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


class ModelSettings(BaseModel):
    """The settings of one model. The key is given directly, by the name of a variable, or in a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Address = Field(
        repr=False, description="the part of the address before /chat/completions, with its query string if it has one"
    )
    kind: Kind | None = Field(
        default=None, description="the kind of server, which says how its key is sent; told by the address if not said"
    )
    model: ServerName | None = Field(default=None, description="the model's name there; its own name when not said")
    key: Key | None = Field(default=None, repr=False, description="the key that its server takes")
    key_env: str | None = Field(default=None, description="the variable of the environment that holds the key")
    key_file: Path | None = Field(default=None, description="the file that holds the key")
    timeout: Duration = Field(default=timedelta(seconds=30), description="longest a whole answer may take")
    max_tokens: TokenCount = Field(default=4096, description="most tokens of an answer")
    calls_a_minute: PositiveCount | None = Field(
        default=None, description="most calls a minute and process, of all tenants together; no bound when not said"
    )
    allow_private: bool = Field(
        default=True, description="false: only an address of the internet, over https, is called"
    )

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if sum(one is not None for one in (self.key, self.key_env, self.key_file)) > 1:
            raise field_error("key", "give one of key, key_env and key_file")
        if not self.allow_private:
            try:
                outbound.parse(self.url, allow_private=False)
                refused = outbound.is_private_host(self.url)
            except InvalidInput:
                refused = True
            if refused:
                raise field_error("url", "expected a public address over https; allow_private: true allows any")
        return self

    @property
    def address(self) -> str:
        """Where requests go."""
        path, mark, query = self.url.partition("?")
        return f"{path}/chat/completions{mark}{query}"

    @property
    def server(self) -> Kind:
        """The kind of server: the one that was set, else by the address."""
        if self.kind is not None:
            return self.kind
        return "azure" if (urlsplit(self.url).hostname or "").endswith(_AZURE_HOSTS) else "openai"

    def secret(self) -> str:
        """Return the key, empty for none; raises `InvalidInput` if it is missing."""
        if self.key_env is not None:
            found = os.environ.get(self.key_env, "").strip()
            where = f"the variable {self.key_env}"
        elif self.key_file is not None:
            try:
                found = self.key_file.expanduser().read_text("ascii").strip()
            except (OSError, ValueError):
                found = ""
            where = f"the file {self.key_file}"
        else:
            return self.key or ""
        if not re.fullmatch(_KEY, found):
            raise InvalidInput(f"expected a key in {where}", field="key")
        return found


class NamedModel:
    """A configured model, the times of its calls in the last minute, and what its server was found to refuse."""

    def __init__(self, name: str, settings: ModelSettings) -> None:
        self.name, self.settings = name, settings
        self.secret = settings.secret()
        self.dialect = Dialect.of(settings.server)
        # The failure that was last told to the operator.
        self.reported = ""
        self._calls: deque[float] = deque()

    def __repr__(self) -> str:
        # Without the query string, which may hold a key.
        return f"NamedModel({self.name!r}, {self.settings.url.partition('?')[0]!r})"

    @property
    def model(self) -> str:
        """The name of the model at its server."""
        return self.settings.model or self.name

    def take_turn(self) -> bool:
        """Count a call and return True, unless the calls of this minute are used up."""
        most, now = self.settings.calls_a_minute, time.monotonic()
        if most is None:
            return True
        while self._calls and self._calls[0] <= now - 60:
            self._calls.popleft()
        if len(self._calls) >= most:
            return False
        self._calls.append(now)
        return True


class Models:
    """The configured models by their names; caches are keyed by its identity."""

    def __init__(self, named: Mapping[str, NamedModel] | None = None) -> None:
        self._named = dict(named or {})
        # The extractors whose model took longer than others wait for it, when it was last asked.
        self.slow: set[str] = set()

    def __repr__(self) -> str:
        return f"Models({', '.join(sorted(self._named))})"

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._named))

    def get(self, name: str) -> NamedModel | None:
        """Return the model of that name."""
        return self._named.get(name)

    @classmethod
    def gather(cls, given: "Models | Mapping[str, Any] | str | Path | None") -> "Models":
        """Read models from a mapping, JSON text, or a JSON or YAML file; a model may also be one line.

        When nothing is given, they are those of MUNIMENT_MODELS, and `default` is the one of MUNIMENT_MODEL.
        Raises `InvalidInput` naming the model and the field. No message shows a key.
        """
        if isinstance(given, Models):
            return given
        source = os.environ.get(VARIABLE, "").strip() or None if given is None else given
        line = os.environ.get(DEFAULT_VARIABLE, "").strip() if given is None else ""
        document = dict(source if isinstance(source, Mapping) else _read(source) if source is not None else {})
        if line and DEFAULT in document:
            raise InvalidInput(f"{VARIABLE} has a model {DEFAULT} too; expected one of the two", field=DEFAULT_VARIABLE)
        if len(document) > _MOST:
            raise InvalidInput(f"at most {_MOST} models are taken", field=FIELD)
        named = {name: _named(name, settings) for name, settings in document.items()}
        return cls(named | ({DEFAULT: _named(DEFAULT, line, DEFAULT_VARIABLE)} if line else {}))


def _named(name: Any, given: Any, place: str | None = None) -> NamedModel:
    """Return a model of settings or of one line; `place` is the setting that they stand in."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}", name):
        raise InvalidInput("expected names of up to 100 letters, digits and ._:/-", field=FIELD)
    place = place or f"{FIELD}.{name}"
    if not isinstance(given, Mapping | str):
        raise InvalidInput("expected one line, or a mapping with url and, if wanted, key_env, model", field=place)
    try:
        settings = settings_in(given) if isinstance(given, str) else dict(cast("Mapping[str, Any]", given))
        return NamedModel(name, ModelSettings.model_validate(settings))
    except ValidationError as error:
        raise invalid(error, within=place) from None
    except InvalidInput as error:
        error.field = f"{place}.{error.field}"
        raise


def _read(source: str | Path) -> Mapping[str, Any]:
    text = source if isinstance(source, str) and source.lstrip().startswith("{") else _text(Path(source))
    try:
        found: Any = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        raise InvalidInput("expected JSON or YAML: a mapping of names to their settings", field=FIELD) from None
    if not isinstance(found, dict):
        raise InvalidInput("expected a mapping of names to their settings", field=FIELD)
    return cast("dict[str, Any]", found)


def _text(path: Path) -> str:
    try:
        with path.expanduser().open("rb") as stream:
            found = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError):
        raise InvalidInput(f"there is no file of models to be read at {path}", field=FIELD) from None
    if len(found) > _MOST_BYTES:
        raise InvalidInput(f"the file of models is longer than {_MOST_BYTES} bytes", field=FIELD)
    return found.decode("utf-8", "replace")
