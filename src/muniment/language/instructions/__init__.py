"""Detects text that addresses the model instead of stating a fact, in any disguise (CAN-7).

`suspicion(text)` takes any text and returns a score from 0 to 1 with the codes of its reasons. `visible_text(text)`
returns a text as a reader sees it, without invisible and look-alike characters. `addressing_spans(text)` says which
words address the model. The rules are in rules/, one file a language.
"""

from muniment.language.instructions.characters import visible_text
from muniment.language.instructions.detector import THRESHOLD, Suspicion, suspicion
from muniment.language.instructions.spans import addressing_spans

__all__ = ["THRESHOLD", "Suspicion", "addressing_spans", "suspicion", "visible_text"]
