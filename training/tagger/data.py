"""Writes the training data of the tagger: `python -m training.tagger.data OUT.jsonl.gz --inputs FOLDER`."""

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from training.decontaminate import Evaluation, evaluation
from training.inputs import read_rows
from training.tagger.generate import generated
from training.tagger.pools import faker_pools
from training.tagger.public import marked_sentences, plain_talk, refilled, turns
from training.tagger.rows import Row
from training.tagger.values import Values

_SEED = 20_251
_GENERATED, _TALK, _REFILLED = 60_000, 6_000, 3


def rows(folder: Path, seen: Evaluation, dropped: Counter[str], count: int = _GENERATED) -> list[Row]:
    """Return all rows in a mixed order; those near an evaluation text are left out and counted.

    Of the pinned data in the folder, rows that are held back are left out too, and what is made of such rows.
    """
    random = Random(_SEED)  # noqa: S311 - it makes examples, no secrets
    pools = faker_pools(_SEED)
    marked = list(clean(marked_sentences(read_rows(folder, "data/pii/spans.jsonl")), seen, dropped))
    talk = turns(
        read_rows(folder, "data/memory/longmemeval_oracle.json.gz"),
        read_rows(folder, "data/gatemem/office.episodes.jsonl.gz"),
    )
    everything = [
        *clean(generated(pools, _SEED, count), seen, dropped),
        *marked,
        *clean(refilled(marked, Values(pools, random), random, _REFILLED), seen, dropped),
        *clean(plain_talk(talk, random, _TALK), seen, dropped),
    ]
    random.shuffle(everything)
    return everything


def clean(made: Iterable[Row], seen: Evaluation, dropped: Counter[str]) -> Iterator[Row]:
    """Return the rows whose text is not near an evaluation text; the others are counted by their set."""
    for row in made:
        if seen.has_text(row.marked.text):
            dropped[row.set] += 1
        else:
            yield row


def write(made: Iterable[Row], target: Path) -> Counter[str]:
    """Write the rows, one a line, the same bytes every time; return the number of rows by set and of marks by label."""
    counts: Counter[str] = Counter()
    with target.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        for row in made:
            file.write(json.dumps(row.record(), ensure_ascii=False).encode() + b"\n")
            counts[f"set {row.set}"] += 1
            counts.update(mark.label for mark in (*row.marked.spans, *row.marked.special))
    return counts


def main() -> None:
    """Read the arguments, write the file and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--inputs", type=Path, required=True, help="the folder that holds data/ and training/")
    parser.add_argument("--count", type=int, default=_GENERATED, help="how many rows to generate")
    arguments = parser.parse_args()
    dropped: Counter[str] = Counter()
    counts = write(rows(arguments.inputs, evaluation(arguments.inputs), dropped, arguments.count), arguments.out)
    sys.stdout.writelines(f"{name}\t{count}\n" for name, count in sorted(counts.items()))
    sys.stdout.writelines(f"left out {name}\t{count}\n" for name, count in sorted(dropped.items()))


if __name__ == "__main__":
    main()
