"""Google ADK: a memory service for its runner, which captures sessions and finds promoted memory.

What its memory tools are given is compiled: each memory is quoted as data and cannot leave its block. The scope is that
of ADK, an application and a user.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from muniment.adapters.conversation import LABEL, TOKENS, Conversations, Place, Turn, told_of
from muniment.errors import InvalidInput
from muniment.extras import require_framework
from muniment.memory.results import Added, Context

require_framework("google-adk")

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

_USER = "user"
# Who speaks in an entry that is no memory: how to read the others, and what waits.
_OURS = "muniment"


class MunimentMemoryService(BaseMemoryService):
    """A memory service: `Runner(..., memory_service=MunimentMemoryService(fabric))`.

    `place` is the memory of one user, for which other users are refused, or a fabric or client of many. `options` are
    those of `AsyncMemory.over`.
    """

    def __init__(self, place: Place, *, tokens: int = TOKENS, classification: str = LABEL, **options: Any) -> None:
        self._threads = Conversations(
            place, framework="google_adk", tokens=tokens, classification=classification, **options
        )
        self.added = Added()
        """What became of what was captured last: promoted, waiting, refused, and why."""

    # ---- capture ----

    async def add_session_to_memory(self, session: Session) -> None:
        """Capture what a session holds and was not captured before; `added` says what became of it."""
        await self._capture(session.app_name, session.user_id, session.id, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Capture some events of a session; `custom_metadata` is not kept."""
        await self._capture(app_name, user_id, session_id, events)

    async def _capture(self, app: str, user: str, session: str | None, events: Sequence[Event]) -> None:
        conversation = await self._threads.of(user, session, app=app)
        self.added = await conversation.capture(turn for event in events for turn in _turns(event))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Propose facts as the agent's own word: they wait for a person, and are found once they are promoted."""
        conversation = await self._threads.of(user_id, app=app_name)
        notes = [await conversation.ask_to_remember(_text(one.content)) for one in memories]
        self.added = Added(notes=tuple(notes))

    # ---- search ----

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return promoted memory that bears on a question, one entry for each, as data.

        The last entry, without an id, says how much of what the user told here waits for a person.
        """
        conversation = await self._threads.of(user_id, app=app_name)
        waits = await self._threads.pending(user_id, app=app_name)
        found = _entries(await conversation.compiled(query)) if query.strip() else []
        if note := told_of(waits):
            pending = {"waiting": len(waits.waiting), "unread": waits.unread}
            found.append(MemoryEntry(content=_content(note), author=_OURS, custom_metadata={"pending": pending}))
        return SearchMemoryResponse(memories=found)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Retract one fact; raises `NotFound`, and `Denied` where that is for the person alone. It erases nothing."""
        if not memory_id:
            raise InvalidInput("is required: the id of an entry that a search returned", field="memory_id")
        await (await self._threads.of(user_id, app=app_name)).forget(memory_id)


def _turns(event: Event) -> list[Turn]:
    """Return what an event says, with whose words it is.

    The user's are only what the runner was given. An event that a workflow made for one of its nodes also has the
    author `user`: what it holds was written by a model or by the program.
    """
    if event.partial or event.content is None:
        return []
    is_users = event.author == _USER and event.content.role in (None, _USER)
    is_users = is_users and bool(event.invocation_id) and not event.node_info.path and not event.actions.compaction
    at = datetime.fromtimestamp(event.timestamp, UTC)
    turns: list[Turn] = []
    for number, part in enumerate(event.content.parts or ()):
        key = f"{event.id}/{number}"
        if part.text and not part.thought:
            turns.append(Turn(_USER if is_users else "assistant", part.text, at=at, key=key))
        elif part.function_response is not None:
            result = json.dumps(part.function_response.response, default=str)
            turns.append(Turn("tool", result, tool=part.function_response.name, at=at, key=key))
    return turns


def _entries(known: Context) -> list[MemoryEntry]:
    """Return an entry for each block of compiled memory; the first one begins with how to read them."""
    compiled = known.compiled
    shown = {entry.block_id: [one.memory_id for one in entry.citations] for entry in compiled.manifest.entries}
    entries: list[MemoryEntry] = []
    for block in compiled.blocks:
        frame = [known.partition(block.content)[0].strip()] if not entries else []
        ids = shown[block.id]
        entries.append(
            MemoryEntry(
                id=ids[0] if len(ids) == 1 else None,
                content=_content(*frame, block.content),
                custom_metadata={
                    "memories": ids,
                    "recall_id": compiled.recall_id,
                    "provenance": list(block.provenance_refs),
                },
            )
        )
    return entries


def _content(*texts: str) -> types.Content:
    return types.Content(role=_USER, parts=[types.Part(text=text) for text in texts])


def _text(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text)
