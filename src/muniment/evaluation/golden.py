"""Golden queries: what a memory must answer, and what it must not (MET-1)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Self, cast

from pydantic import Field, model_validator

from muniment.errors import InvalidInput, PackInvalid
from muniment.evaluation.records import failure_reason
from muniment.evaluation.scoring import median_of
from muniment.model.context import RunContext
from muniment.model.fields import Artifact, Ceid, Json, Name, Predicate, Query, Text, build, field_error
from muniment.model.metrics import GoldenResult, mean
from muniment.model.recall import Record
from muniment.pack.source import ParsedText as Written
from muniment.pack.source import decode, read_text
from muniment.pack.wording import KeyPath as Place
from muniment.sync_verbs import Verbs

_FORMS = "expected a memory id (pm_...), text_contains, or entity and predicate with or without value"

Keep = Callable[[Sequence[GoldenResult]], None]
OnQuery = Callable[[int], None]


class Expectation(Artifact):
    """A memory that a query expects, named by its id, by words of its text, or by its key."""

    memory_id: Name | None = None
    text_contains: Text | None = None
    entity: Ceid | None = None
    predicate: Predicate | None = None
    value: Json = None

    @model_validator(mode="before")
    @classmethod
    def _accept_id(cls, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("pm_"):
            return {"memory_id": value}
        if not isinstance(value, Mapping) or "memory_id" in value:
            raise ValueError(_FORMS)
        return cast("Any", value)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        keyed = (self.entity is not None, self.predicate is not None)
        forms = (self.memory_id is not None, self.text_contains is not None, any(keyed) or self.value is not None)
        if sum(forms) != 1 or (forms[2] and not all(keyed)):
            raise ValueError(_FORMS)
        return self

    def is_met_by(self, record: Record) -> bool:
        """Say whether the record is that memory."""
        if self.memory_id is not None:
            return record.id == self.memory_id
        if self.text_contains is not None:
            return self.text_contains.casefold() in record.text.casefold()
        on_key = (record.entity, record.predicate) == (self.entity, self.predicate)
        return on_key and (self.value is None or record.value == self.value)

    def words(self) -> str:
        """Return the expectation as its author wrote it."""
        if self.memory_id is not None:
            return self.memory_id
        if self.text_contains is not None:
            return f"text_contains: {self.text_contains}"
        said = f"{self.entity} {self.predicate}"
        return said if self.value is None else f"{said} = {self.value}"


class Golden(Artifact):
    """A query, the run that asks it, what must be among the first `k` results, and what must not come at all."""

    id: Name
    query: Query
    run: dict[str, Any] = Field(default_factory=dict)
    expect: tuple[Expectation, ...] = ()
    not_expect: tuple[Expectation, ...] = ()
    k: Annotated[int, Field(strict=True, ge=1, le=100)] = 8

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not self.expect and not self.not_expect:
            raise field_error("expect", "say what is expected, or what is not (not_expect)")
        return self


def read_queries(path: Path, run: RunContext) -> list[tuple[Golden, RunContext]]:
    """Read the queries of a YAML file, each with its run: `run` with what the query overrides.

    Raises `InvalidInput` with the line that is wrong.
    """
    written = _written(path)
    items = written.value
    if not isinstance(items, list) or not items:
        raise InvalidInput(f"{path.name} line {written.line_of(())}: expected a list of queries", field="file")
    found: list[tuple[Golden, RunContext]] = []
    for number, item in enumerate(cast("list[Any]", items)):
        query = _query(item, path.name, written, (number,))
        query_run = _run(run, query.run, path.name, written, number)
        if any(query.id == other.id for other, _ in found):
            line = written.line_of((number, "id"))
            raise InvalidInput(f"{path.name} line {line}: the id {query.id} occurs twice", field="id")
        found.append((query, query_run))
    return found


def measure(
    fabric: Verbs,
    queries: Sequence[tuple[Golden, RunContext]],
    on_query: OnQuery = lambda number: None,
    *,
    record: Keep | None = None,
) -> dict[str, Any]:
    """Ask every query and return how well it was answered; `on_query` is called with the number of each before.

    The `recall` of a query is the share of what it expects among the first k, its `precision` the share of those k that
    it expects. A query passes when all it expects is there and nothing it rules out. `record` is called with the
    results, to store them (`Fabric.record_golden`).
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
        "precision": mean(one["precision"] for one in judged),
        "recall": mean(one["recall"] for one in judged),
        "median_ms": median_of(one["ms"] for one in judged),
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
    figures = {name: judged[name] for name in ("passed", "precision", "recall")}
    return GoldenResult(query=judged["id"], **figures)


def _written(path: Path) -> Written:
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {failure_reason(error)}", field="file") from None
    try:
        text = decode(content)
        if not any(line.split("#")[0].strip() for line in text.splitlines()):
            raise InvalidInput(f"{path.name}: holds no queries", field="file")
        written = read_text(text)
        if written.problems:
            raise PackInvalid(written.problems)
    except PackInvalid as error:
        # The reader is that of packs; the error must not speak of a pack.
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


def _run(run: RunContext, override: dict[str, Any], name: str, written: Written, number: int) -> RunContext:
    place = (number, "run")
    if "tenant_id" in override:
        line = written.line_of((*place, "tenant_id"))
        raise InvalidInput(f"{name} line {line}: the tenant is the command's (--tenant)", field="run.tenant_id")
    try:
        # The agent holds the role of its query; a server still checks it against the key.
        fields: dict[str, Any] = run.model_dump() | override
        if isinstance(override.get("role"), str):
            fields["roles"] = {*run.roles, override["role"]}
        return RunContext(**fields)
    except InvalidInput as error:
        raised = _at(error, name, written, place)
        raised.field = f"run.{error.field}" if error.field else "run"
        raise raised from None


def _at(error: InvalidInput, name: str, written: Written, place: Place) -> InvalidInput:
    """Return the error with the line of the field that it names."""
    within = [int(part) if part.isdigit() else part for part in (error.field or "").split(".") if part]
    return InvalidInput(f"{name} line {written.line_of((*place, *within))}: {error.message}", field=error.field)
