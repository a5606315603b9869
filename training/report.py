"""Figures of the exported readers on what no reader was trained on and no threshold was chosen on.

These are the held rows of the public sets, the second half of the memory-style pairs and of the tagger's written texts,
and collections of harmless texts from outside. Every figure is given for the rules alone and with the readers.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from muniment.contradictions.rules import Comparison
from muniment.evaluation import contradictions, duplicates, injection, pii, worth
from muniment.evaluation.pairs import ReadPair, comparison, read_pairs
from muniment.language.readers import Readers
from muniment.language.readers.readers import TAGGER
from muniment.language.redaction.tags import TaggedTexts
from training import development
from training.inputs import read_rows
from training.manifest import open_readers, read_manifest
from training.thresholds import category_figures, share

Figures = dict[str, Any]
# The figures of both, by who reads: the rules alone, or the readers beside them.
Both = dict[str, Figures]


def report(folder: Path, inputs: Path) -> Figures:
    """Return all figures of the readers in a weights' folder, with their version and the hashes of their files."""
    readers = open_readers(folder)
    return {
        "version": readers.version,
        "files": {name: one["sha256"] for name, one in read_manifest(folder)["files"].items()},
        "pairs": _of_pairs(readers, inputs),
        "guard": _of_guard(readers, inputs),
        "tagger": _of_tagger(readers, inputs),
    }


def write_figures(path: Path, figures: Mapping[str, Any]) -> None:
    """Write the figures, rounded, one document."""
    path.write_text(json.dumps(_rounded(figures), indent=1) + "\n", encoding="utf-8")


def _both(measure: Callable[[Readers | None], Figures], readers: Readers) -> Both:
    return {name: _without_times(measure(one)) for name, one in (("rules", None), ("readers", readers))}


def _of_pairs(readers: Readers, inputs: Path) -> dict[str, Both]:
    contradicted, same, talk = (
        development.public(inputs, development.CONTRADICTIONS, "report"),
        development.public(inputs, development.DUPLICATES, "report"),
        development.neighbours(inputs, "report"),
    )
    return {
        "contradictions": _both(lambda by: contradictions.figures(contradicted, by), readers),
        "duplicates": _both(lambda by: duplicates.figures(same, by), readers),
        "memory": _both(lambda by: memory_figures(development.memory_pairs("report", by), comparison(by)), readers),
        "talk": _both(lambda by: talk_figures(list(read_pairs(talk, by)), comparison(by)), readers),
    }


def memory_figures(pairs: list[ReadPair], by: Comparison) -> Figures:
    """Return what is found among memory-style pairs, what is a false alarm, and the verdicts right by kind of pair."""
    right = {"contradiction": "contradicts", "entailment": "same"}
    kinds: dict[str, list[bool]] = {}
    for one in pairs:
        is_right = one.verdict(by) == right.get(one.record["label"], "different")
        kinds.setdefault(f"{one.record['label']}: {one.record['kind']}", []).append(is_right)
    return {
        "n": len(pairs),
        "contradictions_found": share(pairs, "contradicts", by, label="contradiction"),
        "false_alarms_other_subjects": share(pairs, "contradicts", by, kind="other_subject"),
        "false_alarms": share(pairs, "contradicts", by, label="neutral"),
        "duplicates_found": share(pairs, "same", by, label="entailment"),
        "kinds": {name: {"n": len(some), "right": sum(some) / len(some)} for name, some in sorted(kinds.items())},
    }


def talk_figures(pairs: list[ReadPair], by: Comparison) -> Figures:
    """Return how many turns are taken to contradict their nearest neighbour."""
    return {"n": len(pairs), "false_alarms": share(pairs, "contradicts", by)}


def _of_guard(readers: Readers, inputs: Path) -> dict[str, Both]:
    texts, chats = development.attack_texts(inputs, "report"), development.chats(inputs, "report")
    return {
        "injection": _both(lambda by: injection.figures(texts, by), readers),
        "worth": _both(lambda by: worth.figures(chats, by), readers),
    }


def _of_tagger(readers: Readers, inputs: Path) -> dict[str, Both]:
    held = development.public(inputs, development.PII, "report")
    sets = pii.labelled(read_rows(inputs, development.PII))
    written = development.marked_texts("report")
    records = [one.record() for one in written]
    tagged = TaggedTexts(readers.file(TAGGER), {one.text: readers.load().tagger.read(one.text) for one in written})
    return {
        "pii": _both(lambda by: pii.figures(held, by, sets), readers),
        "written": _both(lambda by: pii.figures(records, by), readers),
        "special": {
            name: {"n": len(written), **category_figures(written, one)}
            for name, one in (("rules", None), ("readers", tagged))
        },
    }


def _without_times(figures: Figures) -> Figures:
    """Leave out how long it took, which differs each time."""
    return {name: value for name, value in figures.items() if not name.startswith("seconds")}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return value
