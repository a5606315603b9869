"""The small world the machine plays in: who and where, what can be said there, and how sayings relate, by table."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from muniment import RunContext, load_pack
from muniment.pack import Pack

ENTITIES = ("customer:e1", "customer:e2")
# Of a tag there may be many, as the pack says; the other two hold one value.
PREDICATES = ("channel", "language", "tag")
MAIL = "anna@example.com"
VALUES = ("mail", "phone", "post")
LABELS = ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED")
REVIEWERS = ("boris", "clara", "olga")

# What a plain sentence is about, and what it says of that: same and same is a repetition, same and other a contradiction.
SENTENCES: dict[str, tuple[str, str]] = {
    "Returns are accepted within 30 days.": ("returns", "30"),
    "returns are accepted within 30 days": ("returns", "30"),
    "Returns are accepted within 14 days.": ("returns", "14"),
    "The office is closed on Sunday.": ("office", "closed"),
    "The office is open on Sunday.": ("office", "open"),
    f"Send the invoice to {MAIL}.": ("invoice", "mail"),
}
# What redaction leaves of what holds an address; whatever else is said stays as it is.
MASKED: dict[Any, Any] = {
    MAIL: "[EMAIL]",
    f"Send the invoice to {MAIL}.": "Send the invoice to [EMAIL].",
}
ABOUT = {MASKED.get(text, text): about for text, about in SENTENCES.items()}

MARGIN = 0.15
# Classes that settle contradictions by themselves, and whether the evidence must be fresher for it.
SETTLES_ITSELF = {"decision_outcome": True, "statement": False}
UNRESOLVED = ("mark_both", "hold", "block")
LIVES = {"working": timedelta(hours=1), "episodic": timedelta(days=30), "semantic": timedelta(days=365)}
# What is older is not recalled any more, though it still stands.
FRESH = {"episodic": timedelta(days=20)}
HORIZON = timedelta(days=90)


@dataclass(frozen=True)
class Version:
    """A version of the pack: what an agent is cleared for under it, which confidence it asks for, what may be pinned."""

    cleared: frozenset[str]
    floor: float = 0.30
    trust_floor: float = 0.40
    may_pin: tuple[str, ...] = ()


FIRST, NARROW, STRICT, LAX = "1.0.0", "2.0.0", "3.0.0", "4.0.0"
VERSIONS = {
    FIRST: Version(frozenset(LABELS)),
    NARROW: Version(frozenset({"PUBLIC", "INTERNAL"}), may_pin=(FIRST, STRICT)),
    STRICT: Version(frozenset(LABELS), floor=0.65, may_pin=(FIRST, NARROW)),
    LAX: Version(frozenset(LABELS), trust_floor=0.10),
}


def pack_id(unresolved: str) -> str:
    return f"state.{unresolved.replace('_', '.')}"


def version_of(unresolved: str, version: str) -> Pack:
    """That version of the pack that says so of what nobody resolved."""
    rules = VERSIONS[version]
    pins = ", ".join(f"{pack_id(unresolved)}@{one}" for one in rules.may_pin)
    return load_pack(f"""
pack_meta: {{id: {pack_id(unresolved)}, version: {version}, may_pin: [{pins}]}}
roles: {{agent: {{classifications_allowed: [{", ".join(sorted(rules.cleared))}]}}}}
ontology: {{predicates: {{tag: {{cardinality: many}}}}}}
memory_layer:
  promotion_thresholds: {{confidence_floor: {rules.floor}}}
  trust: {{floor: {rules.trust_floor}}}
  recall_policy: {{max_recalls: 1000, relevance_floor: 0.0, freshness: {{episodic: {FRESH["episodic"].days}d}}}}
  contradiction: {{unresolved: {unresolved}}}
  classes:
    decision_outcome: {{auto_resolve: {{margin: {MARGIN}, fresher_evidence: true}}}}
    statement: {{auto_resolve: {{margin: {MARGIN}, fresher_evidence: false}}}}
""")


PACKS = {unresolved: version_of(unresolved, FIRST) for unresolved in UNRESOLVED}


class Seat(NamedTuple):
    """All of a run that decides what it sees, but for labels."""

    user: str | None
    session: str | None
    workflow: str | None
    intent: str | None
    region: str | None

    @classmethod
    def of(cls, run: RunContext) -> "Seat":
        return cls(run.user_id, run.session_id, run.workflow_id, run.intent_id, run.qualifiers.get("region"))


USERS = (None, "u1", "u2")
SESSIONS = (None, "s1", "s2")
WORKFLOWS = (None, "w1", "w2")
INTENTS = (None, "support.refund", "support.return", "sales.offer")
REGIONS = (None, "de", "us")
SEATS = tuple(Seat(*seat) for seat in product(USERS, SESSIONS, WORKFLOWS, INTENTS, REGIONS))


@dataclass(frozen=True)
class Place:
    """Where a fact was said; its tier decides how much of that limits who sees it."""

    user: str | None = None
    session: str | None = None
    workflow: str | None = None
    intent: str | None = None
    region: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """As the fabric is told."""
        where = {"user_id": self.user, "intent_id": self.intent}
        inside = {"session_id": self.session, "workflow_id": self.workflow}
        return {**where, **inside, "qualifiers": {"region": self.region} if self.region is not None else {}}


# The wide ones more than once: most stories need two facts that meet.
PLACES = (
    *[Place()] * 3,
    *[Place(user="u1")] * 3,
    Place(user="u2"),
    Place(user="u1", session="s1", workflow="w1"),
    Place(session="s1", workflow="w1"),
    Place(session="s2", workflow="w2"),
    Place(intent="support.refund"),
    Place(intent="support.*", session="s1"),
    Place(region="de"),
    Place(user="u1", region="us"),
)


@cache
def seats(place: Place, tier: str, required: str | None) -> frozenset[Seat]:
    """Every run that could see what was said there: by trying them all."""
    return frozenset(seat for seat in SEATS if _sees(seat, place, tier, required))


def _sees(seat: Seat, place: Place, tier: str, required: str | None) -> bool:
    return all(let_in(seat, place, tier, required).values())


def let_in(seat: Seat, place: Place, tier: str, required: str | None) -> dict[str, bool]:
    """What each filter that asks who looks, and from where, says of something said there."""
    own_workflow = place.user is not None or place.workflow in (None, seat.workflow)
    disagrees = None not in (place.region, seat.region) and place.region != seat.region
    return {
        "user": place.user in (None, seat.user),
        "session": tier != "working" or place.session == seat.session,
        "workflow": tier != "episodic" or own_workflow,
        "intent": place.intent is None or _under(seat.intent, place.intent),
        "qualifiers": not disagrees and required in (None, seat.region),
    }


def _under(intent: str | None, scope: str) -> bool:
    if intent is None or not scope.endswith(".*"):
        return intent == scope
    return intent.split(".")[0] == scope.split(".")[0]
