"""Text that addresses the model instead of stating a fact: found in any disguise, scored with reasons (CAN-7)."""

from muniment.language.instructions.characters import as_seen
from muniment.language.instructions.judge import THRESHOLD, Suspicion, suspicion

__all__ = ["THRESHOLD", "Suspicion", "as_seen", "suspicion"]
