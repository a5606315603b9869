"""Results in words, for a model to read; the same, whole, is beside them as data.

What memories say goes through the compiler, which keeps it in its block: a memory is data, whatever it asks for.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from muniment.language.embedding.tokenizers import tokenizer
from muniment.mcp.resources import MEMORY
from muniment.model.candidate import Refusal
from muniment.model.capture import Receipt
from muniment.model.compiled import CompiledMemory, Manifest
from muniment.model.explanation import Explanation
from muniment.model.proposal import Submission
from muniment.model.recall import Recall
from muniment.recall.compiling import compile_memory

if TYPE_CHECKING:
    from muniment.mcp.tools import Asked, HeldMemory

# About 32,000 characters; what has no room in the words is still in the data.
_WORDS = 8_000


def captured(receipt: Receipt) -> str:
    """That it is written down, and that it is not memory yet."""
    again = " It was captured before, under the same idempotency key; nothing was added." if receipt.repeated else ""
    return (
        f"Captured as {receipt.capture_id}.{again} It is kept, but it is not memory yet: what it holds is checked, "
        "and reviewed by a person, before it can be recalled."
    )


def proposed(outcome: Submission | Refusal) -> str:
    """What became of a proposal."""
    if isinstance(outcome, Refusal):
        before = f" It repeats {outcome.rejection}, which a person rejected." if outcome.rejection else ""
        return (
            f"Refused by the gate {outcome.gate}: {outcome.reason}.{before} It will not become memory; "
            f"that it was said is kept as {outcome.capture_id}. Do not propose the same again in other words."
        )
    if outcome.status != "pending":
        return f"Proposed before as {outcome.proposal_id}; it is {outcome.status}."
    return f"Proposed as {outcome.proposal_id}. It waits for a person; until it is approved no recall returns it."


def recalled(answer: Recall) -> str:
    """The records with their provenance, and the address of each."""
    shown = compile_memory(
        answer.records,
        answer.low_confidence,
        answer.conflicts,
        token_budget=_WORDS,
        tokens=tokenizer("characters"),
        format="markdown",
    )
    return _joined(_counted(answer), shown.text, _labels(shown.manifest), *_apart(answer.omitted, answer.degraded))


def _counted(answer: Recall) -> str:
    if not answer.all_records:
        return f"Nothing is known that this run may see ({answer.recall_id})."
    counts = {"": answer.records, " of low confidence": answer.low_confidence, " in conflict": answer.conflicts}
    summary = ", ".join(f"{len(found)}{what}" for what, found in counts.items() if found)
    return f"Recalled ({answer.recall_id}): {summary}."


def compiled(memory: CompiledMemory) -> str:
    """The text to be put into a prompt, and the address of each label in it."""
    summary = f"Compiled ({memory.compile_id} of {memory.recall_id}): {memory.budget.used} tokens."
    if not memory.blocks:
        summary = f"Nothing is known that this run may see, or nothing that fits ({memory.recall_id})."
    left_out = len(memory.budget.left_out)
    room = [f"{left_out} had no room within {memory.budget.token_budget} tokens."] if left_out else []
    return _joined(summary, memory.text, _labels(memory.manifest), *room, *_apart(memory.omitted, memory.degraded))


def explained(why: Explanation) -> str:
    """Whether it is visible, and which filters hid it."""
    where = f" in {why.recall_id}" if why.recall_id else ""
    summary = f"{why.memory_id} is {why.visibility}{where}, as of {why.at.isoformat(timespec='seconds')}."
    return _joined(summary, *_details(why), apart=" ")


def _details(why: Explanation) -> Iterator[str]:
    if why.hidden_by:
        yield f"Hidden by {', '.join(why.hidden_by)}."
    if why.returned is not None:
        yield "That recall returned it." if why.returned else "That recall did not return it."
    if why.missed is not None:
        yield "That recall was narrowed to others." if why.missed == "narrowed" else "The limit cut it off."
    if why.prompts:
        yield f"It went into {', '.join(why.prompts)}."
    if why.retraction_reason is not None:
        yield f"It was retracted: {why.retraction_reason}."
    if why.superseded_by is not None:
        yield f"{why.superseded_by} replaced it."


def held(shown: "HeldMemory") -> str:
    """What is known, and where the person sees all of it."""
    return _joined(
        recalled(shown.known), _where(shown.address, "The person sees all that is held about them, and decides")
    )


def asked(question: "Asked") -> str:
    """That it waits for the person, or what refused it."""
    if question.refusal is not None:
        why = f"Refused by the gate {question.refusal.gate}: {question.refusal.reason}. It is not remembered."
        return _joined(why, _where(question.address, "If it needs the person's consent, they give it"), apart=" ")
    waits = f"It waits as {question.proposal_id} until the person confirms it; it is not remembered before."
    return _joined(waits, _where(question.address, "The person confirms or declines it"), apart=" ")


def _where(address: str | None, what: str) -> str:
    return f"{what} at {address}, where they sign in." if address is not None else f"{what} with: muniment me."


def _labels(manifest: Manifest) -> str:
    return "\n".join(f"{label}: {MEMORY.expand({'memory_id': found})}" for label, found in manifest.citations.items())


def _apart(omitted: int, degraded: Iterable[str]) -> Iterator[str]:
    if omitted:
        yield f"{omitted} more were cut by the limit."
    if missing := ", ".join(degraded):
        yield f"Degraded ({missing}): something may be missing, or the order worse than usual."


def _joined(*parts: str, apart: str = "\n\n") -> str:
    return apart.join(part.strip() for part in parts if part.strip())
