"""Alerts and digests by mail: who is told of what, how often, and what a message never holds."""

import signal
import socket
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, NotFound, RateLimited, RoleMissing
from muniment.model.context import Principal
from muniment.notices import mail
from muniment.notices.settings import MailServer, NoticeSettings
from muniment.testing import FakeClock, People, TestServer
from tests.notices.mailbox import PUBLIC, SENDER, Mailbox, doubted, fabric, mailbox, settings
from tests.stories import proposed, remembered, run_job

__all__ = ["fabric", "mailbox", "settings"]  # fixtures

TO = "boris@example.com"
# A process that sends what is due in a tenant.
DELIVERS = """
import sys
from datetime import datetime
from muniment import Fabric
from muniment.testing.database import MASTER_KEYS

url, tenant, now = sys.argv[1:]
with Fabric.open(url, clock=lambda: datetime.fromisoformat(now), master_keys=MASTER_KEYS) as fabric:
    fabric.notices.deliver(tenant)
"""


@pytest.mark.rule("EVT-2")
def test_a_reviewer_is_told_of_a_doubtful_proposal_with_a_link_and_nothing_that_was_said(
    fabric: Fabric, people: People, mailbox: Mailbox
) -> None:
    fabric.notices.set(people.reviewer, channel="mail", address=TO)
    item = doubted(fabric, people, "Hannelore Quandt", user_id="cust_1")
    assert run_job(fabric, "notify", people.tenant_id).counts == {"sent": 1, "retrying": 0}
    (told,) = mailbox.got
    assert (told["To"], told["From"], told["Auto-Submitted"]) == (TO, SENDER, "auto-generated")
    assert told["Subject"] == f"Muniment {people.tenant_id}: 1 alert"
    assert f"low trust: statement {item.proposal_id} {PUBLIC}/console/queue/{item.proposal_id}" in mailbox.texts[0]
    for said in ("Hannelore", "Quandt", "Ignore", "refund", "cust_1", "customer:"):
        assert said not in told.as_string()
    assert fabric.notices.deliver(people.tenant_id).sent == 0, "told once"


def test_a_person_is_told_of_the_kinds_and_classes_they_chose(fabric: Fabric, people: People, mailbox: Mailbox) -> None:
    fabric.notices.set(people.reviewer, channel="mail", address=TO, classes=["preference"])
    clara = "clara@example.com"
    fabric.notices.set(people.second_reviewer, channel="mail", address=clara, kinds=["overdue"])
    doubted(fabric, people)
    assert fabric.notices.deliver(people.tenant_id).sent == 0, "another class, another kind"
    fabric.consent.grant(
        people.officer,
        subject="customer:cust_1",
        purpose="support",
        predicates_allowed=["*"],
        data_classifications_allowed=["PII"],
        basis="opt_in",
    )
    key = {"entity": "customer:cust_1", "predicate": "prefers_channel", "subject": "customer:cust_1"}
    proposed(fabric, people.run(), classification="PII", value="post", **key)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    assert (mailbox.got[0]["To"], "sensitive: preference" in mailbox.texts[0]) == (TO, True)


