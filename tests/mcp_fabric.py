"""The verbs of `Fabric` as an assistant has them: through MCP if there is a tool for them, otherwise over HTTP."""

from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from muniment.client.connection import run_fields
from muniment.client.transport import _BY_CODE
from muniment.mcp.tools import TOOLS, Proposed
from muniment.model.context import RunContext
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
            arguments = dict(zip(("query",), args, strict=False)) | kwargs
            arguments = {key: value for key, value in arguments.items() if value is not None}
            offered = TOOLS[name].arguments.model_fields
            if not isinstance(asker, RunContext) or not arguments.keys() <= offered.keys():
                return remote(asker, *args, **kwargs)
            return self._asked(asker, name, TypeAdapter(Any).dump_python(arguments, mode="json"))

        return call

    def _asked(self, run: RunContext, tool: str, arguments: dict[str, Any]) -> Any:
        answer = self._assistant(run).call(tool, **arguments)
        if answer.is_error:
            error = answer.structured_content["error"]
            raise _BY_CODE[error["code"]](error["message"], field=error.get("field"))
        self.through[tool] = self.through.get(tool, 0) + 1
        found = TypeAdapter(TOOLS[tool].result).validate_python(answer.structured_content, extra="ignore")
        return (found.submission or found.refusal) if isinstance(found, Proposed) else found

    @property
    def through(self) -> dict[str, int]:
        """How often each tool was asked."""
        return self.__dict__.setdefault("_through", {})
