"""What a compile makes of a recall: blocks within a token budget, their manifest, the report, the hash."""

from datetime import datetime
from typing import Literal

from muniment.model.fields import Artifact, WriteClass

Format = Literal["markdown", "xml", "json", "messages"]
BlockKind = Literal["conflict", "plain", "low_confidence"]


class Block(Artifact):
    """One piece of a compiled prompt: a memory, or a conflict set with all its sides."""

    id: str
    bucket: Literal["memory"] = "memory"
    content: str
    priority: int
    provenance_refs: tuple[str, ...] = ()
    truncated: bool = False


class Message(Artifact):
    """One chat message: the fixed word on how memory is to be taken (`system`), or memory as data (`user`)."""

    role: Literal["system", "user"]
    content: str


class WriteNotice(Artifact):
    """One of the run's own proposals since its last compile: no content (REC-12)."""

    proposal_id: str
    write_class: WriteClass
    status: str


class Citation(Artifact):
    """A label such as `m1`, as a block shows it, and the memory it leads back to."""

    label: str
    memory_id: str


class ManifestEntry(Artifact):
    """What one block shows, under which labels, and what it took of the budget."""

    block_id: str
    kind: BlockKind
    citations: tuple[Citation, ...]
    tokens: int
    priority: int
    truncated: bool = False


class Manifest(Artifact):
    """One entry per block, in their order; and what the run itself proposed to write meanwhile."""

    entries: tuple[ManifestEntry, ...] = ()
    write_notices: tuple[WriteNotice, ...] = ()

    @property
    def citations(self) -> dict[str, str]:
        """Every label that a block shows, with its memory's id."""
        return {cited.label: cited.memory_id for entry in self.entries for cited in entry.citations}


class LeftOut(Artifact):
    """A memory or a conflict set for which there was no room, and the tokens it would have taken whole."""

    block_id: str
    kind: BlockKind
    memory_ids: tuple[str, ...]
    tokens: int


class BudgetReport(Artifact):
    """Where the tokens went.

    `used` is counted over the whole text. `frame` and `blocks` are counted one by one, so that their sum may differ by
    the tokens that join or part at the seams.
    """

    token_budget: int
    used: int
    frame: int
    blocks: dict[str, int]
    left_out: tuple[LeftOut, ...] = ()


class Compiled(Artifact):
    """A prompt's memory section, the same for the same memories, format, tokenizer, budget and notices (REC-11).

    Without a single block `text` is empty, in every format, and there are no messages.
    """

    format: Format
    tokenizer: str
    text: str
    messages: tuple[Message, ...] = ()
    blocks: tuple[Block, ...] = ()
    manifest: Manifest
    budget: BudgetReport
    digest: str

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """Every memory that stands in the text, in the order of the text."""
        return tuple(self.manifest.citations.values())


class CompiledMemory(Compiled):
    """What was compiled, and of which recall, when; with what that recall said of itself."""

    compile_id: str
    recall_id: str
    at: datetime
    as_of: datetime | None = None
    omitted: int = 0
    approximate: bool = False
    degraded: tuple[str, ...] = ()
