"""The readers and scores of the evaluations of memory, on files made up here: figures counted by hand."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.evaluation import as_of, memory
from muniment.evaluation.as_of import dated_questions
from muniment.evaluation.conversations import CUT, conversations
from muniment.evaluation.golden import read_queries
from muniment.evaluation.history import Line, add_line, history_of, line_of, read_history, since
from muniment.evaluation.memory import AskedQuestion
from muniment.evaluation.temporary_fabric import evaluation_pack
from muniment.model.context import RunContext
from muniment.model.fields import TEXT_LIMIT
from muniment.pack import builtin_pack

RUN = RunContext(tenant_id="t", run_id="golden", agent_id="cli", user_id="ida")


def locomo(**changed: Any) -> dict[str, Any]:
    return {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Olaf",
            "session_2": [{"dia_id": "D2:1", "speaker": "Ida", "text": "The roof is done."}],
            "session_2_date_time": "12:05 am on 30 June, 2024",
            "session_1": [
                {"dia_id": "D1:1", "speaker": "Ida", "text": "I bought a mill."},
                {"dia_id": "D1:2", "speaker": "Olaf", "text": "Look!", "blip_caption": "a wheel in a brook"},
            ],
            "session_1_date_time": "1:56 pm on 8 May, 2024",
        },
        "qa": [
            {"question": "What did Ida buy?", "answer": "a mill", "evidence": ["D1:1; D2:1", "D1:1"], "category": 1},
            {"question": "What is in the brook?", "answer": "a wheel", "evidence": ["D1:2", "D9:9"], "category": 4},
            {"question": "Who is Ulf?", "evidence": ["D9:9"], "category": 5},
            {"question": "Who is Knut?", "category": 5},
        ],
    } | changed


def longmemeval(name: str = "q1", **changed: Any) -> dict[str, Any]:
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": "Which tea do I drink?",
        "answer": "oolong",
        "question_date": "2024/02/01 (Thu) 10:00",
        "haystack_dates": ["2024/01/03 (Wed) 22:25", "2024/01/05 (Fri) 04:59"],
        "haystack_session_ids": ["a", "b"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "Good morning."},
                {"role": "assistant", "content": "Hello.", "has_answer": False},
            ],
            [{"role": "user", "content": "I drink oolong.", "has_answer": True}],
        ],
    } | changed


def timeline(**changed: Any) -> dict[str, Any]:
    return {
        "id": "7",
        "question": "who runs the mill",
        "timeline": [
            {"answer": "Ida", "answers": ["Ida", "Ida Berg"], "from": "1998"},
            {"answer": "Olaf", "answers": ["Olaf"], "from": "2011-04-02"},
        ],
        "as_of": [{"date": "2004-07", "answer": "ida berg"}, {"date": "2020", "answer": "Olaf"}],
        "agree": False,
    } | changed


# ---- conversations ----


def test_a_conversation_of_locomo_is_read_in_the_order_of_its_parts() -> None:
    (talk,) = conversations([locomo()])
    assert [(turn.id, turn.text) for turn in talk.turns] == [
        ("D1:1", "Ida: I bought a mill."),
        ("D1:2", "Olaf: Look! [image: a wheel in a brook]"),
        ("D2:1", "Ida: The roof is done."),
    ]
    assert talk.turns[0].date == datetime(2024, 5, 8, 13, 56, tzinfo=UTC)
    assert talk.turns[2].date == datetime(2024, 6, 30, 0, 5, tzinfo=UTC)


def test_evidence_that_is_not_there_is_dropped_and_a_question_without_any_is_not_counted() -> None:
    (talk,) = conversations([locomo()])
    assert [(one.evidence, one.category) for one in talk.questions] == [(("D1:1", "D2:1"), "1"), (("D1:2",), "4")]
    assert (talk.without_evidence, talk.unanswerable) == (2, 0)


def test_a_question_of_longmemeval_is_read_with_its_chats() -> None:
    (talk,) = conversations([longmemeval()])
    assert [turn.text for turn in talk.turns] == ["user: Good morning.", "assistant: Hello.", "user: I drink oolong."]
    assert talk.turns[2].date == datetime(2024, 1, 5, 4, 59, tzinfo=UTC)
    (asked,) = talk.questions
    assert asked.evidence == (talk.turns[2].id,)
    assert asked.category == "single-session-user"


def test_a_question_that_cannot_be_answered_is_counted_apart() -> None:
    (never_said,) = conversations([longmemeval("q1_abs")])
    assert (never_said.questions, never_said.unanswerable, never_said.without_evidence) == ((), 1, 0)
    (unmarked,) = conversations([longmemeval(haystack_sessions=[[], [{"role": "user", "content": "Hello."}]])])
    assert (unmarked.questions, unmarked.unanswerable, unmarked.without_evidence) == ((), 0, 1)


def test_a_turn_is_cut_to_what_a_text_may_be_and_loses_what_no_text_may_hold() -> None:
    long = "ä" * TEXT_LIMIT
    chats = [[{"role": "user", "content": long, "has_answer": True}], [{"role": "user", "content": "a\x00b\x1bc"}]]
    (talk,) = conversations([longmemeval(haystack_sessions=chats)])
    assert [turn.cut for turn in talk.turns] == [True, False]
    assert talk.turns[0].text.endswith("ä" + CUT)
    assert TEXT_LIMIT - 2 <= len(talk.turns[0].text.encode()) <= TEXT_LIMIT
    assert talk.turns[1].text == "user: a b c"


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        ({"a": "x", "b": "y"}, "data", "of LoCoMo"),
        ("text", "record", "an object"),
        (locomo(conversation=[]), "conversation", "an object"),
        (locomo(conversation={"speaker_a": "Ida"}), "conversation", "session_1"),
        (
            locomo(conversation={"session_1": []}),
            "conversation.session_1_date_time",
            "such as 01:56 PM on 08 May, 2023",
        ),
        (locomo(conversation={"session_1": 7, "session_1_date_time": "1:56 pm on 8 May, 2024"}), "session_1", "a list"),
        (
            locomo(conversation={"session_1": [{"dia_id": "D1:1"}], "session_1_date_time": "1:56 pm on 8 May, 2024"}),
            "speaker",
            "conversation session_1.0: expected a text",
        ),
        (locomo(qa=[3]), "qa.0", "an object"),
        (locomo(qa=[{"question": " ", "evidence": ["D1:1"]}]), "question", "qa.0: must not be empty"),
        (locomo(qa=[{"question": "Who?", "evidence": "D1:1"}]), "evidence", "a list"),
        (longmemeval(haystack_dates=[]), "haystack_dates", "as many as haystack_sessions: 2"),
        (longmemeval(haystack_dates=["2024/01/03", 7]), "haystack_dates", "such as 2023/05/08 (Mon) 13:56"),
        (longmemeval(haystack_sessions=[[], "x"]), "haystack_sessions.1", "a list"),
        (longmemeval(haystack_sessions=[[], [{"role": "user"}]]), "content", "haystack_sessions.1.0: expected a text"),
        (longmemeval(question=None), "question", "a text"),
    ],
)
def test_a_record_of_another_form_is_named_with_its_field(record: Any, field: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        conversations([record])
    assert error.value.field == field
    assert message in error.value.message


# ---- scores ----


def test_recall_is_the_share_of_the_evidence_and_not_any_of_it() -> None:
    one = AskedQuestion("1", frozenset({"a", "b"}), ("x", "a", "y", "z", "w", "b"), 3.0)
    assert (one.share_among(1), one.share_among(5), one.share_among(10)) == (0.0, 0.5, 1.0)
    assert one.reciprocal_rank == 0.5
    assert AskedQuestion("1", frozenset({"a"}), ("x",), 3.0).reciprocal_rank == 0.0


def test_where_nothing_can_be_asked_no_database_is_made_and_there_are_no_figures() -> None:
    found = memory.figures([longmemeval("q1_abs")])
    assert (found["n"], found["recall@10"], found["mrr"], found["median_ms"], found["unanswerable"]) == (
        0,
        None,
        None,
        None,
        1,
    )
    assert as_of.figures([])["then"] is None


def test_the_pack_of_an_evaluation_differs_from_the_built_in_one_only_where_the_page_says_so() -> None:
    ours, builtin = evaluation_pack(20).document(), builtin_pack().document()
    layer, other = ours["memory_layer"], builtin["memory_layer"]
    assert layer["recall_policy"].pop("max_recalls") == 20
    assert other["recall_policy"].pop("max_recalls") == 8
    for place in ("statements_from", "extraction", "contradiction", "retention"):
        assert layer.pop(place) != other.pop(place)
    assert layer["memory_policy"]["ttl"].pop("semantic") is None
    assert other["memory_policy"]["ttl"].pop("semantic") is not None
    assert (ours["pack_meta"].pop("id"), builtin["pack_meta"].pop("id")) == ("muniment.eval", "muniment.builtin")
    assert ours == builtin


@pytest.mark.parametrize(("form", "profile"), [("statements", "personal"), ("messages", "loose")])
def test_a_profile_that_does_not_fit_is_refused(form: Any, profile: str) -> None:
    with pytest.raises(InvalidInput) as error:
        memory.measure([], form=form, profile=profile)
    assert error.value.field == "profile"


@pytest.mark.rule("PAC-8")
def test_under_a_profile_only_what_its_policy_promotes_counts() -> None:
    talks = conversations([locomo()])
    found = {name: memory.measure(talks, form="messages", profile=name) for name in ("strict", "assisted", "personal")}
    assert [one["promoted"] for one in found.values()] == [1, 0, 1]
    assert found["assisted"]["evidence"] == {"not proposed": 2, "waits: low_confidence": 1}
    assert found["personal"]["evidence"] == {"not proposed": 2, "promoted": 1}
    assert (found["assisted"]["recall@10"], found["personal"]["recall@10"]) == (0.0, 0.25)


# ---- dated questions ----


def test_a_dated_question_is_read_with_what_was_true_when() -> None:
    (asked,) = dated_questions([timeline()])
    assert [fact.since for fact in asked.timeline] == [
        datetime(1998, 1, 1, tzinfo=UTC),
        datetime(2011, 4, 2, tzinfo=UTC),
    ]
    assert [fact.answer for date in asked.dates if (fact := asked.at(date))] == ["Ida", "Olaf"]
    assert asked.at(datetime(1997, 12, 31, tzinfo=UTC)) is None
    assert asked.agree is False


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"question": ""}, "question"),
        ({"timeline": []}, "timeline"),
        ({"timeline": ["Ida"]}, "timeline"),
        ({"timeline": [{"answer": "Ida", "from": "98"}]}, "timeline"),
        ({"timeline": [{"answer": 7, "from": "1998"}]}, "timeline"),
        ({"timeline": [{"answer": "Ida", "from": "1998-13"}]}, "timeline"),
        ({"timeline": [{"answer": "Olaf", "from": "2011"}, {"answer": "Ida", "from": "1998"}]}, "timeline"),
        ({"as_of": [{"date": "1997", "answer": "Ida"}]}, "as_of"),
        ({"as_of": [{"date": "2004", "answer": "Olaf"}]}, "as_of"),
        ({"as_of": None}, "as_of"),
    ],
)
def test_a_timeline_that_cannot_be_used_is_named(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        dated_questions([timeline(**changed)])
    assert error.value.field == field


def test_dates_that_a_fabric_cannot_tell_are_moved_together_and_keep_their_order() -> None:
    old = timeline(timeline=[{"answer": "Ida", "from": "1270"}, {"answer": "Olaf", "from": "1309"}], as_of=[])
    before = dated_questions([old, timeline()])
    after = as_of._fit_dates(before)
    facts = [[fact.since for one in some for fact in one.timeline] for some in (before, after)]
    dates = [facts[n] + [date for one in some for date in one.dates] for n, some in enumerate((before, after))]
    assert sorted(range(6), key=dates[0].__getitem__) == sorted(range(6), key=dates[1].__getitem__)
    assert min(dates[1]) >= datetime(1970, 1, 1, tzinfo=UTC)
    assert max(dates[1]) - min(dates[1]) < timedelta(days=36_500)


def test_dates_that_a_fabric_can_tell_stay() -> None:
    before = dated_questions([timeline()])
    assert as_of._fit_dates(before) == before


# ---- golden queries ----


@pytest.fixture
def yaml_file(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = tmp_path / "queries.yaml"
        path.write_text(text, "utf-8")
        return path

    return written


def test_a_query_is_asked_as_its_own_run_over_the_one_given(yaml_file: Callable[[str], Path]) -> None:
    text = """
