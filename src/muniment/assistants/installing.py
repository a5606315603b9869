"""Puts our entries into the files of an assistant, and takes them out again; nothing else in them changes.

Both are planned for all files first, and written then. What stood in a file before is kept beside it, and comes back as
it was when it is undone, unless somebody has changed the file since: then our entries alone are taken out.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from muniment.assistants import files
from muniment.assistants.json_text import MISSING, JsonText, shown
from muniment.assistants.programs import Entry, is_ours
from muniment.assistants.toml_text import TomlText
from muniment.errors import InvalidInput

Outcome = Literal["created", "changed", "unchanged", "removed", "restored"]


@dataclass(frozen=True)
class FileChange:
    """What becomes of one file; a text of None is no file."""

    file: Path
    outcome: Outcome
    before: str | None
    after: str | None
    backup_before: str | None = None
    backup_after: str | None = None

    @property
    def backup(self) -> Path | None:
        """Where what stood in it before is kept, if it is."""
        return files.backup_of(self.file) if self.backup_after is not None else None


def plan_install(entries: Sequence[Entry]) -> list[FileChange]:
    """What becomes of each file when the entries are put there; raises `InvalidInput`, and then nothing can be."""
    return [_installed(file, mine) for file, mine in _by_file(entries) if _is_wanted(file, mine)]


def plan_uninstall(entries: Sequence[Entry]) -> list[FileChange]:
    """What becomes of each file when our entries are taken out of it; raises `InvalidInput`."""
    return [_uninstalled(file, mine) for file, mine in _by_file(entries)]


def snippets(entries: Sequence[Entry]) -> list[tuple[Path, str]]:
    """What a file holds that holds nothing but our entries, for each file."""
    found: list[tuple[Path, str]] = []
    for file, mine in _by_file(entries):
        document = _parse(None, mine)
        for one in mine:
            document = _put(document, one)
        found.append((file, document.text))
    return found


def carry_out(changes: Iterable[FileChange]) -> None:
    """Write all the files, or none; raises `Conflict` if one was changed meanwhile, and `InvalidInput`."""
    written: dict[Path, tuple[str | None, str | None]] = {}
    for one in changes:
        if one.backup_before != one.backup_after:
            written[files.backup_of(one.file)] = one.backup_before, one.backup_after
        if one.before != one.after:
            written[one.file] = one.before, one.after
    files.write_all(written)


def _by_file(entries: Sequence[Entry]) -> list[tuple[Path, list[Entry]]]:
    found: dict[Path, list[Entry]] = {}
    for one in entries:
        found.setdefault(one.file, []).append(one)
    return list(found.items())


def _is_wanted(file: Path, entries: Sequence[Entry]) -> bool:
    return file.parent.is_dir() or not all(one.optional for one in entries)


# ---- putting in ----


def _installed(file: Path, entries: Sequence[Entry]) -> FileChange:
    before, backup = files.read_text(file), files.read_text(files.backup_of(file))
    try:
        document = _parse(before, entries)
        had_ours = any(_holds_ours(document, one) for one in entries)
        for one in entries:
            document = _put(document, one)
    except ValueError as error:
        raise _wrong(file, error) from None
    if document.text == before:
        return FileChange(file, "unchanged", before, before, backup, backup)
    kept = backup if had_ours else before
    return FileChange(file, "created" if before is None else "changed", before, document.text, backup, kept)


def _put(document: Any, entry: Entry) -> Any:
    there = document.get(entry.path)
    is_there = there is not MISSING and there is not None
    if entry.default:
        return document if is_there else document.set(entry.path, entry.value)
    if entry.in_list:
        ours = [one for one in _listed(there) if _is_our_hook(one)]
        return (
            document if ours == [entry.value] else _without_hooks(document, entry.path).append(entry.path, entry.value)
        )
    if not is_there:
        return document.set(entry.path, entry.value)
    if not is_ours(there):
        raise ValueError(f"holds an entry {shown(entry.path)} that is not ours; rename or remove that one first")
    # What a person added to it, such as a timeout, stays.
    merged = {**cast("dict[str, Any]", there), **entry.value}
    return document if merged == there else document.set(entry.path, merged)


# ---- taking out ----


def _uninstalled(file: Path, entries: Sequence[Entry]) -> FileChange:
    before, backup = files.read_text(file), files.read_text(files.backup_of(file))
    if before is None:
        return FileChange(file, "unchanged", None, None, backup, None)
    try:
        document = _parse(before, entries)
        if not any(_holds_ours(document, one) for one in entries):
            return FileChange(file, "unchanged", before, before, backup, None)
        known = _parse(backup, entries)
        for one in entries:
            document = _taken(document, one)
        for one in reversed(entries):
            document = _pruned(document, known, one)
    except ValueError as error:
        raise _wrong(file, error) from None
    if backup is not None and _bare(document.text) == _bare(_parse(backup, entries).text):
        return FileChange(file, "restored", before, backup, backup, None)
    if backup is None and document.text.strip() in ("", "{}"):
        return FileChange(file, "removed", before, None, None, None)
    return FileChange(file, "changed", before, document.text, backup, None)


def _taken(document: Any, entry: Entry) -> Any:
    if entry.default or not _holds_ours(document, entry):
        return document
    return _without_hooks(document, entry.path) if entry.in_list else document.remove(entry.path)


def _pruned(document: Any, known: Any, entry: Entry) -> Any:
    """The document without what held our entry alone, and was not there before."""
    if not isinstance(document, JsonText):
        return document
    if entry.default:
        alone = "hooks" not in document.value and known.get(entry.path) is MISSING
        return document.remove(entry.path) if alone and document.get(entry.path) == entry.value else document
    for depth in range(len(entry.path) - (0 if entry.in_list else 1), 0, -1):
        around = entry.path[:depth]
        if document.get(around) in ({}, []) and known.get(around) is MISSING:
            document = document.remove(around)
    return document


def _bare(text: str) -> str:
    """A text without what differs where an entry was put in and taken out again."""
    return re.sub(r"[\s,]", "", text)


# ---- both ----


def _parse(text: str | None, entries: Sequence[Entry]) -> Any:
    return TomlText(text or "") if entries[0].format == "toml" else JsonText(text or "")


def _holds_ours(document: Any, entry: Entry) -> bool:
    there = document.get(entry.path)
    if entry.in_list:
        return any(_has_our_hook(one) for one in _listed(there))
    return not entry.default and is_ours(there)


def _inner(value: object) -> list[object]:
    """The commands of a group of hooks; none of what is no group."""
    return _listed(cast("dict[str, object]", value).get("hooks")) if isinstance(value, dict) else []


def _listed(value: object) -> list[object]:
    """The entries of a list; none of what is no list."""
    return cast("list[object]", value) if isinstance(value, list) else []


def _has_our_hook(value: object) -> bool:
    return is_ours(value) or any(is_ours(one) for one in _inner(value))


def _is_our_hook(value: object) -> bool:
    """Whether it is our command, or a group of ours alone."""
    return is_ours(value) or (bool(_inner(value)) and all(is_ours(one) for one in _inner(value)))


def _without_hooks(document: JsonText, path: tuple[str, ...]) -> JsonText:
    for place, one in enumerate(_listed(document.get(path))):
        if _has_our_hook(one) and not _is_our_hook(one):
            # Somebody added a command of their own to the group.
            document = document.remove_items((*path, place, "hooks"), is_ours)
    return document.remove_items(path, _is_our_hook)


def _wrong(file: Path, error: ValueError) -> InvalidInput:
    return InvalidInput(f"{file} {error}. Nothing was changed: correct the file, and try again", field="file")
