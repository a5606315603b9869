"""Pydantic AI: one capability that captures each run, puts promoted memory before it, and has a toolset.

Its parts can be used by themselves: `instructions`, `toolset()`, and the history processor `remember_history`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from muniment.adapters.conversation import ASK, LABEL, RECALL, TOKENS, Conversation, Conversations, Place, Turn
from muniment.extras import require_framework

require_framework("pydantic-ai")

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import FunctionToolset

UserOf: TypeAlias = Callable[[RunContext[Any]], str]
# Whether a run began within another one that is captured: what it is given is a model's word, and not the user's.
_within: ContextVar[bool] = ContextVar("muniment.within_a_run", default=False)


@dataclass(init=False)
class MunimentMemory(AbstractCapability[Any]):
    """The memory of an agent's users: `Agent(model, capabilities=[MunimentMemory(memory)])`.

    `place` is the memory of one user, or a fabric or client of many; `user_of` then says whose run it is, by its deps
    for example. The thread is the run's `conversation_id`. `options` are those of `AsyncMemory.over`.
    """

    def __init__(
        self,
        place: Place,
        *,
        user_of: UserOf | None = None,
        tokens: int = TOKENS,
        classification: str = LABEL,
        **options: Any,
    ) -> None:
        self.id, self.description, self.defer_loading = "muniment", None, False
        self._user_of = user_of
        self._threads = Conversations(
            place, framework="pydantic_ai", tokens=tokens, classification=classification, **options
        )

    async def conversation(self, ctx: RunContext[Any]) -> Conversation:
        """Return the conversation of a run; its `added` says what was promoted, what waits and what was refused."""
        user = self._user_of(ctx) if self._user_of is not None else None
        return await self._threads.of(user, ctx.conversation_id)

    # ---- memory before the run ----

    async def instructions(self, ctx: RunContext[Any]) -> str:
        """Return promoted memory that bears on the run's prompt, marked as data: `Agent(instructions=...)`."""
        question = _text(ctx.prompt) if ctx.prompt is not None else _last_question(ctx.messages)
        return await (await self.conversation(ctx)).context(question)

    def get_instructions(self) -> Any:
        """Return the function that puts memory before each request."""
        return self.instructions

    # ---- capture ----

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Capture the prompt before the run, and after it what the model said and the tools returned."""
        conversation, outer = await self.conversation(ctx), _within.get()
        await conversation.capture(self._prompt(ctx))
        _within.set(True)
        try:
            result = await handler()
        finally:
            _within.set(outer)
        await conversation.capture(_others(ctx, result.new_messages()))
        return result

    async def remember_history(self, ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        """Capture the run so far, and return its messages as they are: `ProcessHistory(memory.remember_history)`.

        For agents that do not have the whole capability. What is captured is what this run brought; a history that was
        handed to it is not, since whoever wrote it may have written anything. What the model says last is not seen.
        """
        own = [one for one in messages if one.run_id == ctx.run_id]
        await (await self.conversation(ctx)).capture((*self._prompt(ctx), *_others(ctx, own)))
        return messages

    def _prompt(self, ctx: RunContext[Any]) -> Iterator[Turn]:
        if ctx.prompt is not None:
            yield Turn("assistant" if _within.get() else "user", _text(ctx.prompt), key=f"{ctx.run_id}/prompt")

    # ---- tools ----

    def get_toolset(self) -> FunctionToolset[Any]:
        """Return the toolset."""
        return self.toolset()

    def toolset(self) -> FunctionToolset[Any]:
        """Return the tools of the model: look up what is remembered, propose that something be remembered."""
        tools: FunctionToolset[Any] = FunctionToolset(id="muniment")

        async def recall_memory(ctx: RunContext[Any], query: str) -> str:
            return await (await self.conversation(ctx)).recall(query)

        async def ask_to_remember(ctx: RunContext[Any], fact: str) -> str:
            return await (await self.conversation(ctx)).ask_to_remember(fact)

        tools.add_function(recall_memory, description=RECALL)
        tools.add_function(ask_to_remember, description=ASK)
        return tools


def _others(ctx: RunContext[Any], messages: Sequence[ModelMessage]) -> Iterator[Turn]:
    """Yield what others than the user said in a run: its prompt is captured by itself.

    Whatever else has the user's form (what a tool or the program put between) is not what the user said.
    """
    for place, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            key = f"{ctx.run_id}/{place}/{number}"
            if isinstance(message, ModelResponse) and isinstance(part, TextPart):
                yield Turn("assistant", part.content, key=key)
            elif isinstance(message, ModelRequest) and isinstance(part, ToolReturnPart):
                yield Turn("tool", part.model_response_str(), tool=part.tool_name, key=key)
            elif isinstance(part, UserPromptPart) and part.content != ctx.prompt:
                yield Turn("system", _text(part.content), key=key)


def _last_question(messages: Sequence[ModelMessage]) -> str | None:
    parts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return _text(parts[-1].content) if parts else None


def _text(content: str | Sequence[UserContent]) -> str:
    if isinstance(content, str):
        return content
    texts = [part.content if isinstance(part, TextContent) else part for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))
