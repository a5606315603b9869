"""Compiling: a recall as the memory section of a prompt, and a record of what went into it."""

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from muniment.embedding.tokenizers import Tokenizer, builtin_tokenizer, tokenizer
from muniment.fabric.desk import Desk
from muniment.fabric.inputs import CompileInput
from muniment.fabric.recollection import recall
from muniment.model.compiled import CompiledMemory, WriteNotice
from muniment.model.context import RunContext
from muniment.model.fields import build
from muniment.model.ids import make_id
from muniment.model.proposal import status_of
from muniment.policy.compiling import compile_memory

MOST_NOTICES = 100


async def compile_prompt(
    desk: Desk, run: RunContext, query: str | None, given: Mapping[str, Any], narrowed: Mapping[str, Any]
) -> CompiledMemory:
    """Recall at this very moment, and from there a pure function (REC-11); what went in is recorded (REC-8)."""
    asked = build(CompileInput, given)
    counted: Tokenizer = tokenizer(asked.tokenizer) if asked.tokenizer is not None else builtin_tokenizer()
    answer = await recall(desk, run, query, narrowed)
    compiled = compile_memory(
        answer.records,
        answer.low_confidence,
        answer.conflicts,
        token_budget=asked.token_budget,
        tokens=counted,
        format=asked.format,
        notices=await _own_writes(desk, run),
    )
    async with desk.transaction(run.tenant_id, "recall") as tx:
        compile_id = make_id("cmp", tx.now)
        tx.later(
            "recall.compiled",
            compile_id=compile_id,
            recall_id=answer.recall_id,
            agent_id=run.agent_id,
            run_id=run.run_id,
            token_budget=asked.token_budget,
            tokens=compiled.budget.used,
            format=asked.format,
            tokenizer=compiled.tokenizer,
            blocks=Jsonb([entry.model_dump(mode="json") for entry in compiled.manifest.entries]),
            memory_ids=list(compiled.memory_ids),
            left_out=[memory_id for left in compiled.budget.left_out for memory_id in left.memory_ids],
            digest=compiled.digest,
        )
        return CompiledMemory(**dict(compiled), compile_id=compile_id, recall_id=answer.recall_id, at=tx.now)


async def _own_writes(desk: Desk, run: RunContext) -> tuple[WriteNotice, ...]:
    """What the run itself proposed since its last compile: id, class, status, no content (REC-12)."""
    async with desk.transaction(run.tenant_id, "auditor") as tx:
        rows = await tx.rows("recall.own_proposals", run_id=run.run_id, agent_id=run.agent_id, count=MOST_NOTICES)
    return tuple(
        WriteNotice(proposal_id=row["proposal_id"], write_class=row["class"], status=status_of(tuple(row["actions"])))
        for row in rows
    )
