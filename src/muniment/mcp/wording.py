"""Results in words, for a model to read; the same, whole, is beside them as data.

What memories say goes through the compiler, which keeps it in its block: a memory is data, whatever it asks for.
"""

from collections.abc import Iterable, Iterator

from muniment.mcp.addresses import MEMORY
from muniment.model.candidate import Refusal
from muniment.model.capture import Receipt
from muniment.model.compiled import CompiledMemory, Manifest
from muniment.model.explanation import Explanation, Missed
from muniment.model.proposal import Submission
from muniment.model.recall import Recall

# About 32,000 characters; what has no room in the words is still in the data.
_WORDS = 8_000
_MISSED: dict[Missed, str] = {
    "narrowed": "That recall was narrowed to others.",
    "cut": "The limit cut it off.",
    "irrelevant": "It was too far from the query.",
}


def captured(receipt: Receipt) -> str:
    """That it is written down, and that it is not memory yet."""
    again = " It was captured before, under the same idempotency key; nothing was added." if receipt.repeated else ""
    return (
        f"Captured as {receipt.capture_id}.{again} It is kept, but it is not memory yet: what it holds is checked, "
        "and reviewed by a person, before it can be recalled."
    )


def proposed(outcome: Submission | Refusal, following: str) -> str:
    """What became of a proposal, and what to do next."""
    if isinstance(outcome, Refusal):
        before = f" It repeats {outcome.rejection}." if outcome.rejection else ""
        kept = f" It will not become memory; that it was said is kept as {outcome.capture_id}."
        return f"Refused by the gate {outcome.gate}: {outcome.reason}.{before}{kept} {sentence(following)}"
    if outcome.status != "pending":
        return f"Proposed before as {outcome.proposal_id}: {outcome.status}. {sentence(following)}"
    return f"Proposed as {outcome.proposal_id}. {sentence(following)}"


def recalled(answer: Recall) -> str:
    """The records with their provenance, and the address of each."""
    # Loaded late: the tools are listed before the first of them is called.
    from muniment.language.embedding.tokenizers import tokenizer
    from muniment.recall.compiling import compile_memory

    shown = compile_memory(
        answer.records,
        answer.low_confidence,
        answer.conflicts,
        token_budget=_WORDS,
        tokens=tokenizer("characters"),
        format="markdown",
    )
    return joined(_counted(answer), shown.text, _labels(shown.manifest), *_apart(answer.omitted, answer.degraded))


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
    own = [
        f"Your proposal {one.proposal_id} ({one.write_class}): {one.status}." for one in memory.manifest.write_notices
    ]
    return joined(summary, memory.text, _labels(memory.manifest), *room, *own, *_apart(memory.omitted, memory.degraded))


def explained(why: Explanation) -> str:
    """Whether it is visible, and which filters hid it."""
    where = f" in {why.recall_id}" if why.recall_id else ""
    summary = f"{why.memory_id} is {why.visibility}{where}, as of {why.at.isoformat(timespec='seconds')}."
    return joined(summary, *_details(why), apart=" ")


def _details(why: Explanation) -> Iterator[str]:
    if why.hidden_by:
        yield f"Hidden by {', '.join(why.hidden_by)}."
    if why.returned is not None:
        yield "That recall returned it." if why.returned else "That recall did not return it."
    if why.missed is not None:
        yield _MISSED[why.missed]
    if why.prompts:
        yield f"It went into {', '.join(why.prompts)}."
    if why.retraction_reason is not None:
        yield f"It was retracted: {why.retraction_reason}."
    if why.superseded_by is not None:
        yield f"{why.superseded_by} replaced it."


def sentence(words: str) -> str:
    """Words as a sentence."""
    return f"{words[:1].upper()}{words[1:]}."


def _labels(manifest: Manifest) -> str:
    return "\n".join(f"{label}: {MEMORY.expand({'memory_id': found})}" for label, found in manifest.citations.items())


def _apart(omitted: int, degraded: Iterable[str]) -> Iterator[str]:
    if omitted:
        yield f"{omitted} more were left out, by the limit or as not relevant."
    if missing := ", ".join(degraded):
        yield f"Degraded ({missing}): something may be missing, or the order worse than usual."


def joined(*parts: str, apart: str = "\n\n") -> str:
    """The parts that are not empty, one after the other."""
    return apart.join(part.strip() for part in parts if part.strip())
