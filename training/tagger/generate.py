"""Makes rows from templates: single sentences, several together, forms, mails and transcripts, in many styles."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from training.tagger.fill import filled
from training.tagger.forms import form, mail, transcript
from training.tagger.labels import CATEGORIES, LABELS
from training.tagger.pools import Pools
from training.tagger.rows import Marked, Row, joined
from training.tagger.styles import styled, tidied
from training.tagger.values import Values

_FOLDER = Path(__file__).parent / "templates"
# The kinds of templates, how often each is taken, and which labels they leave unmarked.
_KINDS: dict[str, tuple[float, frozenset[str]]] = {
    "persons": (0.19, frozenset()),
    "contacts": (0.21, frozenset()),
    "finance": (0.12, frozenset()),
    "accounts": (0.11, frozenset()),
    "special": (0.16, frozenset({"ORGANIZATION"})),
    "lookalikes": (0.09, frozenset({"ORGANIZATION"})),
    "plain": (0.12, frozenset({"ORGANIZATION"})),
}
_FORMS = 0.14


@cache
def templates(kind: str) -> tuple[str, ...]:
    """Return the templates of a kind."""
    lines = (_FOLDER / f"{kind}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("# "))


def generated(pools: Pools, seed: int, count: int) -> Iterator[Row]:
    """Return so many different rows; the same pools and seed give the same rows."""
    random = Random(seed)  # noqa: S311 - it makes examples, no secrets
    values = Values(pools, random)
    seen: set[str] = set()
    while len(seen) < count:
        values.begin()
        row = _row(values, random)
        if row.marked.text not in seen:
            seen.add(row.marked.text)
            yield row


def _row(values: Values, random: Random) -> Row:
    if random.random() < _FORMS:
        return Row(styled(form(values, random), random), "forms")
    share = random.random()
    if share < 0.62:
        kind, marked = _sentence(values, random)
        return Row(styled(marked, random), kind, _known([kind]))
    parts = [_sentence(values, random) for _ in range(random.randint(2, 4))]
    kinds, sentences = [kind for kind, _ in parts], [marked for _, marked in parts]
    if share < 0.84:
        kind, whole = "several", joined(sentences, random.choice((" ", " ", "\n", "\n\n", " - ")))
    elif share < 0.92:
        kind, whole = "transcripts", transcript(sentences, values, random)
    else:
        kind, whole = "mails", mail(joined(sentences, " "), values, random)
    return Row(styled(whole, random), kind, _known(kinds))


def _sentence(values: Values, random: Random) -> tuple[str, Marked]:
    names = list(_KINDS)
    kind = random.choices(names, [_KINDS[name][0] for name in names])[0]
    return kind, tidied(filled(random.choice(templates(kind)), values, random))


def _known(kinds: list[str]) -> tuple[str, ...]:
    unmarked = frozenset[str]().union(*(_KINDS[kind][1] for kind in kinds))
    return tuple(label for label in LABELS + CATEGORIES if label not in unmarked)
