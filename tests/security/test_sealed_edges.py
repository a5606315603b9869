"""Sealed data that comes back from outside: random bytes, or ours with any change, are never accepted."""

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import pytest
import zstandard
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from muniment import Fabric
from muniment.access.store import SECRET_BYTES, token_of
from muniment.archives.format import Heading, Packer, Unpacked
from muniment.console.sessions import Sessions
from muniment.database.master import LocalMasterKeys
from muniment.database.sealing import TenantKeys
from muniment.errors import ArchiveBroken, KeyUnavailable, SealBroken, Unauthenticated
from muniment.testing import FakeClock, People
from tests.security.catalogue import Connection
from tests.security.conftest import requested
from tests.soak import examples

Whole = TypeVar("Whole", bytes, str)
NAMES = st.characters(exclude_categories=["Cs"])
# Of a token and of a cookie: their own letters, and some that are none of theirs.
LETTERS = st.text(st.sampled_from("Az09_-.=+/ \n\0ä"), max_size=4)
SHARED = settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
TENANT = TenantKeys("t", {1: b"k" * 32})
HEADING = Heading("t", "arc_0123456789ab0123456789abcdef", "message", "1.0.0")
AT = FakeClock()()
ROW: dict[str, Any] = {"capture_id": "cap_1", "observed_at": AT, "captured_at": AT, "content": b"sealed"}


@st.composite
def changed(draw: Callable[..., Any], whole: Whole, pieces: st.SearchStrategy[Whole]) -> Whole:
    """The whole with one piece of it left out, put in, or put in another's place."""
    first = draw(st.integers(0, len(whole)))
    last = draw(st.integers(first, min(len(whole), first + 4)))
    other = whole[:first] + draw(pieces) + whole[last:]
    assume(other != whole)
    return other


@pytest.mark.rule("CAP-5", "ERA-1")
@given(data=st.data())
def test_sealed_content_that_is_not_to_the_byte_what_was_sealed_does_not_open(data: st.DataObject) -> None:
    key = TENANT.subject("customer:a", TENANT.new_subject("customer:a"), 1)
    sealed = key.seal("captures.content", "cap_1", b"the secret")
    for other in (data.draw(st.binary(max_size=200)), data.draw(changed(sealed, st.binary(max_size=4)))):
        with pytest.raises(SealBroken):
            key.open("captures.content", "cap_1", other)


@pytest.mark.rule("ERA-1")
@given(data=st.data())
def test_a_wrapped_key_that_is_not_to_the_byte_what_was_wrapped_is_no_key(data: st.DataObject) -> None:
    master = LocalMasterKeys(b"m" * 32)
    wrapped, of_tenant = TENANT.new_subject("customer:a"), anyio.run(master.wrap, "t", b"k" * 32)
    for other in (data.draw(st.binary(max_size=200)), data.draw(changed(wrapped, st.binary(max_size=4)))):
        with pytest.raises(SealBroken):
            TENANT.subject("customer:a", other, 1)
    for other in (data.draw(st.binary(max_size=200)), data.draw(changed(of_tenant, st.binary(max_size=4)))):
        with pytest.raises(KeyUnavailable):
            anyio.run(master.unwrap, "t", other)


@pytest.mark.rule("ISO-2")
@SHARED
@given(data=st.data())
def test_a_token_that_was_made_up_or_changed_lets_nobody_in(
    fabric: Fabric, people: People, data: st.DataObject
) -> None:
    key = fabric.keys.create(people.admin, principal_id="bot", kind="agent", roles=["agent"])
    assert key.token is not None and fabric.keys.check(key.token).key_id == key.key_id
    secret = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)
    for other in (
        data.draw(st.text(max_size=200)),
        data.draw(changed(key.token, LETTERS)),
        token_of(people.tenant_id, key.key_id, data.draw(secret)),
        # Of the right form, for a tenant of any name.
        token_of(data.draw(st.text(NAMES, min_size=1, max_size=128)), key.key_id, data.draw(secret)),
    ):
        with pytest.raises(Unauthenticated, match="not valid, has expired or was revoked"):
            fabric.keys.check(other)


@pytest.mark.rule("ISO-2")
@given(data=st.data(), token=st.text(st.sampled_from("ab"), min_size=1, max_size=8))
def test_a_cookie_that_was_made_up_or_changed_is_nobody_s_session(data: st.DataObject, token: str) -> None:
    sessions = Sessions(b"a" * 32)
    session, cookie = sessions.begin(token, AT)
    assert sessions.open(cookie, AT) == session
    for other in (data.draw(st.text(max_size=200)), data.draw(changed(cookie, LETTERS))):
        assert sessions.open(other, AT) is None
    form = sessions.form_token(session)
    assert not sessions.is_form_token(session, data.draw(changed(form, LETTERS)))


@SHARED
@given(data=st.data())
def test_a_kept_answer_that_is_not_to_the_byte_what_was_kept_is_not_told(
    fabric: Fabric, people: People, owner: Connection, data: st.DataObject
) -> None:
    asked = (people.admin, "request_1", b"what was asked")
    if fabric._portal.call(fabric._fabric.requests.answer, *asked) is None:
        fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
        fabric._portal.call(requested, fabric._fabric, people)
    kept: Any = owner.execute("SELECT answer FROM requests WHERE tenant_id = %s", [people.tenant_id]).fetchone()
    write = "UPDATE requests SET answer = %s WHERE tenant_id = %s"
    try:
        for other in (data.draw(st.binary(max_size=200)), data.draw(changed(bytes(kept[0]), st.binary(max_size=4)))):
            owner.execute(write, [other, people.tenant_id])
            with pytest.raises(SealBroken):
                fabric._portal.call(fabric._fabric.requests.answer, *asked)
    finally:
        owner.execute(write, [kept[0], people.tenant_id])
    answer = fabric._portal.call(fabric._fabric.requests.answer, *asked)
    assert answer is not None and answer.body == b"what was answered"


@given(packed=st.binary(max_size=200), lines=st.binary(max_size=200))
@example(packed=b"", lines=b"[" * 200_000 + b"\n")
def test_bytes_that_are_no_archive_file_are_refused(packed: bytes, lines: bytes) -> None:
    for other in (packed, zstandard.compress(lines)):
        with pytest.raises(ArchiveBroken):
            list(Unpacked(other))


@given(data=st.data())
def test_an_archive_file_that_was_changed_is_refused_or_says_the_same(data: st.DataObject) -> None:
    packer = Packer(HEADING)
    whole = (packer.pack(ROW) or b"") + packer.end()
    lines = zstandard.ZstdDecompressor().decompressobj().decompress(whole)
    pieces = st.binary(max_size=4) | st.sampled_from([b" ", b"\n", b"{}", b'"', b"null", b"[["])
    for other in (data.draw(changed(whole, pieces)), zstandard.compress(data.draw(changed(lines, pieces)))):
        try:
            found = Unpacked(other)
            result = (found.heading, list(found))
        except ArchiveBroken:
            continue
        assert result == (HEADING, [ROW])
