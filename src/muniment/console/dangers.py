"""Dangers as the console shows them: a badge in a row, and a sentence in the banner of a page."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from muniment.console.formats import label, percent
from muniment.model.contradiction import Recommendation
from muniment.model.decision import Reason
from muniment.model.proposal import Proposal
from muniment.review.rules import SUSPICIOUS


class Shown(NamedTuple):
    """A danger in the words of a reviewer: the badge, its tone, and the sentence of the banner."""

    code: str
    badge: str
    tone: str
    sentence: str


_WORDS: dict[str, tuple[str, str, str]] = {
    "addresses_model": (
        "addresses the model",
        "bad",
        "It gives orders to the model instead of stating a fact.",
    ),
    "guard": (
        "may address the model",
        "bad",
        "The trained guard judges that it gives orders to the model, with a score of {score} (threshold {threshold})."
        " It does not say by which words.",
    ),
    "low_trust": ("low trust {detail}", "bad", "Trust is {detail}, which is below what the pack asks for."),
    "high_risk": ("high risk", "bad", "The pack calls the class {label} a high risk."),
    "contradiction": ("contradicts", "bad", "It contradicts what is remembered: both are shown."),
    "opposites": ("contradicts {detail} in the queue", "bad", "It contradicts another open proposal."),
    "sensitive": ("sensitive", "warn", "It is sensitive ({detail}): a second person has to approve it."),
    "third_party": ("third party", "warn", "It says something personal about somebody other than its speaker."),
    "names_targets": ("asks to {detail}", "warn", "It asks to {detail} one of several memories."),
    "unusual_source": (
        "unusual source",
        "warn",
        "Facts like this came from elsewhere until now. This one is from {detail}.",
    ),
    "low_confidence": ("low confidence {detail}", "warn", "Its source is not sure: confidence is {detail}."),
}

# The same for a choice among them, where no proposal gives the details.
NAMES: dict[str, str] = {
    "any": "any danger",
    "addresses_model": "addresses the model",
    "guard": "may address the model",
    "low_trust": "low trust",
    "high_risk": "high risk",
    "contradiction": "contradicts what is remembered",
    "opposites": "contradicts another proposal",
    "sensitive": "sensitive",
    "third_party": "third party",
    "names_targets": "asks to forget or to correct",
    "unusual_source": "unusual source",
    "low_confidence": "low confidence",
}


def shown(dangers: Iterable[Reason]) -> list[Shown]:
    """Return dangers in words, in the order in which they come."""
    found: list[Shown] = []
    for one in dangers:
        badge, tone, sentence = _WORDS.get(one.code, (one.code.replace("_", " "), "warn", one.code.replace("_", " ")))
        score, _, threshold = one.detail.partition(" of ")
        words = {
            "detail": _share(one.detail),
            "label": one.detail.replace("_", " "),
            "score": score,
            "threshold": threshold,
        }
        found.append(Shown(one.code, badge.format(**words), tone, sentence.format(**words)))
    return found


def gate_detail(gate: str, detail: str) -> str:
    """Return what a gate recorded, with shares in percent and reasons of trust as words."""
    if gate == "evidence":
        return detail.replace(",", " given,", 1)
    if gate not in ("trust", "confidence"):
        return detail
    first, _, rest = detail.partition(", ")
    return _share(first) + (f", {label(rest)}" if rest else "")


def _share(detail: str) -> str:
    """Return a share between 0 and 1 in percent, as pages show it elsewhere; any other detail as it is."""
    return percent(float(detail)) if _SHARE.fullmatch(detail) else detail


_SHARE = re.compile(r"[01]\.\d{1,4}")


def tone_of(proposal: Proposal) -> str:
    """Return the gravest tone of a proposal: `bad`, `warn`, or nothing for an ordinary one."""
    tones = {one.tone for one in shown(proposal.dangers)}
    return "bad" if "bad" in tones else "warn" if tones else ""


def is_suspicious(proposal: Proposal) -> bool:
    """Whether a proposal may have been written to be approved: its page asks why it may be trusted."""
    return any(one.code in SUSPICIOUS for one in proposal.dangers)


_FOR = {
    "corrected_by_person": "a person corrected it",
    "low_trust": "the other has trust {detail}",
    "stated_by_person": "a person stated it",
    "fresher": "it is fresher",
    "surer": "its source is surer",
}


def recommendation_text(recommended: Recommendation) -> str:
    """Return which side of a contradiction to keep and why, in one sentence."""
    if recommended.keep is None:
        return "Nothing favours either side: look at the evidence."
    what = "replace what is there" if recommended.keep == "incoming" else "keep what is there"
    return (
        f"Recommended: {what}, because "
        + " and ".join(_FOR[one.code].format(detail=_share(one.detail)) for one in recommended.reasons)
        + "."
    )
