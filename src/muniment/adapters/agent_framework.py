"""Microsoft Agent Framework: a context provider that captures each run, and puts promoted memory before it."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

from muniment.adapters.conversation import ASK, LABEL, RECALL, TOKENS, Conversation, Conversations, Place, Turn
from muniment.extras import require_framework

require_framework("agent-framework")

from agent_framework import (
    AgentSession,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    SessionContext,
    SupportsAgentRun,
    function_middleware,
    tool,
)

SOURCE = "muniment"
UserOf: TypeAlias = Callable[[AgentSession], str]
# Whether a tool is being called by an agent that is captured: a run that it starts is given a model's words.
_within: ContextVar[bool] = ContextVar("muniment.within_a_tool", default=False)


class MunimentProvider(ContextProvider):
    """A context provider: `Agent(client, context_providers=[MunimentProvider(memory)])`.

    `place` is the memory of one user, or a fabric or client of many; `user_of` then says whose session it is. With
    `tools` the model also gets the tools `recall_memory` and `ask_to_remember`. `options` are those of
    `AsyncMemory.over`. After each run `state["pending"]` says how much of the conversation waits.
    """

    def __init__(
        self,
        place: Place,
        *,
        user_of: UserOf | None = None,
        tools: bool = True,
        tokens: int = TOKENS,
        classification: str = LABEL,
        source_id: str = SOURCE,
        **options: Any,
    ) -> None:
        super().__init__(source_id)
        self._user_of, self._has_tools = user_of, tools
        self._threads = Conversations(
            place, framework="agent_framework", tokens=tokens, classification=classification, **options
        )

    async def conversation(self, session: AgentSession) -> Conversation:
        """Return the conversation of a session; its `added` says what was promoted, what waits and what was refused."""
        user = self._user_of(session) if self._user_of is not None else None
        return await self._threads.of(user, session.session_id)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Capture what the run is given, and add promoted memory to its instructions, marked as data."""
        conversation = await self.conversation(session)
        user = conversation.memory.run.user_id
        asked = [message.text for message in context.input_messages if message.role == "user"]
        await conversation.capture(_input_turns(context.input_messages, user))
        if known := await conversation.context(asked[-1] if asked else None):
            context.extend_instructions(self.source_id, known)
        if self._has_tools:
            context.extend_tools(self.source_id, _tools(conversation))
        context.extend_middleware(self.source_id, _calls_are_within)

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Capture what the model said and the tools returned, and note how much waits."""
        conversation = await self.conversation(session)
        if context.response is not None:
            await conversation.capture(_answered(context.response.messages))
        waits = await conversation.pending()
        state["pending"] = {"waiting": len(waits.waiting), "unread": waits.unread}


@function_middleware
async def _calls_are_within(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    before = _within.set(True)
    try:
        await call_next()
    finally:
        _within.reset(before)


def _input_turns(messages: Sequence[Message], user: str | None) -> Iterator[Turn]:
    """Yield what a run is given.

    A message of the role `user` is the user's, unless it names somebody else as its author, as the messages of other
    agents in an orchestration do, or a tool of a captured run started this one.
    """
    for message in messages:
        is_users = message.role == "user" and message.author_name in (None, user) and not _within.get()
        if is_users:
            yield Turn("user", message.text)
        elif message.role in ("user", "assistant"):
            yield Turn("assistant", message.text)
        elif message.role != "tool":
            yield Turn("system", message.text)


def _answered(messages: Sequence[Message]) -> Iterator[Turn]:
    called: dict[str | None, str | None] = {}
    for message in messages:
        for part in message.contents:
            if part.type == "function_call":
                called[part.call_id] = part.name
            elif part.type == "function_result":
                yield Turn("tool", str(part.result or ""), tool=called.get(part.call_id))
            elif part.type == "text":
                yield Turn("assistant", part.text or "")


def _tools(conversation: Conversation) -> list[FunctionTool]:
    async def recall_memory(query: str) -> str:
        return await conversation.recall(query)

    async def ask_to_remember(fact: str) -> str:
        return await conversation.ask_to_remember(fact)

    return [tool(recall_memory, description=RECALL), tool(ask_to_remember, description=ASK)]
