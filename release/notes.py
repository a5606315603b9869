"""The notes of a release: its section of CHANGELOG.md, and whether servers can be upgraded one by one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muniment.database.migrate import Migration, migrations
from release.artifacts import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"
_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\] - (?P<date>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """What the changelog says of one version; `date` is None if it is not released yet."""

    version: str
    date: str | None
    text: str


def sections(changelog: str) -> list[Section]:
    """The versions of a changelog, as it lists them."""
    heads = list(_HEADING.finditer(changelog))
    ends = [head.start() for head in heads[1:]] + [len(changelog)]
    return [
        Section(
            head["version"],
            None if head["date"] == "Unreleased" else head["date"],
            changelog[head.end() : end].strip() + "\n",
        )
        for head, end in zip(heads, ends, strict=True)
    ]


def section(version: str, changelog: str) -> Section:
    """What it says of that version; raises `LookupError` if it says nothing."""
    found = next((one for one in sections(changelog) if one.version == version), None)
    if found is None or not found.text.strip():
        raise LookupError(f"CHANGELOG.md says nothing about {version}: write its section, '## [{version}] - DATE'")
    return found


def upgrade_note(steps: Sequence[Migration]) -> str:
    """Whether programs before this release can work with its schema, in a sentence."""
    last, oldest = steps[-1].version, max(step.oldest for step in steps)
    if oldest == last:
        return f"Schema {last} needs this version: stop older servers and workers before you run `muniment db migrate`."
    return (
        f"Programs that know schema {oldest} or a later one work with schema {last}, the one of this version: run"
        " `muniment db migrate`, then replace servers and workers one by one."
    )


def write_notes(version: str, folder: Path) -> Path:
    """Write the notes of a version into a folder; raises `LookupError` if the changelog says nothing about it."""
    found = section(version, CHANGELOG.read_text("utf-8"))
    when = found.date or "not released yet"
    target = folder / f"muniment-{version}.notes.md"
    target.write_text(
        f"# Muniment {version} ({when})\n\n## Upgrading\n\n{upgrade_note(migrations())}\n\n{found.text}", "utf-8"
    )
    return target
