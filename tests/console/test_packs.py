"""Packs in the console: versions, one as a whole, two compared, one tried on history, registered, put in force, retired."""

import json

import pytest
import yaml

from muniment.pack import builtin_pack
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.console.conftest import SignIn
from tests.interfaces.http import PACK, RunningServer
from tests.pack_activation import acme, activate, put_in_force, register
from tests.pack_activation import admin as admin_of
from tests.stories import KEY, promoted, proposed


def text_of(version: str, recalls: int = 4) -> str:
    """A pack that lets fewer records be recalled."""
    document = builtin_pack().document()
    document["pack_meta"] |= {"id": "acme", "version": version}
    document["memory_layer"]["recall_policy"]["max_recalls"] = recalls
    return yaml.safe_dump(document, sort_keys=False)


@pytest.mark.rule("PAC-1")
def test_a_pack_is_checked_registered_once_and_refused_with_every_problem_at_its_line(
    admin: Browser, http_server: RunningServer, people: People
) -> None:
    checked = admin.post("packs/check", text=text_of("1.0.0"))
    assert "acme@1.0.0 is valid" in words(checked.text)
    assert "acme@1.0.0" not in [one.ref for one in http_server.local.packs.list(people.admin)]
    assert admin.post("packs", text=text_of("1.0.0")).status_code == 303
    assert 'data-pack="acme@1.0.0"' in admin.get("packs")
    admin.post("packs", text=text_of("1.1.0"))
    # A draft is compared with the version that decides now.
    decides = http_server.local.packs.in_force(people.admin).pack.replace("@", "%40")
    for draft in ("acme%401.0.0", "acme%401.1.0"):
        assert f"packs/compare?one={decides}&amp;other={draft}" in admin.get("packs")
    assert f"other={decides}" not in admin.get("packs")
    other = admin.post("packs", text=text_of("1.0.0", recalls=5))
    assert (other.status_code, "give it a new version" in other.text) == (400, True)
    wrong = "pack_meta:\n  id: acme\n  version: <b>1</b>\nnonsense: 1\n"
    for path in ("packs", "packs/check"):
        refused = admin.post(path, text=wrong)
        assert refused.status_code == 400
        assert {"line 3", "line 4"} <= {
            f"line {part.partition('<')[0]}" for part in refused.text.split("<strong>line ")[1:]
        }
        assert "&lt;b&gt;1&lt;/b&gt;" in refused.text
        assert "<b>1</b>" not in refused.text


def test_one_pack_is_shown_whole_and_another_tenants_is_not(
    admin: Browser, http_server: RunningServer, people: People, others: People
) -> None:
    http_server.local.packs.register(people.admin, text_of("1.0.0"))
    http_server.local.packs.register(others.admin, text_of("9.0.0"))
    page = admin.get("packs/acme@1.0.0")
    assert "max_recalls: 4" in page
    assert all(f'data-section="{name}"' in page for name in ("pack_meta", "classifications", "memory_layer"))
    assert "9.0.0" not in admin.get("packs")
    admin.get("packs/acme@9.0.0", 404)


@pytest.mark.rule("PAC-4")
def test_two_packs_are_compared_rule_by_rule(reviewer: Browser, http_server: RunningServer, people: People) -> None:
    http_server.local.packs.register(people.admin, text_of("1.0.0"))
    page = reviewer.get("packs/compare", one=PACK, other="acme@1.0.0")
    assert 'data-change="memory_layer.recall_policy.max_recalls"' in page
    assert "max_recalls changed 8 4" in words(page)
    assert "There are no differences" in reviewer.get("packs/compare", one="acme@1.0.0", other="acme@1.0.0")
    pasted = reviewer.post("packs/compare", one="acme@1.0.0", text=text_of("2.0.0", recalls=6))
    assert "max_recalls changed 4 6" in words(pasted.text)
    reviewer.get("packs/compare", 400, one="acme@1.0.0", other="acme@7.0.0")
    assert reviewer.post("packs/compare", one=PACK, text="/etc/passwd").status_code == 400


@pytest.mark.rule("PAC-3", "CAP-11")
def test_a_pack_is_tried_on_history_and_only_who_was_shown_texts_is_recorded(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    proposed(http_server.local, people.run(), entity="customer:cust_1", predicate="eats", value="<i>cake</i>")
    document = yaml.safe_load(text_of("3.0.0"))
    document["memory_layer"]["write_classes_allowed"] = ["statement", "correction"]
    text = yaml.safe_dump(document)
    before = http_server.local.events(people.auditor)
    report = reviewer.post("packs/backtest", text=text, texts="yes").text
    assert "2 captures" in words(report)
    assert 'data-difference="allow_list' in report
    assert "refused 0 2 +2" in words(report)
    assert "<i>cake" not in report
    (read,) = http_server.local.events(people.auditor)[len(before) :]
    assert (read.type, read.actor) == ("memory.capture_read", people.reviewer.id)
    lines = reviewer.post("packs/backtest", text=text, accept="application/x-ndjson").text.splitlines()
    assert json.loads(lines[0]) == {"done": 2, "total": None}
    assert "different decisions" in json.loads(lines[-1])["page"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "choose a registered pack"),
        ({"pack": "acme@7.7.7"}, "no such pack"),
        ({"pack": PACK, "limit": "many"}, "limit: expected a whole number"),
        ({"pack": PACK, "limit": "20000"}, "at most 10000"),
        ({"pack": PACK, "since": "soon"}, "since: expected a date"),
        ({"text": "nonsense: 1"}, "the pack is not valid"),
    ],
)
def test_what_cannot_be_tried_is_reported_beside_the_form(
    reviewer: Browser, http_server: RunningServer, people: People, wrong: dict[str, str], said: str
) -> None:
    promoted(http_server.local, people)
    answer = reviewer.post("packs/backtest", **wrong)
    assert (answer.status_code, said in words(answer.text)) == (400, True)


