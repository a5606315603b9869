"""What a model's server accepts: the parameters of a request, and which of them to leave out after a refusal.

Servers of one API differ. OpenAI's reasoning models take `max_completion_tokens` and no temperature; early versions of
vLLM and of Azure's API refuse parameters that they do not know; some builds of llama.cpp answer 500 to `json_schema`.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from muniment.candidates.extractors.model_names import Kind

SEED = 7
Format = Literal["json_schema", "json_object"]
_TOKENS = ("max_tokens", "max_completion_tokens")

# By which words a server says what it refuses; the first that matches is left out.
_REFUSED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("system", re.compile(r"system role|role.{0,40}\bsystem\b|messages\[0\]\.role|system message", re.IGNORECASE)),
    (
        "formats",
        re.compile(r"response_?format|json_?schema|json_?object|structured.output|guided|grammar", re.IGNORECASE),
    ),
    ("seed", re.compile(r"\bseed\b", re.IGNORECASE)),
    ("temperature", re.compile(r"\btemperature\b", re.IGNORECASE)),
    ("tokens", re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE)),
)
# The number of tokens is refused for this request, not the parameter.
_TOO_MANY = re.compile(r"too (?:large|long|many)|context (?:length|window|size)|exceed|at most|maximum", re.IGNORECASE)


@dataclass(frozen=True)
class Question:
    """What a model is asked: an instruction, the data, and the JSON Schema of the answer.

    `about` is whom the instruction names.
    """

    name: str
    instruction: str
    data: str
    schema: dict[str, Any]
    max_tokens: int
    about: str = ""


@dataclass(frozen=True)
class Dialect:
    """The parameters that a server takes, as far as is known: of `tokens` and `formats` the first is used."""

    tokens: tuple[str, ...] = _TOKENS
    formats: tuple[Format, ...] = ("json_schema", "json_object")
    temperature: bool = True
    seed: bool = True
    system: bool = True

    @classmethod
    def of(cls, kind: Kind) -> "Dialect":
        """Return what to try first. Ollama takes `max_tokens` alone and passes over the other name in silence."""
        return cls(tokens=_TOKENS[::-1]) if kind in ("openai", "azure") else cls()

    def request(self, model: str, question: Question) -> bytes:
        """Write the body of a request."""
        said = {"role": "user", "content": question.data}
        body: dict[str, Any] = {"model": model}
        if self.system:
            body["messages"] = [{"role": "system", "content": question.instruction}, said]
        else:
            body["messages"] = [{"role": "user", "content": f"{question.instruction}\n\n{question.data}"}]
        if self.tokens:
            body[self.tokens[0]] = question.max_tokens
        if self.temperature:
            body["temperature"] = 0
        if self.seed:
            body["seed"] = SEED
        if self.formats[:1] == ("json_schema",):
            schema = {"name": question.name, "strict": True, "schema": question.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.formats:
            body["response_format"] = {"type": "json_object"}
        return json.dumps(body).encode()

    def without(self, refused: str) -> "Dialect | None":
        """Return the dialect without what a server's words refuse; None if they name no parameter that was sent."""
        for name, words in _REFUSED:
            sent = getattr(self, name)
            if sent and words.search(refused):
                return replace(self, **{name: sent[1:] if isinstance(sent, tuple) else False})
        return None

    def bare(self) -> "Dialect":
        """Return the dialect with nothing that a server has to know of, for refusals that name nothing."""
        return replace(self, formats=(), temperature=False, seed=False)


def is_about_length(refused: str) -> bool:
    """Whether a server finds the answer too long for its context: the parameter is left out of this request alone."""
    return _TOO_MANY.search(refused) is not None and re.search(r"token", refused, re.IGNORECASE) is not None
