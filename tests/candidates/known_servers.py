"""Five known servers of language models on the loopback, each with its quirks by name.

They check requests as the real ones do and answer in their words, as documented or reported for:
OpenAI (reasoning models), Azure OpenAI (deployments, API versions), Ollama, vLLM (before and after 0.6.4) and llama.cpp's
`llama-server`. What a model would say is given by the test.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "sk-very-secret-0815"
Answer = tuple[int, Any]


@dataclass
class KnownServer:
    """A running server: `quirks` are those that it shows, `says` what its model says, `met` the quirks a request met."""

    kind: str
    quirks: frozenset[str] = frozenset()
    says: str | Callable[[dict[str, Any]], str] = '{"facts": []}'
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    met: list[str] = field(default_factory=list[str])
    url: str = ""

    @property
    def said(self) -> str:
        """What its model says to the last request."""
        return self.says if isinstance(self.says, str) else self.says(self.asked[-1])

    def has(self, quirk: str) -> bool:
        """Whether it shows a quirk; notes that a request met it."""
        if quirk not in QUIRKS[self.kind]:
            raise KeyError(quirk)
        if quirk in self.quirks:
            self.met.append(quirk)
        return quirk in self.quirks

    def completion(self, content: Any, *, ended: str = "stop", **more: Any) -> Answer:
        message = {"role": "assistant", "content": content, **more}
        choice = {"index": 0, "message": message, "finish_reason": ended}
        return 200, {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


# ---- the quirks of each, by name ----

QUIRKS: dict[str, dict[str, str]] = {
    "openai": {
        "max_tokens refused": "reasoning models take max_completion_tokens alone",
        "temperature refused": "reasoning models take their default temperature alone",
        "system refused": "o1-mini takes no message of role system",
        "refusal": "content is null, and `refusal` says why",
        "reasoned it away": "all tokens went into reasoning: finish_reason length, no content",
    },
    "azure": {
        "old version": "an api-version before 2024-08-01-preview: no json_schema, no max_completion_tokens, no seed",
        "content filter": "a prompt is held back with 400 and code content_filter",
        "no deployment": "404 DeploymentNotFound",
    },
    "ollama": {
        "unknown names pass": "max_completion_tokens is passed over in silence: only max_tokens bounds an answer",
        "thinks in content": "versions before `reasoning`: the thinking stands in the content",
        "fences": "models without a grammar wrap their JSON in a code fence",
        "not pulled": "404 for a model that is not there",
    },
    "vllm": {
        "extra forbidden": "before 0.6.4: parameters that it does not know are refused, and quoted",
        "short context": "the tokens asked for do not fit the context",
        "no system role": "chat templates such as Gemma's raise for role system",
        "thinking ends only": "the template opens <think>, so only </think> is in the content",
        "no guided decoding": "the backend cannot compile the schema",
    },
    "llama.cpp": {
        "loading": "503 while the model is loaded",
        "json_schema is an error of the server": "builds that answer 500 to response_format json_schema",
        "format not enforced": "200 and talk around the JSON, although json_object was asked for",
        "keys of its own": "keys are missing, and others are there",
    },
}


# ---- what each does with a request ----


def _openai(server: KnownServer, request: dict[str, Any], headers: Any, path: str) -> Answer:
    def wrong(message: str, param: str | None, code: str) -> Answer:
        return 400, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}

    if path != "/v1/chat/completions":
        return 404, {"error": {"message": f"Invalid URL (POST {path})", "type": "invalid_request_error"}}
    if headers["Authorization"] != f"Bearer {KEY}":
        given = (headers["Authorization"] or "").removeprefix("Bearer ")
        shown = f"{given[:8]}{'*' * 8}{given[-4:]}"
        message = f"Incorrect API key provided: {shown}. You can find your API key at https://platform.openai.com."
        return 401, {"error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}}
    if "max_tokens" in request and server.has("max_tokens refused"):
        return wrong(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    if request.get("temperature", 1) != 1 and server.has("temperature refused"):
        message = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
        return wrong(message, "temperature", "unsupported_value")
    if request["messages"][0]["role"] == "system" and server.has("system refused"):
        message = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
        return wrong(message, "messages[0].role", "unsupported_value")
    if (problem := _schema_problem(request)) is not None:
        return wrong(f"Invalid schema for response_format 'facts': {problem}", "response_format", "invalid_value")
    if server.has("refusal"):
        return server.completion(None, refusal="I'm sorry, I can't help with that.")
    if server.has("reasoned it away"):
        return server.completion("", ended="length", refusal=None)
    return server.completion(server.said, refusal=None)


def _schema_problem(request: dict[str, Any]) -> str | None:
    """What OpenAI finds wrong with a strict schema: every key required, nothing else allowed."""
    format_ = request.get("response_format", {})
    if format_.get("type") != "json_schema" or not format_["json_schema"].get("strict"):
        return None
    left = [format_["json_schema"]["schema"]]
    while left:
        one = left.pop()
        if one.get("type") == "object":
            if one.get("additionalProperties") is not False:
                return "'additionalProperties' is required to be supplied and to be false."
            if sorted(one.get("required", [])) != sorted(one["properties"]):
                return "'required' is required to be supplied and to be an array including every key in properties."
            left += one["properties"].values()
        elif one.get("type") == "array":
            left.append(one["items"])
    return None


def _azure(server: KnownServer, request: dict[str, Any], headers: Any, path: str) -> Answer:
    parts = urlsplit(path)
    version = parse_qs(parts.query).get("api-version", [""])[0]
    if headers["api-key"] != KEY:
        message = "Access denied due to invalid subscription key or wrong API endpoint."
        return 401, {"error": {"code": "401", "message": message}}
    if parts.path != "/openai/deployments/small/chat/completions" or not version:
        return 404, {"error": {"code": "404", "message": "Resource not found"}}
    if server.has("no deployment"):
        message = "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again."
        return 404, {"error": {"code": "DeploymentNotFound", "message": message}}
    if version < "2024-08-01" and server.has("old version"):
        if request.get("response_format", {}).get("type") == "json_schema":
            message = (
                "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"
            )
            return 400, {"error": {"code": "BadRequest", "message": message, "param": None, "type": None}}
        for name in ("max_completion_tokens", "seed"):
            if name in request:
                message = f"Unrecognized request argument supplied: {name}"
                return 400, {
                    "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}
                }
    if server.has("content filter"):
        message = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry."
        return 400, {
            "error": {"message": message, "type": None, "param": "prompt", "code": "content_filter", "status": 400}
        }
    filters = {"hate": {"filtered": False, "severity": "safe"}}
    status, body = server.completion(server.said)
    body["choices"][0]["content_filter_results"] = filters
    return status, body | {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filters}]}


def _ollama(server: KnownServer, request: dict[str, Any], headers: Any, path: str) -> Answer:
    if path != "/v1/chat/completions":
        return 404, {"error": {"message": "404 page not found", "type": "not_found_error", "param": None, "code": None}}
    if server.has("not pulled"):
        message = f'model "{request["model"]}" not found, try pulling it first'
        return 404, {"error": {"message": message, "type": "not_found_error", "param": None, "code": None}}
    if "max_tokens" not in request and server.has("unknown names pass"):
        return server.completion(server.said + " " * (1 << 22), ended="stop")
    if server.has("thinks in content"):
        return server.completion(f'<think>\nThe user said {{"facts": "?"}}, hm.\n</think>\n\n{server.said}')
    if server.has("fences"):
        return server.completion(f"Here are the facts:\n\n```json\n{server.said}\n```\n")
    status, body = server.completion(server.said, reasoning="They state a preference.")
    return status, body | {"system_fingerprint": "fp_ollama"}


_KNOWN_TO_OLD_VLLM = {"model", "messages", "max_tokens", "temperature", "response_format"}


def _vllm(server: KnownServer, request: dict[str, Any], headers: Any, path: str) -> Answer:
    def wrong(message: str, code: int = 400, kind: str = "BadRequestError") -> Answer:
        return code, {"object": "error", "message": message, "type": kind, "param": None, "code": code}

    if headers["Authorization"] != f"Bearer {KEY}":
        return 401, {"error": "Unauthorized"}
    extra = [name for name in request if name not in _KNOWN_TO_OLD_VLLM]
    if extra and server.has("extra forbidden"):
        found = [
            {
                "type": "extra_forbidden",
                "loc": ("body", name),
                "msg": "Extra inputs are not permitted",
                "input": request[name],
            }
            for name in extra
        ]
        return wrong(str(found))
    if request["messages"][0]["role"] == "system" and server.has("no system role"):
        return wrong("System role not supported")
    if request.get("max_tokens", 0) + 400 > 1024 and server.has("short context"):
        asked = request["max_tokens"]
        return wrong(
            f"This model's maximum context length is 1024 tokens. However, you requested {400 + asked} tokens (400 in the"
            f" messages, {asked} in the completion). Please reduce the length of the messages or completion."
        )
    if request.get("response_format", {}).get("type") == "json_schema" and server.has("no guided decoding"):
        return wrong("Grammar error: Unimplemented keys: ['additionalProperties']")
    if server.has("thinking ends only"):
        return server.completion(f"They say what they like.\n</think>\n\n{server.said}", reasoning_content=None)
    return server.completion(server.said, reasoning_content="They say what they like.", tool_calls=[])


def _llama_cpp(server: KnownServer, request: dict[str, Any], headers: Any, path: str) -> Answer:
    if server.has("loading") and server.met.count("loading") == 1:
        return 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    format_ = request.get("response_format", {}).get("type", "text")
    if format_ == "json_schema" and server.has("json_schema is an error of the server"):
        message = 'response_format type must be one of "text" or "json_object", but got: json_schema'
        return 500, {"error": {"code": 500, "message": message, "type": "server_error"}}
    if server.has("format not enforced"):
        return server.completion(f"Sure! The list [1] of facts is: {server.said} I hope this helps.")
    if server.has("keys of its own"):
        facts = [{"quote": one["quote"], "mood": "happy"} for one in json.loads(server.said)["facts"]]
        return server.completion(json.dumps({"facts": facts, "explanation": "none"}))
    return server.completion(server.said)


_ANSWERS: dict[str, Callable[[KnownServer, dict[str, Any], Any, str], Answer]] = {
    "openai": _openai,
    "azure": _azure,
    "ollama": _ollama,
    "vllm": _vllm,
    "llama.cpp": _llama_cpp,
}


@contextmanager
def known_server(
    kind: str, *quirks: str, said: str | Callable[[dict[str, Any]], str] = '{"facts": []}'
) -> Generator[KnownServer]:
    """Run one of the five with these quirks."""
    running = KnownServer(kind, frozenset(quirks), said)
    assert running.quirks <= QUIRKS[kind].keys()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            running.asked.append(request)
            status, body = _ANSWERS[kind](running, request, self.headers, self.path)
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    running.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
