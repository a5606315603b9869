"""The verbs of `Fabric` as an assistant has them: through MCP if there is a tool for them, otherwise over HTTP."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from muniment.client.connection import run_fields
from muniment.client.transport import _BY_CODE
from muniment.mcp import results
from muniment.mcp.tools import TOOLS
from muniment.model.candidate import Refusal
from muniment.model.capture import Receipt
from muniment.model.context import RunContext
from muniment.model.proposal import Submission
from tests.interfaces.assistant import Assistant, over_http
from tests.server_thread import RemoteFabric


class McpFabric(RemoteFabric):
    """Calls of runs go through MCP, each over a connection for that run; calls of people go over HTTP."""

    _assistants: dict[str, Assistant]

    def close(self) -> None:
        for assistant in self.__dict__.get("_assistants", {}).values():
            assistant.__exit__(None, None, None)
        super().close()

    def _assistant(self, run: RunContext) -> Assistant:
        known = self.__dict__.setdefault("_assistants", {})
        said = to_json({"agent": run.agent_id, "tenant": run.tenant_id, **run_fields(run)}).decode()
        if said not in known:
            header = to_json(run_fields(run)).decode()
            token = self.__dict__.setdefault("_tokens", {}).get((run.tenant_id, run.agent_id)) or self.token(run)
            self.__dict__["_tokens"][run.tenant_id, run.agent_id] = token
            known[said] = over_http(self.url, token, run=header).__enter__()
        return known[said]

    def __getattr__(self, name: str) -> Any:
        remote = super().__getattr__(name)
        if name not in TOOLS:
            return remote

        def call(asker: Any, *args: Any, **kwargs: Any) -> Any:
            given = dict(zip(("query",), args, strict=False)) | kwargs
            arguments = {key: value for key, value in given.items() if value is not None}
            offered = TOOLS[name].arguments.model_fields
            if not isinstance(asker, RunContext) or not arguments.keys() <= offered.keys():
                return remote(asker, *args, **kwargs)
            sent = TypeAdapter(Any).dump_python(arguments, mode="json")
            if name in BRIEF:
                return self._read(remote, asker, name, given, sent)
            made = self._asked(asker, name, sent)
            return _receipt(made) if name == "capture" else _made(made, arguments)

        return call

    def _asked(self, run: RunContext, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = self._assistant(run).call(tool, **arguments)
        if answer.is_error:
            error = answer.structured_content["error"]
            raise _BY_CODE[error["code"]](error["message"], field=error.get("field"))
        self.through[tool] = self.through.get(tool, 0) + 1
        return answer.structured_content

    def _read(self, remote: Any, run: RunContext, name: str, given: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """What a tool gives is brief: it must be the brief form of what the same call gives over HTTP."""
        brief = self._asked(run, name, arguments)
        whole = remote(run, **given)
        # A recall has an id of its own each time, and a notice is given once.
        once = {"recall_id", "compile_id", "your_proposals"} if name != "explain" else set()
        expected = BRIEF[name](whole)
        assert _without(brief, once) == _without(expected, once)
        return whole.model_copy(update={"recall_id": brief["recall_id"]}) if name != "explain" else whole

    @property
    def through(self) -> dict[str, int]:
        """How often each tool was asked."""
        return self.__dict__.setdefault("_through", {})


BRIEF: dict[str, Callable[[Any], dict[str, Any]]] = {
    "recall": results.recall,
    "compile": results.compiled,
    "explain": results.explanation,
}


def _without(brief: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in brief.items() if name not in names}


def _receipt(made: dict[str, Any]) -> Receipt:
    return Receipt(made["capture_id"], 0, datetime.min.replace(tzinfo=UTC), made.get("repeated", False))


def _made(made: dict[str, Any], arguments: dict[str, Any]) -> Submission | Refusal:
    """What became of a proposal, as far as a tool tells."""
    if made["outcome"] == "refused":
        reasons = {"gate": made["gate"], "reason": made["reason"], "rejection": made.get("repeats")}
        return Refusal(capture_id=made["capture_id"], at=datetime.min.replace(tzinfo=UTC), **reasons)
    status = "pending" if made["outcome"] == "waits" else made["outcome"]
    ids = {"proposal_id": made["proposal_id"], "capture_id": made["capture_id"]}
    return Submission(**ids, write_class=arguments.get("write_class", "statement"), status=status)
