"""Public pairs: collections of statements with their relation, without the rows held back for evaluation."""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from training.inputs import held, read_rows

RELATION = {"contradiction": "contradicts", "neutral": "neither", "entailment": "entails"}
# Sets whose licences allow training. `fever_symmetric` is left out: its licence is not settled.
TRAINING_SETS = frozenset(("snli_train", "taxinli", "conjnli"))
EVALUATION_SETS = frozenset(
    ("snli", "cad_nli", "breaking_nli", "negation_snli", "negation_mnli", "negation_rte"),
)
# Of the pairs that do not contradict, the share that is also given in the other order, so that the order of a pair
# does not tell its label.
SWAPPED = 0.3
# Sets that are small for what they teach count for more.
WEIGHTS = {"cad_nli": 1.5, "negation_snli": 2.0, "negation_mnli": 2.0, "conjnli": 0.7}


def public(folder: Path, seed: int = 16) -> Iterator[dict[str, Any]]:
    """Return the pairs of the pinned files that may be trained on."""
    yield from chosen(read_rows(folder, "training/pairs.jsonl.xz"), TRAINING_SETS, seed, not_held=False)
    yield from chosen(read_rows(folder, "data/conflict/contradictions.jsonl.gz"), EVALUATION_SETS, seed)


def chosen(
    rows: Iterable[dict[str, Any]], sets: frozenset[str], seed: int, not_held: bool = True
) -> Iterator[dict[str, Any]]:
    """Return the rows of the sets, of an evaluation file only those not held back, with the names of our relations.

    What contradicts does so in either order. Of an entailment or a neutral pair in the other order only "not a
    contradiction" is known.
    """
    rng = random.Random(seed)  # noqa: S311
    for row in rows:
        a, b, name = row["a"].strip(), row["b"].strip(), row["set"]
        if name not in sets or not a or not b or (not_held and held((row["a"], row["b"]))):
            continue
        label, weight = RELATION[row["label"]], WEIGHTS.get(name, 1.0)
        yield {"a": a, "b": b, "label": label, "set": name, "weight": weight}
        if label == "contradicts":
            yield {"a": b, "b": a, "label": label, "set": name, "weight": weight}
        elif rng.random() < SWAPPED:
            yield {"a": b, "b": a, "label": "not_contradiction", "set": name, "weight": weight}
