"""API keys: shown once, known by a keyed hash, held to what they were made for, gone when revoked."""

import base64
from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.access.store import parse_token, token_of
from muniment.database.storage import Transaction
from muniment.erasure import key_rotation as rotation
from muniment.errors import InvalidInput, NotFound, RoleMissing, Unauthenticated
from muniment.language.redaction.detectors.credentials import find_credentials
from muniment.model.api_key import ApiKey
from muniment.model.context import Principal
from muniment.testing import FakeClock, People, TestServer
from tests.connections import Connections
from tests.stories import event_data

BOT: dict[str, Any] = {"principal_id": "bot", "kind": "agent", "roles": ["agent"]}
WORDS = "the credential is not valid, has expired or was revoked"


def made(fabric: Fabric, people: People, **fields: Any) -> tuple[ApiKey, str]:
    """A key and its token."""
    key = fabric.keys.create(people.admin, **BOT | fields)
    assert key.token is not None
    return key, key.token


def let_in(fabric: Fabric, token: Any) -> bool:
    """Whether the token opens; if not, with the words that every wrong one gets."""
    try:
        fabric.keys.check(token)
    except Unauthenticated as error:
        assert (str(error), error.field) == (WORDS, None)
        return False
    return True


def changed(text: str) -> str:
    """The same text with another letter in its middle."""
    middle = len(text) // 2
    return text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :]


