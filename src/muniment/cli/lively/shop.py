"""The shop: who works there, who buys there, what is known of either."""

from muniment.model.context import Principal, Role, RunContext
from muniment.model.speakers import SpeaksFor

TENANT = "demo"


def _person(name: str, *roles: Role) -> Principal:
    return Principal(tenant_id=TENANT, id=name, kind="operator", roles=roles)


OLGA = _person("olga", "correction_writer")
BORIS = _person("boris", "reviewer")
CLARA = _person("clara", "reviewer")
PETRA = _person("petra", "privacy_officer")
ANTON = _person("anton", "auditor")
ADA = _person("ada", "admin")
LABELS = frozenset({"PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII"})

CUSTOMERS = {
    "cus_1001": "Amara Okafor",
    "cus_1002": "Bruno Keller",
    "cus_1003": "Chiara Rossi",
    "cus_1004": "Dmitri Volkov",
    "cus_1005": "Elif Yildiz",
    "cus_1006": "Freya Lindqvist",
    "cus_1007": "Gustavo Pereira",
    "cus_1008": "Hana Sato",
    "cus_1009": "Idris Haddad",
    "cus_1010": "Jana Nováková",
    "cus_1011": "Kofi Mensah",
    "cus_1012": "Lucie Bernard",
}
# Those without a name have no consent either: nothing personal is known of them.
BUYERS = (*CUSTOMERS, *(f"cus_{number}" for number in range(1013, 1037)))

POLICIES = (
    "Returns are accepted within 30 days of delivery, unworn and with their tags.",
    "Tents can be returned only if they were not pitched outdoors.",
    "Orders above 80 euros are shipped free within the European Union.",
    "The Basel store closes at 18:30 on weekdays and at 17:00 on Saturdays.",
    "Climbing ropes and harnesses are never taken back once the seal is broken.",
    "Gift cards do not expire and cannot be paid out in cash.",
    "Express delivery is offered in Germany, Austria and Switzerland only.",
    "Repairs of zips and buckles are free for five years.",
    "Price matches are granted within 14 days against a dated offer.",
    "Student discount is ten percent and is not combined with sales.",
    "Boots may be tried indoors for a week before they count as worn.",
    "Invoices are sent by mail as PDF; paper costs two euros.",
    "Damaged parcels must be reported within 48 hours with a photo.",
    "Down sleeping bags are cleaned by the partner in Innsbruck, not in the stores.",
    "Loyalty points are credited when the return period is over.",
    "Backorders older than six weeks are cancelled and refunded automatically.",
    "Avalanche gear is rented with a deposit of 150 euros.",
    "The hotline speaks German, French, Italian and English.",
    "Bicycles are delivered assembled up to 50 kilometres from a store.",
    "A missing hiking pole is replaced singly for a third of the pair's price.",
)

PREFERENCES: dict[str, tuple[str, ...]] = {
    "preferred_language": ("German", "French", "Italian", "English"),
    "preferred_store": ("Basel", "Zürich", "Innsbruck", "Lyon", "online"),
    "shoe_size": ("38", "40.5", "42", "43", "45"),
    "contact_channel": ("mail", "phone", "chat"),
    "fit": ("slim", "regular", "wide"),
    "favourite_activity": ("ski touring", "climbing", "trail running", "camping", "via ferrata"),
    "newsletter": ("monthly", "never"),
    "jacket_size": ("S", "M", "L", "XL"),
    "pays_by": ("invoice", "card", "transfer"),
    "delivery": ("to the door", "to the store", "to a locker"),
}

OUTCOMES = (
    ("refund_granted", "refunded in full after the photo showed a torn seam"),
    ("refund_refused", "refused: the tent had been pitched outdoors"),
    ("exchange_granted", "exchanged for size 43 without fee"),
    ("goodwill", "shipping waived after a late parcel"),
)

# Who belongs with whom: what the entity graph draws.
TIES = (
    ("customer:cus_1001", "member_of", "club:alpine_basel"),
    ("customer:cus_1006", "member_of", "club:alpine_basel"),
    ("customer:cus_1009", "member_of", "club:nordic_run"),
    ("customer:cus_1004", "referred_by", "customer:cus_1001"),
    ("customer:cus_1011", "referred_by", "customer:cus_1001"),
    ("customer:cus_1002", "lives_with", "customer:cus_1004"),
    ("club:alpine_basel", "rents_from", "store:basel"),
    ("club:nordic_run", "rents_from", "store:innsbruck"),
    ("store:basel", "supplied_by", "depot:freiburg"),
    ("store:innsbruck", "supplied_by", "depot:freiburg"),
)

PACKS = (
    'pack_meta: {id: outdoor_shop, version: "1.0.0"}\nmemory_layer: {recall_policy: {max_recalls: 6}}',
    'pack_meta: {id: outdoor_shop, version: "1.1.0"}\n'
    "memory_layer:\n"
    "  recall_policy: {max_recalls: 10, confidence: 0.6}\n"
    "  classes: {preference: {evidence_required: 1, sla: 24h}}",
)


# What the support agent may speak for: the shop's chat and its customer records.
SPEAKS_FOR = SpeaksFor(tools=frozenset({"crm.lookup"}), channels=frozenset({"shop_chat"}))


def bot(day: int, user_id: str | None = None, intent: str = "support.returns.answer") -> RunContext:
    """A run of the support agent on that day."""
    return RunContext(
        tenant_id=TENANT,
        run_id=f"run_{day:02d}_{user_id or 'context'}",
        session_id=f"sess_{day:02d}_{user_id or 'context'}",
        agent_id="support_bot",
        user_id=user_id,
        intent_id=intent,
        classification_allowed=LABELS,
        speaks_for=SPEAKS_FOR,
    )
