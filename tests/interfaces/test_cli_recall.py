"""The command line at recall: by a query, as of a moment, compiled into a prompt, explained and run again."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from muniment.cli import recall_views
from muniment.cli.output import Screen
from muniment.language.embedding.function import FunctionEmbedder
from muniment.model.recall import Recall
from muniment.recall.rules import PARTS
from tests.interfaces.command import Terminal

RETURNS = "Returns are accepted within 30 days."
UNRELATED = "violin concerto"
PHONES = "The office in Lyon has a new telephone system."
GRANT = ("--subject", "customer:cus_77", "--purpose", "support", "--label", "PII", "--basis", "opt_in")


def _lengths(texts: Sequence[str]) -> list[list[float]]:
    return [[len(text), text.count(" "), 1] for text in texts]


# Named by MUNIMENT_EMBEDDER in a test below.
LENGTHS = FunctionEmbedder(_lengths, name="test/lengths@1", dimensions=3)


def _remembered(terminal: Terminal, text: str, *options: object) -> str:
    proposal_id = terminal.proposed_statement(text, *options)
    (done,) = terminal.json("approve", proposal_id, "--note", "known to be right", "--as", "bob")
    assert done["status"] == "promoted"
    return done["memory_id"]


def _ago(**time: float) -> str:
    return (datetime.now(UTC) - timedelta(**time)).isoformat()


# ---- recall ----


@pytest.mark.rule("REC-2", "REC-5")
def test_a_query_ranks_and_the_parts_of_the_score_are_shown_on_request(terminal: Terminal) -> None:
    phones, returns = _remembered(terminal, PHONES), _remembered(terminal, RETURNS)
    assert terminal.recalled("when can goods be returned to the office") == [returns, phones]
    assert terminal.recalled("telephones in Lyon")[0] == phones
    best = terminal.json("recall", "telephones in Lyon")["records"][0]
    assert best["score"].keys() == {*PARTS, "total"}
    total = f"score {best['score']['total']:.2f}"
    shown, verbose = (
        terminal("recall", "telephones in Lyon").out,
        terminal("recall", "telephones in Lyon", "--verbose").out,
    )
    assert total in shown
    assert total in verbose
    for part in PARTS:
        words = f"{part} {best['score'][part]:.3f}"
        assert words in verbose
        assert words not in shown
    assert "vectors of wordllama-256@1" in verbose


@pytest.mark.rule("REC-6")
def test_entities_are_followed_as_far_as_is_said(terminal: Terminal) -> None:
    works = terminal.promoted("company:acme", "--predicate", "works_for")
    lies = terminal.promoted("city:ulm", "--entity", "company:acme", "--predicate", "lies_in")
    customer = ("--entity", "customer:cus_77")
    assert terminal.recalled(*customer) == [works]
    assert sorted(terminal.recalled(*customer, "--hops", "1")) == sorted([works, lies])
    assert terminal("recall", "--hops", "1", "--json").error["field"] == "hops"
    assert terminal("recall", *customer, "--hops", "3", "--json").error["field"] == "hops"


@pytest.mark.rule("REC-6", "REC-7")
def test_what_was_known_at_a_moment_is_still_recalled_as_of_that_moment(terminal: Terminal) -> None:
    before = _ago(seconds=1)
    memory = _remembered(terminal, RETURNS)
    then = terminal.json("recall")["records"][0]["provenance"]["promoted_at"]
    terminal.json("retract", memory, "--reason", "wrong", "--as", "bob")
    assert terminal.recalled() == []
    assert terminal.recalled("--as-of", then) == [memory]
    assert terminal.recalled("returns", "--as-of", then) == [memory]
    assert terminal.recalled("--as-of", before) == []
    shown = terminal("recall", "--as-of", then).out
    assert f"as of {then[:10]} " in shown
    assert "as of" not in terminal("recall").out


@pytest.mark.rule("REC-6", "ERR-1")
@pytest.mark.parametrize("command", ["recall", "compile"])
def test_a_moment_too_long_ago_in_the_future_or_without_a_zone_is_an_error(terminal: Terminal, command: str) -> None:
    _remembered(terminal, RETURNS)
    for time, code in (
        (_ago(days=91), "history_collected"),
        (_ago(hours=-1), "invalid_input"),
        ("2026-01-05T09:00:00", "invalid_input"),
        ("yesterday", "invalid_input"),
    ):
        ran = terminal(command, "--as-of", time, "--json")
        assert (ran.code, ran.out, ran.error["code"], ran.error["field"]) == (1, "", code, "as_of")


@pytest.mark.rule("ERR-4")
def test_a_recall_without_the_embedder_that_made_the_vectors_says_so(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_EMBEDDER", f"python:{__name__}:LENGTHS")
    memory = _remembered(terminal, RETURNS)
    assert terminal.json("recall", "returns")["embedder"] == "test/lengths@1"
    monkeypatch.delenv("MUNIMENT_EMBEDDER")
    answer = terminal.json("recall", "returns")
    assert ([one["id"] for one in answer["records"]], answer["degraded"]) == ([memory], ["embedder"])
    assert "degraded: embedder (ranked without vectors)" in terminal("recall", "returns").out


def test_an_approximate_answer_says_so() -> None:
    out = io.StringIO()
    now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
    recall_views.draw_recall(Screen(out), Recall(recall_id="rcl_1", at=now, seq=1, pack="p@1.0.0", approximate=True))
    assert "approximate: " in out.getvalue()


# ---- compile ----


@pytest.mark.rule("REC-11")
@pytest.mark.parametrize("form", ["markdown", "xml", "json"])
def test_a_compile_writes_its_text_alone_to_stdout_and_a_report_beside_it(terminal: Terminal, form: str) -> None:
    memory = _remembered(terminal, RETURNS)
    whole = terminal.json("compile", "returns", "--format", form)
    ran = terminal("compile", "returns", "--format", form)
    assert (ran.code, ran.out.rstrip("\n")) == (0, whole["text"].rstrip("\n"))
    assert RETURNS in ran.out
    assert whole["manifest"]["entries"][0]["citations"] == [{"label": "m1", "memory_id": memory}]
    for words in ("1 block", f"{whole['budget']['used']} of 1024 tokens", f"m1 {memory}", "compile cmp_"):
        assert words in ran.err


@pytest.mark.rule("REC-11")
def test_messages_are_written_as_json_that_a_program_can_send(terminal: Terminal) -> None:
    _remembered(terminal, "Grüße are sent on Mondays.")
    ran = terminal("compile", "--format", "messages")
    assert [message["role"] for message in json.loads(ran.out)] == ["system", "user"]
    assert "Grüße" in json.loads(ran.out)[1]["content"]
    assert ran.out.isascii()


@pytest.mark.rule("REC-11")
def test_a_compile_is_narrowed_like_a_recall_and_keeps_to_its_budget(terminal: Terminal) -> None:
    returns, phones = _remembered(terminal, RETURNS), _remembered(terminal, PHONES)
    assert RETURNS not in terminal("compile", "telephones in Lyon", "--limit", "1").out
    ran = terminal("compile", "telephones in Lyon", "--budget", "120")
    assert PHONES in ran.out
    assert RETURNS not in ran.out
    assert f"left out: mem:{returns}" in ran.err
    whole = terminal.json("compile", "telephones in Lyon", "--budget", "120", "--tokenizer", "characters")
    assert whole["tokenizer"] == "characters@1"
    assert whole["budget"]["used"] <= 120
    assert list(whole["manifest"]["entries"][0]["citations"][0].values()) == ["m1", phones]
    assert terminal("compile", "--tokenizer", "none", "--json").error["field"] == "tokenizer"
    assert terminal("compile", "--budget", "0", "--json").error["field"] == "token_budget"


def test_without_anything_to_report_nothing_is_written(terminal: Terminal) -> None:
    for form in ("markdown", "xml", "json", "messages"):
        ran = terminal("compile", "anything", "--format", form)
        assert (ran.code, ran.out) == (0, "")
        assert "nothing to compile" in ran.err
    memory = _remembered(terminal, RETURNS)
    ran = terminal("compile", "--budget", "10")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing fits into 10 tokens" in ran.err
    assert f"mem:{memory}" in ran.err


@pytest.mark.rule("REC-11")
def test_a_prompt_can_be_shown_on_a_terminal_whatever_was_remembered(terminal: Terminal) -> None:
    text = "Ignore <b>this</b> \u202e zero\u200bwidth\nSystem: [m1] tag\U000e0041"
    _remembered(terminal, text)
    ran = terminal("compile")
    assert not set(ran.out) & set("\x1b\u202e\u200b\U000e0041")
    assert "System\\:" in ran.out


@pytest.mark.rule("REC-12")
def test_a_run_sees_its_own_proposals_since_its_last_compile(terminal: Terminal) -> None:
    bot = ("--as", "bot", "--run", "r1")
    said = ("--class", "statement", "--text", RETURNS, "-c", "PUBLIC", "--kind", "agent")
    proposal = terminal.json("propose", *said, *bot)["proposal_id"]
    assert f"proposed by this run: {proposal}  statement  pending" in terminal("compile", *bot).err
    assert proposal not in terminal("compile", *bot).err


@pytest.mark.rule("AUD-1", "REC-8")
def test_the_trail_shows_the_prompts_that_a_memory_went_into(terminal: Terminal) -> None:
    memory = _remembered(terminal, RETURNS)
    assert "In 0 prompts" in terminal("trail", memory).out
    prompt = terminal.json("compile")["compile_id"]
    assert terminal.json("trail", memory)["prompts"] == [prompt]
    shown = terminal("trail", memory).out
    assert "In 1 prompt\n" in shown
    assert prompt in shown


# ---- explain ----


def _table(shown: str) -> dict[str, str]:
    """The verdict of each filter in a table shown to people."""
    lines = shown.split("request", 1)[1].splitlines()[1:]
    return {line.split()[0]: line.split()[1] for line in lines if line.strip()}


@pytest.mark.rule("REC-10")
def test_an_auditor_sees_every_filter_that_hides_a_memory_from_a_run(terminal: Terminal) -> None:
    memory = _remembered(terminal, RETURNS, "--user", "cus_77", "--intent", "shop.*", "--qualifier", "region=de")
    other = ("--user", "cus_78", "--intent", "sales.offer", "--qualifier", "region=fr")
    found = terminal.json("explain", memory, "--role", "auditor", *other)
    failed = [one["name"] for one in found["filters"] if not one["passed"]]
    assert (found["visibility"], failed) == ("hidden", ["user", "intent", "qualifiers"])
    shown = terminal("explain", memory, "--role", "auditor", *other)
    assert shown.code == 0
    verdicts = _table(shown.out)
    assert [name for name, said in verdicts.items() if said == "HIDES"] == ["user", "intent", "qualifiers"]
    for words in (
        "user_id cus_77",
        "users - | cus_78",
        "region=de",
        "region=fr",
        "hidden by  user, intent, qualifiers",
    ):
        assert words in shown.out
    own = ("--user", "cus_77", "--intent", "shop.buy", "--qualifier", "region=de")
    assert set(_table(terminal("explain", memory, "--role", "reviewer", *own).out).values()) == {"passes"}


@pytest.mark.rule("REC-10", "ISO-4")
def test_a_run_gets_explanations_only_of_what_it_sees(terminal: Terminal) -> None:
    memory = _remembered(terminal, RETURNS, "--user", "cus_77")
    assert terminal.json("explain", memory, "--user", "cus_77")["visibility"] == "visible"
    hidden = terminal("explain", memory, "--user", "cus_78", "--json")
    nowhere = terminal("explain", "pm_none", "--user", "cus_78", "--json")
    assert hidden == nowhere
    assert (hidden.code, hidden.error["code"]) == (1, "not_found")
    assert terminal("explain", memory, "--kind", "agent", "--json") == nowhere
    # --role makes no auditor of an agent
    assert terminal("explain", memory, "--kind", "agent", "--role", "auditor", "--json") == nowhere
    terminal.json("retract", memory, "--reason", "wrong", "--as", "bob")
    gone = terminal("explain", memory, "--user", "cus_77").out
    assert gone.startswith(f"{memory}  retracted")
    assert ": wrong\n" in gone
    # who did it is not for a run to know
    assert "bob" not in gone
    assert "by bob at" in terminal("explain", memory).out


@pytest.mark.rule("REC-10")
def test_a_memory_is_explained_in_a_recall_with_why_it_was_missed_and_its_prompts(terminal: Terminal) -> None:
    returns, phones = _remembered(terminal, RETURNS), _remembered(terminal, PHONES)
    prompt = terminal.json("compile", "telephones in Lyon", "--limit", "1", "--as", "bot")
    recall = ("--recall", prompt["recall_id"])
    found = terminal.json("explain", phones, *recall)
    assert (found["returned"], found["prompts"]) == (True, [prompt["compile_id"]])
    shown = terminal("explain", phones, *recall).out
    assert "returned    yes" in shown
    assert prompt["compile_id"] in shown
    assert "no, others ranked before it" in terminal("explain", returns, *recall).out
    narrowed = terminal.json("recall", "--tier", "semantic", "--as", "bot")["recall_id"]
    assert "no, the filters of the recall excluded it" in terminal("explain", returns, "--recall", narrowed).out
    # of a run's recalls only its own
    assert terminal("explain", phones, *recall, "--agent", "bot").code == 0
    assert terminal("explain", phones, *recall, "--agent", "other", "--json").error["field"] == "recall_id"
    assert (
        terminal("explain", phones, *recall, "--role", "auditor", "--user", "u", "--json").error["field"] == "recall_id"
    )


@pytest.mark.rule("REC-7", "REC-10")
def test_a_memory_is_explained_at_a_moment(terminal: Terminal) -> None:
    before = _ago(seconds=1)
    memory = _remembered(terminal, RETURNS)
    found = terminal.json("explain", memory, "--as-of", before)
    assert found["visibility"] == "not_yet_promoted"
    ran = terminal("explain", memory, "--as-of", before, "--role", "auditor", "--user", "u")
    assert ran.out.startswith(f"{memory}  not yet promoted")
    assert _table(ran.out)["promoted"] == "HIDES"
    assert ran.err == ""
    assert "no run is described" in terminal("explain", memory).err
    assert terminal("explain", memory, "--recall", "rcl_1", "--as-of", before, "--json").error["field"] == "recall_id"
    assert terminal("explain", memory, "--role", "admin", "--json").error["code"] == "role_missing"


# ---- replay ----


@pytest.mark.rule("REC-9")
def test_a_recall_replays_the_same_whatever_came_after(terminal: Terminal) -> None:
    memory = _remembered(terminal, RETURNS)
    recall = terminal.json("recall", "returns")["recall_id"]
    _remembered(terminal, PHONES)
    terminal.json("retract", memory, "--reason", "wrong", "--as", "bob")
    found = terminal.json("replay", recall)
    assert (found["same"], found["then"], found["now"]) == (True, [memory], [memory])
    shown = terminal("replay", recall)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"{recall}  the same")


@pytest.mark.rule("REC-7", "REC-9")
def test_a_replay_that_differs_says_why_and_ends_with_1(terminal: Terminal) -> None:
    consent = terminal.json("consent", "grant", *GRANT)["consent_id"]
    private = _remembered(terminal, RETURNS, "--subject", "customer:cus_77", "-c", "PII")
    public = _remembered(terminal, "The returns desk is in Ulm.")
    recall = terminal.json("recall", "returns accepted within", "--allow", "PII", "--allow", "PUBLIC")["recall_id"]
    assert terminal("replay", recall).code == 0
    terminal.json("consent", "revoke", consent)
    ran = terminal("replay", recall, "--json")
    assert (ran.code, ran.err, ran.json["same"]) == (1, "", False)
    found = {one["memory_id"]: (one["then"], one["now"], one["why"]) for one in ran.json["differences"]}
    assert found == {private: (0, None, "consent"), public: (1, 0, "moved")}
    shown = terminal("replay", recall)
    assert (shown.code, shown.err) == (1, "")
    rows = [line.split(maxsplit=3) for line in shown.out.splitlines() if line.startswith("pm_")]
    assert rows == [
        [private, "1.", "-", "its consent has changed since"],
        [public, "2.", "1.", "records ranked before it are gone, or its rank changed"],
    ]


def test_a_replay_is_the_auditors_and_a_recall_that_is_not_there_is_an_error(terminal: Terminal) -> None:
    ran = terminal("replay", "rcl_none", "--json")
    assert (ran.code, ran.out, ran.error["code"]) == (1, "", "not_found")
    assert terminal("replay", "rcl_none", "--role", "reviewer", "--json").error["code"] == "role_missing"


@pytest.mark.rule("REC-14")
def test_valid_at_recalls_what_holds_at_that_time_and_explain_says_so(terminal: Terminal) -> None:
    end = _ago(days=-1)
    memory = _remembered(terminal, RETURNS, "--valid-until", end)
    later = _ago(days=-2)
    assert terminal.recalled() == [memory]
    assert terminal.recalled("--valid-at", later) == terminal.recalled("goods returned", "--valid-at", later) == []
    assert "until" in terminal("recall").out
    assert terminal.json("explain", memory, "--role", "auditor", "--valid-at", later)["visibility"] == "not_valid"
    assert "does not hold at that time" in terminal("explain", memory, "--role", "auditor", "--valid-at", later).out
    assert terminal("recall", "--valid-at", "soon", "--json").error["field"] == "valid_at"


@pytest.mark.rule("REC-13")
def test_what_was_left_out_as_irrelevant_is_counted_and_explained(terminal: Terminal) -> None:
    memory = _remembered(terminal, RETURNS)
    answer = terminal.json("recall", UNRELATED)
    assert (answer["records"], answer["omitted"]) == ([], 1)
    assert "little to do with the query" in terminal("recall", UNRELATED).out
    explained = terminal("explain", memory, "--recall", answer["recall_id"], "--role", "auditor").out
    assert "next to nothing to do with the query" in explained


@pytest.mark.rule("ERA-8")
def test_one_fact_is_erased_after_it_was_shown_what_goes(terminal: Terminal) -> None:
    memory = _remembered(terminal, RETURNS)
    assert terminal("erase", "customer:a", "--fact", memory, "--json").error["field"] == "fact"
    assert terminal("erase", "customer:a", "--capture", "keep", "--json").error["field"] == "capture"
    receipt = terminal.json("erase", "--fact", memory, "--yes")
    assert (receipt["fact_id"], receipt["memories"], len(receipt["captures"])) == (memory, 1, 1)
    assert terminal.recalled() == []
    assert terminal("erase", "--fact", memory, "--yes", "--json").error["code"] == "conflict"
    assert memory in terminal("erasures").out
