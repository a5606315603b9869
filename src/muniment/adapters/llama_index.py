"""LlamaIndex: a memory block that captures each turn of its memory, and gives promoted memory to the prompt."""

from collections.abc import Iterator, Sequence
from typing import Any

from muniment.adapters.conversation import LABEL, TOKENS, Conversation, Conversations, Turn
from muniment.extras import require_framework
from muniment.memory.asynchronous import AsyncMemory

require_framework("llama-index")

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock


class MunimentBlock(BaseMemoryBlock[str]):
    """A memory block: `Memory.from_defaults(session_id=..., memory_blocks=[MunimentBlock(memory=memory)])`.

    What the user said is captured when the memory is read for the run that answers it; what the model and the tools
    said, when it is read the next time. What leaves the short-term memory was seen before, and is not taken again.
    """

    name: str = Field(default="muniment", description="The name of the memory block.")
    accept_short_term_memory: bool = Field(
        default=False, description="Whether to take what leaves the short-term memory."
    )
    memory: AsyncMemory = Field(exclude=True, description="The memory of the user whose conversations these are.")
    tokens: int = Field(default=TOKENS, description="The number of tokens at most.")
    classification: str = Field(default=LABEL, description="The label of what is captured.")
    _threads: Conversations | None = PrivateAttr(default=None)

    async def conversation(self, session_id: str | None = None) -> Conversation:
        """Return the conversation of a session; its `added` says what was promoted, what waits and what was refused."""
        if self._threads is None:
            how: dict[str, Any] = {"tokens": self.tokens, "classification": self.classification}
            self._threads = Conversations(self.memory, framework="llama_index", **how)
        return await self._threads.of(None, session_id)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        conversation, found = await self.conversation(block_kwargs.get("session_id")), messages or []
        if turns := list(_new(found, conversation.said_last)):
            await conversation.capture(turns)
        asked = [one for one in found if one.role == MessageRole.USER]
        return await conversation.context(asked[-1].content if asked else None)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Capture messages that the program puts into this block itself, each as what its role says."""
        for message in messages:
            session = message.additional_kwargs.get("session_id")
            role = message.role
            said = "user" if role == MessageRole.USER else "assistant" if role == MessageRole.ASSISTANT else "system"
            turn = Turn("tool" if role == MessageRole.TOOL else said, message.content or "")
            await (await self.conversation(session)).capture([turn])


def _new(messages: Sequence[ChatMessage], said_last: str | None) -> Iterator[Turn]:
    """Yield what was said since the block was asked last; `said_last` is what the user had said then.

    The user's is the last message alone, and only as long as nothing answers it. A history that was handed over is not
    taken, and what agents put into memory with the role `user`, such as the output of code, is not the user's.
    """
    said = [(one.role, one.content or "") for one in messages]
    if said and said[-1][0] == MessageRole.USER:
        # An agent that goes on after a tool's result is given what the user said once more.
        if said[-1][1] != said_last:
            yield Turn("user", said[-1][1], key=f"{said.count(said[-1])}")
        return
    asked = (MessageRole.USER, said_last)
    begin = max((place for place, one in enumerate(said) if one == asked), default=None)
    if begin is None:
        return
    number, called = said.count(said[begin]), _called(messages)
    for offset, message in enumerate(messages[begin + 1 :], 1):
        key, text = f"{number}/{offset}/{said_last}", message.content or ""
        if message.role == MessageRole.TOOL:
            name = called.get(str(message.additional_kwargs.get("tool_call_id")))
            yield Turn("tool", text, tool=name, key=key)
        else:
            yield Turn("assistant" if message.role == MessageRole.ASSISTANT else "system", text, key=key)


def _called(messages: Sequence[ChatMessage]) -> dict[str, str]:
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolCallBlock)]
    return {str(block.tool_call_id): block.tool_name for block in blocks}
