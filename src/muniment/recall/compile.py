"""Compiling: a recall as the memory section of a prompt, and a record of what went into it."""

from collections.abc import Mapping
from typing import Any

from muniment.context import FabricContext
from muniment.language.embedding.tokenizers import Tokenizer, builtin_tokenizer, tokenizer
from muniment.model.compiled import CompiledMemory, WriteNotice
from muniment.model.context import RunContext
from muniment.model.fields import build
from muniment.model.proposal import status_of
from muniment.recall.compiling import compile_memory
from muniment.recall.recall import recall
from muniment.recall.store import record_compiled
from muniment.tracing import spanned
from muniment.verbs.inputs import CompileInput

MOST_NOTICES = 100


@spanned("compile")
async def compile_prompt(
    context: FabricContext, run: RunContext, query: str | None, given: Mapping[str, Any], narrowed: Mapping[str, Any]
) -> CompiledMemory:
    """Recall at this very moment, and from there a pure function (REC-11); what went in is recorded (REC-8)."""
    asked = build(CompileInput, given)
    counted: Tokenizer = tokenizer(asked.tokenizer) if asked.tokenizer is not None else builtin_tokenizer()
    answer = await recall(context, run, query, narrowed)
    notices, told_seq = await _own_writes(context, run)
    compiled = compile_memory(
        answer.records,
        answer.low_confidence,
        answer.conflicts,
        token_budget=asked.token_budget,
        tokens=counted,
        format=asked.format,
        notices=notices,
    )
    async with context.transaction(run.tenant_id, "recall") as tx:
        return record_compiled(tx, run, answer, compiled, told_seq)


async def _own_writes(context: FabricContext, run: RunContext) -> tuple[tuple[WriteNotice, ...], int]:
    """What the run itself proposed since it was last told: id, class, status, no content (REC-12); and up to where.

    More than fit come with the next compile.
    """
    async with context.transaction(run.tenant_id, "auditor") as tx:
        whose = {"run_id": run.run_id, "agent_id": run.agent_id, "user_id": run.user_id}
        rows = await tx.rows("recall.own_proposals", **whose, count=MOST_NOTICES)
    notices = tuple(
        WriteNotice(proposal_id=row["proposal_id"], write_class=row["class"], status=status_of(tuple(row["actions"])))
        for row in rows
    )
    return notices, max((row["seq"] for row in rows), default=0)
