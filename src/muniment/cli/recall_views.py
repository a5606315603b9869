"""Views of recalls, compiled prompts, explanations and replays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from muniment.cli.output import Screen, by_and_at, counted, format_time, joined
from muniment.cli.views import fact_fields, origin_text, scope_text
from muniment.model.validity import validity_text

if TYPE_CHECKING:
    from muniment.model.compiled import CompiledMemory
    from muniment.model.explanation import Explanation, Replay, Visibility, Why
    from muniment.model.recall import Recall, Record


_NONE = "-"
_DEGRADED = {
    "embedder": "ranked without vectors",
    "session_store": "the session store is unavailable, the database answered",
    "seal_broken": "records that cannot be decrypted are left out",
}
_VISIBILITY: dict[Visibility, str] = {
    "visible": "visible",
    "hidden": "hidden",
    "not_yet_promoted": "not yet promoted",
    "expired": "expired",
    "not_valid": "does not hold at that time",
    "retracted": "retracted",
    "tombstoned": "tombstoned: its content is gone",
}
_REASONS: dict[Why, str] = {
    "consent": "its consent has changed since",
    "erased": "its content was erased since",
    "clearance": "its label is now withheld",
    "moved": "records ranked before it are gone, or its rank changed",
    "query_erased": "the text of the query was erased",
    "embedder": "the embedder that ranked it is not available",
}


def draw_recall(screen: Screen, shown: Recall, *, verbose: bool = False) -> None:
    """Draw a recall: its records with their provenance, those of low confidence, and conflicts."""
    screen.line(
        (counted(len(shown.records), "record"), "bold"),
        f"  recall {shown.recall_id}  {format_time(shown.at)}  {shown.pack}",
    )
    if shown.as_of is not None:
        screen.line(f"as of {format_time(shown.as_of)}, under the pack of that time")
    if shown.approximate:
        screen.line("approximate: too much is in scope to rank all of it; the nearest and newest matches were ranked")
    if shown.degraded:
        screen.line("degraded: " + joined(f"{one} ({_DEGRADED.get(one, 'missing')})" for one in shown.degraded))
    if verbose and shown.embedder is not None:
        screen.line(f"vectors of {shown.embedder}")
    _records(screen, shown.records, verbose)
    if shown.low_confidence:
        screen.line()
        screen.line((f"Low confidence: {counted(len(shown.low_confidence), 'record')}", "bold yellow"))
        _records(screen, shown.low_confidence, verbose)
    for number, one in enumerate(shown.conflicts, 1):
        screen.line()
        screen.line((f"Conflict {number}: these cannot all be true", "bold red"), f"  {joined(one.contradiction_ids)}")
        _records(screen, one.records, verbose)
    if shown.omitted:
        screen.line()
        irrelevant = " or because they have little to do with the query" if shown.embedder is not None else ""
        screen.line(f"{shown.omitted} more left out by the limit{irrelevant}")


def _records(screen: Screen, records: Iterable[Record], verbose: bool) -> None:
    for number, record in enumerate(records, 1):
        origin = record.provenance
        screen.line()
        screen.item(f"{number:>2}.", record.text)
        rank = f"{_score(record)}; confidence {record.confidence:.2f}; for {scope_text(record.scope) or 'any run'}"
        screen.fields(
            [
                *fact_fields(record),
                ("memory", f"{record.id}  {record.write_class}, {record.tier}, {record.classification}"),
                ("approved", by_and_at(origin.approver, origin.promoted_at)),
                ("evidence", joined(origin.evidence_refs)),
                ("why", rank),
                ("score", _parts(record) if verbose else None),
                ("source", f"{origin.source} {origin.author}, {origin.kind} {origin.capture_id}"),
                ("observed", origin.observed_at if verbose else None),
                ("valid", validity_text(record.valid_from, record.valid_until)),
                ("origin", origin_text(origin.origin, origin.vouched)),
                ("consent", origin.consent_id),
                ("expires", origin.expires_at),
                ("proposal", origin.proposal_id if verbose else None),
                ("pack", origin.pack if verbose else None),
            ]
        )


def _score(record: Record) -> str:
    # Without a query records are ordered by priority alone.
    total = record.score.get("total")
    return f"score {total:.2f}" if total is not None else f"priority {record.priority:.2f}"


def _parts(record: Record) -> str | None:
    if "total" not in record.score:
        return None
    return " + ".join(f"{name} {value:.3f}" for name, value in record.score.items() if name != "total")


def compile_report(shown: CompiledMemory) -> Iterator[str]:
    """Yield the lines of a report on a compiled prompt."""
    budget, left_out = shown.budget, shown.budget.left_out
    ids = f"recall {shown.recall_id}, compile {shown.compile_id}"
    if shown.blocks:
        labels = joined(f"{label} {memory_id}" for label, memory_id in shown.manifest.citations.items())
        used = f"{budget.used} of {budget.token_budget} tokens by {shown.tokenizer}"
        yield f"{counted(len(shown.blocks), 'block')}, {used}; {ids}"
        yield f"labels: {labels}"
    else:
        yield f"nothing fits into {budget.token_budget} tokens; {ids}" if left_out else f"nothing to compile; {ids}"
    for one in left_out:
        yield f"left out: {one.block_id}, which would take {one.tokens} tokens"
    for entry in shown.manifest.entries:
        if entry.truncated:
            yield f"truncated: {entry.block_id}"
    for notice in shown.manifest.write_notices:
        yield f"proposed by this run: {notice.proposal_id}  {notice.write_class}  {notice.status}"


def draw_explanation(screen: Screen, shown: Explanation) -> None:
    """Draw whether a memory is visible, and every filter with the values that it compared."""
    screen.heading(shown.memory_id, _VISIBILITY[shown.visibility], "green" if shown.visible else "bold red")
    number = f", sequence {shown.seq}" if shown.seq is not None else ", now"
    retracted = by_and_at(shown.retracted_by, shown.retracted_at)
    screen.fields(
        [
            ("hidden by", joined(shown.hidden_by)),
            ("at", f"{format_time(shown.at)}{number}"),
            ("recall", shown.recall_id),
            ("returned", _returned(shown)),
            ("in prompts", joined(shown.prompts)),
            ("valid at", shown.valid_at if shown.valid_at != shown.at else None),
            ("pack", shown.pack),
            ("promoted", shown.promoted_at),
            ("expires", shown.expires_at),
            ("retracted", f"{retracted}: {shown.retraction_reason}" if retracted else None),
            ("superseded by", shown.superseded_by),
            ("tombstoned", shown.tombstoned_at),
        ]
    )
    screen.line()
    rows = [
        (one.name, "passes" if one.passed else "HIDES IT", _inputs(one.memory), _inputs(one.asked))
        for one in shown.filters
    ]
    screen.table(("filter", "verdict", "memory", "request"), rows)


def _returned(shown: Explanation) -> str | None:
    if shown.returned is None or shown.returned:
        return "yes" if shown.returned else None
    causes = {
        "cut": ", others ranked before it",
        "narrowed": ", the filters of the recall excluded it",
        "irrelevant": ", it has next to nothing to do with the query",
    }
    near = f" ({shown.relevance:.2f} of {shown.relevance_floor:.2f})" if shown.relevance is not None else ""
    return "no" + (causes[shown.missed] if shown.missed is not None else "") + near


def _inputs(values: Mapping[str, Any]) -> str:
    shown = {name: _value(value) for name, value in values.items()}
    return joined(f"{name} {value}" for name, value in shown.items()) if {*shown.values()} - {_NONE} else _NONE


def _value(value: Any) -> str:
    match value:
        case None:
            return _NONE
        case datetime():
            return format_time(value)
        case list():
            return " | ".join(_value(one) for one in cast("list[object]", value)) or _NONE
        case dict():
            named = cast("dict[str, object]", value)
            return " & ".join(f"{name}={_value(one)}" for name, one in named.items()) or _NONE
        case _:
            return str(value)


def draw_replay(screen: Screen, shown: Replay) -> None:
    """Draw whether a replay gave the same records, and the differences."""
    state, style = ("the same", "bold green") if shown.same else ("different", "bold red")
    screen.heading(shown.recall_id, state, style)
    screen.fields(
        [
            ("as of", f"{format_time(shown.at)}, sequence {shown.seq}"),
            ("pack", shown.pack),
            ("returned", f"{len(shown.then)} then, {len(shown.now)} now"),
            ("because", joined(_REASONS[one] for one in shown.reasons)),
        ]
    )
    if shown.differences:
        screen.line()
        rows = [(one.memory_id, _rank(one.then), _rank(one.now), _REASONS[one.why]) for one in shown.differences]
        screen.table(("memory", "then", "now", "why"), rows)


def _rank(index: int | None) -> str:
    return _NONE if index is None else f"{index + 1}."
