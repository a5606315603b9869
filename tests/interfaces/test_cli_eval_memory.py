"""`muniment eval memory`, `as-of` and `golden`: figures on small files made up here, on real databases."""

import json
import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from tests.interfaces.command import Terminal, run
from tests.language.tiny_readers import tiny_readers

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "evaluation.md").read_text("utf-8")
EXAMPLES = ROOT / "examples"


def section(name: str) -> str:
    return PAGE.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


def documented(name: str) -> list[str]:
    """The figures that a section of the page names."""
    table = section(name).split("| figure |", 1)[1].split("\n\n", 1)[0]
    return sorted(
        one for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for one in re.findall(r"`([^`]+)`", cell)
    )


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, to see that nothing stays in it."""
    # short, so that the socket fits in
    with tempfile.TemporaryDirectory(prefix="mv") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.chdir(tmp_path)
        yield Path(folder)


def written(path: Path, records: list[Any]) -> Path:
    path.write_text(json.dumps(records), "utf-8")
    return path


def part(number: int, *said: tuple[str, str], date: str) -> dict[str, Any]:
    turns = [{"dia_id": f"D{number}:{n}", "speaker": who, "text": text} for n, (who, text) in enumerate(said, 1)]
    return {f"session_{number}": turns, f"session_{number}_date_time": date}


LOCOMO = [
    {
        "sample_id": "talk-1",
        "conversation": {
            **part(
                1,
                ("Ida", "I bought the old mill behind the station."),
                ("Olaf", "My sister breeds Icelandic ponies in Bergen."),
                ("Ida", "Write to ida@example.org about the roof."),
                date="1:56 pm on 8 May, 2024",
            ),
            **part(
                2, ("Ida", "The mill has a new wheel made of oak."), ("Olaf", "Good."), date="9:10 am on 3 June, 2024"
            ),
        },
        "qa": [
            {"question": "What did Ida buy behind the station?", "evidence": ["D1:1"], "category": 4},
            {"question": "Who breeds ponies?", "evidence": ["D1:2"], "category": 4},
            # Only one of these two can be found: the other was refused, as nobody consented to an address.
            {"question": "What is known of the mill's wheel and roof?", "evidence": ["D2:1; D1:3"], "category": 1},
            {"question": "Who is Knut?", "evidence": ["D7:7"], "category": 5},
        ],
    }
]


def chat(*said: str, answers: bool = False) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text, "has_answer": answers} for text in said]


LONGMEMEVAL = [
    {
        "question_id": name,
        "question_type": kind,
        "question": "Which tea do I drink in the evening?",
        "haystack_dates": ["2024/01/03 (Wed) 22:25", "2023/01/05 (Thu) 04:59"],
        "haystack_sessions": [
            chat("How far is the moon?", "Thanks."),
            chat(f"In the evening I drink {tea}.", answers=True),
        ],
    }
    for name, kind, tea in [
        ("q1", "preference", "oolong tea"),
        ("q2", "update", "mint tea"),
        ("q3_abs", "update", "milk"),
    ]
]

TIMELINES = [
    {
        "question": "who owns the harbour",
        "timeline": [
            {"answer": "Ida", "from": "1270"},
            {"answer": "Olaf Berg", "answers": ["Olaf Berg", "Berg"], "from": "1998-04-02"},
            {"answer": "Ida", "from": "2011"},
        ],
        "as_of": [
            {"date": "1270", "answer": "Ida"},
            {"date": "1998-04-01", "answer": "Ida"},
            {"date": "1998-04-02", "answer": "Berg"},
            {"date": "2020", "answer": "Ida"},
        ],
    },
    {
        "question": "what is the colour of the town hall",
        "timeline": [{"answer": "red", "from": "1998-04-02"}, {"answer": "green", "from": "2011"}],
        "as_of": [{"date": "2005", "answer": "red"}],
        "agree": False,
    },
    {
        # Nobody consented to its being kept, so it is never promoted, and never right.
        "question": "where can the office be reached",
        "timeline": [{"answer": "ida@example.org", "from": "2001"}],
        "as_of": [{"date": "2005", "answer": "ida@example.org"}],
        "agree": False,
    },
]


# ---- memory ----


def test_conversations_of_locomo_are_found_again(temporary: Path) -> None:
    ran = run("eval", "memory", "--data", written(Path("talks.json"), LOCOMO), "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert (found["n"], found["without_evidence"], found["unanswerable"]) == (3, 1, 0)
    assert (found["turns"], found["promoted"], found["refused"], found["cut"]) == (5, 4, 1, 0)
    # Four memories in all, so each that became one is among the first five.
    assert found["recall@5"] == found["recall@10"] == found["recall@20"] == pytest.approx(2.5 / 3)
    assert found["hit@10"] == 1.0
    assert found["mrr"] == 1.0
    assert {name: (one["n"], one["recall@10"]) for name, one in found["categories"].items()} == {
        "1": (1, 0.5),
        "4": (2, 1.0),
    }
    assert found["median_ms"] > 0
    assert (found["pack"].partition("@")[0], found["embedder"]) == ("muniment.eval", "wordllama-256@1")
    # Nothing stays, and nobody's own database was made.
    assert list(temporary.iterdir()) == []
    assert [path.name for path in Path().iterdir()] == ["talks.json"]


def test_questions_of_longmemeval_are_asked_each_of_its_own_chats(temporary: Path) -> None:
    ran = run("eval", "memory", "--data", written(Path("chats.json"), LONGMEMEVAL))
    assert (ran.code, ran.err) == (0, "")
    rows = [line.split() for line in ran.out.splitlines()]
    for row in (["n", "2"], ["unanswerable", "1"], ["turns", "6"], ["promoted", "6"], ["recall@5", "1"]):
        assert row in rows
    assert {row[1] for row in rows if row[:1] == ["categories"]} == {"preference", "update"}


@pytest.mark.rule("CAN-15")
def test_with_the_models_memory_and_the_past_are_measured_with_and_without_them(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A special category needs a consent that nobody gave, so what the tagger marks is refused.
    tags = {"mill": "HEALTH-self", "red": "HEALTH-self"}
    readers = tiny_readers(tmp_path / "weights", tags=tags)
    monkeypatch.setattr("muniment.settings.installed_readers", lambda: readers)
    found = run("eval", "memory", "--data", written(Path("talks.json"), LOCOMO), "--json").json
    assert found["language"] == readers.version
    assert (found["rules"]["refused"], found["readers"]["refused"]) == (1, 3)
    found = run("eval", "as-of", "--data", written(Path("past.json"), TIMELINES[1:2]), "--json").json
    assert found["language"] == readers.version
    assert (found["rules"]["promoted"], found["readers"]["promoted"]) == (2, 1)


# ---- as-of ----


@pytest.mark.rule("REC-7")
def test_what_was_true_is_answered_as_of_then_and_what_is_true_now(temporary: Path) -> None:
    path = temporary / "questions.jsonl"
    (of_the_page,) = re.findall(r"^    (\{.*\})$", section("The past"), re.MULTILINE)
    path.write_text("".join(f"{one}\n" for one in [of_the_page, *map(json.dumps, TIMELINES)]), "utf-8")
    ran = run("eval", "as-of", "--data", path, "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert (found["n_then"], found["n_now"], found["facts"], found["promoted"]) == (8, 4, 8, 7)
    assert (found["then"], found["now"]) == (7 / 8, 3 / 4)
    assert found["by_question"] == {"then": 7 / 8, "now": 3 / 4}
    agreed = found["agree"]
    assert (agreed["then"], agreed["now"], agreed["n_then"], agreed["n_now"]) == (1.0, 1.0, 6, 2)
    assert found["median_ms"] > 0
    assert found["median_ms_now"] > 0
    assert documented("The past") == sorted(found)
    path.unlink()
    assert list(temporary.iterdir()) == []


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("memory", '[{"text": "a"}]', "some.json record 1: expected a record of LoCoMo"),
        ("memory", '[{"conversation": {}, "qa": []}]', "some.json record 1: expected parts called session_1"),
        ("as-of", '[{"question": "who?"}]', "some.json record 1: expected a list"),
    ],
)
def test_data_of_another_form_is_reported_before_a_database_is_made(
    name: str, content: str, message: str, temporary: Path
) -> None:
    Path("some.json").write_text(content)
    ran = run("eval", name, "--data", "some.json", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.error["message"]
    assert list(temporary.iterdir()) == []


# ---- golden queries ----


def golden(path: Path, *queries: dict[str, Any]) -> Path:
    # JSON is YAML.
    path.write_text(json.dumps(queries), "utf-8")
    return path


@pytest.mark.rule("MET-1")
def test_golden_queries_are_scored_and_compared_with_the_times_before(terminal: Terminal, tmp_path: Path) -> None:
    mine = terminal.promoted("email", "--user", "cus_77")
    asks = {"query": "Which channel does the customer prefer?", "run": {"user_id": "cus_77"}}
    path = golden(
        tmp_path / "queries.yaml",
        {"id": "by_id", **asks, "expect": [mine]},
        {
            "id": "by_key",
            **asks,
            "expect": [{"entity": "customer:cus_77", "predicate": "prefers_channel", "value": "email"}],
        },
        {"id": "by_words", **asks, "expect": [{"text_contains": "EMAIL"}, {"text_contains": "telex"}]},
        {"id": "not_mine", **asks, "run": {"user_id": "cus_78"}, "not_expect": [mine]},
        {"id": "unwanted", **asks, "not_expect": [{"text_contains": "email"}]},
    )
    first = terminal.json("eval", "golden", "--file", path)
    by_id = {one["id"]: one for one in first["queries"]}
    assert (first["n"], first["passed"]) == (5, 3)
    assert [name for name, one in by_id.items() if not one["passed"]] == ["by_words", "unwanted"]
    assert (by_id["by_words"]["recall"], by_id["by_words"]["precision"]) == (0.5, 1.0)
    assert by_id["by_words"]["missing"] == ["text_contains: telex"]
    assert by_id["unwanted"]["unwanted"] == [mine]
    assert (by_id["not_mine"]["recall"], by_id["not_mine"]["precision"], by_id["not_mine"]["found"]) == (None, None, 0)
    assert (first["recall"], first["precision"]) == (pytest.approx(2.5 / 3), 1.0)
    assert first["change"] is None
    assert first["regression"]["n"] == 0

    terminal.json("retract", mine, "--reason", "wrong", "--as", "bob")
    second = terminal.json("eval", "golden", "--file", path)
    assert (second["passed"], second["recall"], second["precision"]) == (2, 0.0, None)
    assert second["regression"] == {"n": 2, "passed": 1, "accuracy": 0.5}
    assert (second["change"]["fixed"], second["change"]["failed"]) == (["unwanted"], ["by_id", "by_key"])
    assert (second["change"]["passed"], second["change"]["recall"]) == (-1, pytest.approx(-2.5 / 3))

    lines = [json.loads(line) for line in (tmp_path / "queries.history.jsonl").read_text().splitlines()]
    assert [line["failed"] for line in lines] == [["by_words", "unwanted"], ["by_id", "by_key", "by_words"]]
    assert all(datetime.fromisoformat(line["at"]).tzinfo for line in lines)
    assert lines[0]["pack"].startswith("muniment.builtin@")
    assert lines[0]["embedder"] == "wordllama-256@1"


def test_only_strict_ends_with_1_for_a_query_that_failed(terminal: Terminal, tmp_path: Path) -> None:
    terminal.promoted("email")
    wrong = golden(
        tmp_path / "wrong.yaml", {"id": "one", "query": "Which channel?", "expect": [{"text_contains": "telex"}]}
    )
    right = golden(
        tmp_path / "right.yaml", {"id": "one", "query": "Which channel?", "expect": [{"text_contains": "email"}]}
    )
    assert terminal("eval", "golden", "--file", wrong).code == 0
    result = terminal("eval", "golden", "--file", wrong, "--strict")
    assert result.code == 1
    assert "one: missing text_contains: telex" in result.out
    assert "passed             0 of 1" in result.out
    assert "regressions fixed  0 of 1" in result.out
    assert terminal("eval", "golden", "--file", right, "--strict", "--history", tmp_path / "kept.jsonl").code == 0
    assert (tmp_path / "kept.jsonl").exists()
    assert not (tmp_path / "right.history.jsonl").exists()


def test_among_the_first_k_means_among_the_first_k(terminal: Terminal, tmp_path: Path) -> None:
    terminal.promoted("email")
    other = ("--entity", "customer:cus_77", "--predicate", "prefers_language", "--value", "Danish", "-c", "INTERNAL")
    proposal = terminal.json("propose", "--class", "preference", *other, "--as", "alice")["proposal_id"]
    terminal.json("approve", proposal, "--as", "bob")
    asked = {"query": "prefers_channel email", "expect": [{"text_contains": "Danish"}]}
    path = golden(tmp_path / "queries.yaml", {"id": "one", **asked, "k": 1}, {"id": "two", **asked, "k": 2})
    assert [one["passed"] for one in terminal.json("eval", "golden", "--file", path)["queries"]] == [False, True]


@pytest.mark.rule("ERR-1")
def test_a_query_that_cannot_be_asked_is_named_and_no_history_is_written(terminal: Terminal, tmp_path: Path) -> None:
    asked = {"id": "odd", "query": "Which channel?", "expect": ["pm_1"], "run": {"role": "ghost"}}
    ran = terminal("eval", "golden", "--file", golden(tmp_path / "queries.yaml", asked), "--json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.error["message"].startswith("query odd: ")
    assert ran.error["field"] == "role"
    assert not (tmp_path / "queries.history.jsonl").exists()


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- id: one\n  query: [\n", "queries.yaml line 3: "),
        (b"\xff", "queries.yaml line 1: expected UTF-8"),
        (None, "cannot read"),
    ],
)
def test_a_file_of_queries_that_cannot_be_read_is_reported(
    content: bytes | None, message: str, terminal: Terminal, tmp_path: Path
) -> None:
    path = tmp_path / "queries.yaml"
    if content is not None:
        path.write_bytes(content)
    ran = terminal("eval", "golden", "--file", path, "--json")
    assert ran.code == 1
    assert message in ran.error["message"]


def test_the_example_of_golden_queries_is_shown_as_it_is_and_passes_on_the_memory_of_the_other_example(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = (EXAMPLES / "golden.yaml").read_text("utf-8")
    assert f"```yaml\n{shown}```\n" in PAGE
    path = tmp_path / "golden.yaml"
    path.write_text(shown, "utf-8")
    monkeypatch.setenv("MUNIMENT_HOME", str(home))
    run_path(str(EXAMPLES / "first_memory.py"))
    ran = run("eval", "golden", "--file", path, "--tenant", "tenant_acme_prod", "--strict", "--json")
    assert (ran.code, ran.json["passed"], ran.json["recall"]) == (0, 2, 1.0)


# ---- the page ----


def test_every_figure_of_memory_and_of_golden_queries_is_documented_and_no_other(
    terminal: Terminal, tmp_path: Path
) -> None:
    data = written(tmp_path / "some.json", LONGMEMEVAL[2:])
    assert documented("Memory as a whole") == sorted(run("eval", "memory", "--data", data, "--json").json)
    query = golden(tmp_path / "queries.yaml", {"id": "one", "query": "Which channel?", "expect": ["pm_1"]})
    assert documented("Golden queries") == sorted(terminal.json("eval", "golden", "--file", query))
