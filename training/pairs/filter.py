"""`python -m training.pairs.filter PAIRS.jsonl.gz`: fits the filter before the judge, and prints its weights.

The filter leaves out neighbours that share too little for their length to be about one thing. It is a logistic
regression over `overlap_features`: training pairs that contradict one another against neighbours in plain talk, every
set with the same weight. For each threshold it prints the share of pairs that the judge would read.
"""

import argparse
import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muniment.language.assertion import overlap_features, same_subject
from muniment.language.embedding import builtin_embedder
from training.tasks import read_rows

_MOST, _ROUNDS, _DAMPING = 1500, 50, 1e-2
Features = NDArray[np.float64]


def features(path: Path, seed: int = 16) -> tuple[dict[str, Features], dict[str, Features]]:
    """Return the features by set: of pairs that contradict one another, and of neighbours in plain talk."""
    texts: tuple[dict[str, list[tuple[str, str]]], ...] = ({}, {})
    for row in read_rows(path):
        talk = row["set"] in ("talk_near", "talk_apart")
        if (talk or row["label"] == "contradicts") and same_subject(row["a"], row["b"]):
            texts[talk].setdefault(row["set"], []).append((row["a"], row["b"]))
    chance, embedder = random.Random(seed), builtin_embedder()  # noqa: S311  repeatable, not secret

    def of_pairs(pairs: list[tuple[str, str]]) -> Features:
        some = chance.sample(pairs, min(_MOST, len(pairs)))
        one, other = (embedder.embed([pair[side] for pair in some]) for side in (0, 1))
        return np.array(
            [overlap_features(*pair, float(near)) for pair, near in zip(some, (one * other).sum(1), strict=True)]
        )

    conflicting, talk = ({name: of_pairs(pairs) for name, pairs in sorted(part.items())} for part in texts)
    return conflicting, talk


def fit(conflicting: dict[str, Features], talk: dict[str, Features]) -> Features:
    """Return the weights of the regression, by Newton's method."""
    parts = [(part, answer, len(sets)) for answer, sets in ((1, conflicting), (0, talk)) for part in sets.values()]
    given = np.concatenate([part for part, _, _ in parts])
    right = np.concatenate([np.full(len(part), answer) for part, answer, _ in parts])
    counted = np.concatenate([np.full(len(part), len(given) / len(part) / sets) for part, _, sets in parts])
    weights = np.zeros(given.shape[1])
    for _ in range(_ROUNDS):
        likely = 1 / (1 + np.exp(-given @ weights))
        slope = given.T @ (counted * (right - likely)) - _DAMPING * weights
        curve = (given * (counted * likely * (1 - likely))[:, None]).T @ given + _DAMPING * np.eye(len(weights))
        weights += np.linalg.solve(curve, slope)
    return weights


def main() -> None:
    """Fit and print the weights, and for some thresholds which pairs would be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    conflicting, talk = features(parser.parse_args().pairs)
    weights = fit(conflicting, talk)
    print("weights", [round(float(one), 2) for one in weights])
    for least in (-2.2, -1.7, -1.4, -1.1, -0.8):
        read = {name: float((part @ weights >= least).mean()) for name, part in {**conflicting, **talk}.items()}
        print(f"from {least}:", ", ".join(f"{name} {share:.2f}" for name, share in read.items()))


if __name__ == "__main__":
    main()
