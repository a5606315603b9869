"""What an assistant tells a hook, and what it reads of the hook's answer. Standard library only; pure.

| action | what happened | events |
|---|---|---|
| start | a session begins | SessionStart, sessionStart |
| prompt | the user submitted a prompt | UserPromptSubmit, userPromptSubmitted, beforeSubmitPrompt |
| stop | the assistant ended its turn | Stop, stop, agentStop |
| end | the session is over | SessionEnd, sessionEnd |
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Action = Literal["start", "prompt", "stop", "end"]
ACTIONS: Mapping[str, Action] = {
    "SessionStart": "start",
    "sessionStart": "start",
    "UserPromptSubmit": "prompt",
    "userPromptSubmitted": "prompt",
    "beforeSubmitPrompt": "prompt",
    "Stop": "stop",
    "stop": "stop",
    "agentStop": "stop",
    "SessionEnd": "end",
    "sessionEnd": "end",
}
# The bytes of a text that can be captured.
TEXT_LIMIT = 32 * 1024
_SESSION_FIELDS = ("session_id", "sessionId", "conversation_id")
_SESSION = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Present where another agent speaks, and not the user: the payload is of a subagent.
_OF_AGENTS = ("agent_id", "agentId", "subagent_type")
# A command of the assistant, a command of the shell, or a block that the program itself wrote: nobody's own words.
_NOT_TYPED = re.compile(r"[/!]|<[A-Za-z][\w-]*[\s>]")


@dataclass(frozen=True)
class HookEvent:
    """One call of a hook: what happened, in which session, and what the user typed."""

    action: Action
    session: str
    text: str | None = None
    # Why there is nothing to do about it, if so.
    ignored: str | None = None


def check(event: str) -> None:
    """Raise `ValueError` for what is no event."""
    if event not in ACTIONS:
        raise ValueError(f"there is no event {event[:40]}; expected one of {', '.join(ACTIONS)}")


def parse(event: str, given: bytes) -> HookEvent:
    """Read a hook's input; raises `ValueError`, whose words never hold the input."""
    check(event)
    try:
        found: Any = json.loads(given or b"{}")
    except (ValueError, RecursionError):
        raise ValueError("the input is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("the input is not a JSON object")
    fields = cast("dict[str, Any]", found)
    action, session = ACTIONS[event], _session(fields)
    if action != "prompt":
        return HookEvent(action, session)
    text = _prompt(fields)
    return HookEvent(action, session, text, _why_ignored(text, fields))


def _session(fields: Mapping[str, Any]) -> str:
    """The session's id; one that no id of ours can be is replaced by its digest."""
    named = next((fields[name] for name in _SESSION_FIELDS if isinstance(fields.get(name), str)), "")
    if _SESSION.fullmatch(named):
        return named
    return hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:32]


def _prompt(fields: Mapping[str, Any]) -> str:
    text = fields.get("prompt")
    if not isinstance(text, str):
        raise ValueError("the input has no prompt")
    return text.strip()


def _why_ignored(text: str, fields: Mapping[str, Any]) -> str | None:
    if not text:
        return "the prompt is empty"
    if any(fields.get(name) for name in _OF_AGENTS):
        return "another agent wrote the prompt"
    if fields.get("role") not in (None, "user"):
        return "somebody else than the user wrote the prompt"
    if _NOT_TYPED.match(text):
        return "the prompt is a command, or the program wrote it"
    if len(text.encode("utf-8", "replace")) > TEXT_LIMIT:
        return f"the prompt is longer than {TEXT_LIMIT} bytes"
    return None


def answer(event: str, program: str | None, context: str) -> str:
    """What is written to stdout: the memory to begin a session with, and otherwise that all goes on."""
    shown: dict[str, Any] = {}
    if ACTIONS[event] == "start" and context:
        if program == "cursor":
            shown = {"additional_context": context}
        else:
            shown = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}
        if program == "copilot":
            # VS Code reads the one, the command line of Copilot the other.
            shown["additionalContext"] = context
    elif event == "beforeSubmitPrompt":
        shown = {"continue": True}
    return json.dumps(shown)
