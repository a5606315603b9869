"""What commands read: texts, payloads, and files of many captures."""

import json
from pathlib import Path

import pytest

from tests.interfaces.command import Terminal


def test_a_text_comes_from_the_command_line_stdin_or_a_file(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("from a file\n\n", "utf-8")
    terminal.json("capture", "from the line", "-c", "PUBLIC")
    terminal.json("capture", "-", "-c", "PUBLIC", stdin=b"from stdin,\ntwo lines\n")
    terminal.json("capture", "--file", file, "-c", "PUBLIC")
    terminal.json("consolidate")
    texts = [one["candidate"]["text"] for one in terminal.json("queue")]
    assert sorted(texts) == ["from a file\n", "from stdin,\ntwo lines", "from the line"]


@pytest.mark.rule("ERR-1")
def test_a_day_without_a_time_is_answered_with_an_example(terminal: Terminal) -> None:
    wrong = terminal("erasures", "--since", "2026-11-19", "--json")
    assert (wrong.code, wrong.error["field"]) == (1, "since")
    assert wrong.error["message"] == "expected a time with its zone, such as 2027-01-31T12:00:00Z"


@pytest.mark.rule("ERR-1")
def test_an_unknown_choice_is_answered_with_those_there_are(terminal: Terminal) -> None:
    wrong = terminal("queue", "list", "--status", "gone")
    assert wrong.code == 2
    assert (
        wrong.err.splitlines()[0]
        == "error: Invalid value for '--status': 'gone' is not one of 'pending', 'held'. (usage)"
    )


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
        (("x", "--valid-until", "next week"), b"", "valid_until", "invalid_input"),
        (("x", "--subject", "nobody"), b"", "subject", "invalid_input"),
    ],
)
def test_input_that_cannot_be_read_is_an_error_of_its_field(
    terminal: Terminal, arguments: tuple[str, ...], stdin: bytes, field: str, code: str
) -> None:
    ran = terminal("capture", *arguments, "-c", "PUBLIC", "--json", stdin=stdin)
    assert (ran.code, ran.out) == (1, "")
    assert (ran.error["field"], ran.error["code"]) == (field, code)


def test_a_payload_is_json_on_the_line_or_in_a_file(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"from": "file"}', "utf-8")
    where = ("-c", "PUBLIC", "--as", "alice")
    for payload in ('{"from": "line"}', f"@{file}"):
        times = ("--observed-at", "2026-01-01T00:00:00Z", "--valid-from", "2019-01-01T00:00:00Z")
        terminal.json("capture", f"see {payload}", "--payload", payload, *where, *times)
    terminal.json("consolidate")
    found: list[str] = []
    for item in terminal.json("queue"):
        (done,) = terminal.json("approve", item["proposal_id"], "--as", "bob")
        capture = terminal.json("trail", done["memory_id"])["capture"]
        assert (capture["observed_at"], capture["valid_from"]) == ("2026-01-01T00:00:00Z", "2019-01-01T00:00:00Z")
        found.append(capture["content"]["payload"]["from"])
    assert sorted(found) == ["file", "line"]


# ---- importing ----


def _lines(count: int, **fields: object) -> list[str]:
    one = {"kind": "message", "classification": "PUBLIC", **fields}
    return [json.dumps({**one, "text": f"message {number}"}) for number in range(count)]


def _file(folder: Path, lines: list[str]) -> Path:
    path = folder / "history.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _preference(value: str, **fields: object) -> str:
    fact = {"write_class": "preference", "entity": "customer:cus_77", "predicate": f"likes_{value}", "value": value}
    return json.dumps({**fact, "classification": "INTERNAL", **fields})


@pytest.mark.rule("CAP-7")
def test_captures_are_imported_a_thousand_at_a_time_and_consolidated(terminal: Terminal, tmp_path: Path) -> None:
    result = terminal.json("import", "lines", _file(tmp_path, _lines(2001)), "--no-consolidate")
    assert (result["captured"], len(set(result["capture_ids"]))) == (2001, 2001)
    assert [one["data"]["count"] for one in terminal.json("events", "--after", "1")] == [500, 500, 500, 500, 1]
    assert terminal.json("consolidate")["captures"] == 2001


@pytest.mark.rule("CAN-8", "CAN-9")
def test_lines_are_captured_or_proposed_in_their_order_and_what_the_gates_refuse_is_reported(
    terminal: Terminal, tmp_path: Path
) -> None:
    statement = {"kind": "statement", "classification": "PUBLIC"}
    lines = [
        json.dumps({**statement, "text": "The office in Lyon moved to the river."}),
        _preference("tea"),
        _preference("wine", classification="PII", subject="customer:cus_77"),
        json.dumps({**statement, "text": "private", "classification": "PII", "subject": "customer:cus_77"}),
        json.dumps({"kind": "message", "classification": "PUBLIC", "text": "hello"}),
    ]
    ran = terminal("import", "lines", _file(tmp_path, lines), "--as", "alice", "--json")
    assert (ran.code, ran.err) == (3, "")
    result = ran.json
    assert [result[name] for name in ("captured", "repeated", "proposed", "refused")] == [3, 0, 2, 2]
    assert [(one["line"], one["gate"], one["reason"]) for one in result["refusals"]] == [
        (3, "consent", "consent_missing"),
        (4, "consent", "consent_missing"),
    ]
    assert sorted(result["proposals"]) == sorted(one["proposal_id"] for one in terminal.json("queue"))
    kinds = [one["data"]["kinds"] for one in terminal.json("events") if one["type"] == "memory.captured"]
    assert kinds == [["statement"], ["statement"], ["statement"], ["message", "statement"]]
    shown = terminal("import", "lines", _file(tmp_path, lines), "--as", "alice")
    assert shown.code == 3
    assert shown.out.startswith("3 captured, 2 proposed, 2 refused\n")
    assert "refused  line 3  cap_" in shown.out


