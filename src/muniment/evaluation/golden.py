"""Golden queries: what a user's own memory must answer, and must not (MET-1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Annotated, Any, Self, cast

from pydantic import Field, model_validator

from muniment.errors import InvalidInput, PackInvalid
from muniment.model.context import RunContext
from muniment.model.fields import Artifact, Ceid, Json, Name, Predicate, Query, Text, build, misses
from muniment.model.metrics import GoldenResult
from muniment.model.recall import Record
from muniment.pack.source import ParsedText as Written
from muniment.pack.source import decode, read_text
from muniment.pack.wording import KeyPath as Place
from muniment.sync_verbs import Verbs

_FORMS = "expected a memory id (pm_...), text_contains, or entity and predicate with or without value"

Keep = Callable[[Sequence[GoldenResult]], None]
OnQuery = Callable[[int], None]


class Expectation(Artifact):
    """A memory as a query's author knows it: by its id, by words in its text, or by its key."""

    memory_id: Name | None = None
    text_contains: Text | None = None
    entity: Ceid | None = None
    predicate: Predicate | None = None
    value: Json = None

    @model_validator(mode="before")
    @classmethod
    def _an_id_is_enough(cls, given: Any) -> Any:
        if isinstance(given, str) and given.startswith("pm_"):
            return {"memory_id": given}
        if not isinstance(given, Mapping) or "memory_id" in given:
            raise ValueError(_FORMS)
        return cast("Any", given)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        keyed = (self.entity is not None, self.predicate is not None)
        forms = (self.memory_id is not None, self.text_contains is not None, any(keyed) or self.value is not None)
        if sum(forms) != 1 or (forms[2] and not all(keyed)):
            raise ValueError(_FORMS)
        return self

    def is_met_by(self, record: Record) -> bool:
        """Whether it is that memory."""
        if self.memory_id is not None:
            return record.id == self.memory_id
        if self.text_contains is not None:
            return self.text_contains.casefold() in record.text.casefold()
        on_key = (record.entity, record.predicate) == (self.entity, self.predicate)
        return on_key and (self.value is None or record.value == self.value)

    def words(self) -> str:
        """How its author wrote it."""
        if self.memory_id is not None:
            return self.memory_id
        if self.text_contains is not None:
            return f"text_contains: {self.text_contains}"
        said = f"{self.entity} {self.predicate}"
        return said if self.value is None else f"{said} = {self.value}"


class Golden(Artifact):
    """A query, the run that asks it, what must be among the first `k`, and what must not come at all."""

    id: Name
    query: Query
    run: dict[str, Any] = Field(default_factory=dict)
    expect: tuple[Expectation, ...] = ()
    not_expect: tuple[Expectation, ...] = ()
    k: Annotated[int, Field(strict=True, ge=1, le=100)] = 8

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not self.expect and not self.not_expect:
            raise misses("expect", "say what is expected, or what is not (not_expect)")
        return self


def read_queries(path: Path, run: RunContext) -> list[tuple[Golden, RunContext]]:
    """The queries of a YAML file, each with its run: what `run` says, and what the query says otherwise.

    Raises InvalidInput with the line that is wrong.
    """
    written = _written(path)
    items = written.value
    if not isinstance(items, list) or not items:
        raise InvalidInput(f"{path.name} line {written.line_of(())}: expected a list of queries", field="file")
    found: list[tuple[Golden, RunContext]] = []
    for number, item in enumerate(cast("list[Any]", items)):
        query = _query(item, path.name, written, (number,))
        asks = _run(run, query.run, path.name, written, number)
        if any(query.id == other.id for other, _ in found):
            line = written.line_of((number, "id"))
            raise InvalidInput(f"{path.name} line {line}: the id {query.id} stands twice", field="id")
        found.append((query, asks))
    return found


