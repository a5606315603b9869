"""`python -m training.pairs.data OUT.jsonl.gz`: writes the training pairs, one record a line, and prints their counts.

A record has the texts `a` and `b`, the `label` (`contradicts`, `entails`, `neither`, of a to b, or `not_contradiction`
where only that is known), the `set` it comes from and its `weight`. The same inputs and seed give the same file.
"""

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training.decontaminate import Evaluation, evaluation, without
from training.pairs.contrasts import contrasted
from training.pairs.names import draw
from training.pairs.public import public
from training.pairs.talk import talk
from training.pairs.templates import made
from training.pairs.written import written

Row = dict[str, Any]
# Sets whose sentences describe one scene.
SCENES = frozenset(("snli_train", "snli", "cad_nli"))


def collected(folder: Path, seed: int, count: int, dropped: Counter[str]) -> list[Row]:
    """Return all training pairs in mixed order; rows near an evaluation row are left out and counted."""
    seen = evaluation(folder)
    rows = list(_once(_clean(folder, seed, count, seen, dropped)))
    random.Random(seed).shuffle(rows)  # noqa: S311
    return rows


def write(path: Path, rows: list[Row]) -> None:
    """Write the records; the file's bytes depend on them alone."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(lines.encode(), compresslevel=6, mtime=0))


def report(rows: list[Row], dropped: Counter[str]) -> str:
    """Return a table of the counts by set and label, and of what was left out."""
    labels = ("contradicts", "entails", "neither", "not_contradiction")
    counts = Counter((row["set"], row["label"]) for row in rows)
    lines = [f"{'set':36}" + "".join(f"{label:>18}" for label in labels) + f"{'left out':>10}"]
    lines += [
        f"{name:36}" + "".join(f"{counts[name, label]:18}" for label in labels) + f"{dropped[name]:10}"
        for name in sorted({row["set"] for row in rows} | set(dropped))
    ]
    totals = Counter(row["label"] for row in rows)
    lines.append(f"{'all':36}" + "".join(f"{totals[label]:18}" for label in labels) + f"{sum(dropped.values()):10}")
    return "\n".join(lines)


def _clean(folder: Path, seed: int, count: int, seen: Evaluation, dropped: Counter[str]) -> Iterator[Row]:
    def either_text(row: Row) -> bool:
        return seen.has_text(row["a"]) or seen.has_text(row["b"])

    def pair(row: Row) -> bool:
        return seen.has_pair(row["a"], row["b"])

    real = list(without(public(folder, seed), pair, dropped))
    yield from real
    scenes = (row for row in real if row["set"] in SCENES)
    yield from without(contrasted(scenes, draw(seed), seed), pair, dropped)
    yield from without(made(count, seed), pair, dropped)
    yield from without(written(), pair, dropped)
    yield from without(talk(folder, seed), either_text, dropped)


def _once(rows: Iterator[Row]) -> Iterator[Row]:
    """Return each pair once: of two records with the same texts the first stays."""
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if (row["a"], row["b"]) not in seen:
            seen.add((row["a"], row["b"]))
            yield row


def main() -> None:
    """Read the arguments, write the file, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="holds the folders `training` and `data`")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--made", type=int, default=110_000, help="how many pairs to make up")
    given = parser.parse_args()
    dropped: Counter[str] = Counter()
    rows = collected(given.folder, given.seed, given.made, dropped)
    write(given.out, rows)
    sys.stdout.write(report(rows, dropped) + "\n")


if __name__ == "__main__":
    main()
