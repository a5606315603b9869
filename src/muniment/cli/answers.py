"""How answers are drawn for people: what a run recalled, what went into its prompt, why, and whether it replays."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from muniment.cli.output import Facts, Screen, listed, moment
from muniment.cli.views import count, key_of, origin_of, scope_of
from muniment.model.compiled import CompiledMemory
from muniment.model.explanation import Explanation, Replay, Visibility, Why
from muniment.model.recall import Recall, Record

_NONE = "-"
_MISSING = {
    "embedder": "ranked without vectors",
    "session_store": "the session store is away, the database answered",
    "seal_broken": "what does not open is left out",
}
_SEEN: dict[Visibility, str] = {
    "visible": "visible",
    "hidden": "hidden",
    "not_yet_promoted": "not yet promoted",
    "expired": "expired",
    "retracted": "retracted",
    "tombstoned": "tombstoned: its content is gone",
}
_WHY: dict[Why, str] = {
    "consent": "its consent changed since",
    "erased": "its content was taken away since",
    "clearance": "its label is withheld by now",
    "moved": "others before it are gone, or it is ranked otherwise",
    "query_erased": "the words of the query are gone",
    "embedder": "the embedder that ranked it is not here",
}


def recall(screen: Screen, shown: Recall, *, verbose: bool = False) -> None:
    """What a run may know, with its papers."""
    screen.line(
        (count(len(shown.records), "record"), "bold"), f"  recall {shown.recall_id}  {moment(shown.at)}  {shown.pack}"
    )
    if shown.as_of is not None:
        screen.line(f"as of {moment(shown.as_of)}, under the pack of then")
    if shown.approximate:
        screen.line(
            "approximate: more is in scope than is ranked whole; the nearest and the newest with its words were"
        )
    if shown.degraded:
        screen.line("degraded: " + listed(f"{one} ({_MISSING.get(one, 'missing')})" for one in shown.degraded))
    if verbose and shown.embedder is not None:
        screen.line(f"vectors of {shown.embedder}")
    _records(screen, shown.records, verbose)
    if shown.low_confidence:
        screen.line()
        screen.line((f"Low confidence: {count(len(shown.low_confidence), 'record')}", "bold yellow"))
        _records(screen, shown.low_confidence, verbose)
    for number, one in enumerate(shown.conflicts, 1):
        screen.line()
        screen.line((f"Conflict {number}: these cannot all hold", "bold red"), f"  {listed(one.contradiction_ids)}")
        _records(screen, one.records, verbose)
    if shown.omitted:
        screen.line()
        screen.line(f"{shown.omitted} more left out by the limit")


def _records(screen: Screen, records: Iterable[Record], verbose: bool) -> None:
    for number, record in enumerate(records, 1):
        papers = record.provenance
        screen.line()
        screen.item(f"{number:>2}.", record.text)
        screen.facts(
            [
                *key_of(record),
                ("memory", f"{record.id}  {record.write_class}, {record.tier}, {record.classification}"),
                ("approved", f"by {papers.approver} at {moment(papers.promoted_at)}"),
                ("evidence", listed(papers.evidence_refs)),
                (
                    "why",
                    f"{_score(record)}; confidence {record.confidence:.2f}; for {scope_of(record.scope) or 'any run'}",
                ),
                ("score", _parts(record) if verbose else None),
                ("source", f"{papers.source} {papers.author}, {papers.kind} {papers.capture_id}"),
                ("observed", papers.observed_at if verbose else None),
                ("origin", origin_of(papers.origin, papers.vouched)),
                ("consent", papers.consent_id),
                ("expires", papers.expires_at),
                ("proposal", papers.proposal_id if verbose else None),
                ("pack", papers.pack if verbose else None),
            ]
        )


def _score(record: Record) -> str:
    """Without a query it is the priority alone that orders."""
    total = record.score.get("total")
    return f"score {total:.2f}" if total is not None else f"priority {record.priority:.2f}"


def _parts(record: Record) -> str | None:
    if "total" not in record.score:
        return None
    return " + ".join(f"{name} {value:.3f}" for name, value in record.score.items() if name != "total")


def report(shown: CompiledMemory) -> Iterator[str]:
    """What became of a compile, in a few lines beside its text."""
    budget, left = shown.budget, shown.budget.left_out
    of = f"recall {shown.recall_id}, compile {shown.compile_id}"
    if shown.blocks:
        labels = listed(f"{label} {memory_id}" for label, memory_id in shown.manifest.citations.items())
        used = f"{budget.used} of {budget.token_budget} tokens by {shown.tokenizer}"
        yield f"{count(len(shown.blocks), 'block')}, {used}; {of}"
        yield f"labels: {labels}"
    else:
        yield f"nothing to compile; {of}" if not left else f"nothing fits into {budget.token_budget} tokens; {of}"
    for one in left:
        yield f"left out: {one.block_id}, which would take {one.tokens} tokens"
    for entry in shown.manifest.entries:
        if entry.truncated:
            yield f"cut short: {entry.block_id}"
    for notice in shown.manifest.write_notices:
        yield f"proposed by this run: {notice.proposal_id}  {notice.write_class}  {notice.status}"


def explanation(screen: Screen, shown: Explanation) -> None:
    """The verdict on a memory, and of every filter with what it went by."""
    screen.line(
        (shown.memory_id, "bold cyan"), "  ", (_SEEN[shown.visibility], "green" if shown.visible else "bold red")
    )
    screen.facts(_circumstances(shown))
    screen.line()
    screen.table(
        ("filter", "verdict", "the memory has", "asked for"),
        [
            (one.name, "passes" if one.passed else "HIDES IT", _inputs(one.memory), _inputs(one.asked))
            for one in shown.filters
        ],
    )


def _circumstances(shown: Explanation) -> Facts:
    number = f", number {shown.seq}" if shown.seq is not None else ", now"
    gone, by = shown.retracted_at, f"by {shown.retracted_by} " if shown.retracted_by else ""
    return [
        ("hidden by", listed(shown.hidden_by)),
        ("at", f"{moment(shown.at)}{number}"),
        ("recall", shown.recall_id),
        ("returned", _returned(shown)),
        ("in prompts", listed(shown.prompts)),
        ("pack", shown.pack),
        ("promoted", shown.promoted_at),
        ("expires", shown.expires_at),
        ("retracted", f"{by}at {moment(gone)}: {shown.retraction_reason}" if gone else None),
        ("superseded by", shown.superseded_by),
        ("tombstoned", shown.tombstoned_at),
    ]


def _returned(shown: Explanation) -> str | None:
    if shown.returned is None:
        return None
    if shown.returned:
        return "yes"
    missed = {"cut": ", others were ranked before it", "narrowed": ", the recall was narrowed to others"}
    return "no" + (missed[shown.missed] if shown.missed is not None else "")


def _inputs(given: Mapping[str, Any]) -> str:
    said = {name: _value(value) for name, value in given.items()}
    return listed(f"{name} {value}" for name, value in said.items()) if {*said.values()} - {_NONE} else _NONE


def _value(value: Any) -> str:
    match value:
        case None:
            return _NONE
        case datetime():
            return moment(value)
        case list():
            return " | ".join(_value(one) for one in cast("list[object]", value)) or _NONE
        case dict():
            named = cast("dict[str, object]", value)
            return " & ".join(f"{name}={_value(one)}" for name, one in named.items()) or _NONE
        case _:
            return str(value)


def replay(screen: Screen, shown: Replay) -> None:
    """Whether a recall gives the same again, and what stands elsewhere."""
    same = ("the same", "bold green") if shown.same else ("different", "bold red")
    screen.line((shown.recall_id, "bold cyan"), "  ", same)
    screen.facts(
        [
            ("as of", f"{moment(shown.at)}, number {shown.seq}"),
            ("pack", shown.pack),
            ("returned", f"{len(shown.then)} then, {len(shown.now)} now"),
            ("because", listed(_WHY[one] for one in shown.reasons)),
        ]
    )
    if shown.differences:
        screen.line()
        screen.table(
            ("memory", "then", "now", "why"),
            [(one.memory_id, _place(one.then), _place(one.now), _WHY[one.why]) for one in shown.differences],
        )


def _place(counted_from_0: int | None) -> str:
    return _NONE if counted_from_0 is None else f"{counted_from_0 + 1}."
