"""Dangers as the console shows them: a badge in a row, a sentence in the banner of a page, and marked words."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from muniment.model.candidate import Scope
from muniment.model.contradiction import Recommendation
from muniment.model.decision import Reason
from muniment.model.fields import Tier
from muniment.model.proposal import Proposal


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
        "The text gives orders to the model instead of stating a fact. The words that do so are marked.",
    ),
    "low_trust": ("low trust {detail}", "bad", "Trust is {detail}, which is below what the pack asks for."),
    "high_risk": ("high risk", "bad", "The pack calls the class {label} a high risk."),
    "contradiction": ("contradicts", "bad", "It contradicts what is remembered: both are shown below."),
    "opposites": ("contradicts {detail} in the queue", "bad", "It contradicts what else waits in the queue."),
    "sensitive": ("sensitive", "warn", "It is sensitive ({detail}): a second person has to approve it."),
    "third_party": ("third party", "warn", "It says something personal about somebody else than its speaker."),
    "names_targets": ("asks to {detail}", "warn", "It asks to {detail} one of several memories."),
    "unusual_source": (
        "unusual source",
        "warn",
        "Facts like this came from elsewhere until now. This one is from {detail}.",
    ),
    "low_confidence": ("low confidence {detail}", "warn", "Its source is not sure: confidence is {detail}."),
}


def shown(dangers: Iterable[Reason]) -> list[Shown]:
    """Return dangers in words, in the order in which they come."""
    found: list[Shown] = []
    for one in dangers:
        badge, tone, sentence = _WORDS.get(one.code, (one.code.replace("_", " "), "warn", one.code.replace("_", " ")))
        words = {"detail": one.detail, "label": one.detail.replace("_", " ")}
        found.append(Shown(one.code, badge.format(**words), tone, sentence.format(**words)))
    return found


def tone_of(proposal: Proposal) -> str:
    """Return the gravest tone of a proposal: `bad`, `warn`, or nothing for an ordinary one."""
    tones = {one.tone for one in shown(proposal.dangers)}
    return "bad" if "bad" in tones else "warn" if tones else ""


def marked(text: str, spans: Sequence[tuple[int, int]]) -> Markup | str:
    """Return a text with stretches of it marked as suspicious."""
    if not spans:
        return text
    pieces: list[Markup] = []
    at = 0
    for begin, end in spans:
        pieces += [escape(text[at:begin]), Markup('<mark class="suspicious">{}</mark>').format(text[begin:end])]
        at = end
    return Markup("").join([*pieces, escape(text[at:])])


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
        return "Nothing speaks for the one or the other: look at the evidence."
    what = "replace what is there" if recommended.keep == "incoming" else "keep what is there"
    return (
        f"Recommended: {what}, because "
        + " and ".join(_FOR[one.code].format(detail=one.detail) for one in recommended.reasons)
        + "."
    )


def seen_by(scope: Scope, tier: Tier) -> Markup:
    """Return which runs see a fact: exactly what filters, as recalls do.

    A session counts in the working tier alone, a workflow in the episodic tier without a user.
    """
    parts = [
        ("user", scope.user_id),
        ("session", scope.session_id if tier == "working" else None),
        ("workflow", scope.workflow_id if tier == "episodic" and scope.user_id is None else None),
        ("intent", scope.intent_id),
    ]
    named = [Markup("{} <code>{}</code>").format(name, value) for name, value in parts if value]
    named += [Markup("<code>{}={}</code>").format(*one) for one in {**scope.qualifiers, **scope.required}.items()]
    return Markup("runs with ") + Markup(", ").join(named) if named else Markup("every run in the tenant")
