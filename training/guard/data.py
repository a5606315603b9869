"""Writes the training data of the guard: `python -m training.guard.data OUT.jsonl.gz [--inputs FOLDER]`.

A row is `{text, attack, worth, set, weight}`: `attack` is 1 for a text that addresses the model and wants to instruct
it, 0 for one that does not; `worth` is 1 for a sentence worth knowing later. A label that is not known is null.
Development sets, which choose the thresholds, are in `development/`.
"""

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from random import Random

from training.decontaminate import Evaluation, evaluation
from training.guard.generated import attacks, harmful_requests, harmless, sentences
from training.guard.row import Row
from training.guard.sources import harmful_request_rows, instruction_rows, talk_rows
from training.guard.worth import worth_rows

SEED = 16
_WRITTEN = Path(__file__).parent / "written" / "texts.jsonl"
_ATTACKS = 16_000
_HARMLESS = 22_000
_HARMFUL_REQUESTS = 1_200
_SENTENCES = 14_000


def rows(inputs: Path, seen: Evaluation, dropped: Counter[str]) -> Iterator[Row]:
    """Return all rows, each text once, in a seeded order; those near an evaluation text are left out and counted."""
    random = Random(SEED)  # noqa: S311 - a seeded choice of texts, no secret
    talk = list(clean(talk_rows(inputs, random), seen, dropped))
    users = [one.text for one in talk if one.set != "longmemeval_assistant"]
    collected = [
        *worth_rows(inputs),
        *instruction_rows(inputs),
        *harmful_request_rows(inputs),
        *talk,
        *generated_rows(random, users),
        *written_rows(),
    ]
    unique = list(clean(without_repeats(collected), seen, dropped))
    random.shuffle(unique)
    return iter(unique)


def clean(collected: Iterable[Row], seen: Evaluation, dropped: Counter[str]) -> Iterator[Row]:
    """Return the rows whose text is not near an evaluation text; the others are counted by their set."""
    for row in collected:
        if seen.has_text(row.text):
            dropped[row.set] += 1
        else:
            yield row


def written_rows() -> Iterator[Row]:
    """Return the texts that were written by hand; each teaches more than a generated one."""
    for line in _WRITTEN.read_text(encoding="utf-8").split("\n"):
        if line:
            said = json.loads(line)
            yield Row(said["text"], "written", said["attack"], weight=3.0)


def generated_rows(random: Random, talk: list[str]) -> Iterator[Row]:
    """Return the rows that need no collection; `talk` is put around some attacks."""
    return chain(
        attacks(_ATTACKS, random, talk),
        harmless(_HARMLESS, random),
        harmful_requests(_HARMFUL_REQUESTS, random),
        sentences(_SENTENCES, random),
    )


def without_repeats(collected: Iterable[Row]) -> Iterator[Row]:
    """Return the first row of each text, compared without case and punctuation, if it has words."""
    seen: set[str] = set()
    for row in collected:
        key = re.sub(r"\W+", " ", row.text.lower()).strip()
        if key and key not in seen:
            seen.add(key)
            yield row


def write(path: Path, found: Iterable[Row]) -> Counter[tuple[str, int | None, int | None]]:
    """Write the rows, always as the same bytes, and return how many there are by set and labels."""
    counts: Counter[tuple[str, int | None, int | None]] = Counter()
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        for row in found:
            counts[row.set, row.attack, row.worth] += 1
            file.write((json.dumps(asdict(row), ensure_ascii=False) + "\n").encode())
    return counts


def main() -> None:
    """Write the file and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--inputs", type=Path, default=Path("../shared"), help="the folder with training/ and data/")
    arguments = parser.parse_args()
    dropped: Counter[str] = Counter()
    made = rows(arguments.inputs, evaluation(arguments.inputs), dropped)
    for (name, attack, worth), count in sorted(write(arguments.out, made).items(), key=str):
        sys.stdout.write(f"{name}\tattack={attack}\tworth={worth}\t{count}\n")
    sys.stdout.writelines(f"{name}\tleft out\t{count}\n" for name, count in sorted(dropped.items()))


if __name__ == "__main__":
    main()
