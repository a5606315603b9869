"""`muniment eval`: figures on anybody's data, and what is said of data that cannot be used."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.command import run

MAIL, CARD, PHONE, PAGE = "ada@example.com", "4111 1111 1111 1111", "541-714-1388", "https://example.org/x"


def record(text: str, **values: str) -> dict[str, Any]:
    spans = [
        {"start": text.index(value), "end": text.index(value) + len(value), "type": kind, "value": value}
        for kind, value in values.items()
    ]
    return {"text": text, "spans": spans, "set": "made_up"}


RECORDS = [
    record(f"write to {MAIL} or look at {PAGE}", EMAIL=MAIL, DOMAIN_NAME=PAGE),
    record(f"Ada pays with {CARD}", CREDIT_CARD=CARD, PERSON="Ada"),
    record(f"call {PHONE}", PHONE=PHONE),
    record("the code word is swordfish", PHONE="swordfish"),
    record(f"unmarked {MAIL}"),
    record("nothing to see"),
]


def written(path: Path, records: list[Any]) -> Path:
    if ".jsonl" in path.name:
        content = "".join(json.dumps(one) + "\n" for one in records).encode()
    else:
        content = json.dumps(records, indent=1).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["some.jsonl", "some.jsonl.gz", "some.json", "some.json.gz"])
def test_the_figures_of_pii_are_the_same_in_every_form_of_file(name: str, tmp_path: Path) -> None:
    ran = run("eval", "pii", "--data", written(tmp_path / name, RECORDS), "--json")
    assert (ran.code, ran.err) == (0, "")
    figures = ran.json
    assert figures["structured"] == {"precision": 0.8, "recall": 0.8, "f1": pytest.approx(0.8), "n": 5}
    assert figures["types"]["EMAIL"] == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "n": 1}
    assert figures["types"]["PHONE"] == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "n": 2}
    assert figures["types"]["CREDIT_CARD"]["f1"] == figures["types"]["DOMAIN_NAME"]["f1"] == 1.0
    assert set(figures["types"]) == {"EMAIL", "PHONE", "CREDIT_CARD", "DOMAIN_NAME"}
    assert figures["not_covered"] == {"PERSON": 1}
    assert figures["items"] == 6
    assert figures["seconds_per_item"] > 0


def test_people_are_shown_a_table(tmp_path: Path) -> None:
    ran = run("eval", "pii", "--data", written(tmp_path / "some.jsonl", RECORDS))
    assert (ran.code, ran.err) == (0, "")
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["precision", "recall", "f1", "n"] in rows
    assert ["structured", "0.8", "0.8", "0.8", "5"] in rows
    assert ["types", "PHONE", "1", "0.5", "0.6667", "2"] in rows
    assert ["items", "6"] in rows


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("some.txt", "", "some.txt: expected a file that ends in"),
        ("some.jsonl", "", "some.jsonl: holds no records"),
        ("some.jsonl", '{"text": "a", "spans": []}\n\n{"text": \n', "some.jsonl line 3: is not JSON"),
        ("some.jsonl", "[1]\n", "some.jsonl line 1: expected an object"),
        ("some.jsonl", '{"text": "a", "spans": []}\n{"spans": []}\n', "some.jsonl line 2: expected a text"),
        ("some.jsonl", '{"text": "a", "spans": {}}\n', "some.jsonl line 1: expected a list"),
        ("some.jsonl", '{"text": "a", "spans": [3]}\n', "some.jsonl line 1: expected objects with start, end and type"),
        ("some.jsonl", '{"text": "a", "spans": [{"start": "0"}]}\n', "some.jsonl line 1: expected start and end"),
        ("some.json", '{"a": 1}', "some.json: expected one array of records"),
        ("some.json", '[{"a": 1},\n 7x]', "some.json line 2: is not JSON"),
        ("some.json", "[{}, 7]", "some.json record 2: expected an object"),
        ("some.jsonl.gz", "not gzip", "some.jsonl.gz: is not gzip"),
    ],
)
def test_data_that_cannot_be_used_is_reported_with_its_file_and_line(
    name: str, content: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    ran = run("eval", "pii", "--data", path, "--json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.error["code"] == "invalid_input"
    assert expected in ran.error["message"]


@pytest.mark.rule("ERR-1")
def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    ran = run("eval", "pii", "--data", tmp_path / "none.jsonl")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot read" in ran.err
    assert "no such file" in ran.err


def test_a_file_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(b'{"text": "\xff"}\n')
    assert "is not UTF-8" in run("eval", "pii", "--data", path).err


@pytest.mark.parametrize("arguments", [("eval", "weather", "--data", "x.jsonl"), ("eval", "pii"), ("eval",)])
def test_an_evaluation_must_be_named_and_have_data(arguments: tuple[str, ...]) -> None:
    assert run(*arguments, "--json").code == 2
