"""Writes the weights and the figures of each reader into its model card, between two marks."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- figures: written by `python -m training report` -->", "<!-- end of figures -->"
Figures = Mapping[str, Any]


class NoMarks(Exception):
    """A card has no place for the figures."""


def write_cards(cards: Path, manifest: Figures, figures: Figures) -> None:
    """Write the weights and the figures into `pairs.md`, `guard.md` and `tagger.md`; raises `NoMarks`."""
    drawn = {"pairs": _pairs, "guard": _guard, "tagger": _tagger}
    for reader, draw in drawn.items():
        path = cards / f"{reader}.md"
        lines = [*_weights(reader, manifest, figures["version"]), *draw(figures[reader])]
        path.write_text(replaced(path.read_text(encoding="utf-8"), "\n".join(lines)), encoding="utf-8")


def replaced(card: str, figures: str) -> str:
    """Return the card with these lines between its marks; raises `NoMarks`."""
    before, begin, rest = card.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"\n{END}")
    if not begin or not end:
        raise NoMarks("a card must have the two marks between which the figures are written")
    return f"{before}{begin}\n{figures}\n{end}{after}"


def _weights(reader: str, manifest: Figures, version: str) -> list[str]:
    said, trained = manifest["readers"][reader], manifest["training"]["readers"][reader]
    file = manifest["files"][said["file"]]
    rows = [
        ("version", f"`{version}`"),
        ("file", f"`{said['file']}`, {file['bytes'] / 1e6:.1f} MB, SHA-256 `{file['sha256']}`"),
        ("thresholds", _thresholds(said["thresholds"])),
        ("margin", f"{said['margin']:g}"),
        ("tokens read at once", str(said["max_tokens"])),
    ]
    for one in trained.get("mean_of", [trained]):
        plan = ", ".join(f"{name} {value:g}" for name, value in one["plan"].items())
        rows.append(("trained on", f"{one['rows']['examples']:,} rows, SHA-256 `{one['rows']['sha256']}`; {plan}"))
    return _table(("weights", ""), rows)


def _thresholds(thresholds: Mapping[str, float]) -> str:
    values = dict.fromkeys(thresholds.values())
    named = {value: [name for name, one in thresholds.items() if one == value] for value in values}
    return "; ".join(f"{', '.join(names)} {value:.2f}" for value, names in named.items())


def _pairs(figures: Figures) -> list[str]:
    memory, talk = figures["memory"], figures["talk"]
    kinds = memory["readers"]["kinds"]
    return [
        *_title("Contradictions, held rows"),
        *_sets(figures["contradictions"], ("precision", "recall", "f1", "false_duplicate_rate")),
        *_title("Duplicates, held rows"),
        *_sets(figures["duplicates"], ("precision", "recall", "f1")),
        *_title(f"Memory-style pairs, second half ({memory['readers']['n']})"),
        *_beside(memory, ("contradictions_found", "false_alarms_other_subjects", "false_alarms", "duplicates_found")),
        *_title("The same by kind of pair, with the readers"),
        *_table(
            ("label: kind", "n", "right"), [(name, str(one["n"]), _share(one["right"])) for name, one in kinds.items()]
        ),
        *_title(f"Plain talk: turns of LoCoMo and their nearest neighbour, held pairs ({talk['readers']['n']})"),
        *_beside(talk, ("false_alarms",)),
    ]


def _guard(figures: Figures) -> list[str]:
    return [
        *_title("Instructions to the model, held rows and collections from outside"),
        *_sets(figures["injection"], ("recall", "false_positive_rate", "auc")),
        *_title("Worth: turns and sentences of users in LongMemEval, held questions"),
        *_sets(figures["worth"], ("answering", "recall", "sentences", "kept")),
    ]


def _tagger(figures: Figures) -> list[str]:
    special = figures["special"]
    return [
        *_title("Personal data, held rows"),
        *_types(figures["pii"]),
        *_title("Written texts, second half"),
        *_types(figures["written"]),
        *_title(f"Special categories in the same texts ({special['readers']['n']})"),
        *_beside(special, ("found", "false_alarms")),
    ]


def _sets(both: Figures, names: Sequence[str]) -> list[str]:
    """Draw the figures of each set, those of the rules behind those with the readers."""
    rules, readers = both["rules"], both["readers"]
    parts = {"all": (readers, rules)}
    parts |= {name: (one, rules["sets"][name]) for name, one in readers["sets"].items()}
    return _table(
        ("set", "n", *names),
        [(name, str(one["n"]), *_pair_of(one, other, names)) for name, (one, other) in parts.items()],
    )


def _types(both: Figures) -> list[str]:
    rules, readers = both["rules"], both["readers"]
    names = ("precision", "recall")
    parts = {"structured": (readers["structured"], rules["structured"])}
    parts |= {name: (one, rules["types"].get(name, {})) for name, one in readers["types"].items()}
    return _table(
        ("type", "n", *names),
        [(name, str(one["n"]), *_pair_of(one, other, names)) for name, (one, other) in parts.items()],
    )


def _beside(both: Figures, names: Sequence[str]) -> list[str]:
    rows = [(name.replace("_", " "), _share(both["readers"][name]), _share(both["rules"][name])) for name in names]
    return _table(("figure", "readers", "rules alone"), rows)


def _pair_of(readers: Figures, rules: Figures, names: Iterable[str]) -> list[str]:
    return [
        _share(readers[name])
        if isinstance(readers[name], int)
        else f"{_share(readers[name])} ({_share(rules.get(name))})"
        for name in names
    ]


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _title(words: str) -> list[str]:
    return ["", f"**{words}**", ""]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(one)} |" for one in (head, ["---"] * len(head), *rows)]
