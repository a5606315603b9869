"""Carrying out an import: check the items, show what would become of them or bring them in, and say what became."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer
from pydantic_core import to_json

from muniment.cli.call import FAILED, REFUSED, Call
from muniment.cli.output import Screen, counted, joined, write_error
from muniment.cli.write import fail_if_unreadable, run_consolidation
from muniment.errors import InvalidInput
from muniment.model.context import Principal
from muniment.model.imports import ImportState, ItemFact, ItemOutcome
from muniment.transfer.sources.found import Found

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs

# Items of one call, on the database and through a server; half of a server's limit for a request.
_HERE, _AFAR, _BYTES = 5000, 1000, 8 * 1024 * 1024
# Items that are read back at once.
_READ = 1000
_SHOWN = 10
_WORDS = {
    "promoted": "promoted by policy",
    "waiting": "wait for a person",
    "refused": "refused by a gate",
    "duplicate": "say what is remembered already",
    "repeated": "were imported before",
    "erased": "were erased since they were imported",
    "nothing": "state no fact",
    "unread": "captured, not consolidated yet",
    "invalid": "have an error",
}
_LATER = {
    "promoted": "would be promoted by policy",
    "waiting": "would wait for a person",
    "refused": "would be refused",
}


@dataclass
class Import:
    """One import at the command line."""

    call: Call
    system: str
    run: bool
    skip_invalid: bool
    no_consolidate: bool
    import_id: str | None
    left_out: int = 0
    places: list[str] = field(default_factory=list[str])
    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    outcomes: dict[int, ItemOutcome] = field(default_factory=dict[int, ItemOutcome])

    def without_left_out(self, found: Iterable[Found | None]) -> Iterator[Found]:
        """Yield what was found; what a namespace leaves out is counted."""
        for one in found:
            if one is None:
                self.left_out += 1
            else:
                yield one

    def carry_out(self, found: Iterable[Found]) -> None:
        """Read all items, then show what would become of them, or import them."""
        importer = self.call.principal("admin")
        if self.run and not self.no_consolidate and not self.call.may_work():
            lacks = (
                "lacks the role admin, so it cannot consolidate: --no-consolidate leaves that to the server's worker"
            )
            raise InvalidInput(lacks, field="key")
        self._read(found)
        if not self.items:
            if not self.outcomes:
                self.call.note("there is nothing to import")
            self._show(None)
            return
        with self.call.open() as fabric:
            if self.run:
                self._import(fabric, importer)
            else:
                self._preview(fabric, importer)
                self._show(None)

    def _read(self, found: Iterable[Found]) -> None:
        with self.call.progress("reading") as steps:
            for number, one in enumerate(found):
                self.places.append(one.place)
                if isinstance(one.item, InvalidInput):
                    self.outcomes[number] = _invalid(number, one.item)
                    self.items.append({})
                else:
                    self.items.append(one.item)
                if number % 500 == 0:
                    steps.update(counted(number + 1, "item"))

    def _batches(self) -> Iterator[list[int]]:
        """The places of items without an error, in batches that one call takes."""
        most = _AFAR if self.call.is_remote() else _HERE
        batch: list[int] = []
        size = 0
        for number in range(len(self.items)):
            if number in self.outcomes:
                continue
            length = len(to_json(self.items[number])) if self.call.is_remote() else 0
            if batch and (len(batch) == most or size + length > _BYTES):
                yield batch
                batch, size = [], 0
            batch.append(number)
            size += length
        if batch:
            yield batch

    def _preview(self, fabric: "Verbs", importer: Principal, *, check_only: bool = False) -> None:
        what = "checking" if check_only else "trying"
        with self.call.progress(what, len(self.items)) as steps:
            for batch in list(self._batches()):
                given = [self.items[number] for number in batch]
                shown = fabric.imports.preview(importer, self.system, given, check_only=check_only)
                self._keep(batch, shown.items)
                steps.update(counted(batch[-1] + 1, "item"), batch[-1] + 1)

    def _import(self, fabric: "Verbs", importer: Principal) -> None:
        self._preview(fabric, importer, check_only=True)
        if any(one.fate == "invalid" for one in self.outcomes.values()) and not self.skip_invalid:
            self._show(None, nothing="nothing was imported; --skip-invalid imports the others")
            return
        result = None
        with self.call.progress("importing", len(self.items)) as steps:
            for batch in list(self._batches()):
                given = [self.items[number] for number in batch]
                receipt = fabric.imports.run(importer, self.system, given, import_id=self.import_id)
                self.import_id = receipt.import_id
                self._keep(batch, receipt.items)
                steps.update(counted(batch[-1] + 1, "item"), batch[-1] + 1)
        if not self.no_consolidate:
            result = run_consolidation(self.call, fabric)
            self._read_back(fabric, importer)
        self._show(self.import_id)
        if result is not None:
            fail_if_unreadable(self.call, result)
        if any(one.fate == "refused" for one in self.outcomes.values()):
            raise typer.Exit(REFUSED)

    def _read_back(self, fabric: "Verbs", importer: Principal) -> None:
        """Read what became of the captures."""
        fresh = [(number, one.capture_id) for number, one in self.outcomes.items() if one.fate == "unread"]
        for first in range(0, len(fresh), _READ):
            some = fresh[first : first + _READ]
            by_id = {capture_id: number for number, capture_id in some if capture_id is not None}
            for became in fabric.imports.outcomes(importer, list(by_id)):
                number = by_id[became.capture_id or ""]
                known = self.outcomes[number]
                self.outcomes[number] = became.model_copy(update={"number": number, "id": known.id})

    def _keep(self, batch: Sequence[int], outcomes: Iterable[ItemOutcome]) -> None:
        for one in outcomes:
            number = batch[one.number]
            self.outcomes[number] = one.model_copy(update={"number": number})

    def _show(self, import_id: str | None, nothing: str | None = None) -> None:
        listed = [self.outcomes[number] for number in sorted(self.outcomes)]
        counts = Counter(one.fate for one in listed)
        document = {
            "system": self.system,
            "dry_run": not self.run,
            "import_id": import_id,
            "items": len(self.items),
            "left_out": self.left_out,
            "counts": dict(sorted(counts.items())),
            "outcomes": [{"place": self.places[one.number], **one.model_dump(exclude={"number"})} for one in listed],
        }
        self.call.show(document, lambda screen, _: self._draw(screen, listed, counts))
        if self.left_out:
            self.call.note(f"{counted(self.left_out, 'value')} in other namespaces left out")
        if any(one.fate == "invalid" and one.field == "user_id" for one in listed):
            self.call.note("users whose ids cannot be kept in the open get names here with --users FILE")
        if nothing is not None:
            self.call.note(nothing)
        elif not self.run and listed:
            self.call.note("nothing was written: --run imports")
        elif import_id is not None and counts["waiting"]:
            self.call.note(f"what waits and is ordinary: muniment import approve {import_id}")
        if counts["invalid"] and not (self.run and self.skip_invalid and import_id is not None):
            errors = {"code": "invalid_input", "message": f"{counted(counts['invalid'], 'item')} with an error"}
            write_error(errors, as_json=self.call.as_json)
            raise typer.Exit(FAILED)

    def _draw(self, screen: Screen, listed: Sequence[ItemOutcome], counts: Counter[Any]) -> None:
        screen.line(f"{counted(len(self.items), 'item')} of {self.system}")
        words = _WORDS if self.run else _WORDS | _LATER
        screen.fields([(str(counts[fate]), words[fate]) for fate in _WORDS if counts[fate]])
        groups: dict[tuple[str, str], list[ItemOutcome]] = {}
        for one in listed:
            if one.fate in ("refused", "waiting", "duplicate", "invalid"):
                groups.setdefault((one.fate, _why(one)), []).append(one)
        for (fate, why), some in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]))):
            screen.line(f"{words[fate]}, {why}: {len(some)}" if why else f"{words[fate]}: {len(some)}")
            for one in some[:_SHOWN]:
                screen.line(self.places[one.number], indent=4)
            if len(some) > _SHOWN:
                screen.line(f"and {len(some) - _SHOWN} more; --json lists all", indent=4)


def _invalid(number: int, error: InvalidInput) -> ItemOutcome:
    return ItemOutcome(number=number, fate="invalid", error=error.code, field=error.field, message=error.message)


def _why(one: ItemOutcome) -> str:
    if one.fate == "invalid":
        return f"{one.field}: {one.message}" if one.field else one.message or ""
    fact = next((fact for fact in one.facts if fact.fate == one.fate), None)
    return _why_fact(fact) if fact is not None else ""


def _why_fact(fact: ItemFact) -> str:
    if fact.gate is not None:
        return f"{fact.gate} ({fact.reason})"
    return joined(fact.reasons) or fact.reason or ""


def draw_state(screen: Screen, state: ImportState) -> None:
    """Draw how far an import has come."""
    screen.heading(state.import_id, state.system or "")
    screen.fields(
        [
            ("by", state.by),
            ("from", state.first_at),
            ("to", state.last_at),
            ("captures", state.captures),
            ("not consolidated", state.unread or None),
            *((name, count) for name, count in state.counts.items()),
        ]
    )
