"""OpenAI Agents SDK: a session around one of the SDK's own, memory before each call of the model, and function tools.

The history stays in the wrapped session. What is added to it is captured as well; what is remembered comes from memory
alone. `pop_item` and `clear_session` act on the history only. An erasure does not reach it: `clear_erased` clears it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from muniment.adapters.conversation import ASK, LABEL, RECALL, TOKENS, Conversation, Turn, texts_of
from muniment.errors import InvalidInput
from muniment.extras import require_framework
from muniment.memory.asynchronous import AsyncMemory
from muniment.memory.results import Added
from muniment.model.erasure import Erasure

require_framework("openai-agents")

from agents import FunctionTool, RunConfig, RunContextWrapper, TResponseInputItem, function_tool
from agents.memory import (
    OpenAIConversationsSession,
    Session,
    SessionSettings,
    SQLiteSession,
    is_openai_responses_compaction_aware_session,
)
from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData
from agents.tool_context import ToolContext

_USER_PARTS = ("input_text", "text")
_CALLS = ("function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")


class MunimentSession:
    """A session of the SDK whose user is remembered: `Runner.run(agent, text, session=s, run_config=s.run_config())`.

    `history` is the session that keeps the history, by default the SDK's SQLite session in memory.
    """

    def __init__(
        self,
        session_id: str,
        memory: AsyncMemory,
        history: Session | None = None,
        *,
        tokens: int = TOKENS,
        classification: str = LABEL,
    ) -> None:
        own_ways = isinstance(history, OpenAIConversationsSession) or is_openai_responses_compaction_aware_session(
            history
        )
        if own_ways:
            raise InvalidInput("expected a session that keeps its items itself, such as SQLiteSession", field="history")
        self.session_id = session_id
        self.history: Session = history if history is not None else SQLiteSession(session_id)
        self.session_settings: SessionSettings | None = self.history.session_settings
        self.conversation = Conversation(
            memory, session_id, framework="openai_agents", tokens=tokens, classification=classification
        )
        # The names of the tools that were called, by the id of the call, until their results are there.
        self._called: dict[str, str] = {}

    @property
    def added(self) -> Added:
        """What became of what was captured from the user's last turn on: promoted, waiting, refused, and why."""
        return self.conversation.added

    # ---- what the SDK calls ----

    async def get_items(
        self, limit: int | None = None, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """Return the history of the wrapped session."""
        return await self.history.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem], wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Add items to the wrapped session, and capture what they say.

        What a tool hands to an agent within it (`Agent.as_tool`) is written by a model, whatever role it has.
        """
        await self.history.add_items(items)
        is_users = not isinstance(wrapper, ToolContext)
        turns = [self._turn(cast("dict[str, Any]", item), is_users=is_users) for item in items]
        await self.conversation.capture(turn for turn in turns if turn is not None)

    async def pop_item(self, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        """Take the last item out of the wrapped session; what was captured or remembered of it stays."""
        return await self.history.pop_item()

    async def clear_session(self, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Clear the wrapped session; what was captured or remembered of it stays."""
        await self.history.clear_session()

    def _turn(self, item: dict[str, Any], *, is_users: bool) -> Turn | None:
        kind, role = item.get("type", "message"), item.get("role")
        call = str(item.get("call_id"))
        if kind in _CALLS:
            self._called[call] = str(item.get("name"))
        if kind in _RESULTS:
            output = item.get("output")
            return Turn("tool", texts_of(output), tool=self._called.pop(call, None))
        if kind != "message":
            return None
        content = item.get("content")
        if role != "user":
            return Turn("assistant" if role == "assistant" else "system", texts_of(content))
        if isinstance(content, list):
            parts = [cast("dict[str, Any]", one) for one in cast("list[Any]", content) if isinstance(one, dict)]
            content = [one for one in parts if one.get("type") in _USER_PARTS]
        return Turn("user" if is_users else "assistant", texts_of(content))

    # ---- memory before the run ----

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a run configuration that puts promoted memory before each call of the model, marked as data.

        It is added to the instructions of that call alone and is kept in no history. A filter that the configuration
        has already is applied first.
        """
        config = config if config is not None else RunConfig()
        return replace(config, call_model_input_filter=self._with_memory(config.call_model_input_filter))

    def _with_memory(self, first: CallModelInputFilter | None) -> CallModelInputFilter:
        async def with_memory(data: CallModelData[Any]) -> ModelInputData:
            given = data.model_data
            if first is not None:
                made = first(data)
                given = made if isinstance(made, ModelInputData) else await made
            known = await self.conversation.context(_question(given.input))
            instructions = "\n\n".join(part for part in (given.instructions, known) if part)
            return ModelInputData(input=given.input, instructions=instructions or None)

        return with_memory

    # ---- tools ----

    def tools(self) -> list[FunctionTool]:
        """Return the tools of the model: look up what is remembered, propose that something be remembered."""
        conversation = self.conversation

        async def recall_memory(query: str) -> str:
            return await conversation.recall(query)

        async def ask_to_remember(fact: str) -> str:
            return await conversation.ask_to_remember(fact)

        return [
            function_tool(recall_memory, description_override=RECALL),
            function_tool(ask_to_remember, description_override=ASK),
        ]


async def clear_erased(receipt: Erasure, sessions_of: Callable[[str], Iterable[Session]]) -> int:
    """Clear the sessions of a user who was erased, and return how many: no erasure reaches the SDK's own history.

    Call it with the receipt of each erasure; `sessions_of` returns the sessions of a user.
    """
    _, _, named = (receipt.subject or "").partition(":")
    users = dict.fromkeys(one for one in (receipt.user_id, named) if one)
    sessions = [session for user in users for session in sessions_of(user)]
    for session in sessions:
        await session.clear_session()
    return len(sessions)


def _question(items: Iterable[TResponseInputItem]) -> str | None:
    """Return what the user said last."""
    said = [cast("dict[str, Any]", item) for item in items]
    return next((texts_of(one.get("content")) for one in reversed(said) if one.get("role") == "user"), None)
