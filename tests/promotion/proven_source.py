"""A source whose statements people approved, so that policy promotes what it says."""

from muniment import Fabric
from muniment.testing import People
from tests.stories import run_job

PROOFS = (
    "Parcels leave at noon.", "The shop has a red door.", "Invoices are blue.", "Music plays in hall four.",
    "Lunch costs nine euros.", "Trains stop at Bern.", "Cats sleep a lot.", "The pump needs oil.",
    "Grapes ripen in autumn.", "Keys hang behind the desk.", "Snow closes the pass.", "Paint dries in an hour.",
)  # fmt: skip


def prove(fabric: Fabric, people: People) -> None:
    """Have people approve what the source says, so that policy promotes it."""
    capture(fabric, people, *PROOFS, user_id="another")
    waiting = fabric.consolidate(people.tenant_id).proposals
    assert all(one.status == "promoted" for one in fabric.queue.approve_many(people.reviewer, waiting))
    assert run_job(fabric, "calibrate", people.tenant_id).nonzero


def capture(fabric: Fabric, people: People, *texts: str, user_id: str | None = "cust_1") -> None:
    common = {"kind": "statement", "classification": "INTERNAL", "user_id": user_id}
    fabric.capture_many(people.service, [{**common, "text": text} for text in texts])
