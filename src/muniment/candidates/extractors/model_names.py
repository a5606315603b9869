"""A language model in one line: a known kind of server with the model's name, or an address (MUNIMENT_MODEL).

    openai:gpt-5-mini                           the key is in OPENAI_API_KEY
    azure:my-deployment                         AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY
    ollama:llama3.2:3b                          on this machine, or where OLLAMA_HOST says
    vllm:Qwen/Qwen3-8B@http://gpu:8000/v1       any of them may say its address
    http://localhost:8080/v1#model=small        any other server with /chat/completions

Behind a # more settings may follow, such as `key_env=VARIABLE&timeout=20s`.
"""

import os
import re
from collections.abc import Callable
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl

from muniment.errors import InvalidInput

Kind = Literal["openai", "azure", "ollama", "vllm", "llama.cpp"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_OPENAI = "https://api.openai.com/v1"
# The first general version of Azure's API whose models may be asked for a JSON Schema.
_AZURE_VERSION = "2024-10-21"
_COUNTS = ("max_tokens", "calls_a_minute")
_OPTIONS = ("model", "key_env", "key_file", "timeout", "allow_private", *_COUNTS)
_EXPECTED = (
    "expected openai:NAME, azure:NAME, ollama:NAME, vllm:NAME or llama.cpp:NAME, with @ and an address if it is not the"
    " usual one, or an address such as http://localhost:8000/v1#model=NAME"
)


def settings_in(line: str) -> dict[str, Any]:
    """Return the settings that one line names; raises `InvalidInput`.

    A key of the environment is taken only for the usual address of its kind of server, which it belongs to.
    """
    place, _, options = line.strip().partition("#")
    said = _options(options)
    if re.match(r"https?://", place):
        return {"url": place, **said}
    kind, _, rest = place.partition(":")
    name, _, address = rest.partition("@") if re.search(r"@https?://", rest) else (rest, "", "")
    if kind not in KINDS or not name:
        raise InvalidInput(_EXPECTED, field="url")
    usual = {"url": address} if address else _USUAL[kind]()
    if kind == "azure":
        usual["url"] = _azure_address(usual["url"], name)
    if "key_env" in said or "key_file" in said:
        usual.pop("key_env", None)
    return {"kind": kind, "model": name, **usual, **said}


def _options(text: str) -> dict[str, Any]:
    try:
        found = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True)) if text else {}
    except ValueError:
        found = {text: ""}
    if unknown := [name for name in found if name not in _OPTIONS]:
        raise InvalidInput(f"expected {', '.join(_OPTIONS)} behind the #", field=unknown[0] or "url")
    options: dict[str, Any] = dict(found)
    for name in _COUNTS:
        if name in options and options[name].isdecimal():
            options[name] = int(options[name])
    if "allow_private" in options:
        options["allow_private"] = {"true": True, "false": False}.get(options["allow_private"])
    return options


def _openai() -> dict[str, Any]:
    return {"url": _OPENAI, "key_env": "OPENAI_API_KEY"}


def _azure() -> dict[str, Any]:
    endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip()
    if not endpoint:
        raise InvalidInput("expected the address of the resource in AZURE_OPENAI_ENDPOINT, or behind an @", field="url")
    return {"url": endpoint, "key_env": "AZURE_OPENAI_API_KEY"}


def _azure_address(endpoint: str, deployment: str) -> str:
    """Return the address of a deployment; one that says the path already is taken as it is."""
    address, _, query = endpoint.partition("?")
    address = address.rstrip("/")
    if address.endswith("/openai/v1") or "/deployments/" in address:
        return endpoint.rstrip("/")
    version = query or f"api-version={os.environ.get('OPENAI_API_VERSION', '').strip() or _AZURE_VERSION}"
    return f"{address.removesuffix('/openai')}/openai/deployments/{deployment}?{version}"


def _ollama() -> dict[str, Any]:
    host = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/") or "127.0.0.1:11434"
    scheme, _, rest = host.rpartition("://")
    # The address that it listens on when it listens on all.
    rest = rest.replace("0.0.0.0", "127.0.0.1", 1)  # noqa: S104  nothing is bound to it
    usual_port = "" if scheme or re.search(r":[0-9]+$", rest) else ":11434"
    return {"url": f"{scheme or 'http'}://{rest}{usual_port}/v1"}


def _vllm() -> dict[str, Any]:
    key = {"key_env": "VLLM_API_KEY"} if os.environ.get("VLLM_API_KEY", "").strip() else {}
    return {"url": "http://127.0.0.1:8000/v1", **key}


def _llama_cpp() -> dict[str, Any]:
    key = {"key_env": "LLAMA_API_KEY"} if os.environ.get("LLAMA_API_KEY", "").strip() else {}
    return {"url": "http://127.0.0.1:8080/v1", **key}


_USUAL: dict[str, Callable[[], dict[str, Any]]] = {
    "openai": _openai,
    "azure": _azure,
    "ollama": _ollama,
    "vllm": _vllm,
    "llama.cpp": _llama_cpp,
}
