"""Notices follow the person: what is sent is what their keys allow at that moment, or who they were when last seen."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from muniment import Fabric
from muniment.http.oidc import OidcSettings
from muniment.model.context import Principal
from muniment.notices.rules import SEEN_FOR
from muniment.testing import FakeClock, People, TestServer
from tests.interfaces.http import RunningServer
from tests.interfaces.oidc_issuer import SAID, TokenChecks, public
from tests.notices.mailbox import Mailbox, doubted, mailbox, settings
from tests.notices.test_mail import DELIVERS
from tests.server_thread import NO_LIMITS

__all__ = ["mailbox", "settings"]  # fixtures

TO = "boris@example.com"


@dataclass
class Office:
    """A tenant whose people set their notices over HTTP, with keys or with tokens."""

    site: RunningServer
    people: People
    mailbox: Mailbox
    tokens: TokenChecks

    @property
    def clock(self) -> FakeClock:
        return self.site.clock

    @property
    def fabric(self) -> Fabric:
        return self.site.local

    def boris(self, *roles: str, kind: Any = "operator") -> Principal:
        who = self.people.reviewer
        return Principal(tenant_id=who.tenant_id, id=who.id, kind=kind, roles=frozenset(roles or ("reviewer",)))

    def key(self, *roles: str, **fields: Any) -> tuple[str, str]:
        """A key of Boris, and its id."""
        return self.site.made(self.boris(*roles), **fields)

    def token(self, *groups: str) -> str:
        """A token of Boris by the issuer."""
        who = self.people.reviewer
        return self.tokens.token(sub=who.id, org=who.tenant_id, groups=list(groups or ("leads",)))

    def set(self, credential: str, **fields: Any) -> str:
        """The id of the setting that Boris makes with this credential."""
        body = {"channel": "mail", "address": TO, **fields}
        made = self.site.ask("POST", "/v1/notices", body, key=credential)
        assert made.status_code == 201, made.text
        return made.json()["notice_id"]

    def sign_in(self, credential: str) -> int:
        return httpx2.post(f"{self.site.url}/console/signin", data={"key": credential}).status_code

    def revoke(self, key_id: str) -> None:
        self.fabric.keys.revoke(self.people.admin, key_id)

    def deliver(self, *, after: float = 2) -> int:
        """How many messages a pass sends, some minutes later."""
        self.clock.advance(minutes=after)
        return self.fabric.notices.deliver(self.people.tenant_id).sent

    def told(self, *, after: float = 2) -> bool:
        """Whether Boris is told of something that happens now, and of nothing else."""
        item = doubted(self.fabric, self.people, f"case {self.clock.advance(seconds=1)}")
        if not self.deliver(after=after):
            return False
        assert self.mailbox.texts[-1].count("low trust: statement ") == 1, self.mailbox.texts[-1]
        assert item.proposal_id in self.mailbox.texts[-1]
        return True

    @property
    def error(self) -> str | None:
        return self.shown.last_error

    @property
    def shown(self) -> Any:
        """Boris's setting as an admin sees it: his own look would count as a sign of life."""
        (one,) = self.fabric.notices.list(self.people.admin, everyone=True)
        return one


@pytest.fixture
def office(
    settings: None, mailbox: Mailbox, server: TestServer, database: str, people: People, tmp_path: Path
) -> Iterator[Office]:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [public("rsa")]}))
    oidc = OidcSettings(**SAID | {"keys": str(path), "role_map": SAID["role_map"] | {"privacy": "privacy_officer"}})
    with RunningServer(server, database, replace(NO_LIMITS, oidc=oidc)) as site:
        yield Office(site, people, mailbox, TokenChecks(str(path), site.clock))


@pytest.mark.rule("ISO-5")
def test_nothing_is_sent_once_the_key_is_revoked_and_a_new_one_goes_on_from_then(office: Office) -> None:
    token, key_id = office.key()
    office.set(token)
    assert office.told()
    office.revoke(key_id)
    assert not office.told()
    assert (office.error, office.shown.next_try_at, office.shown.seen_at) == ("no_valid_key", None, None)
    assert not office.told(after=60 * 24 * 100)
    office.key()
    assert office.deliver() == 0, "nothing of what happened meanwhile"
    assert office.error is None
    assert office.told()


@pytest.mark.rule("ISO-5")
def test_nothing_is_sent_once_the_key_has_expired(office: Office) -> None:
    token, _ = office.key(expires_in=timedelta(days=2))
    office.set(token, digest="daily")
    assert office.told()
    office.clock.advance(days=2)
    assert not office.told()
    assert office.error == "no_valid_key"
    assert office.deliver(after=60 * 24) == 0, "no digest either"
    assert office.shown.digest_at > office.clock.now


@pytest.mark.rule("ISO-5")
def test_what_happened_without_a_key_is_not_sent_even_if_nothing_looked_meanwhile(office: Office) -> None:
    token, key_id = office.key()
    office.set(token)
    office.revoke(key_id)
    doubted(office.fabric, office.people, "between")
    office.clock.advance(seconds=1)
    office.key()
    assert office.deliver() == 0
    assert office.told()


