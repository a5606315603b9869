"""What an assistant does next: after an error, after a refusal by a gate, and while a fact waits for a person.

Each is a sentence that a model can act on. None suggests a way around a gate.
"""

from collections.abc import Mapping

from muniment.errors import InvalidInput, MunimentError, RateLimited
from muniment.mcp.caller import ToolContext
from muniment.model.candidate import Refusal
from muniment.model.context import RunContext

# Fields of who asks. A model that sets one was perhaps told to by a text it read.
SETTLED = frozenset(RunContext.model_fields) - {"decision_key"} | {"run"}
_LATER = "nothing was written; go on without memory, and try again in a minute"
_OPERATOR = "go on without memory, and tell the user that whoever runs this memory has to look at its log"
_NOT_ALLOWED = "this connection may not do that, and no argument changes it; tell the user, and go on without"
_AFTER_ERROR: Mapping[str, str] = {
    "invalid_input": "correct that field, and call again",
    "too_large": "send less in that field, and call again",
    "unknown_classification": "call again with one of those labels; in doubt the stricter one",
    "not_found": "it does not exist, or this run may not see it; recall again for ids that you may see, and guess none",
    "unauthenticated": "the key is missing, wrong or has expired: tell the user to set a valid one, and go on without",
    "denied": _NOT_ALLOWED,
    "role_missing": _NOT_ALLOWED,
    "pin_refused": _NOT_ALLOWED,
    "pack_changed": "the rules changed at this moment; call again once, and the new ones decide",
    "idempotency_conflict": "that key was used for something else; use another one, or none",
    "request_repeated": "it was done before; do not do it again",
    "conflict": "it changed meanwhile; recall again before you go on",
    "history_collected": "that time is no longer kept; ask without as_of, or for a later time",
    "moment_ambiguous": "that time occurred twice; ask for a time before or after it",
    "clock_ahead": _LATER,
    "key_rotated": "call again once",
    "storage_unavailable": _LATER,
    "server_unavailable": _LATER,
    "embedder_unavailable": _LATER,
    "readers_unavailable": _LATER,
}

# After a refusal. What is not here is final.
_FINAL = "this memory does not keep such facts; do not propose it again in other words"
_EVIDENCE = "name what it rests on in evidence_refs, and propose it again; if there is nothing, leave it"
_ELSE = "it is about somebody else, whose own consent it needs; do not store it"
_AFTER_REFUSAL: Mapping[str, str] = {
    "evidence_missing": _EVIDENCE,
    "not_a_reference": "give references in evidence_refs, such as ticket:42, not content, and propose it again",
    "unknown_classification": "propose it again with a label that this memory knows",
    "classification_not_allowed": "facts with this label are not kept; do not propose it again",
    "anonymous_subject": "nobody could have consented to it, as no user is known; leave it",
    "subject_is_not_the_entity": "subject and entity must be the same person; propose it again so, or leave it",
    "third_party": _ELSE,
    "third_party_without_user": _ELSE,
    "third_party_of_another_user": _ELSE,
    "confidence_below_floor": "it is too uncertain; propose it when you know more",
    "rejected_before": "a person rejected or forgot the same; do not propose it again",
    "erased": "whoever it is about was erased; do not propose it again",
}


def after_error(problem: Mapping[str, object]) -> str:
    """What to do after an error, as the caller gets it: `code`, `field`, `message`, and `wait` where there is one."""
    if problem["code"] == InvalidInput.code and problem.get("field") in SETTLED:
        return "the connection settles who asks, and for whom; call again without that argument"
    if problem["code"] == RateLimited.code:
        return f"wait {problem.get('wait', 1)} seconds, then call again; nothing was done"
    return _AFTER_ERROR.get(str(problem["code"]), _OPERATOR)


def after_refusal(refusal: Refusal, label: str, context: ToolContext) -> str:
    """What to do after a gate refused a fact that was given that label."""
    if refusal.reason == "consent_missing":
        shown = label if label not in ("PUBLIC", "INTERNAL", "CONFIDENTIAL") else "PII"
        if context.run.user_id is None:
            return f"labelled {shown}: nobody has consented to keeping it; leave it, and say so"
        return (
            f"labelled {shown}: this user has not consented; ask them whether it shall be kept. Only they can consent, "
            f"{context.where(f'consent --label {shown}')}; then propose it again"
        )
    return _AFTER_REFUSAL.get(refusal.reason, _FINAL)


async def while_waiting(proposal_id: str, context: ToolContext) -> str:
    """For whom a fact waits, and where they decide."""
    pack = await context.pack()
    own = context.run.user_id is not None and pack.memory_layer.subject.confirms
    who = f"the user confirms it {context.where('confirm', proposal_id)}" if own else "a reviewer approves it"
    return f"waits for a person: {who}. Until then no recall returns it: do not say that it is remembered"


def problem_of(error: MunimentError) -> dict[str, object]:
    """One of our errors as the caller gets it, with what to do next."""
    shown = error.as_dict()
    if isinstance(error, RateLimited):
        shown["wait"] = max(1, round(error.wait))
    return shown | {"next": after_error(shown)}


def in_words(problem: Mapping[str, object]) -> str:
    """An error as a text: its code, the field, what was wrong, what to do."""
    field = f" ({problem['field']})" if "field" in problem else ""
    return f"{problem['code']}{field}: {problem['message']}. Next: {problem['next']}."