def test_alerts_are_gathered_into_one_message_a_minute(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    fabric.notices.set(people.reviewer, channel="mail", address=TO)
    doubted(fabric, people, "one")
    fabric.notices.deliver(people.tenant_id)
    for value in range(25):
        doubted(fabric, people, value)
    waits = fabric.notices.deliver(people.tenant_id)
    assert (waits.sent, waits.next_at) == (0, clock.now + timedelta(minutes=1))
    clock.advance(minutes=1)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    assert mailbox.got[1]["Subject"].endswith(": 25 alerts")
    assert mailbox.texts[1].count("/console/queue/") == 20
    assert "and 5 more" in mailbox.texts[1]
    clock.advance(minutes=1)
    idle = fabric.notices.deliver(people.tenant_id)
    assert (idle.sent, idle.next_at) == (0, None), "nothing is due any more"


@pytest.mark.rule("EVT-2")
def test_whom_a_comment_names_or_a_proposal_is_assigned_to_is_told_and_nobody_else(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    fabric.notices.set(people.reviewer, channel="mail", address=TO)
    fabric.notices.set(people.second_reviewer, channel="mail", address="clara@example.com")
    fabric.notices.set(people.second_reviewer, channel="browser")
    before = fabric.notices.alerts(people.second_reviewer, after=0).seq
    item = proposed(fabric, people.run(), entity="customer:cust_1", predicate="prefers_channel", value="email")
    who, name = people.reviewer, people.second_reviewer.id
    fabric.queue.comment(who, item.proposal_id, text=f"@{name} her sister?", mentions=[name, who.id, "Hannelore"])
    fabric.queue.assign_many(who, [item.proposal_id], to=name)
    shown = fabric.notices.alerts(people.second_reviewer, after=before).alerts
    path = f"/console/queue/{item.proposal_id}"
    assert [(one.kind, one.write_class, one.path) for one in shown] == [
        ("mention", "preference", path),
        ("assignment", "preference", path),
    ]
    assert run_job(fabric, "notify", people.tenant_id).counts == {"sent": 1, "retrying": 0}
    (told,) = mailbox.got
    assert told["To"] == "clara@example.com", "nobody is told of what they did themselves"
    assert f"mentions you: preference {item.proposal_id} {PUBLIC}{path}" in mailbox.texts[0]
    assert f"assigned to you: preference {item.proposal_id} {PUBLIC}{path}" in mailbox.texts[0]
    log = b"".join(one.model_dump_json().encode() for one in fabric.events(people.auditor, limit=100))
    for said in ("sister", "Hannelore"):
        assert said not in told.as_string() and said.encode() not in log
    clock.advance(minutes=2)
    fabric.notices.set(people.second_reviewer, channel="mail", address="clara@example.com", classes=["statement"])
    fabric.queue.comment(who, item.proposal_id, text="still?", mentions=[name])
    assert fabric.notices.deliver(people.tenant_id).sent == 0, "of another class than was asked for"


def test_what_is_overdue_parked_or_asked_for_is_told_to_those_who_may_read_about_it(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    fabric.notices.set(people.reviewer, channel="mail", address=TO)
    fabric.notices.set(people.officer, channel="mail", address="petra@example.com")
    fabric.notices.set(people.admin, channel="mail", address="ada@example.com")
    proposed(fabric, people.run(), entity="customer:cust_1", predicate="prefers_channel", value="email")
    user = Principal(tenant_id=people.tenant_id, id="cust_1", kind="end_user", roles=frozenset({"subject"}))
    request = fabric.me.forget_everything(user)
    clock.advance(days=30)
    run_job(fabric, "alert", people.tenant_id)
    fabric.notices.deliver(people.tenant_id)
    told = {one["To"]: text for one, text in zip(mailbox.got, mailbox.texts, strict=True)}
    assert set(told) == {TO, "petra@example.com"}, "an admin reads neither the queue nor requests"
    assert "overdue: preference" in told[TO]
    assert "erasure" not in told[TO]
    assert f"request for erasure: {request.request_id} {PUBLIC}/console/erasures" in told["petra@example.com"]
    assert "cust_1" not in told["petra@example.com"]


def test_a_digest_counts_what_waits_and_is_not_sent_when_nothing_does(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    made = fabric.notices.set(people.auditor, channel="mail", address=TO, kinds=[], digest="daily")
    assert made.digest_at is not None
    assert (made.digest_at.hour, made.digest_at > clock.now) == (7, True)
    clock.advance(days=1)
    empty = fabric.notices.deliver(people.tenant_id)
    assert (empty.sent, mailbox.got) == (0, [])
    assert empty.next_at is not None
    assert empty.next_at > clock.now
    remembered(fabric, people, "email")
    proposed(
        fabric, people.run(None), entity="customer:cust_1", predicate="prefers_channel", user_id="cust_1", value="x"
    )
    doubted(fabric, people)
    user = Principal(tenant_id=people.tenant_id, id="cust_1", kind="end_user", roles=frozenset({"subject"}))
    fabric.me.forget_everything(user)
    assert fabric.notices.deliver(people.tenant_id).sent == 0, "not before it is due"
    clock.advance(days=1)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    (text,) = mailbox.texts
    assert "open proposals: 2 (preference 1, statement 1)" in text
    assert "requests for erasure: 1" in text
    assert text.strip().endswith(f"{PUBLIC}/console")
    assert mailbox.got[0]["Subject"] == f"Muniment {people.tenant_id}: 2 open, 0 overdue"
    assert fabric.notices.deliver(people.tenant_id).sent == 0


def test_the_title_of_a_digest_names_what_waits_for_one_who_reads_no_queue(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    fabric.notices.set(people.officer, channel="mail", address=TO, kinds=[], digest="daily")
    user = Principal(tenant_id=people.tenant_id, id="cust_1", kind="end_user", roles=frozenset({"subject"}))
    fabric.me.forget_everything(user)
    doubted(fabric, people)
    clock.advance(days=1)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    assert mailbox.got[0]["Subject"] == f"Muniment {people.tenant_id}: requests for erasure: 1"


@pytest.mark.rule("EVT-1")
def test_a_mail_that_was_not_accepted_is_tried_again_with_everything_since(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    made = fabric.notices.set(people.reviewer, channel="mail", address=TO)
    doubted(fabric, people, "one")
    mailbox.answer = lambda _: "451 not now"
    assert fabric.notices.deliver(people.tenant_id).retrying == 1
    (failed,) = fabric.notices.list(people.reviewer)
    assert (failed.tries, failed.last_error, failed.sent_at) == (1, "451", None)
    doubted(fabric, people, "two")
    assert fabric.notices.deliver(people.tenant_id).sent == 0, "it waits for its next try"
    mailbox.answer = lambda _: "250 OK"
    clock.advance(seconds=30)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    assert mailbox.got[0]["Subject"].endswith(": 2 alerts")
    (done,) = fabric.notices.list(people.reviewer)
    assert (done.notice_id, done.tries, done.last_error, done.sent_at) == (made.notice_id, 0, None, clock.now)


@pytest.mark.rule("EVT-1")
def test_one_who_is_killed_before_it_noted_that_the_mail_was_accepted_leaves_it_to_the_next(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock, server: TestServer, database: str
) -> None:
    fabric.notices.set(people.reviewer, channel="mail", address=TO)
    item = doubted(fabric, people)
    mailbox.stall = threading.Event()
    command = [sys.executable, "-c", DELIVERS, server.url(database), people.tenant_id, clock.now.isoformat()]
    with subprocess.Popen(command) as process:
        assert mailbox.reached.wait(60)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    mailbox.stall.set()
    mailbox.stall = None
    held = fabric.notices.deliver(people.tenant_id)
    assert held.sent == 0, "its lease has not ended"
    assert held.next_at is not None
    assert clock.now < held.next_at <= clock.now + timedelta(seconds=61)
    clock.advance(seconds=61)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    assert all(item.proposal_id in text for text in mailbox.texts)
    assert len(mailbox.envelopes) == 2, "at least once"
    assert len({one["Message-ID"] for one in mailbox.got}) == 1, "a mailbox can tell that they are the same"
    clock.advance(minutes=1)
    assert fabric.notices.deliver(people.tenant_id).sent == 0


@pytest.mark.parametrize(
    "address",
    [
        "boris@example.com\r\nBcc: all@example.com",
        "boris@example.com\nDATA",
        "boris@example.com, eve@example.com",
        "Boris <boris@example.com>",
        '"a b"@example.com',
        "boris@example.com ",
        "boris",
        "@example.com",
        "boris@",
        "boris@-example.com",
        "boris@example..com",
        "bоris@example.com",  # noqa: RUF001  a Cyrillic letter
        "b" * 65 + "@example.com",
        "boris@" + "e" * 250 + ".com",
        "",
        None,
    ],
)
def test_an_address_that_would_say_more_than_an_address_is_refused(
    fabric: Fabric, people: People, address: str | None
) -> None:
    with pytest.raises(InvalidInput) as caught:
        fabric.notices.set(people.reviewer, channel="mail", address=address)
    assert caught.value.field == "address"
    assert fabric.notices.list(people.reviewer) == []


@pytest.mark.parametrize("greeting", [b"", b"2", b"220 hello\r\n"])
def test_a_server_that_hangs_is_given_up_and_its_thread_ends(
    greeting: bytes, monkeypatch: pytest.MonkeyPatch, fabric: Fabric, people: People
) -> None:
    monkeypatch.setattr(mail, "DEADLINE", 0.5)
    made = fabric.notices.set(people.reviewer, channel="mail", address=TO)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        stopped = threading.Event()

        def dribble() -> None:
            connection, _ = hanging.accept()
            with connection:
                connection.sendall(greeting)
                while not stopped.wait(0.05):
                    if connection.recv(4096) == b"":
                        stopped.set()

        thread = threading.Thread(target=dribble)
        thread.start()
        server = MailServer("127.0.0.1", hanging.getsockname()[1], "none", SENDER)
        context = fabric._fabric._opened.context  # type: ignore[union-attr]
        object.__setattr__(context, "notices", NoticeSettings(server))
        tested = fabric.notices.test(people.reviewer, made.notice_id)
        assert tested.last_error == "timeout"
        assert stopped.wait(5), "the connection was closed"
        thread.join()


def test_mail_goes_out_without_tls_only_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_MAIL_FROM", SENDER)
    for url, expected in (
        ("smtp://mail.example.com", ("mail.example.com", 587, "starttls")),
        ("smtp://10.0.0.1:25", ("10.0.0.1", 25, "starttls")),
        ("smtps://mail.example.com", ("mail.example.com", 465, "tls")),
        ("smtp://127.0.0.1:1025", ("127.0.0.1", 1025, "none")),
        ("smtp://localhost:1025", ("localhost", 1025, "none")),
    ):
        monkeypatch.setenv("MUNIMENT_SMTP_URL", url)
        server = NoticeSettings.gather().mail
        assert server is not None
        assert (server.host, server.port, server.tls) == expected


def test_a_server_that_offers_no_tls_gets_neither_the_mail_nor_the_password(
    fabric: Fabric, people: People, mailbox: Mailbox
) -> None:
    made = fabric.notices.set(people.reviewer, channel="mail", address=TO)
    port = int(mailbox.url.rpartition(":")[2])
    context = fabric._fabric._opened.context  # type: ignore[union-attr]
    server = MailServer("127.0.0.1", port, "starttls", SENDER, "boris", "secret")
    object.__setattr__(context, "notices", NoticeSettings(server))
    assert fabric.notices.test(people.reviewer, made.notice_id).last_error == "tls_or_login_not_offered"
    assert mailbox.envelopes == []
    assert "secret" not in repr(server)


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"MUNIMENT_SMTP_URL": "mail.example.com"}, "MUNIMENT_SMTP_URL"),
        ({"MUNIMENT_SMTP_URL": "http://mail.example.com"}, "MUNIMENT_SMTP_URL"),
        ({"MUNIMENT_SMTP_URL": "smtp://mail.example.com:port"}, "MUNIMENT_SMTP_URL"),
        ({"MUNIMENT_SMTP_URL": "smtps://u:p@mail.example.com"}, "MUNIMENT_SMTP_URL"),
        ({"MUNIMENT_SMTP_URL": "smtps://u@mail.example.com"}, "MUNIMENT_SMTP_PASSWORD"),
        ({"MUNIMENT_SMTP_URL": "smtps://m.example.com", "MUNIMENT_MAIL_FROM": "a\nb@c"}, "MUNIMENT_MAIL_FROM"),
        ({"MUNIMENT_PUBLIC_URL": "http://memory.example.com"}, "MUNIMENT_PUBLIC_URL"),
        ({"MUNIMENT_SMTP_URL": "smtps://u@h", "MUNIMENT_SMTP_PASSWORD_FILE": "/none"}, "MUNIMENT_SMTP_PASSWORD_FILE"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(
    variables: dict[str, str], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_MAIL_FROM", SENDER)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput) as caught:
        NoticeSettings.gather()
    assert caught.value.field == field


def test_the_password_comes_from_a_file_that_nobody_else_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    path = tmp_path / "password"
    path.write_text("secret\n")
    path.chmod(0o644)
    monkeypatch.setenv("MUNIMENT_MAIL_FROM", SENDER)
    monkeypatch.setenv("MUNIMENT_SMTP_URL", "smtps://boris@mail.example.com")
    monkeypatch.setenv("MUNIMENT_SMTP_PASSWORD_FILE", str(path))
    with pytest.raises(InvalidInput):
        NoticeSettings.gather()
    path.chmod(0o600)
    server = NoticeSettings.gather().mail
    assert server is not None
    assert (server.user, server.password) == ("boris", "secret")


@pytest.mark.rule("ISO-5")
def test_settings_are_ones_own_and_an_admin_removes_those_of_others_without_seeing_the_address(
    fabric: Fabric, people: People, mailbox: Mailbox
) -> None:
    made = fabric.notices.set(people.reviewer, channel="mail", address=TO)
    others = People(f"{people.tenant_id}_other")
    fabric.notices.set(others.reviewer, channel="browser")
    for stranger in (people.second_reviewer, others.reviewer, others.admin):
        assert made.notice_id not in [one.notice_id for one in fabric.notices.list(stranger)]
        for act in (fabric.notices.remove, fabric.notices.test):
            with pytest.raises(NotFound):
                act(stranger, made.notice_id)
    with pytest.raises(RoleMissing):
        fabric.notices.list(people.second_reviewer, everyone=True)
    with pytest.raises(NotFound):
        fabric.notices.test(people.admin, made.notice_id)
    bot = Principal(tenant_id=people.tenant_id, id="bot", kind="agent", roles=frozenset({"agent", "reviewer"}))
    with pytest.raises(RoleMissing):
        fabric.notices.set(bot, channel="mail", address=TO)
    (shown,) = fabric.notices.list(people.admin, everyone=True)
    assert (shown.person, shown.address) == ("boris", None)
    fabric.notices.remove(people.admin, made.notice_id)
    assert fabric.notices.list(people.reviewer) == []
    doubted(fabric, people)
    assert fabric.notices.deliver(people.tenant_id).sent == 0


@pytest.mark.rule("ISO-1")
def test_nobody_is_told_of_another_tenant(fabric: Fabric, people: People, mailbox: Mailbox) -> None:
    fabric.notices.set(people.reviewer, channel="mail", address=TO)
    others = People(f"{people.tenant_id}_other")
    doubted(fabric, others)
    assert fabric.notices.deliver(people.tenant_id).sent == 0
    assert fabric.notices.deliver(others.tenant_id).sent == 0
    assert mailbox.got == []


def test_another_setting_of_a_channel_replaces_the_first_and_what_was_not_sent_yet_is_sent(
    fabric: Fabric, people: People, mailbox: Mailbox, server: TestServer, database: str
) -> None:
    first = fabric.notices.set(people.reviewer, channel="mail", address=TO)
    doubted(fabric, people)
    second = fabric.notices.set(people.reviewer, channel="mail", address="other@example.com")
    assert [one.notice_id for one in fabric.notices.list(people.reviewer)] == [second.notice_id]
    fabric.notices.deliver(people.tenant_id)
    assert [one["To"] for one in mailbox.got] == ["other@example.com"]
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT notice_id, address, removed_at FROM notices WHERE tenant_id = %s ORDER BY created_seq",
            [people.tenant_id],
        ).fetchall()
    assert [row[0] for row in rows] == [first.notice_id, second.notice_id]
    assert (rows[0][1], rows[0][2] is None, rows[1][2]) == (None, False, None), "the address went with the removal"
    assert b"other" not in bytes(rows[1][1]), "it is sealed"


def test_a_test_message_is_sent_once_a_minute(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    made = fabric.notices.set(people.reviewer, channel="mail", address=TO)
    assert fabric.notices.test(people.reviewer, made.notice_id).last_error is None
    assert f"{PUBLIC}/console/notices" in mailbox.texts[0]
    with pytest.raises(RateLimited):
        fabric.notices.test(people.reviewer, made.notice_id)
    clock.advance(minutes=1)
    mailbox.answer = lambda _: "554 no"
    assert fabric.notices.test(people.reviewer, made.notice_id).last_error == "554"
    assert len(mailbox.got) == 1


def test_nobody_chooses_what_their_roles_may_not_read(fabric: Fabric, people: People, mailbox: Mailbox) -> None:
    for person, kinds in (
        (people.reviewer, ["erasure_request"]),
        (people.admin, ["overdue"]),
        (people.author, ["parked"]),
    ):
        with pytest.raises(InvalidInput) as caught:
            fabric.notices.set(person, channel="mail", address=TO, kinds=kinds)
        assert caught.value.field == "kinds"
    assert fabric.notices.set(people.author, channel="mail", address=TO).kinds == ("contradiction_backlog",)
    with pytest.raises(InvalidInput):
        fabric.notices.set(people.reviewer, channel="mail", address=TO, kinds=[])
