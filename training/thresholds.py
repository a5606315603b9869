"""Chooses the thresholds of the exported readers on development data, and writes them into the manifest.

Each threshold is the lowest of `STEPS` at which its limits hold, as a lower one finds more. The graphs are run and
their scores are decided upon by the code of the gates (`muniment.language.readers`, `muniment.evaluation`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muniment.contradictions.rules import Comparison, JudgeThresholds
from muniment.evaluation.injection import read_texts
from muniment.evaluation.pairs import ReadPair, comparison, read_pairs
from muniment.evaluation.pii import figures as pii_figures
from muniment.evaluation.scoring import precision_and_recall
from muniment.evaluation.worth import read_turns, worth_figures
from muniment.language.readers import Readers
from muniment.language.readers.readers import GUARD, PAIRS, PREFILTER, TAGGER
from muniment.language.redaction.tags import TaggedTexts
from muniment.language.special import find_special
from muniment.model.metrics import mean
from training import development
from training.manifest import open_readers, set_thresholds
from training.tagger.labels import CATEGORIES, LABELS

STEPS = tuple(round(0.05 * step, 2) for step in range(2, 20))

Figures = dict[str, float | None]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Limit:
    """What a figure may be at most, or must be at least."""

    most: float = 1.0
    least: float = 0.0

    def holds(self, figure: float | None) -> bool:
        """Whether the figure keeps the limit; one that is not defined does."""
        return figure is None or self.least <= figure <= self.most


@dataclass(frozen=True)
class Choice:
    """A threshold, its figures on development data, and the names of the limits that it does not keep."""

    threshold: float
    figures: Figures
    broken: tuple[str, ...]


# The prefilter's thresholds, and the share of what the judge finds that it may lose.
RELATED_STEPS = tuple(round(0.01 * step, 2) for step in range(1, 51))
MOST_LOST = 0.01
# Stricter than the bars that are read on the held rows, as development data is small.
LIMITS: dict[str, dict[str, Limit]] = {
    "contradicts": {
        "false_alarms_other_subjects": Limit(most=0.03),
        "false_alarms_plain_talk": Limit(most=0.0125),
        "false_alarms_memory": Limit(most=0.04),
        # Low, as `sick` calls other people in the same scene neutral.
        "precision_judged": Limit(least=0.52),
    },
    "same": {"precision_public": Limit(least=0.93), "false_duplicates_memory": Limit(most=0.01)},
    "attack": {"false_alarms_plain_talk": Limit(most=0.008), "false_alarms_harmless": Limit(most=0.06)},
    "worth": {"kept_chats": Limit(most=0.37), "kept_passing": Limit(most=0.10)},
    "tags": {"precision": Limit(least=0.90)},
    # Some turns of plain talk do tell of special categories.
    "special": {"false_alarms": Limit(most=0.03), "marked_plain_talk": Limit(most=0.03)},
}


def choose(name: str, figures_at: Callable[[float], Figures]) -> Choice:
    """Return the lowest threshold that keeps the limits of that name; if none does, the highest and what it breaks."""
    for threshold in STEPS:
        figures = figures_at(threshold)
        broken = tuple(one for one, limit in LIMITS[name].items() if not limit.holds(figures[one]))
        if not broken or threshold == STEPS[-1]:
            return Choice(threshold, figures, broken)
    raise AssertionError("there are no steps")


def choose_all(folder: Path, inputs: Path, report: Report) -> dict[str, Choice]:
    """Choose all thresholds of the readers in a folder and write them into its manifest; return the choices."""
    readers = open_readers(folder, judge_reads_all=True)
    chosen = {**pair_choices(readers, inputs), **guard_choices(readers, inputs), **tagger_choices(readers, inputs)}
    for name, choice in chosen.items():
        report(f"{name}: {choice.threshold:.2f} {_words(choice.figures)}")
        if choice.broken:
            report(
                f"{name}: no threshold keeps all limits; at the highest these are broken: {', '.join(choice.broken)}"
            )
    values = {name: choice.threshold for name, choice in chosen.items()}
    thresholds = {
        PAIRS: {name: values[name] for name in ("contradicts", "same")},
        PREFILTER: {"related": values["related"]},
        GUARD: {name: values[name] for name in ("attack", "worth")},
        TAGGER: dict.fromkeys(LABELS, values["tags"]) | dict.fromkeys(CATEGORIES, values["special"]),
    }
    measured = {name: choice.figures | {"threshold": choice.threshold} for name, choice in chosen.items()}
    set_thresholds(folder, thresholds, measured)
    return chosen


# ---- the judge of pairs ----


@dataclass(frozen=True)
class ReadSets:
    """The pairs of the development sets, read."""

    memory: Sequence[ReadPair]
    talk: Sequence[ReadPair]
    contradictions: Sequence[ReadPair]
    duplicates: Sequence[ReadPair]


def pair_choices(readers: Readers, inputs: Path) -> dict[str, Choice]:
    """Choose from which scores the judge says `contradicts` and `same`."""
    sets = ReadSets(
        development.memory_pairs("develop", readers),
        list(read_pairs(development.neighbours(inputs, "develop"), readers)),
        list(read_pairs(development.public(inputs, development.CONTRADICTIONS, "develop"), readers)),
        list(read_pairs(development.public(inputs, development.DUPLICATES, "develop"), readers)),
    )
    by, margin = comparison(readers), readers.file(PAIRS).margin
    contradicts = choose(
        "contradicts",
        lambda least: contradiction_figures(sets, replace(by, judge_thresholds=JudgeThresholds(least, 1.0, margin))),
    )
    same = choose(
        "same",
        lambda least: duplicate_figures(
            sets, replace(by, judge_thresholds=JudgeThresholds(contradicts.threshold, least, margin))
        ),
    )
    decided = replace(by, judge_thresholds=JudgeThresholds(contradicts.threshold, same.threshold, margin))
    return {"contradicts": contradicts, "same": same, "related": related_choice(readers, sets, decided)}


def related_choice(readers: Readers, sets: ReadSets, by: Comparison) -> Choice:
    """Choose the prefilter's threshold: the highest that loses at most `MOST_LOST` of what the judge finds."""
    reader = readers.load().pairs

    def scores(pairs: Iterable[ReadPair]) -> list[float]:
        return [reader.related(one.record["a"], one.record["b"]) for one in pairs]

    judged = [one for one in (*sets.memory, *sets.contradictions, *sets.duplicates) if one.scores is not None]
    found = scores(one for one in judged if one.verdict(by) != "different")
    talk = scores(one for one in sets.talk if one.scores is not None)
    threshold = max(
        (step for step in RELATED_STEPS if sum(one < step for one in found) <= MOST_LOST * len(found)), default=0.0
    )
    figures = {
        "lost": mean([float(one < threshold) for one in found]),
        "left_out_plain_talk": mean([float(one < threshold) for one in talk]),
    }
    return Choice(threshold, figures, ())


