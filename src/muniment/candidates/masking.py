"""Masks what leaves for a language model, by the same rules and the same tagger as what is stored (CAN-14, RED-1)."""

from functools import partial
from typing import Any

from anyio.to_thread import run_sync

from muniment.language.name_search import strings
from muniment.language.readers import Readers
from muniment.language.readers.readers import TAGGER
from muniment.language.redaction import redactor_of
from muniment.language.redaction.tags import TaggedTexts
from muniment.pack import Pack

# What is masked may let the tagger find more in the rest; two rounds are usual.
_ROUNDS = 4
_FEWEST_CHARACTERS = 3


async def mask_content(readers: Readers | None, text: str | None, payload: Any, pack: Pack) -> tuple[str | None, Any]:
    """Return a text and a payload with every finding masked, on a thread; what is masked in one is masked in both.

    Raises `ReadersUnavailable` where there are readers and they cannot be asked.
    """
    redactor = redactor_of(pack)
    tags = TaggedTexts(readers.file(TAGGER), {}, pack.policy_layer.guardrails.tagger) if readers is not None else None
    for _ in range(_ROUNDS):
        if readers is not None and tags is not None:
            texts = [one for one in dict.fromkeys(strings([text, payload])) if len(one) >= _FEWEST_CHARACTERS]
            unread = [one for one in texts if one not in tags.by_text]
            found = dict(zip(unread, await readers.read_tags(unread), strict=True))
            tags = TaggedTexts(tags.file, {**tags.by_text, **found}, tags.threshold)
        masked = (await run_sync(partial(redactor.content, text, payload, tags))).content
        if masked == (text, payload):
            break
        text, payload = masked
    return text, payload