@pytest.mark.rule("EVT-1")
def test_a_key_that_replaces_another_loses_nothing(office: Office) -> None:
    token, key_id = office.key()
    office.set(token)
    item = doubted(office.fabric, office.people, "before")
    office.clock.advance(seconds=1)
    office.key()
    office.revoke(key_id)
    assert office.deliver() == 1
    assert item.proposal_id in office.mailbox.texts[-1]


@pytest.mark.rule("ISO-5")
def test_a_role_that_is_lost_takes_its_alerts_and_counts_with_it(office: Office) -> None:
    token, key_id = office.key("reviewer", "privacy_officer")
    office.set(token, digest="daily")
    office.key("privacy_officer", "admin")
    office.revoke(key_id)
    doubted(office.fabric, office.people)
    tenant = office.people.tenant_id
    user = Principal(tenant_id=tenant, id="cust_1", kind="end_user", roles=frozenset({"subject"}))
    office.fabric.me.forget_everything(user)
    assert office.deliver(after=60 * 24) == 1
    (text,) = office.mailbox.texts
    assert text.startswith("request for erasure: 1\r\n")
    assert "requests for erasure: 1" in text
    assert "open proposals" not in text and "low trust" not in text


@pytest.mark.rule("ISO-5")
def test_a_key_without_any_of_the_roles_is_not_enough(office: Office) -> None:
    token, key_id = office.key()
    office.set(token)
    office.key("admin")
    office.revoke(key_id)
    assert not office.told()
    assert office.error == "role_missing"


@pytest.mark.rule("ISO-1", "REV-15")
def test_keys_of_others_are_not_theirs(office: Office, others: People) -> None:
    token, key_id = office.key()
    office.set(token)
    office.revoke(key_id)
    office.site.key(others.reviewer)
    for kind, role in (("system", "reviewer"), ("agent", "agent")):
        _, made = office.site.made(office.boris(role, kind=kind))
        assert not office.told(), kind
        office.revoke(made)
    for name in ("Boris", "b0ris", "boris."):
        who = office.people.person(name, "reviewer")
        _, made = office.site.made(who)
        assert not office.told(), name
        office.revoke(made)
    assert office.error == "no_valid_key"


@pytest.mark.rule("ISO-5")
def test_who_comes_with_a_token_is_taken_for_who_they_were_when_last_seen(office: Office) -> None:
    office.set(office.token("leads", "privacy"), digest="daily")
    assert office.told()
    assert office.sign_in(office.token("privacy")) == 303
    assert not office.told(), "no reviewer any more"
    assert office.error is None, "but still a privacy officer"
    assert office.sign_in(office.token("compliance")) == 303
    assert not office.told()
    assert office.error == "role_missing"
    assert office.sign_in(office.token("leads")) == 303
    assert office.error is None
    assert office.deliver() == 0, "nothing of what happened meanwhile"
    assert office.told()


@pytest.mark.rule("ISO-5")
def test_who_is_not_seen_for_long_is_told_nothing_until_they_are(office: Office) -> None:
    office.set(office.token())
    office.clock.advance(seconds=SEEN_FOR.total_seconds() - 300)
    assert office.told()
    assert not office.told(after=10)
    assert office.error == "not_seen"
    seen = office.shown.seen_at
    assert office.sign_in(office.token()) == 303
    assert (office.error, office.shown.seen_at) == (None, office.clock.now)
    assert office.clock.now - seen > SEEN_FOR
    assert office.deliver() == 0
    assert office.told()


def test_an_open_page_of_the_console_is_a_sign_of_life_and_one_under_a_key_is_not(office: Office) -> None:
    office.set(office.token())
    begun = office.shown.seen_at
    office.clock.advance(days=2)
    key, key_id = office.key()
    for path in ("/v1/notices/alerts?after=0", "/v1/notices"):
        assert office.site.ask("GET", path, key=key).status_code == 200
    assert office.sign_in(key) == 303
    assert office.shown.seen_at == begun
    assert office.site.ask("GET", "/v1/notices/alerts?after=0", key=office.token()).status_code == 200
    assert office.shown.seen_at == office.clock.now
    office.revoke(key_id)
    assert office.told(), "a token was seen"


def test_who_has_a_key_and_then_a_token_is_told_by_either(office: Office) -> None:
    key, key_id = office.key()
    office.set(key)
    office.revoke(key_id)
    assert not office.told()
    assert office.site.ask("GET", "/v1/notices", key=office.token()).status_code == 200
    assert office.told()
    office.clock.advance(seconds=SEEN_FOR.total_seconds())
    assert not office.told()
    assert office.error == "not_seen"
    office.key()
    assert office.told()


def test_a_program_that_opens_the_fabric_itself_is_taken_at_its_word_for_as_long(office: Office) -> None:
    fabric, who = office.fabric, office.people.reviewer
    fabric.notices.set(who, channel="mail", address=TO)
    office.clock.advance(seconds=SEEN_FOR.total_seconds())
    assert not office.told()
    fabric.notices.list(who)
    assert office.told()


