"""What a figure says to do, in one sentence of plain words. Pure."""

from datetime import timedelta

from muniment.console.formats import duration, label, number, percent
from muniment.model.metrics import CalibrationCurve, Metrics

# Claims and approvals that differ by more than this are worth a look.
_OFF = 0.15
# Verdicts without which a curve says little.
_ENOUGH = 20


def overdue(found: Metrics) -> str:
    """Who has to decide what is overdue."""
    owners = {one.owner: one.past_due for one in found.queue.by_owner}
    nobody = owners.pop(None, 0)
    if not nobody and not owners:
        return "Nothing is overdue: nothing to do."
    said: list[str] = []
    if nobody:
        said.append(f"{number(nobody)} overdue {_facts(nobody)} to nobody: assign or decide {_them(nobody)} first.")
    if owners:
        busiest = max(owners, key=lambda name: owners[name])
        count = owners[busiest]
        said.append(f"{busiest} has the most overdue, {number(count)}: help, or assign some of them to others.")
    return " ".join(said)


def _facts(count: int) -> str:
    return "fact is assigned" if count == 1 else "facts are assigned"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def throughput(found: Metrics) -> str:
    """How long what waits takes at the speed of the period."""
    decided, waiting = found.queue.decided, found.queue.waiting.count
    days = (found.until - found.since) / timedelta(days=1)
    if not decided or days <= 0:
        return ""
    said = f"People decide {round(decided / days, 1):g} facts a day"
    if not waiting:
        return f"{said}, and nothing waits: nothing to do."
    return (
        f"{said}: what waits now, {number(waiting)}, is {duration(timedelta(days=waiting * days / decided))} of work."
    )


def queue_age(found: Metrics) -> str:
    """Which class waits longest."""
    waiting = [one for one in found.queue.by_class if one.waiting.count and one.waiting.longest is not None]
    if not waiting:
        return ""
    oldest = max(waiting, key=lambda one: one.waiting.longest or 0.0)
    longest = duration(oldest.waiting.longest)
    name = label(oldest.write_class).capitalize()
    if not oldest.past_due:
        return f"{name} waits longest, {longest}, and none of it is overdue: nothing to do."
    return f"{name} waits longest, {longest}, and {number(oldest.past_due)} of it is overdue: begin there."


def contradictions(found: Metrics) -> str:
    """Whether contradictions wait to be settled."""
    waiting, resolved = found.contradictions.open, found.contradictions.resolved
    if waiting.count:
        are = "one is" if waiting.count == 1 else f"{number(waiting.count)} are"
        return f"{are.capitalize()} open, the oldest for {duration(waiting.longest)}: settle that first."
    return "None is open: nothing to do." if resolved.count else ""


def hits(found: Metrics) -> str:
    """Whether what is recalled is of use, as far as agents say so."""
    looked_at, cited = sum(one.looked_at for one in found.hits), sum(one.cited for one in found.hits)
    if not looked_at:
        return ""
    if not cited:
        return "No capture cites what was recalled: until agents do, nobody sees whether recall is of use."
    return f"Agents cite something of {percent(cited / looked_at)} of their recalls."


def promotions(found: Metrics) -> str:
    """How much became memory without a person."""
    every = sum(one.count for one in found.flow.promotions)
    if not every:
        return ""
    auto = sum(one.count for one in found.flow.promotions if one.auto)
    facts = "fact" if every == 1 else "facts"
    return f"{number(every)} {facts} became memory, {number(auto) if auto else 'none'} of them without a person."


def accuracy(found: Metrics, floor: float | None) -> str:
    """Which class of automatic promotion needs somebody."""
    if not found.auto:
        return ""
    stopped = [label(one.write_class) for one in found.auto if one.suspended]
    if stopped:
        return f"{_listed(stopped)}: suspended. Look at what was wrong, change the pack, then resume it below."
    waiting = sum(one.waiting for one in found.auto)
    low = [one for one in found.auto if floor is not None and one.accuracy is not None and one.accuracy < floor]
    if low:
        worst = min(low, key=lambda one: one.accuracy or 0.0)
        return (
            f"{label(worst.write_class).capitalize()} is right in {percent(worst.accuracy)} of its samples, below the "
            f"floor: look at its samples in the queue before it is suspended."
        )
    if waiting:
        return f"{number(waiting)} samples wait in the queue: without them nobody knows how accurate promotion is."
    return "No class is below its floor: nothing to do."


def refusals(found: Metrics) -> str:
    """Which gate refuses most, and what may help."""
    by_gate: dict[str, int] = {}
    for one in found.flow.refusals:
        by_gate[one.gate] = by_gate.get(one.gate, 0) + one.count
    if not by_gate:
        return ""
    gate = max(sorted(by_gate), key=lambda name: by_gate[name])
    whole = sum(by_gate.values())
    help_ = _HELP.get(gate, "look at some of them under Captures, Refusals, and change the pack where they should pass")
    share = percent(by_gate[gate] / whole)
    return f"{label(gate).capitalize()} refuses most, {number(by_gate[gate])} of {number(whole)} ({share}): {help_}."


_HELP = {
    "allow_list": "allow the class in the pack if its facts are wanted",
    "evidence": "have the source send what its claims rest on",
    "redaction": "if the company's own addresses are among them, propose an exception in the pack",
    "consent": "where these facts should be kept, ask for consent; else nothing to do",
    "trust": "look at their sources: they address the model, or speak for tools that they may not",
    "rejection": "people rejected the same before: lift a rejection that was a mistake; else nothing to do",
}


def tokens(found: Metrics) -> str:
    """Whether memory saves tokens."""
    ratio = found.tokens.ratio
    if ratio is None:
        return ""
    if ratio > 1:
        return "Memory takes more tokens than the captures it stands for: lower max_recalls in the pack."
    return f"Memory takes {percent(ratio)} of the tokens that the captures would: it saves {percent(1 - ratio)}."


def calibration(curve: CalibrationCurve) -> str:
    """Whether a source claims too much or too little."""
    if curve.verdicts < _ENOUGH:
        return f"{number(curve.verdicts)} verdicts say little yet: decide more facts of this source."
    claimed = sum(one.raw * one.verdicts for one in curve.points) / curve.verdicts
    approved = curve.approved / curve.verdicts
    if approved < claimed - _OFF:
        return "It claims more than people confirm: its confidence is lowered, and its facts deserve a closer look."
    if approved > claimed + _OFF:
        return "People confirm more than it claims: its confidence is raised, and it may be fit for auto-promotion."
    return "It claims about as much as people confirm: nothing to do."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
