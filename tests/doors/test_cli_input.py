"""What commands read: texts, payloads, and files of many captures."""

import json
from pathlib import Path

import pytest

from tests.doors.command import Desk


def test_a_text_comes_from_the_command_line_stdin_or_a_file(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("from a file\n\n", "utf-8")
    desk.json("capture", "from the line", "-c", "PUBLIC")
    desk.json("capture", "-", "-c", "PUBLIC", stdin=b"from stdin,\ntwo lines\n")
    desk.json("capture", "--file", file, "-c", "PUBLIC")
    desk.json("consolidate")
    texts = [one["candidate"]["text"] for one in desk.json("queue")]
    assert sorted(texts) == ["from a file\n", "from stdin,\ntwo lines", "from the line"]


@pytest.mark.rule("ERR-1", "CAP-8")
@pytest.mark.parametrize(
    ("arguments", "stdin", "field", "code"),
    [
        (("-",), b"\xff\xfe", "text", "invalid_input"),
        (("-",), b"a" * 40_000, "text", "too_large"),
        (("-",), b"", "text", "invalid_input"),
        (("--file", "/nonexistent"), b"", "text", "invalid_input"),
        (("one", "--file", "two"), b"", "text", "invalid_input"),
        (("--payload", "{"), b"", "payload", "invalid_input"),
        (("--payload", "[" * 100_000), b"", "payload", "invalid_input"),
        (("--payload", "@/nonexistent"), b"", "payload", "invalid_input"),
        (("x", "--qualifier", "region"), b"", "qualifiers", "invalid_input"),
        (("x", "--qualifier", "a=1", "--qualifier", "a=2"), b"", "qualifiers", "invalid_input"),
        (("x", "--observed-at", "soon"), b"", "observed_at", "invalid_input"),
        (("x", "--observed-at", "2026-01-01T00:00:00"), b"", "observed_at", "invalid_input"),
        (("x", "--subject", "nobody"), b"", "subject", "invalid_input"),
        (("x", "--batch", "file"), b"", "batch", "invalid_input"),
        (("--batch", "/nonexistent"), b"", "batch", "invalid_input"),
    ],
)
def test_input_that_cannot_be_read_is_an_error_of_its_field(
    desk: Desk, arguments: tuple[str, ...], stdin: bytes, field: str, code: str
) -> None:
    ran = desk("capture", *arguments, "-c", "PUBLIC", "--json", stdin=stdin)
    assert (ran.code, ran.out) == (1, "")
    assert (ran.error["field"], ran.error["code"]) == (field, code)


def test_a_payload_is_json_on_the_line_or_in_a_file(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"from": "file"}', "utf-8")
    where = ("-c", "PUBLIC", "--as", "alice")
    for payload in ('{"from": "line"}', f"@{file}"):
        desk.json("capture", f"see {payload}", "--payload", payload, *where, "--observed-at", "2026-01-01T00:00:00Z")
    desk.json("consolidate")
    found: list[str] = []
    for item in desk.json("queue"):
        (done,) = desk.json("approve", item["proposal_id"], "--as", "bob")
        capture = desk.json("trail", done["memory_id"])["capture"]
        assert capture["observed_at"] == "2026-01-01T00:00:00Z"
        found.append(capture["content"]["payload"]["from"])
    assert sorted(found) == ["file", "line"]


# ---- batches ----


def _lines(count: int, **fields: object) -> list[str]:
    one = {"kind": "message", "classification": "PUBLIC", **fields}
    return [json.dumps({**one, "text": f"message {number}"}) for number in range(count)]


def _file(folder: Path, lines: list[str]) -> Path:
    path = folder / "captures.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.rule("CAP-7")
def test_a_batch_of_json_lines_is_committed_a_thousand_at_a_time(desk: Desk, tmp_path: Path) -> None:
    told = desk.json("capture", "--batch", _file(tmp_path, _lines(2001)))
    assert (told["committed"], len(set(told["capture_ids"]))) == (2001, 2001)
    assert [one["data"]["count"] for one in desk.json("events", "--after", "1")] == [1000, 1000, 1]
    assert desk.json("consolidate")["captures"] == 2001


@pytest.mark.parametrize(
    ("line", "field", "code"),
    [
        ('{"kind": "message", "text": "x"}', "classification", "invalid_input"),
        ('{"kind": "message", "text": "x", "classification": "SECRET"}', "classification", "unknown_classification"),
        ('{"kind": "message", "text": "x", "classification": "PUBLIC", "colour": 1}', "colour", "invalid_input"),
        ("{not json", None, "invalid_input"),
        ('["a list"]', None, "invalid_input"),
    ],
)
def test_an_error_in_a_batch_names_its_line_and_what_was_committed(
    desk: Desk, tmp_path: Path, line: str, field: str | None, code: str
) -> None:
    # an empty line is passed over but counted
    lines = ["", *_lines(1500)]
    lines[1200] = line
    path = _file(tmp_path, lines)
    ran = desk("capture", "--batch", path, "--json")
    assert (ran.code, ran.out) == (1, "")
    error = ran.error
    assert (error["place"], error["field"], error["code"], error["committed"]) == ("line 1201", field, code, 1000)
    ran = desk("capture", "--batch", path)
    assert ran.code == 1
    told, committed = ran.err.splitlines()
    assert told.startswith("error: line 1201: ")
    assert committed == "1000 captures committed, up to line 1001"
    assert [one["data"]["count"] for one in desk.json("events", "--after", "1")] == [1000, 1000]


def test_a_batch_can_be_run_again_by_its_idempotency_keys_and_options_fill_in_what_lines_lack(desk: Desk) -> None:
    lines = b'{"text": "one", "idempotency_key": "a"}\n{"text": "two", "kind": "effect", "idempotency_key": "b"}\n'
    options = ("--batch", "-", "-k", "message", "-c", "PUBLIC")
    first = desk.json("capture", *options, stdin=lines)
    again = desk.json("capture", *options, stdin=lines)
    assert again == first | {"repeated": 2}
    assert desk.json("events")[-1]["data"]["kinds"] == ["effect", "message"]
    assert desk("capture", *options, stdin=lines).out == "2 captures committed, 2 of them captured before\n"


def test_consolidation_says_what_was_refused_and_by_which_gate(desk: Desk) -> None:
    receipt = desk.json("capture", "private", "-c", "PII", "--subject", "customer:c")
    shown = desk("consolidate").out
    assert shown.startswith("1 capture: 0 proposals, 1 refused, 0 promoted by policy\n")
    assert f"{receipt['capture_id']}  consent: consent_missing" in shown