@pytest.mark.rule("ISO-5")
def test_a_setting_from_before_follows_the_keys_if_there_ever_was_one(
    office: Office, server: TestServer, database: str
) -> None:
    token, key_id = office.key()
    office.set(token)
    with server.connect(database) as owner:
        owner.execute(
            "UPDATE notices SET seen_at = %s, seen_roles = NULL WHERE tenant_id = %s",
            [office.clock.now, office.people.tenant_id],
        )
        assert office.told()
        office.revoke(key_id)
        assert not office.told()
        assert office.error == "no_valid_key"
        owner.execute("UPDATE notices SET person = 'olaf' WHERE tenant_id = %s", [office.people.tenant_id])
    assert office.told(), "nobody knows of a key of his"


@pytest.mark.rule("ISO-5")
def test_a_message_that_waits_for_its_next_try_is_not_sent_after_the_key_was_revoked(office: Office) -> None:
    token, key_id = office.key()
    office.set(token)
    office.mailbox.answer = lambda _: "451 not now"
    doubted(office.fabric, office.people)
    assert office.deliver() == 0
    assert office.error == "451"
    office.revoke(key_id)
    office.mailbox.answer = lambda _: "250 OK"
    assert office.deliver(after=60) == 0
    assert (office.error, office.shown.tries, office.mailbox.got) == ("no_valid_key", 0, [])


@pytest.mark.rule("EVT-1", "ISO-5")
def test_one_who_is_killed_before_it_noted_what_was_sent_leaves_nothing_to_send_to_who_lost_the_key(
    office: Office, server: TestServer, database: str
) -> None:
    token, key_id = office.key()
    office.set(token)
    doubted(office.fabric, office.people)
    office.mailbox.stall = threading.Event()
    where, now = server.url(database), office.clock.now.isoformat()
    with subprocess.Popen([sys.executable, "-c", DELIVERS, where, office.people.tenant_id, now]) as process:
        assert office.mailbox.reached.wait(60)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    office.mailbox.stall.set()
    office.mailbox.stall = None
    office.revoke(key_id)
    assert office.deliver() == 0
    assert office.error == "no_valid_key"
    assert len(office.mailbox.envelopes) == 1


@pytest.mark.rule("EVT-1")
def test_of_two_workers_one_sends_and_the_pause_of_the_other_undoes_nothing(office: Office) -> None:
    token, key_id = office.key()
    office.set(token)
    doubted(office.fabric, office.people)
    office.mailbox.stall = threading.Event()
    sent: list[int] = []
    first = threading.Thread(target=lambda: sent.append(office.fabric.notices.deliver(office.people.tenant_id).sent))
    first.start()
    assert office.mailbox.reached.wait(60)
    office.revoke(key_id)
    second = office.fabric.notices.deliver(office.people.tenant_id)
    assert (second.sent, second.retrying) == (0, 0)
    office.mailbox.stall.set()
    first.join()
    assert (sent, len(office.mailbox.envelopes)) == ([1], 1), "it was handed over before"
    assert not office.told()
    assert office.error == "no_valid_key"


@pytest.mark.rule("ISO-5")
def test_a_clock_that_is_put_back_revives_no_revoked_key_and_no_visit_far_ahead(office: Office) -> None:
    token, key_id = office.key()
    office.set(token)
    office.clock.advance(days=3)
    office.revoke(key_id)
    office.clock.advance(days=-2)
    assert not office.told()
    assert office.error == "no_valid_key"
    office.clock.advance(days=400)
    assert office.site.ask("GET", "/v1/notices", key=office.token()).status_code == 200
    office.clock.advance(days=-399)
    assert not office.told()
    assert office.error == "not_seen"


@pytest.mark.rule("ISO-5")
def test_the_browser_shows_only_what_both_the_roles_of_now_and_of_then_may_read(office: Office) -> None:
    key, _ = office.key("reviewer", "privacy_officer")
    office.set(key, channel="browser", address=None)
    doubted(office.fabric, office.people)
    path = "/v1/notices/alerts?after=0"
    kinds = [one["kind"] for one in office.site.ask("GET", path, key=key).json()["alerts"]]
    assert kinds == ["low_trust"]
    narrower, _ = office.key("privacy_officer")
    assert office.site.ask("GET", path, key=narrower).json()["alerts"] == []


@pytest.mark.rule("ISO-5")
def test_another_setting_by_a_key_does_not_count_as_a_visit_without_one(office: Office) -> None:
    key, _ = office.key()
    office.set(key)
    made = office.set(key, channel="browser", address=None)
    assert office.site.ask("DELETE", f"/v1/notices/{made}", key=key).status_code == 204
    office.set(key, channel="browser", address=None)
    assert [one.seen_at for one in office.fabric.notices.list(office.people.admin, everyone=True)] == [None, None]
    office.set(office.token(), channel="browser", address=None)
    seen = [one.seen_at for one in office.fabric.notices.list(office.people.admin, everyone=True)]
    assert seen == [office.clock.now] * 2
