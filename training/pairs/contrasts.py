"""Real sentences under other subjects and circumstances.

In collections of captions two sentences tell of the same scene, so that "a man sleeps" contradicts "a woman runs". A
memory holds facts about many people and cases. Here sentences of such pairs get a subject or a circumstance: the same
one in both, and the relation stays; two different ones, and the sentences have nothing to do with each other.
"""

import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from training.pairs.names import Names

Row = dict[str, Any]

_ONE = re.compile(
    r"^(?:an?|the|one|this) (?:(?:young|old|older|elderly|little|small|tall|blond|blonde|asian|black|white|female|male"
    r"|happy|bald|big) ){0,2}(?:man|woman|boy|girl|person|guy|lady|child|kid|toddler|player|worker|dog|baby|gentleman)"
    r"(?= )",
    re.IGNORECASE,
)
_MANY = re.compile(
    r"^(?:(?:the|some|two|three|four|several|many|a group of|a couple of) )?(?:(?:young|old|older|little|small) )?"
    r"(?:men|women|boys|girls|people|kids|children|guys|ladies|players|workers|dogs|adults)(?= )",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"^(?:An?|The|Two|Three|Four|Some|Several|Many|One|This|There|People|Men|Women|Kids|He|She|They)\b"
)
# The share of pairs that get different subjects or circumstances; the others get the same one.
_DIFFERENT = 0.6


def contrasted(rows: Iterable[Row], names: Names, seed: int) -> Iterator[Row]:
    """Return pairs made from `rows`, each with a subject or a circumstance in both sentences."""
    rng = random.Random(seed)  # noqa: S311
    sets = yaml.safe_load((Path(__file__).parent / "vocabulary" / "contrasts.yaml").read_text())
    for row in rows:
        if row["label"] == "not_contradiction" or rng.random() > (0.5 if row["label"] == "contradicts" else 0.15):
            continue
        different = rng.random() < _DIFFERENT
        for kind, pattern in (("one", _ONE), ("many", _MANY)):
            found = [pattern.match(row[side]) for side in "ab"]
            if not all(found):
                continue
            first, second = _two(sets[kind], rng, names if kind == "one" else None)
            texts = [
                name[0].upper() + name[1:] + row[side][match.end() :]
                for side, match, name in zip("ab", found, (first, second if different else first), strict=True)
                if match
            ]
            if _same(*texts):
                break
            yield _row(texts, row, different, f"subject_{kind}", rng)
            break
        else:
            if rng.random() < 0.25 and all(_ARTICLE.match(row[side]) for side in "ab"):
                first, second = _two(sets["circumstances"], rng, None)
                texts = [
                    _under(when, row[side], rng)
                    for side, when in zip("ab", (first, second if different else first), strict=True)
                ]
                yield _row(texts, row, different, "circumstance", rng)


def _two(sets: list[list[str]], rng: random.Random, names: Names | None) -> tuple[str, str]:
    """Two members of one set; for a person half of the time two names."""
    if names is not None and rng.random() < 0.5:
        first, second = rng.sample(names.first, 2)
        if rng.random() < 0.3:
            family = rng.choice(names.family)
            return f"{first} {family}", f"{second} {family}"
        return first, second
    first, second = rng.sample(rng.choice(sets), 2)
    return first, second


def _under(when: str, text: str, rng: random.Random) -> str:
    text = text[0].lower() + text[1:]
    if rng.random() < 0.3:
        return f"{text[0].upper()}{text[1:].rstrip('. ')} {when}."
    return f"{when[0].upper()}{when[1:]}, {text}"


def _same(a: str, b: str) -> bool:
    return re.sub(r"\W+", " ", a).strip().lower() == re.sub(r"\W+", " ", b).strip().lower()


def _row(texts: list[str], row: Row, different: bool, name: str, rng: random.Random) -> Row:
    a, b = (text.lower() if rng.random() < 0.1 else text for text in texts)
    label = "neither" if different else row["label"]
    return {"a": a, "b": b, "label": label, "set": f"contrasted_{name}", "weight": 1.0}