def contradiction_figures(sets: ReadSets, by: Comparison) -> Figures:
    """Return what is found and what is a false alarm among pairs when the judge counts from these thresholds."""
    public, judged = (
        precision_and_recall(
            [one.verdict(by) == "contradicts" for one in pairs],
            [one.record["label"] == "contradiction" for one in pairs],
        )
        for pairs in (sets.contradictions, [one for one in sets.contradictions if one.scores is not None])
    )
    return {
        "found_memory": share(sets.memory, "contradicts", by, label="contradiction"),
        "false_alarms_other_subjects": share(sets.memory, "contradicts", by, kind="other_subject"),
        "false_alarms_memory": share(sets.memory, "contradicts", by, label="neutral"),
        "false_alarms_plain_talk": share(sets.talk, "contradicts", by),
        # What the judge alone finds: the rules' own mistakes do not depend on its threshold.
        "precision_judged": judged["precision"],
        "precision_public": public["precision"],
        "recall_public": public["recall"],
    }


def duplicate_figures(sets: ReadSets, by: Comparison) -> Figures:
    """Return the same for duplicates."""
    public = precision_and_recall(
        [one.verdict(by) == "same" for one in sets.duplicates], [one.record["duplicate"] for one in sets.duplicates]
    )
    different = [one for one in sets.memory if one.record["label"] != "entailment"]
    return {
        "found_memory": share(sets.memory, "same", by, label="entailment"),
        "false_duplicates_memory": share(different, "same", by),
        "precision_public": public["precision"],
        "recall_public": public["recall"],
    }


