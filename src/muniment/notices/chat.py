"""Posting one message to a chat, in the form of Slack's incoming webhooks, which Mattermost and others take too."""

from pydantic_core import to_json

from muniment.notices.rules import Message

# What Slack would read as a mention, a link or a command.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def body_of(message: Message) -> bytes:
    """The message as JSON; nothing in it mentions anybody."""
    return to_json({"text": f"*{message.title.translate(_ESCAPES)}*\n{message.text.translate(_ESCAPES)}"})


async def send(url: str, message: Message, *, allow_private: bool) -> str | None:
    """Post it; None if it was accepted, else why not. Private addresses only where webhooks may have them."""
    from muniment.webhooks.sending import Sender  # The HTTP client takes a while to import.

    async with Sender(url, allow_private=allow_private) as sender:
        return await sender.post(body_of(message), {"Content-Type": "application/json"})
