"""A compiled recall: blocks within a token budget, their manifest, the budget report, the hash."""

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
    """One chat message: fixed instructions on how to treat memory (`system`), or memory as data (`user`)."""

    role: Literal["system", "user"]
    content: str


class WriteNotice(Artifact):
    """One of the run's own proposals since its last compile: no content (REC-12)."""

    proposal_id: str
    write_class: WriteClass
    status: str


class Citation(Artifact):
    """A label such as `m1` in a block, and the memory it refers to."""

    label: str
    memory_id: str


class ManifestEntry(Artifact):
    """What one block shows, under which labels, and how many tokens it used."""

    block_id: str
    kind: BlockKind
    citations: tuple[Citation, ...]
    tokens: int
    priority: int
    truncated: bool = False


class Manifest(Artifact):
    """One entry for each block, in order; and the run's own proposals since its last compile."""

    entries: tuple[ManifestEntry, ...] = ()
    write_notices: tuple[WriteNotice, ...] = ()

    @property
    def citations(self) -> dict[str, str]:
        """Every label that a block shows, with its memory's id."""
        return {cited.label: cited.memory_id for entry in self.entries for cited in entry.citations}


class LeftOut(Artifact):
    """A memory or conflict set that did not fit, and the tokens that it would have taken."""

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
        """Every memory in the text, in the order of the text."""
        return tuple(self.manifest.citations.values())


class CompiledMemory(Compiled):
    """A compiled prompt section with the recall it was made from."""

    compile_id: str
    recall_id: str
    at: datetime
    as_of: datetime | None = None
    omitted: int = 0
    approximate: bool = False
    degraded: tuple[str, ...] = ()
