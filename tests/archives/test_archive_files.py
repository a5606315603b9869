"""Archive files: the same captures give the same bytes, and any other bytes are refused."""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard

from muniment.archives.folder import Archives, safe_name
from muniment.archives.format import Heading, Packer, Unpacked
from muniment.errors import ArchiveBroken

HEADING = Heading("tenant_1", "arc_0123456789ab0123456789abcdef", "message", "1.0.0")
AT = datetime(2026, 1, 5, 9, 0, 0, 123456, tzinfo=UTC)


def row(n: int, **fields: Any) -> dict[str, Any]:
    content = bytes(range(n, n + 64))
    return {"capture_id": f"cap_{n}", "seq": n, "subject": None, "qualifiers": {"region": "eu"}, "text": "Grüße\n\u2028",
            "observed_at": AT, "captured_at": AT, "content": content, **fields}  # fmt: skip


def packed(*rows: dict[str, Any]) -> bytes:
    packer = Packer(HEADING)
    return b"".join([packer.pack(one) or b"" for one in rows]) + packer.end()


def test_what_is_packed_comes_back_as_it_was_and_the_same_again_gives_the_same_bytes() -> None:
    rows = [row(n) for n in range(100)] + [row(101, content=b"")]
    found = Unpacked(packed(*rows))
    assert (found.heading, list(found), found.captures) == (HEADING, rows, 101)
    assert packed(*rows) == packed(*rows)


def test_when_a_capture_holds_comes_back_where_it_was_said() -> None:
    rows = [row(1, valid_from=AT, valid_until=None), row(2, valid_from=None, valid_until=AT), row(3)]
    assert list(Unpacked(packed(*rows))) == rows


def test_a_file_takes_no_more_than_it_is_given_room_for_but_one_capture_always() -> None:
    packer = Packer(HEADING)
    assert packer.pack(row(1), most=10) is not None
    assert packer.pack(row(2), most=packer.size + 10) is None
    assert packer.pack(row(2), most=packer.size + 1000) is not None
    assert packer.captures == 2


def test_every_changed_byte_every_cut_and_everything_appended_is_noticed() -> None:
    whole = packed(row(1), row(2))
    broken = [whole[:place] for place in range(len(whole))] + [whole + b"\0", whole + whole]
    # The sixth byte says how much memory to set aside; a little more does no harm.
    places = [place for place in range(len(whole)) if place != 5]
    broken += [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in places]
    for one in broken:
        with pytest.raises(ArchiveBroken):
            list(Unpacked(one))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"format":2}\n', id="another format"),
        pytest.param(b'{"format":1,"tenant_id":"t"}\n', id="half a header"),
        pytest.param(b"[]\n", id="no object"),
        pytest.param(b"\xff\n", id="no text"),
    ],
)
def test_what_is_no_archive_is_refused(lines: bytes) -> None:
    with pytest.raises(ArchiveBroken):
        Unpacked(zstandard.compress(lines))


@pytest.mark.parametrize(
    "change", [(b'"captures":2', b'"captures":3'), (b"cap_2", b"cap_3"), (b'"seq":1,', b'"seq":7,')]
)
def test_a_trailer_that_says_something_else_is_refused(change: tuple[bytes, bytes]) -> None:
    lines = zstandard.ZstdDecompressor().decompressobj().decompress(packed(row(1), row(2)))
    assert change[0] in lines
    with pytest.raises(ArchiveBroken, match="trailer"):
        list(Unpacked(zstandard.compress(lines.replace(*change))))


def test_a_file_is_there_whole_or_not_at_all_and_only_as_it_was_recorded(tmp_path: Path) -> None:
    archives = Archives(tmp_path / "a" / "b")
    draft = archives.begin(HEADING, 1)
    assert [file.finished for file in archives.files("tenant_1")] == [False]
    assert draft.add([row(1), row(2)]) == 2
    written = draft.finish()
    draft.discard()
    (file,) = archives.files("tenant_1")
    assert (file.finished, file.revision, file.path.stat().st_mode & 0o777) == (True, 1, 0o600)
    assert (written.captures, written.size, written.digest) == (
        2,
        len(file.path.read_bytes()),
        sha256(file.path.read_bytes()).digest(),
    )
    this = ("tenant_1", HEADING.archive_id, 1, written.digest)
    assert archives.pick(*this, frozenset({"cap_2"})) == {"cap_2": row(2)}
    with pytest.raises(ArchiveBroken, match="changed"):
        archives.read("tenant_1", HEADING.archive_id, 1, b"x" * 32)
    with pytest.raises(ArchiveBroken, match="missing"):
        archives.read("tenant_1", HEADING.archive_id, 2, written.digest)
    with pytest.raises(ArchiveBroken, match="there already"):
        archives.begin(HEADING, 1).finish()
    moved = archives.place("tenant_2")
    moved.mkdir()
    (moved / file.path.name).write_bytes(file.path.read_bytes())
    with pytest.raises(ArchiveBroken, match="another archive"):
        archives.read("tenant_2", HEADING.archive_id, 1, written.digest)
    second = archives.begin(HEADING, 2)
    second.discard()
    archives.remove(archives.files("tenant_1"))
    assert archives.files("tenant_1") == archives.files("tenant_3") == []


def test_without_a_folder_there_is_nothing_to_read() -> None:
    assert (Archives(None).kept, Archives(None).has("t", "arc", 1)) == (False, False)
    with pytest.raises(ArchiveBroken, match="MUNIMENT_ARCHIVES"):
        Archives(None).place("tenant_1")


def test_a_tenant_s_folder_is_a_plain_name_of_its_own() -> None:
    names = [
        "tenant_1",
        "Tenant_1",
        "tenant-1",
        "..",
        ".",
        "a/b",
        "a%2fb",
        "ü",
        "\u0130",
        "x" * 128,
        "X" * 128,
        "Y" * 128,
        "é" * 128,
    ]
    found = [safe_name(name) for name in names]
    assert len({one.lower() for one in found}) == len(names)
    assert all(set(one) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-%") and len(one) <= 255 for one in found)
    assert found[0] == "tenant_1"