@pytest.mark.parametrize(
    ("line", "field", "code"),
    [
        ('{"kind": "message", "text": "x"}', "classification", "invalid_input"),
        ('{"text": "x", "classification": "PUBLIC"}', "kind", "invalid_input"),
        ('{"kind": "message", "text": "x", "classification": "SECRET"}', "classification", "unknown_classification"),
        ('{"kind": "message", "text": "x", "classification": "PUBLIC", "colour": 1}', "colour", "invalid_input"),
        ("{not json", None, "invalid_input"),
        ('["a list"]', None, "invalid_input"),
    ],
)
def test_an_error_in_a_file_names_its_line_and_what_was_committed(
    terminal: Terminal, tmp_path: Path, line: str, field: str | None, code: str
) -> None:
    # an empty line is passed over but counted
    lines = ["", *_lines(1500)]
    lines[1200] = line
    path = _file(tmp_path, lines)
    ran = terminal("import", "lines", path, "--json")
    assert (ran.code, ran.out) == (1, "")
    error = ran.error
    assert (error["place"], error["field"], error["code"]) == ("line 1201", field, code)
    assert (error["captured"], error["last_line"]) == (1000, 1001)
    ran = terminal("import", "lines", path)
    assert ran.code == 1
    result, committed = ran.err.splitlines()
    assert result.startswith("error: line 1201: ")
    assert committed == "1000 captured, 0 proposed, 0 refused, up to line 1001"
    assert [one["data"]["count"] for one in terminal.json("events", "--after", "1")] == [500] * 4


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        *(({name: "x"}, name) for name in ("asker", "self", "method", "payload", "fact", "corrects", "colour")),
        ({"\u001b[31m": "x"}, None),
        ({"confidence": 2}, "confidence"),
        ({"write_class": "rumour"}, "write_class"),
        ({"write_class": None}, "write_class"),
    ],
)
def test_an_error_in_a_proposed_line_names_its_field(
    terminal: Terminal, fields: dict[str, object], field: str | None
) -> None:
    lines = [_preference("tea"), _preference("coffee", **fields), _preference("wine")]
    ran = terminal("import", "lines", "-", "--json", stdin="\n".join(lines).encode())
    assert (ran.code, ran.out, ran.error["code"]) == (1, "", "invalid_input")
    assert (ran.error["place"], ran.error["field"]) == ("line 2", field)
    assert (ran.error["proposed"], ran.error["last_line"]) == (1, 1)
    assert len(terminal.json("queue")) == 1


def test_an_import_can_be_run_again_by_its_idempotency_keys_and_options_fill_in_what_lines_lack(
    terminal: Terminal,
) -> None:
    lines = (
        b'{"text": "one", "idempotency_key": "a"}\n{"text": "two", "kind": "effect", "idempotency_key": "b"}\n'
        b'{"write_class": "statement", "text": "The shop has two doors.", "idempotency_key": "c"}\n'
    )
    options = ("import", "lines", "-", "-k", "message", "-c", "PUBLIC", "--session", "s1")
    first = terminal.json(*options, stdin=lines)
    again = terminal.json(*options, stdin=lines)
    assert (again["repeated"], first["repeated"]) == (2, 0)
    assert [again[name] for name in ("capture_ids", "proposals")] == [
        first[name] for name in ("capture_ids", "proposals")
    ]
    captured = [one["data"]["kinds"] for one in terminal.json("events") if one["type"] == "memory.captured"]
    assert captured == [["effect", "message"], ["statement"]]
    (item,) = terminal.json("queue")
    assert item["candidate"]["scope"]["session_id"] == "s1"
    assert terminal(*options, stdin=lines).out == "2 captured (2 of them before), 1 proposed, 0 refused\n"


def test_a_file_that_cannot_be_read_is_an_error(terminal: Terminal) -> None:
    ran = terminal("import", "lines", "/nonexistent", "--json")
    assert (ran.code, ran.out, ran.error["field"]) == (1, "", "file")


def test_consolidation_says_what_was_refused_and_by_which_gate(terminal: Terminal) -> None:
    receipt = terminal.json("capture", "private", "-c", "PII", "--subject", "customer:c")
    shown = terminal("consolidate").out
    assert shown.startswith("1 capture: 0 proposals, 1 refused, 0 promoted by policy\n")
    assert f"{receipt['capture_id']}  consent: consent_missing" in shown
