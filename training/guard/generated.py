"""Generated rows: attacks and harmless texts from the grammar, alone or with others around them, in many forms."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from training.guard.grammar import FOLDER, Grammar, parse
from training.guard.noise import with_noise
from training.guard.row import WINDOW, Row

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")
_LANGUAGE_SHARES = (50, 20, 6, 6, 6, 6, 6)
_NOISE_SHARE = 0.22
_FORM_SHARE = 0.4
_SPEAKER = re.compile(r"\b(I|I'm|I'd|my|we|our|looking for)\b", re.IGNORECASE)


@cache
def kinds(name: str, ending: str) -> tuple[str, ...]:
    """Return the rules of a grammar file whose names have this ending."""
    rules = parse((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))
    return tuple(rule for rule in rules if rule.endswith(ending))


@cache
def grammar(name: str) -> Grammar:
    """Return the grammar of a file together with the names."""
    return Grammar.load(["names", name])


def attacks(count: int, random: Random, talk: Sequence[str]) -> Iterator[Row]:
    """Make attacks; `talk` holds harmless English texts that may stand around them."""
    for _ in range(count):
        language = _language(random)
        kind = random.choice(kinds(f"attack.{language}", "_attack"))
        text = grammar(f"attack.{language}").make(kind, random)
        if random.random() < 0.1:
            other = random.choice(kinds(f"attack.{language}", "_attack"))
            text = f"{text} {grammar(f'attack.{language}').make(other, random)}"
        if random.random() < _NOISE_SHARE:
            text = with_noise(text, random, disguised=0.35)
        if random.random() < 0.4:
            text = _surrounded(text, language, random, talk)
        yield Row(_in_form(text, random), f"generated_{kind}", attack=1)


def harmless(count: int, random: Random) -> Iterator[Row]:
    """Make harmless texts, many of them with the words that attacks use."""
    for _ in range(count):
        language = _language(random)
        kind = random.choice(kinds(f"harmless.{language}", "_plain"))
        text = grammar(f"harmless.{language}").make(kind, random)
        if random.random() < 0.35:
            text = " ".join([text, *(_plain(language, random) for _ in range(random.randint(1, 4)))])
        if random.random() < _NOISE_SHARE:
            text = with_noise(text, random, disguised=0.1)
        yield Row(_in_form(text, random), f"generated_{kind}", attack=0)


def harmful_requests(count: int, random: Random) -> Iterator[Row]:
    """Make requests for harmful content, and as many harmless ones about the same subjects."""
    for at in range(count):
        kind, label = (("harmful_attack", 1), ("harmful_neighbour_plain", 0))[at % 2]
        text = grammar("harmless.en").make(kind, random)
        yield Row(text, "generated_harmful_request", attack=1 if label else 0, weight=0.5)


def sentences(count: int, random: Random) -> Iterator[Row]:
    """Make sentences of a speaker that are worth knowing, and as many that are not."""
    for at in range(count):
        label = at % 2
        kind = random.choice(kinds("worth.en", "_worth" if label else "_idle"))
        text = grammar("worth.en").make(kind, random)
        if not label and random.random() < 0.3:
            kind, text = _impersonal(random)
        if random.random() < 0.3:
            text = text.rstrip(".!")
        if random.random() < 0.1:
            text = with_noise(text, random, disguised=0)
        yield Row(text, f"generated_{kind}", attack=0, worth=1 if label else 0)


def _impersonal(random: Random) -> tuple[str, str]:
    """Return the kind and the text of a question or a task that tells nothing about who sets it."""
    while True:
        kind = random.choice(("question_plain", "task_plain"))
        text = grammar("harmless.en").make(kind, random)
        if not _SPEAKER.search(text):
            return kind, text


def _language(random: Random) -> str:
    return random.choices(LANGUAGES, _LANGUAGE_SHARES)[0]


def _plain(language: str, random: Random) -> str:
    return grammar(f"harmless.{language}").make(random.choice(kinds(f"harmless.{language}", "_plain")), random)


def _surrounded(attack: str, language: str, random: Random, talk: Sequence[str]) -> str:
    if random.random() < 0.05:
        language = _language(random)
    if talk and language == "en" and random.random() < 0.6:
        around = [random.choice(talk)]
    else:
        around = [_plain(language, random) for _ in range(random.randint(1, 5))]
    room = max(0, WINDOW - len(attack) - 80)
    before, after = _split(" ".join(around)[:room], random)
    joint = random.choice((" ", " ", "\n", "\n\n"))
    return joint.join(part for part in (before, attack, after) if part)


def _split(text: str, random: Random) -> tuple[str, str]:
    """Return what stands before the attack and behind it: all of the text, none, or some of its sentences."""
    place = random.choice(("start", "middle", "end", "end"))
    if place == "start":
        return "", text
    if place == "end":
        return text, ""
    ends = [at + 1 for at, one in enumerate(text) if one in ".!?\n"]
    at = random.choice(ends) if ends else len(text)
    return text[:at].strip(), text[at:].strip()


def _in_form(text: str, random: Random) -> str:
    if random.random() < _FORM_SHARE:
        form = grammar("forms").expand(f"${random.choice(kinds('forms', '_form'))}", random)
        if len(form) + len(text) <= WINDOW + 2:
            text = form.replace("@@", text)
    return text[:WINDOW]