def share(pairs: Iterable[ReadPair], verdict: str, by: Comparison, **fields: str) -> float | None:
    """Return the share of the pairs with these fields that get a verdict."""
    wanted = [one for one in pairs if all(one.record.get(name) == value for name, value in fields.items())]
    return mean(one.verdict(by) == verdict for one in wanted)


# ---- the guard ----


def guard_choices(readers: Readers, inputs: Path) -> dict[str, Choice]:
    """Choose from which scores a text addresses the model, and a sentence is worth knowing."""
    texts = list(read_texts(development.attack_texts(inputs, "develop"), readers))
    turns = [turn for row in development.chats(inputs, "develop") for turn in read_turns(row, readers)]
    guard = readers.load().guard
    written = [(row["worth"], guard.read(row["text"]).worth) for row in development.worth_sentences()]

    def attack(least: float) -> Figures:
        plain = [one for one in texts if one.record["set"] == development.PLAIN]
        others = [one for one in texts if one.record["set"] != development.PLAIN]
        return {
            "found": mean(one.addresses_the_model(least) for one in others if one.record["attack"]),
            "false_alarms_harmless": mean(one.addresses_the_model(least) for one in others if not one.record["attack"]),
            "false_alarms_plain_talk": mean(one.addresses_the_model(least) for one in plain),
        }

    def worth(least: float) -> Figures:
        return {
            "found": mean(score >= least for label, score in written if label),
            "kept_passing": mean(score >= least for label, score in written if not label),
            "kept_chats": worth_figures(turns, least)["kept"],
        }

    return {"attack": choose("attack", attack), "worth": choose("worth", worth)}


# ---- the tagger ----


def tagger_choices(readers: Readers, inputs: Path) -> dict[str, Choice]:
    """Choose from which scores spans count, one threshold for all labels, and special categories, one for all."""
    texts, talk = development.marked_texts("develop"), development.plain_texts(inputs)
    read = {text: readers.load().tagger.read(text) for text in [*(one.text for one in texts), *talk]}

    def tags(least: float) -> Figures:
        types = pii_figures([one.record() for one in texts], with_thresholds(readers, dict.fromkeys(LABELS, least)))
        own = [types["types"][name] for name in ("PERSON", "ADDRESS")]
        return {name: mean(one[name] for one in own) for name in ("precision", "recall")}

    def special(least: float) -> Figures:
        file = replace(readers.file(TAGGER), thresholds=dict.fromkeys(CATEGORIES, least))
        tagged = TaggedTexts(file, read)
        marked = mean(bool(tagged.special(text)) for text in talk)
        # What the rules mark by mistake is none of the tagger's threshold.
        return category_figures(texts, tagged, by_rules=False) | {"marked_plain_talk": marked}

    return {"tags": choose("tags", tags), "special": choose("special", special)}


def category_figures(
    texts: Sequence[development.MarkedText], tagged: TaggedTexts | None, *, by_rules: bool = True
) -> Figures:
    """Return the share of special categories found, and of texts without any in which one is found."""
    found = {one.text: set(_categories(one.text, tagged, by_rules=by_rules)) for one in texts}
    return {
        "found": mean(name in found[one.text] for one in texts for name in sorted(one.categories)),
        "false_alarms": mean(bool(found[one.text]) for one in texts if not one.categories),
    }


def _categories(text: str, tagged: TaggedTexts | None, *, by_rules: bool) -> Iterator[str]:
    """Yield the special categories that a text tells of a person, by the rules and by the tagger."""
    if by_rules:
        yield from (one.category for one in find_special(text) if one.persons)
    if tagged is not None:
        yield from (tag.label.partition(":")[0] for tag in tagged.special(text))


def with_thresholds(readers: Readers, thresholds: Mapping[str, float]) -> Readers:
    """Return the same readers, loaded, with other thresholds of the tagger."""
    file = replace(readers.file(TAGGER), thresholds=dict(thresholds))
    changed = copy(readers)
    changed.weights = replace(readers.weights, readers=readers.weights.readers | {TAGGER: file})
    return changed


def _words(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items() if value is not None)