def measure(
    fabric: Verbs,
    queries: Sequence[tuple[Golden, RunContext]],
    on_query: OnQuery = lambda number: None,
    *,
    record: Keep | None = None,
) -> dict[str, Any]:
    """Ask every query and say how well it was answered; told the number of each before it is asked.

    `recall` of a query is the share of what it expects among the first k, `precision` the share of those k that it
    expects; it has passed when all it expects is there and nothing that it does not. `record` is given how it went, by
    the queries' names, to keep it (`Fabric.record_golden`).
    """
    judged: list[dict[str, Any]] = []
    packs: set[str] = set()
    embedders: set[str] = set()
    for number, (query, run) in enumerate(queries):
        on_query(number)
        started = perf_counter()
        try:
            answer = fabric.recall(run, query.query, limit=query.k)
        except InvalidInput as error:
            raise type(error)(f"query {query.id}: {error.message}", field=error.field) from None
        ms = (perf_counter() - started) * 1000
        packs.add(answer.pack)
        embedders |= {answer.embedder} if answer.embedder is not None else set()
        judged.append({**_judged(query, answer.all_records), "ms": ms})
    if judged and record is not None:
        record([_result(one) for one in judged])
    return {
        "n": len(judged),
        "passed": sum(one["passed"] for one in judged),
        "precision": _mean(one["precision"] for one in judged),
        "recall": _mean(one["recall"] for one in judged),
        "median_ms": median(one["ms"] for one in judged) if judged else None,
        "pack": ", ".join(sorted(packs)),
        "embedder": ", ".join(sorted(embedders)) or None,
        "queries": judged,
    }


def _judged(query: Golden, records: Sequence[Record]) -> dict[str, Any]:
    first = records[: query.k]
    missing = [one for one in query.expect if not any(one.is_met_by(record) for record in first)]
    right = [record for record in first if any(one.is_met_by(record) for one in query.expect)]
    unwanted = [record.id for record in records if any(one.is_met_by(record) for one in query.not_expect)]
    return {
        "id": query.id,
        "passed": not missing and not unwanted,
        "precision": len(right) / len(first) if query.expect and first else None,
        "recall": 1 - len(missing) / len(query.expect) if query.expect else None,
        "found": len(records),
        "missing": [one.words() for one in missing],
        "unwanted": unwanted,
    }


def _result(judged: Mapping[str, Any]) -> GoldenResult:
    said = {name: judged[name] for name in ("passed", "precision", "recall")}
    return GoldenResult(query=judged["id"], **said)


def _mean(values: Iterable[float | None]) -> float | None:
    given = [one for one in values if one is not None]
    return fmean(given) if given else None


# ---- reading, with lines ----


def _written(path: Path) -> Written:
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is no path").lower()
        raise InvalidInput(f"cannot read {path}: {reason}", field="file") from None
    try:
        text = decode(content)
        if not any(line.split("#")[0].strip() for line in text.splitlines()):
            raise InvalidInput(f"{path.name}: holds no queries", field="file")
        written = read_text(text)
        if written.problems:
            raise PackInvalid(written.problems)
    except PackInvalid as error:
        # It reads packs, but nothing else of a pack is in it.
        problem = error.problems[0]
        where = f" line {problem.line}" if problem.line is not None else ""
        raise InvalidInput(f"{path.name}{where}: {problem.message}", field="file") from None
    return written


def _query(item: Any, name: str, written: Written, place: Place) -> Golden:
    if not isinstance(item, dict):
        raise InvalidInput(f"{name} line {written.line_of(place)}: expected a query with id and query", field="file")
    try:
        return build(Golden, cast("dict[str, Any]", item))
    except InvalidInput as error:
        raise _at(error, name, written, place) from None


def _run(run: RunContext, given: dict[str, Any], name: str, written: Written, number: int) -> RunContext:
    place = (number, "run")
    if "tenant_id" in given:
        line = written.line_of((*place, "tenant_id"))
        raise InvalidInput(f"{name} line {line}: the tenant is the command's (--tenant)", field="run.tenant_id")
    try:
        # The role of a query is one that its agent holds; a server still holds it against the key.
        said: dict[str, Any] = run.model_dump() | given
        if isinstance(given.get("role"), str):
            said["roles"] = {*run.roles, given["role"]}
        return RunContext(**said)
    except InvalidInput as error:
        raised = _at(error, name, written, place)
        raised.field = f"run.{error.field}" if error.field else "run"
        raise raised from None


def _at(error: InvalidInput, name: str, written: Written, place: Place) -> InvalidInput:
    """The error with the line of the field that it names."""
    within = [int(part) if part.isdigit() else part for part in (error.field or "").split(".") if part]
    return InvalidInput(f"{name} line {written.line_of((*place, *within))}: {error.message}", field=error.field)