def test_only_an_admin_registers_and_only_a_reviewer_is_shown_texts(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    reviewer.get("packs/new", 403)
    assert "packs/new" not in reviewer.get("packs")
    for path in ("packs", "packs/check"):
        assert reviewer.post(path, text=text_of("1.0.0")).status_code == 403
    assert {one.ref for one in http_server.local.packs.list(people.admin)} <= {PACK}
    auditor = Browser(http_server, people.auditor)
    promoted(http_server.local, people)
    assert 'name="texts"' not in auditor.get("packs/backtest")
    assert auditor.post("packs/backtest", pack=PACK, texts="yes").status_code == 400
    assert auditor.post("packs/backtest", pack=PACK).status_code == 200
    auditor.close()


# ---- in force ----

LAX = "memory_layer: {promotion_thresholds: {confidence_floor: 0.1}, retention: {replay_horizon: 1d}}"
STRICT = "memory_layer: {promotion_thresholds: {confidence_floor: 0.75}}"


def row_of(page: str, ref: str) -> str:
    """What the list says of one version."""
    return words(page.partition(f'data-pack="{ref}"')[2].partition("</tr>")[0])


@pytest.mark.rule("PAC-5")
def test_the_list_shows_which_version_is_in_force_since_when_and_by_whom(
    admin: Browser, reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    register(http_server.local, people.tenant_id, acme("1.0.0", STRICT))
    page = admin.get("packs")
    assert f'data-in-force="{PACK}"' in page and "activated by muniment" in words(page)
    assert "in force" in row_of(page, PACK) and "Activate" not in row_of(page, PACK)
    assert "registered" in row_of(page, "acme@1.0.0") and "Activate" in row_of(page, "acme@1.0.0")
    put_in_force(http_server.local, people.tenant_id, acme("1.0.0", STRICT))
    page = admin.get("packs")
    assert 'data-in-force="acme@1.0.0"' in page
    assert "activated by zoe : for the test" in words(page)
    assert "in force" not in row_of(page, PACK) and "in force" in row_of(page, "acme@1.0.0")
    assert "It has no effect until an admin activates it" in admin.get(f"packs/{PACK}")
    # Who only reads is offered nothing.
    assert 'data-in-force="acme@1.0.0"' in reviewer.get("packs")
    for path in ("packs", f"packs/{PACK}"):
        assert "/activate" not in reviewer.get(path) and "data-retire" not in reviewer.get(path)


@pytest.mark.rule("PAC-5", "PAC-9")
def test_before_an_activation_the_page_shows_what_differs_what_is_loosened_and_offers_a_backtest(
    admin: Browser, http_server: RunningServer, people: People
) -> None:
    proposed(http_server.local, people.run(), **KEY, value="email")
    register(http_server.local, people.tenant_id, acme("1.0.0", LAX))
    register(http_server.local, people.tenant_id, acme("1.1.0", STRICT))
    page = admin.get("packs/acme@1.0.0/activate")
    said = words(page)
    assert "In force now muniment.builtin@1.3.0" in said
    assert "1 will go through the gates again before any verdict" in said
    assert 'data-change="memory_layer.promotion_thresholds.confidence_floor"' in page
    assert "confidence_floor changed 0.3 0.1" in said
    assert "It relaxes 2 rules: promotion_thresholds.confidence_floor: 0.3 to 0.1" in said
    assert "retention.replay_horizon: 90 days to 1 day" in said and "Shorter horizons take effect at" in said
    assert "It must be activated by a different admin than ada" in said
    assert 'href="/console/packs/backtest?pack=acme%401.0.0"' in page
    stricter = admin.get("packs/acme@1.1.0/activate")
    assert "data-loosens" not in stricter and "data-second-person" not in stricter
    assert "Shorter horizons" not in stricter
    admin.get("packs/acme@9.9.9/activate", 404)


@pytest.mark.rule("PAC-5")
def test_who_registered_a_pack_that_loosens_a_rule_is_refused_and_another_admin_is_not(
    admin: Browser, signed_in: SignIn, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    register(http_server.local, people.tenant_id, acme("1.0.0", LAX))
    refused = admin.post("packs/acme@1.0.0/activate", reason="mine <b>alone</b>", expected=PACK)
    assert refused.status_code == 400
    assert "an admin other than ada, who registered acme@1.0.0, has to activate it" in words(refused.text)
    assert "mine &lt;b&gt;alone" in refused.text, "what was typed is still there"
    assert http_server.local.packs.in_force(people.admin).pack == PACK
    assert [one["code"] for one in http_server.denials(people)] == ["second_person_required"]
    zoe = signed_in(admin_of(people.tenant_id, "zoe"))
    # What was shown is what is agreed to: another version in force meanwhile is told.
    outdated = zoe.post("packs/acme@1.0.0/activate", reason="seen", expected="acme@0.1.0")
    assert (outdated.status_code, "another pack is in force by now" in words(outdated.text)) == (400, True)
    assert zoe.post("packs/acme@1.0.0/activate", reason="", expected=PACK).status_code == 400
    done = zoe.post("packs/acme@1.0.0/activate", reason="seen by two", expected=PACK)
    assert done.status_code == 303
    made = http_server.local.packs.in_force(people.admin)
    assert (made.pack, made.activated_by, made.registered_by, made.reason) == (
        "acme@1.0.0",
        "zoe",
        "ada",
        "seen by two",
    )
    assert zoe.post("packs/acme@1.0.0/activate", reason="twice").status_code == 400
    assert zoe.post("packs/acme@9.9.9/activate", reason="not there").status_code == 404


@pytest.mark.rule("PAC-5")
def test_the_history_shows_every_activation_with_its_reason_and_what_it_loosened(
    auditor: Browser, http_server: RunningServer, people: People, others: People
) -> None:
    put_in_force(http_server.local, others.tenant_id, acme("9.0.0"))
    put_in_force(http_server.local, people.tenant_id, acme("1.0.0", LAX))
    activate(http_server.local, people.tenant_id, PACK)
    page = auditor.get("packs/history")
    rows = [words(row.partition("</tr>")[0].partition(">")[2]) for row in page.split("data-activation=")[1:]]
    assert len(rows) == 3
    assert f"{PACK} acme@1.0.0 zoe muniment for the test" in rows[0] and "Relaxed" not in rows[0]
    assert f"acme@1.0.0 {PACK} zoe ada for the test Relaxed 2 rules" in rows[1]
    assert f"{PACK} none muniment muniment first pack" in rows[2]
    assert f"packs/compare?one={PACK.replace('@', '%40')}&amp;other=acme%401.0.0" in page
    assert "9.0.0" not in page
    (_, second, _) = http_server.local.packs.activations(people.auditor)
    older = auditor.get("packs/history", after=second.seq)
    assert older.count("data-activation=") == 1 and "Newest" in older


@pytest.mark.rule("PAC-5")
def test_a_version_is_retired_with_a_reason_and_the_one_in_force_is_not(
    admin: Browser, http_server: RunningServer, people: People
) -> None:
    register(http_server.local, people.tenant_id, acme("1.0.0"))
    register(http_server.local, people.tenant_id, acme("1.1.0"))
    assert "data-retire" not in admin.get(f"packs/{PACK}"), "it is in force"
    assert admin.post(f"packs/{PACK}/retire", reason="by mistake").status_code == 400
    assert "data-retire" in admin.get("packs/acme@1.0.0")
    for reason in ("", "x" * 501, "asked by jane.doe@example.com"):
        refused = admin.post("packs/acme@1.0.0/retire", reason=reason)
        assert (refused.status_code, "reason" in words(refused.text)) == (400, True)
    assert admin.post("packs/acme@1.0.0/retire", reason="replaced").status_code == 303
    page = admin.get("packs/acme@1.0.0")
    assert "It can no longer be activated or pinned" in words(page)
    assert "data-retire" not in page and "/activate" not in page
    assert "retired" in row_of(admin.get("packs"), "acme@1.0.0")
    assert "retired" not in row_of(admin.get("packs"), "acme@1.1.0")
    again = admin.post("packs/acme@1.0.0/activate", reason="again")
    assert (again.status_code, "acme@1.0.0 is retired" in words(again.text)) == (400, True)
    assert admin.post("packs/acme@9.9.9/retire", reason="not there").status_code == 404


def test_only_an_admin_activates_or_retires(
    reviewer: Browser, auditor: Browser, http_server: RunningServer, people: People
) -> None:
    register(http_server.local, people.tenant_id, acme("1.0.0", STRICT))
    for browser in (reviewer, auditor):
        browser.get("packs/acme@1.0.0/activate", 403)
        assert "acme@1.0.0" in browser.get("packs/acme@1.0.0")
        for verb in ("activate", "retire"):
            assert browser.post(f"packs/acme@1.0.0/{verb}", reason="mine").status_code == 403
    assert http_server.local.packs.in_force(people.admin).pack == PACK
    assert not http_server.local.packs.get(people.admin, "acme@1.0.0").retired
