"""An open fabric with the same records in two tenants, and checks of how it answers wrong input."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from muniment import Fabric, MunimentError, Principal
from muniment.errors import PackInvalid
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.interfaces.wrong import MARK, SUBJECT
from tests.stories import CONSENT, promoted, proposed

FACT: dict[str, Any] = {"entity": SUBJECT, "predicate": "eats", "value": "cake"}


@dataclass(frozen=True)
class TwoTenants:
    """An open fabric, the people of one tenant, and the ids of records in it and in another tenant."""

    fabric: Fabric
    people: People
    ids: dict[str, Any]

    def attempt(self, name: str, asker: Any, arguments: dict[str, Any]) -> Any:
        """Make the call, with the ids of the records in place of `{name}`."""
        call: Any = self.fabric
        for part in name.split("."):
            call = getattr(call, part)
        return call(asker, **{key: self._filled_in(value) for key, value in arguments.items()})

    def asker(self, who: str) -> Any:
        if who == "admin_and_auditor":
            return self.people.person(who, "admin", "auditor")
        if who == "end_user":
            return Principal(tenant_id=self.people.tenant_id, id="cust_1", kind="end_user", roles={"subject"})
        return self.people.run() if who == "run" else getattr(self.people, who)

    def events(self) -> int:
        return len(self.fabric.events(self.people.auditor, limit=1000))

    def renew(self) -> None:
        """Add another proposal, for when a call has decided the previous one."""
        self.ids["proposal"] = proposed(self.fabric, self.people.run(), **FACT).proposal_id

    def _filled_in(self, value: Any) -> Any:
        named = value[0] if isinstance(value, list) and len(value) == 1 else value
        if not isinstance(named, str) or named[:1] != "{":
            return value
        return self.ids[named[1:-1]] if named is value else [self.ids[named[1:-1]]]


SAID: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


@pytest.fixture(scope="module")
def two_tenants(server: TestServer, database: str) -> Iterator[TwoTenants]:
    clock = FakeClock()
    people, others = (People(f"tenant_{uuid4().hex[:12]}") for _ in range(2))
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as fabric:
        ids = {
            "consent": fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT).consent_id,
            "their_consent": fabric.consent.grant(others.officer, subject=SUBJECT, **CONSENT).consent_id,
            "memory": promoted(fabric, people),
            "their_memory": promoted(fabric, others),
            "proposal": proposed(fabric, people.run(), **FACT).proposal_id,
            "their_proposal": proposed(fabric, others.run(), **FACT).proposal_id,
            "contradiction": contradiction(fabric, people),
            "their_contradiction": contradiction(fabric, others),
            "rejected": rejected(fabric, people),
            "recall": fabric.recall(people.run(), "bread").recall_id,
            "their_recall": fabric.recall(others.run(), "bread").recall_id,
            "capture": fabric.capture(people.run(), **SAID).capture_id,
            "their_capture": fabric.capture(others.run(), **SAID).capture_id,
            "webhook": fabric.webhooks.add(people.admin, url="https://8.8.8.8/").webhook_id,
            "their_webhook": fabric.webhooks.add(others.admin, url="https://8.8.8.8/").webhook_id,
            "notice": fabric.notices.set(people.reviewer, channel="browser").notice_id,
            "their_notice": fabric.notices.set(others.reviewer, channel="browser").notice_id,
            "key": api_key(fabric, people),
            "their_key": api_key(fabric, others),
            "import": fabric.imports.run(people.admin, "mem0", [{"id": "0", "text": "It rains."}]).import_id,
            "an hour ahead": clock.now + timedelta(hours=1),
            "an hour ago": clock.now - timedelta(hours=1),
        }
        yield TwoTenants(fabric, people, ids)


def api_key(fabric: Fabric, people: People) -> str:
    """The id of one."""
    return fabric.keys.create(people.admin, principal_id="bot", kind="agent", roles=["agent"]).key_id


def contradiction(fabric: Fabric, people: People) -> str:
    """The id of an open one, between a memory and a proposal on a key of their own."""
    promoted(fabric, people, "tea", predicate="drinks")
    item = proposed(fabric, people.run(), entity=SUBJECT, predicate="drinks", value="coffee")
    (found,) = [one for one in fabric.contradictions.list(people.auditor) if one.proposal_id == item.proposal_id]
    return found.contradiction_id


def rejected(fabric: Fabric, people: People) -> str:
    """The id of a rejected proposal."""
    item = proposed(fabric, people.run(), entity=SUBJECT, predicate="smokes", value="cigars")
    return fabric.queue.reject(people.reviewer, item.proposal_id, reason="no").proposal_id


def complaint(call: Callable[[], Any], *names: str) -> str | None:
    """What is wrong with how the call took its wrong input; None if it answered as it should."""
    try:
        got = call()
    except PackInvalid as error:
        return _leak(error) if names == ("pack",) else f"PackInvalid for {names}"
    except MunimentError as error:
        if error.code in ("error", "storage_unavailable"):
            return f"answered {error.code}"
        if error.field is None or error.field.split(".")[0] not in names:
            return f"named {error.field!r}: {error}"
        return _leak(error)
    except Exception as error:
        return f"leaked {type(error).__name__}: {str(error)[:100]}"
    return f"accepted it: {str(got)[:100]}"


def _leak(error: MunimentError) -> str | None:
    shown = f"{error} {error.as_dict()}"
    inside = ("Traceback", "pydantic", "psycopg", "https://", "SELECT", "INSERT", "site-packages", "Input should")
    leaked = [word for word in (*inside, MARK, "\x00", "\x1b") if word in shown]
    return f"shows {leaked}: {shown[:200]}" if leaked or len(shown) > 2000 else None


def shown(value: Any) -> str:
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) < 60 else f"{text[:50]}..."


def listed(found: dict[str, str | None]) -> str:
    return "\n".join(f"{value}: {said}" for value, said in found.items() if said is not None)