- {id: one, query: 'Who?', expect: [pm_1], run: {user_id: olaf, intent_id: mill.run, classification_allowed: [PUBLIC]}}
- {id: two, query: 'What?', not_expect: [{entity: "mill:1", predicate: owner, value: 7}], k: 3}
"""
    (one, as_olaf), (two, as_ida) = read_queries(yaml_file(text), RUN)
    assert as_olaf == RUN.model_copy(
        update={"user_id": "olaf", "intent_id": "mill.run", "classification_allowed": frozenset({"PUBLIC"})}
    )
    assert as_ida == RUN
    assert (one.k, two.k, two.not_expect[0].words()) == (8, 3, "mill:1 owner = 7")


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# none\n\n", "holds no queries"),
        ("id: one\n", "line 1: expected a list of queries"),
        ("- id: one\n   query: Who?\n", "line 2: "),
        ("- {id: one, query: 'Who?}\n", "line 2: a quoted text is not closed"),
        ("- one\n", "line 1: expected a query with id and query"),
        ("- id: one\n  query: Who?\n  expects: [pm_1]\n", "line 3: is not a known field"),
        ("- id: one\n  query: Who?\n", "line 1: say what is expected"),
        ("- id: one\n  expect: [pm_1]\n", "line 1: is required"),
        ("- id: one\n  query: Who?\n  expect: [pm_1]\n  k: 0\n", "line 4: "),
        ("- id: one\n  query: Who?\n  expect:\n    - pm_1\n    - the mill\n", "line 5: expected a memory id (pm_...)"),
        ("- id: one\n  query: Who?\n  expect:\n    - {entity: 'mill:1'}\n", "line 4: expected a memory id (pm_...)"),
        ("- id: one\n  query: Who?\n  expect:\n    - {text_contains: x, entity: 'm:1', predicate: p}\n", "line 4: "),
        ("- id: one\n  query: Who?\n  expect:\n    - {entity: mill, predicate: p}\n", "line 4: expected an id"),
        (
            "- {id: one, query: 'Who?', expect: [pm_1]}\n- {id: one, query: 'What?', expect: [pm_1]}\n",
            "line 2: the id one",
        ),
        ("- id: one\n  query: Who?\n  expect: [pm_1]\n  run:\n    user: ida\n", "line 5: is not a known field"),
        (
            "- id: one\n  query: Who?\n  expect: [pm_1]\n  run:\n    tenant_id: x\n",
            "line 5: the tenant is the command's",
        ),
        ("- id: one\n  query: Who?\n  expect: [pm_1]\n  run:\n    intent_id: 'a b'\n", "line 5: expected dotted words"),
    ],
)
def test_a_file_of_queries_that_is_wrong_is_reported_with_its_line(
    text: str, expected: str, yaml_file: Callable[[str], Path]
) -> None:
    with pytest.raises(InvalidInput) as error:
        read_queries(yaml_file(text), RUN)
    assert error.value.message.startswith("queries.yaml")
    assert expected in error.value.message


# ---- history ----


def at(day: int, *failed: str, recall: float | None = 1.0) -> Line:
    when = datetime(2026, 3, day, tzinfo=UTC)
    return Line(
        at=when,
        n=3,
        passed=3 - len(failed),
        precision=None,
        recall=recall,
        failed=failed,
        pack="p@1.0.0",
        embedder=None,
    )


@pytest.mark.rule("MET-1")
def test_what_once_failed_is_a_regression_query_for_ever_and_the_last_time_is_what_a_change_is_against() -> None:
    before = [at(1, "a", "gone"), at(2, "b", recall=0.5)]
    found = since(before, at(3, "c", "b", recall=0.75), ["a", "b", "c"])
    assert found["regression"] == {"n": 2, "passed": 1, "accuracy": 0.5}
    assert found["change"] == {
        "since": before[-1].at,
        "passed": -1,
        "precision": None,
        "recall": 0.25,
        "fixed": [],
        "failed": ["c"],
    }
    assert since(before, at(3), ["a", "b", "c"])["change"]["fixed"] == ["b"]


@pytest.mark.rule("MET-1")
def test_the_first_time_there_is_nothing_to_compare_with() -> None:
    assert since([], at(1, "a"), ["a"]) == {"regression": {"n": 0, "passed": 0, "accuracy": None}, "change": None}


def test_a_history_reads_back_as_it_was_written(tmp_path: Path) -> None:
    path = history_of(tmp_path / "queries.yaml")
    assert path.name == "queries.history.jsonl"
    assert read_history(path) == []
    for line in (at(1, "a"), at(2)):
        add_line(path, line)
    assert read_history(path) == [at(1, "a"), at(2)]
    result = {"n": 2, "passed": 1, "precision": 0.5, "recall": 1.0, "pack": "p@1.0.0", "embedder": "e@1"}
    queries = [{"id": "x", "passed": True}, {"id": "y", "passed": False}]
    assert line_of({**result, "queries": queries}, at(1).at).failed == ("y",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{\n", "line 1: is not JSON"),
        ("\n[]\n", "line 2: expected an object"),
        (json.dumps({"at": "2026-03-01T00:00:00Z"}) + "\n", "line 1: "),
        ("\xff", "is not UTF-8"),
    ],
)
def test_an_invalid_history_is_reported_with_its_line(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"some\.jsonl") as error:
        read_history(path)
    assert expected in error.value.message
    with pytest.raises(InvalidInput, match="cannot write"):
        add_line(tmp_path / "no" / "folder.jsonl", at(1))
