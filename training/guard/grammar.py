"""Sentences from the grammar files: rules with options, from which a seeded choice makes texts.

A file of `grammar/` holds rules. A rule is a name with a colon, followed by its options, one an indented line. In an
option `$name` stands for an option of another rule, `$digit` for a digit, and `[a|b|]` for one of its parts, perhaps
an empty one. Brackets without a bar are text. A line that begins with `;` is a comment.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parent / "grammar"
_NEXT = re.compile(r"\$([a-z_]+)|\[([^\[\]]*\|[^\[\]]*)\]")
_RULE = re.compile(r"([a-z_]+):")


class Grammar:
    """The rules of some grammar files; a rule of a later file replaces one of the same name."""

    def __init__(self, rules: dict[str, list[str]]) -> None:
        self._rules = rules

    @classmethod
    def load(cls, names: Iterable[str]) -> "Grammar":
        """Read the grammar files of these names."""
        rules: dict[str, list[str]] = {}
        for name in names:
            rules.update(parse((FOLDER / f"{name}.txt").read_text(encoding="utf-8")))
        return cls(rules)

    def has(self, rule: str) -> bool:
        """Say whether there is a rule of this name."""
        return rule in self._rules

    def make(self, rule: str, random: Random) -> str:
        """Return a text of this rule, with a capital at the start of each sentence."""
        return _capitalised(self.expand(f"${rule}", random))

    def expand(self, text: str, random: Random) -> str:
        """Return the text with every reference and every choice replaced, from the left."""
        while found := _NEXT.search(text):
            text = text[: found.start()] + self._chosen(found, random) + text[found.end() :]
        text = re.sub(r" +", " ", text).replace(r"\n", "\n")
        text = re.sub(r" +([,.!?;:])(?=\s|$)", r"\1", text)
        return re.sub(r"(?<!\.)([?!.])[.,](?=\s|$)", r"\1", text).strip()

    def _chosen(self, found: re.Match[str], random: Random) -> str:
        name, choice = found.groups()
        if name is None:
            return random.choice(choice.split("|"))
        if name == "digit":
            return str(random.randint(1, 9))
        return random.choice(self._rules[name])


def parse(content: str) -> dict[str, list[str]]:
    """Return the rules of a grammar file's content; raises ValueError for a line that belongs to no rule."""
    rules: dict[str, list[str]] = {}
    options: list[str] | None = None
    for line in content.split("\n"):
        if not line.strip() or line.startswith(";"):
            continue
        if line.startswith(" "):
            if options is None:
                raise ValueError(f"an option without a rule: {line}")
            options.append(line.strip())
        elif named := _RULE.fullmatch(line.strip()):
            options = rules.setdefault(named[1], [])
        else:
            raise ValueError(f"neither a rule nor an option: {line}")
    return rules


def _capitalised(text: str) -> str:
    return re.sub(r"(^|[.!?]\s+|\n)([^\W\d_])", lambda found: found[1] + found[2].upper(), text)