def test_a_token_gives_the_rights_of_its_principal_and_nothing_more(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    key, token = made(fabric, people, user_id="cust_1", clearance=["PUBLIC", "PII"], label="the shop's bot")
    held = fabric.keys.check(token)
    assert held.principal == Principal(tenant_id=people.tenant_id, id="bot", kind="agent", roles={"agent"})
    assert (held.user_id, held.clearance, held.key_id) == ("cust_1", {"PUBLIC", "PII"}, key.key_id)
    assert held.expires_at == key.expires_at == clock.now + timedelta(days=90)
    seen = fabric.keys.get(people.admin, key.key_id)
    assert seen == key.model_copy(update={"token": None, "last_used_at": clock.now})
    assert (seen.state, seen.label, seen.created_by) == ("active", "the shop's bot", people.admin.id)
    assert token not in repr(key)
    _, plain = made(fabric, people, principal_id="jane", kind="operator", roles=["reviewer", "agent"])
    held = fabric.keys.check(plain)
    assert (held.principal.roles, held.clearance, held.user_id) == ({"reviewer", "agent"}, {"PUBLIC", "INTERNAL"}, None)


def test_a_token_is_found_in_texts_as_the_secret_it_is(fabric: Fabric, people: People) -> None:
    _, token = made(fabric, people)
    assert token.startswith("mun_")
    assert len(list(find_credentials(f"use {token} for the shop"))) == 1


def test_whatever_is_wrong_with_a_token_the_answer_is_the_same(fabric: Fabric, people: People, others: People) -> None:
    key, token = made(fabric, people)
    made(fabric, others)
    head, key_id, secret = token.split(".")
    raw = base64.urlsafe_b64decode(f"{secret}=")
    nobody = People(f"{people.tenant_id}_nobody")
    wrong: list[Any] = [
        *(None, 5, b"", "", " ", "mun_", "Bearer", token.encode(), [token], "x" * 10_000_000),
        *(f" {token}", f"{token} ", f"{token}\n", f"{token}.", f"{token}=", token.upper(), token.removeprefix("mun_")),
        *(f"{head}.{key_id}", f"{head}.{key_id}.", f"{head}..{secret}", f"mun_.{key_id}.{secret}"),
        f"{head}.{key_id}.{changed(secret)}",
        f"{head}.{changed(key_id.removeprefix('key_'))}.{secret}",
        f"{head}.key_{'0' * 28}.{secret}",
        token_of(others.tenant_id, key.key_id, raw),
        token_of(nobody.tenant_id, key.key_id, raw),
        *(token_of(name, key.key_id, raw) for name in ("x" * 129, " x", "a\x00b", people.tenant_id.upper(), "%")),
        f"mun_{base64.urlsafe_b64encode(bytes([255, 254])).decode().rstrip('=')}.{key_id}.{secret}",
        # The same bytes, spelled with other bits in the last letter.
        token[:-1] + chr(ord(token[-1]) + 1),
    ]
    assert [one for one in wrong if let_in(fabric, one)] == []
    assert let_in(fabric, token)
    assert parse_token(token) is not None


def test_a_wrong_token_opens_no_tenant(fabric: Fabric, people: People, rows: Any) -> None:
    assert not let_in(fabric, token_of(people.tenant_id, f"key_{'0' * 28}", bytes(32)))
    assert rows("tenants") == rows("tenant_keys") == rows("subjects") == []


def test_a_key_ends_when_it_was_to_end_or_never(fabric: Fabric, people: People, clock: FakeClock) -> None:
    at = clock.now + timedelta(hours=2)
    ends = {
        "an hour": made(fabric, people, expires_in="1h"),
        "at a time": made(fabric, people, expires_at=at),
        "90 days": made(fabric, people),
        "never": made(fabric, people, expires_in="never"),
    }
    assert ends["at a time"][0].expires_at == at
    assert ends["never"][0].expires_at is None
    clock.advance(minutes=59)
    assert all(let_in(fabric, token) for _, token in ends.values())
    clock.advance(minutes=1)
    assert [name for name, (_, token) in ends.items() if not let_in(fabric, token)] == ["an hour"]
    clock.advance(days=90)
    assert [name for name, (_, token) in ends.items() if let_in(fabric, token)] == ["never"]
    states = {one.key_id: one.state for one in fabric.keys.list(people.admin)}
    assert [states[key.key_id] for key, _ in ends.values()] == ["expired", "expired", "expired", "active"]


def test_a_revoked_key_lets_nobody_in_again_and_says_who_revoked_it(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    key, token = made(fabric, people)
    clock.advance(hours=1)
    stays, other = made(fabric, people)
    revoked = fabric.keys.revoke(people.admin, key.key_id)
    assert (revoked.state, revoked.revoked_at, revoked.revoked_by) == ("revoked", clock.now, people.admin.id)
    assert (let_in(fabric, token), let_in(fabric, other)) == (False, True)
    clock.advance(hours=1)
    assert fabric.keys.revoke(people.person("zoe", "admin"), key.key_id) == revoked, "nothing changes the second time"
    assert [one.key_id for one in fabric.keys.list(people.admin)] == [stays.key_id, key.key_id]
    assert [one.key_id for one in fabric.keys.list(people.admin, limit=1, after=stays.key_id)] == [key.key_id]


@pytest.mark.rule("AUD-1", "EVT-2")
def test_making_and_revoking_a_key_are_events_without_its_secret_or_its_user(fabric: Fabric, people: People) -> None:
    key, token = made(fabric, people, user_id="cust_1", label="for Jane")
    fabric.keys.revoke(people.admin, key.key_id)
    fabric.keys.revoke(people.admin, key.key_id)
    assert key.expires_at is not None
    assert event_data(fabric, people, "api_key_created") == [
        {
            "key_id": key.key_id,
            "principal_id": "bot",
            "kind": "agent",
            "roles": ["agent"],
            "expires_at": key.expires_at.isoformat().replace("+00:00", "Z"),
        }
    ]
    assert event_data(fabric, people, "api_key_revoked") == [{"key_id": key.key_id, "reason": "revoked"}]
    log = "".join(one.model_dump_json() for one in fabric.events(people.auditor, limit=1000))
    assert [word for word in (token.split(".")[2], "cust_1", "Jane") if word in log] == []


@pytest.mark.rule("ERA-1")
def test_neither_the_secret_nor_the_label_can_be_read_in_the_database(
    fabric: Fabric, people: People, rows: Any
) -> None:
    _, token = made(fabric, people, label="for Jane")
    (row,) = rows("api_keys")
    secret = token.split(".")[2]
    raw = base64.urlsafe_b64decode(f"{secret}=")
    kept = "".join(str(value) for name, value in row.items() if name not in ("digest", "label"))
    kept_bytes = bytes(row["digest"]) + bytes(row["label"])
    assert secret not in kept
    assert [part for part in (raw, secret.encode(), b"Jane") if part in kept_bytes] == []


@pytest.mark.rule("ISO-5")
def test_keys_are_an_admins_and_of_one_tenant(fabric: Fabric, people: People, others: People) -> None:
    key, token = made(fabric, people)
    service = Principal(tenant_id=people.tenant_id, id="deploy", kind="system", roles={"admin"})
    for asker in (people.auditor, people.reviewer, people.run(), service):
        for call in (
            lambda who=asker: fabric.keys.create(who, **BOT),
            lambda who=asker: fabric.keys.list(who),
            lambda who=asker: fabric.keys.get(who, key.key_id),
            lambda who=asker: fabric.keys.revoke(who, key.key_id),
        ):
            with pytest.raises(RoleMissing):
                call()
    assert fabric.keys.list(others.admin) == []
    made(fabric, others)
    for call in (fabric.keys.get, fabric.keys.revoke):
        with pytest.raises(NotFound):
            call(others.admin, key.key_id)
    assert let_in(fabric, token)


@pytest.mark.rule("ISO-5", "ERR-1")
@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"kind": "agent", "roles": ["agent", "reviewer"]}, "roles"),
        ({"kind": "agent", "roles": ["admin"]}, "roles"),
        ({"kind": "operator", "roles": ["reviewer"], "user_id": "cust_1"}, "user_id"),
        ({"kind": "operator", "roles": ["agent", "auditor"], "user_id": "cust_1"}, "user_id"),
        ({"expires_in": "1h", "expires_at": "2099-01-01T00:00:00Z"}, "expires_at"),
    ],
)
def test_what_does_not_go_together_is_refused(
    fabric: Fabric, people: People, rows: Any, fields: dict[str, Any], names: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        fabric.keys.create(people.admin, **BOT | fields)
    assert caught.value.field == names
    assert rows("api_keys") == []


@pytest.mark.rule("ERA-2")
def test_erasing_a_user_revokes_the_keys_for_that_user_and_forgets_whose_they_were(
    fabric: Fabric, people: People, rows: Any
) -> None:
    live, token = made(fabric, people, user_id="cust_1", label="for Jane")
    before, _ = made(fabric, people, user_id="cust_1")
    fabric.keys.revoke(people.admin, before.key_id)
    other, others_token = made(fabric, people, user_id="cust_10", label="for Jo")
    fabric.erase(people.officer, user_id="cust_1")
    assert (let_in(fabric, token), let_in(fabric, others_token)) == (False, True)
    seen = {one.key_id: one for one in fabric.keys.list(people.admin)}
    assert (seen[live.key_id].state, seen[live.key_id].revoked_by) == ("revoked", people.officer.id)
    assert seen[before.key_id].revoked_by == people.admin.id
    assert (seen[other.key_id].user_id, seen[other.key_id].label) == ("cust_10", "for Jo")
    gone = [row for row in rows("api_keys") if row["key_id"] != other.key_id]
    assert [(row["user_id"], row["label"]) for row in gone] == [(None, None)] * 2
    assert event_data(fabric, people, "api_key_revoked")[-1] == {"key_id": live.key_id, "reason": "erased"}
    assert len(event_data(fabric, people, "api_key_revoked")) == 2


@pytest.mark.rule("ERA-4")
def test_a_key_outlives_the_rotation_of_the_tenants_key_and_opens_in_another_process(
    fabric: Fabric, people: People, connections: Connections, clock: FakeClock
) -> None:
    _, token = made(fabric, people)
    fabric._portal.call(rotation.rotate, fabric._fabric._context, people.tenant_id)
    with connections.fabric(clock=clock) as other:
        assert let_in(other, token)
    assert let_in(fabric, token)


def test_a_check_takes_one_round_trip_and_the_last_use_is_written_once_a_minute(
    fabric: Fabric, people: People, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, token = made(fabric, people)
    trips: list[int] = []
    complete = Transaction.complete

    async def counting(self: Transaction) -> None:
        await complete(self)
        trips.append(self.round_trips)

    monkeypatch.setattr(Transaction, "complete", counting)
    first = clock.now
    assert let_in(fabric, token)
    assert trips == [1, 1], "the look, and the note of the first use"
    trips.clear()
    clock.advance(seconds=59)
    assert let_in(fabric, token)
    assert not let_in(fabric, token_of(people.tenant_id, f"key_{'0' * 28}", bytes(32)))
    assert not let_in(fabric, token_of(f"{people.tenant_id}_nobody", key.key_id, bytes(32)))
    assert trips == [1, 1, 1], "what is not there costs the same"
    assert fabric.keys.get(people.admin, key.key_id).last_used_at == first
    clock.advance(seconds=1)
    assert let_in(fabric, token)
    assert fabric.keys.get(people.admin, key.key_id).last_used_at == clock.now
    assert not let_in(fabric, token[:-5] + "AAAAA")
    clock.advance(minutes=5)
    assert not let_in(fabric, token[:-5] + "AAAAA")
    assert fabric.keys.get(people.admin, key.key_id).last_used_at == clock.now - timedelta(minutes=5)


def test_whoever_is_let_in_does_not_wait_for_the_note_of_it(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    key, token = made(fabric, people)
    with server.connect(database) as owner, owner.transaction():
        owner.execute("SELECT FROM api_keys WHERE key_id = %s FOR UPDATE", [key.key_id])
        assert let_in(fabric, token), "while another holds its row"
