"""Packs in the console: versions, one as a whole, two compared, one tried on history, one registered."""

import json

import pytest
import yaml

from muniment.pack import builtin_pack
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.doors.http import PACK, HttpDoor
from tests.pipeline.stories import promoted, proposed


def text_of(version: str, recalls: int = 4) -> str:
    """A pack that lets fewer records be recalled."""
    document = builtin_pack().document()
    document["pack_meta"] |= {"id": "acme", "version": version}
    document["memory_layer"]["recall_policy"]["max_recalls"] = recalls
    return yaml.safe_dump(document, sort_keys=False)


@pytest.mark.rule("PAC-1")
def test_a_pack_is_checked_registered_once_and_refused_with_every_problem_at_its_line(
    admin: Browser, door: HttpDoor, people: People
) -> None:
    checked = admin.post("packs/check", text=text_of("1.0.0"))
    assert "acme@1.0.0 is valid" in words(checked.text)
    assert "acme@1.0.0" not in [one.ref for one in door.near.packs.list(people.admin)]
    assert admin.post("packs", text=text_of("1.0.0")).status_code == 303
    assert 'data-pack="acme@1.0.0"' in admin.get("packs")
    assert "What is new" not in admin.get("packs"), "it is the first of its name"
    admin.post("packs", text=text_of("1.1.0"))
    assert "packs/compare?one=acme%401.0.0&amp;other=acme%401.1.0" in admin.get("packs")
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
    admin: Browser, door: HttpDoor, people: People, others: People
) -> None:
    door.near.packs.register(people.admin, text_of("1.0.0"))
    door.near.packs.register(others.admin, text_of("9.0.0"))
    page = admin.get("packs/acme@1.0.0")
    assert "max_recalls: 4" in page
    assert all(f'data-section="{name}"' in page for name in ("pack_meta", "classifications", "memory_layer"))
    assert "9.0.0" not in admin.get("packs")
    admin.get("packs/acme@9.0.0", 404)


@pytest.mark.rule("PAC-4")
def test_two_packs_are_compared_rule_by_rule(reviewer: Browser, door: HttpDoor, people: People) -> None:
    door.near.packs.register(people.admin, text_of("1.0.0"))
    page = reviewer.get("packs/compare", one=PACK, other="acme@1.0.0")
    assert 'data-change="memory_layer.recall_policy.max_recalls"' in page
    assert "max_recalls changed 8 4" in words(page)
    assert "They decide alike" in reviewer.get("packs/compare", one="acme@1.0.0", other="acme@1.0.0")
    pasted = reviewer.post("packs/compare", one="acme@1.0.0", text=text_of("2.0.0", recalls=6))
    assert "max_recalls changed 4 6" in words(pasted.text)
    reviewer.get("packs/compare", 400, one="acme@1.0.0", other="acme@7.0.0")
    assert reviewer.post("packs/compare", one=PACK, text="/etc/passwd").status_code == 400


@pytest.mark.rule("PAC-3")
def test_a_pack_is_tried_on_history_and_nothing_is_written(reviewer: Browser, door: HttpDoor, people: People) -> None:
    promoted(door.near, people)
    proposed(door.near, people.run(), entity="customer:cust_1", predicate="eats", value="<i>cake</i>")
    document = yaml.safe_load(text_of("3.0.0"))
    document["memory_layer"]["write_classes_allowed"] = ["statement", "correction"]
    text = yaml.safe_dump(document)
    before = len(door.near.events(people.auditor))
    report = reviewer.post("packs/backtest", text=text, texts="yes").text
    assert "2 captures" in words(report)
    assert 'data-difference="allow_list' in report
    assert "refused 0 2 +2" in words(report)
    assert "<i>cake" not in report
    assert len(door.near.events(people.auditor)) == before
    lines = reviewer.post("packs/backtest", text=text, accept="application/x-ndjson").text.splitlines()
    assert json.loads(lines[0]) == {"done": 2, "total": None}
    assert "differences, rule by rule" in json.loads(lines[-1])["page"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "choose a registered pack"),
        ({"pack": "acme@7.7.7"}, "no such pack"),
        ({"pack": PACK, "limit": "many"}, "limit: expected a whole number"),
        ({"pack": PACK, "limit": "20000"}, "at most 10000"),
        ({"pack": PACK, "since": "soon"}, "since: expected a date"),
        ({"text": "nonsense: 1"}, "the pack is refused"),
    ],
)
def test_what_cannot_be_tried_is_told_beside_the_form(
    reviewer: Browser, door: HttpDoor, people: People, wrong: dict[str, str], said: str
) -> None:
    promoted(door.near, people)
    answer = reviewer.post("packs/backtest", **wrong)
    assert (answer.status_code, said in words(answer.text)) == (400, True)


def test_only_an_admin_registers_and_only_a_reviewer_is_shown_texts(
    reviewer: Browser, door: HttpDoor, people: People
) -> None:
    reviewer.get("packs/new", 403)
    assert "packs/new" not in reviewer.get("packs")
    for path in ("packs", "packs/check"):
        assert reviewer.post(path, text=text_of("1.0.0")).status_code == 403
    assert {one.ref for one in door.near.packs.list(people.admin)} <= {PACK}
    auditor = Browser(door, people.auditor)
    promoted(door.near, people)
    assert 'name="texts"' not in auditor.get("packs/backtest")
    assert auditor.post("packs/backtest", pack=PACK, texts="yes").status_code == 400
    assert auditor.post("packs/backtest", pack=PACK).status_code == 200
    auditor.close()
