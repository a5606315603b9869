"""The pages of memory: browsed, over time, as a graph, and one with its whole life."""

import re
from html import unescape
from typing import Any

import pytest

from muniment.testing import People
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.pack_activation import put_in_force
from tests.packs.profile_packs import CRM_IS_PROVEN, made_of
from tests.packs.test_profiles import look_up
from tests.stories import CONSENT, KEY, promoted, proposed

SUBJECT = "customer:cust_1"
HOSTILE = "<script>alert(1)</script> \"onload='x' \u202egnirts " + "W" * 500


def shown(page: str) -> list[str]:
    """The memories of a list, in their order."""
    return re.findall(r'<tr data-row data-memory="(pm_\w+)"', page)


def statement(http_server: RunningServer, people: People, text: str, **fields: Any) -> str:
    item = proposed(http_server.local, people.run(), write_class="statement", text=text, **fields)
    memory_id = http_server.local.queue.approve(people.reviewer, item.proposal_id, note="heard it").memory_id
    assert memory_id is not None
    return memory_id


def test_memories_are_browsed_by_entity_user_tier_class_words_and_state(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    email = promoted(http_server.local, people, "email")
    other = promoted(http_server.local, people, "tea", entity="customer:cust_2", predicate="drinks", user_id="cust_2")
    plain = statement(http_server, people, "the harbour office closes at noon")
    http_server.local.retract(people.reviewer, other, reason="wrong")
    assert shown(reviewer.get("memory")) == [plain, email]
    assert shown(reviewer.get("memory", entity=SUBJECT)) == [email]
    assert shown(reviewer.get("memory", user_id="cust_2", state="all")) == [other]
    assert shown(reviewer.get("memory", write_class="statement", tier="semantic")) == [plain]
    assert shown(reviewer.get("memory", tier="durable")) == []
    assert shown(reviewer.get("memory", query="harbour office")) == [plain]
    ended = reviewer.get("memory", state="ended")
    assert shown(ended) == [other]
    assert 'data-state="retracted"' in ended


def test_pages_follow_each_other(
    reviewer: Browser, http_server: RunningServer, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.console.listing.PAGE_SIZE", 2)
    ids = [promoted(http_server.local, people, "x", predicate=f"likes_{n}") for n in range(5)]
    found: list[str] = []
    path = f"memory?entity={SUBJECT}"
    for _ in range(3):
        page = reviewer.get(path)
        found += shown(page)
        following = re.search(r'rel="next" href="/console/([^"]+)"', page)
        path = unescape(following[1]) if following else ""
    assert (found, path) == (ids[::-1], "")


def test_an_empty_list_says_what_to_do(reviewer: Browser) -> None:
    assert "No memories yet" in reviewer.get("memory")
    nothing = reviewer.get("memory", query="zebra")
    assert "No matches" in nothing
    assert "state=all" in nothing


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("memory?entity=no+entity", "entity"),
        ("memory?tier=gold", "tier"),
        ("memory?after=pm_none", "after"),
        ("memory/over-time?at=yesterday", "at"),
        ("memory/over-time?slide=soon", "slide"),
        ("memory/over-time?at=2999-01-01T00:00", "as_of"),
        ("memory/over-time?at=1999-01-01T00:00", "as_of"),
        ("memory/graph?entity=none", "entity"),
    ],
)
def test_what_cannot_be_asked_is_reported_beside_the_form_with_what_was_typed(
    reviewer: Browser, path: str, field: str
) -> None:
    page = reviewer.get(path, 400)
    assert re.search(rf'role="alert">{field}: ', page)
    typed = path.partition("=")[2].replace("+", " ")
    assert typed in page or "over-time" in path or "after" in path or "tier" in path


@pytest.mark.rule("AUD-1")
def test_one_memory_shows_its_whole_life(reviewer: Browser, http_server: RunningServer, people: People) -> None:
    http_server.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    memory_id = promoted(
        http_server.local,
        people,
        "email",
        subject=SUBJECT,
        classification="PII",
        evidence_refs=["tool:crm.lookup:tc_1"],
    )
    http_server.clock.advance(hours=1)
    recall = http_server.local.recall(people.run()).recall_id
    http_server.clock.advance(hours=1)
    item = proposed(http_server.local, people.run(), **KEY, value="phone", subject=SUBJECT, classification="PII")
    (found,) = http_server.local.contradictions.list(people.reviewer, proposal_id=item.proposal_id)
    http_server.clock.advance(hours=1)
    http_server.local.contradictions.resolve(people.reviewer, found.contradiction_id, way="supersede")
    page = reviewer.get(f"memory/{memory_id}")
    steps = re.findall(r'data-step="(\w+)"', page)
    assert " ".join(steps) == "captured consent proposed verdict promoted used contradicted settled retracted"
    memory = http_server.local.get(people.reviewer, memory_id)
    for link in (
        f"/console/queue/{memory.proposal_id}",
        f"/console/contradictions/{found.contradiction_id}",
        f"/console/why?memory_id={memory_id}&amp;recall_id={recall}",
        f"/console/memory/{memory.superseded_by}",
        f"/console/memory/graph?entity={SUBJECT.replace(':', '%3A')}",
    ):
        assert f'href="{link}"' in page, link
    said = words(page)
    assert "gates passed" in said
    assert "tool:crm.lookup:tc_1" in said
    assert "Approved by boris" in said
    assert 'data-state="superseded"' in page


def test_comments_and_second_looks_are_in_the_history_of_a_memory_and_in_its_provenance(
    reviewer: Browser, auditor: Browser, http_server: RunningServer, people: People
) -> None:
    item = proposed(http_server.local, people.run(), **KEY, value="email").proposal_id
    http_server.local.queue.comment(people.reviewer, item, text="asked the customer")
    memory_id = http_server.local.queue.approve(people.second_reviewer, item).memory_id
    http_server.local.queue.look_again(people.reviewer, item, would="approve")
    for page in (reviewer.get(f"memory/{memory_id}"), auditor.get("audit/trail", memory_id=memory_id)):
        said = words(page)
        assert "asked the customer" in said and "Commented" in said and "Looked again, agrees" in said


@pytest.mark.rule("PRO-8")
def test_an_undone_memory_says_who_undid_it_and_its_proposal_offers_to_lift_that(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    put_in_force(http_server.local, people.tenant_id, made_of("assisted", proven=(CRM_IS_PROVEN,)))
    (memory_id,) = look_up(http_server.local, people, run=people.run(), channel="email")
    http_server.local.undo(people.reviewer, memory_id, note="not so")
    said = words(reviewer.get(f"memory/{memory_id}"))
    assert "Promotion undone by boris" in said and "duplicate of" not in said
    proposal = reviewer.get(f"queue/{http_server.local.get(people.reviewer, memory_id).proposal_id}")
    assert "undid its promotion" in words(proposal) and "Lift the rejection" in words(proposal)


def test_what_was_erased_shows_its_provenance_and_nothing_else(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people, "grey-parrot", subject=SUBJECT)
    http_server.local.erase(people.officer, subject=SUBJECT)
    page = reviewer.get(f"memory/{memory_id}")
    assert "grey-parrot" not in page
    assert 'data-step="tombstoned"' in page
    assert "content erased" in reviewer.get("memory", state="ended")


def test_another_tenants_memory_is_not_found(reviewer: Browser, http_server: RunningServer, others: People) -> None:
    theirs = promoted(http_server.local, others)
    for memory_id in (theirs, "pm_none"):
        assert "no such memory" in reviewer.get(f"memory/{memory_id}", 404)
    assert shown(reviewer.get("memory", state="all")) == []


@pytest.mark.rule("PRO-6")
def test_a_reviewer_retracts_with_a_reason_and_a_typed_word(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people)
    path = f"memory/{memory_id}/retract"
    for wrong in ({"reason": "wrong"}, {"reason": "wrong", "confirmation": "yes"}, {"confirmation": "retract"}):
        refused = reviewer.post(path, **wrong)
        assert refused.status_code == 400
        assert 'role="alert"' in refused.text
    assert reviewer.post(path, reason="erased", confirmation="retract").status_code == 400
    assert reviewer.post(path, form_token="x", reason="wrong", confirmation="retract").status_code == 403
    assert http_server.local.get(people.reviewer, memory_id).retracted_at is None
    done = reviewer.post(path, reason="wrong", confirmation="retract")
    assert (done.status_code, done.headers["location"].partition("?")[0]) == (303, f"/console/memory/{memory_id}")
    memory = http_server.local.get(people.reviewer, memory_id)
    assert (memory.retraction_reason, memory.retracted_by) == ("wrong", "boris")
    page = reviewer.get(f"memory/{memory_id}")
    assert "Retract permanently" not in page
    assert reviewer.post(path, reason="wrong", confirmation="retract").status_code == 409


def test_an_auditor_reads_and_is_not_shown_what_only_a_reviewer_does(
    http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people)
    auditor = Browser(http_server, people.auditor)
    assert "Retract permanently" not in auditor.get(f"memory/{memory_id}")
    assert auditor.post(f"memory/{memory_id}/retract", reason="wrong", confirmation="retract").status_code == 403
    auditor.close()
    officer = Browser(http_server, people.officer)
    for path in ("memory", f"memory/{memory_id}", "memory/over-time", "memory/graph", "why"):
        officer.get(path, 403)
    officer.close()


@pytest.mark.rule("REC-7")
def test_the_slider_shows_a_users_memory_as_it_was_at_any_moment(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    first = promoted(http_server.local, people, "email")
    began = http_server.local.get(people.reviewer, first).promoted_at
    http_server.clock.advance(hours=1)
    second = promoted(http_server.local, people, "tea", predicate="drinks")
    http_server.clock.advance(hours=1)
    http_server.local.retract(people.reviewer, first, reason="deprecated")
    http_server.clock.advance(hours=1)
    now = reviewer.get("memory/over-time", user_id="cust_1")
    assert shown(now) == [second]
    assert "3 changes to the memory of cust_1" in words(now)
    ticks = re.findall(r'<option value="([\d.]+)"', now)
    assert len(ticks) == 3
    assert [shown(reviewer.get("memory/over-time", user_id="cust_1", slide=tick)) for tick in ticks] == [
        [first],
        [second, first],
        [second],
    ]
    early = reviewer.get("memory/over-time", user_id="cust_1", at=began.isoformat())
    assert shown(early) == [first]
    later = re.search(r'rel="next" href="/console/([^"]+)"', early)
    assert later is not None
    assert shown(reviewer.get(unescape(later[1]))) == [second, first]
    assert "There has never been a memory" in reviewer.get("memory/over-time", user_id="CUST_1")


def test_two_moments_are_compared(reviewer: Browser, http_server: RunningServer, people: People) -> None:
    first = promoted(http_server.local, people, "email")
    stays = promoted(http_server.local, people, "rye", predicate="eats")
    http_server.clock.advance(hours=1)
    since = http_server.clock.now.isoformat()
    http_server.clock.advance(hours=1)
    second = promoted(http_server.local, people, "tea", predicate="drinks")
    http_server.local.retract(people.reviewer, first, reason="deprecated")
    http_server.clock.advance(hours=1)
    page = reviewer.get("memory/over-time", entity=SUBJECT, since=since)
    assert [re.search(rf"data-{name}>(\d+)<", page)[1] for name in ("added", "ended", "still")] == ["1", "1", "1"]  # type: ignore[index]
    assert shown(page) == [second, first]
    assert "deprecated" in words(page)
    assert stays not in page


def test_the_graph_is_drawn_and_shown_as_a_table(reviewer: Browser, http_server: RunningServer, people: People) -> None:
    memory_id = promoted(http_server.local, people, "company:acme", predicate="works_at")
    promoted(http_server.local, people, "company:globex", entity="company:acme", predicate="part_of")
    page = reviewer.get("memory/graph", entity=SUBJECT)
    assert re.findall(r'data-node="([^"]+)"', page) == [SUBJECT, "company:acme"]
    assert page.count(f'href="/console/memory/{memory_id}"') == 2
    assert "works_at" in page
    assert "company:globex" in reviewer.get("memory/graph", entity=SUBJECT, hops="2")
    assert "No linked entities" in reviewer.get("memory/graph", entity="customer:nobody")


def test_the_graph_begins_with_the_entities_of_the_latest_memories_the_linked_first(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    assert "No entities yet" in reviewer.get("memory/graph")
    for predicate in ("eats", "drinks"):
        promoted(http_server.local, people, "rye", predicate=predicate, entity="customer:cust_9")
    promoted(http_server.local, people, "company:acme", predicate="works_at")
    ended = promoted(http_server.local, people, "x", entity="customer:cust_8")
    http_server.local.retract(people.reviewer, ended, reason="wrong")
    page = reviewer.get("memory/graph").partition("data-entities")[2]
    assert re.findall(r'href="/console/memory/graph\?entity=([^"]+)"', page) == [
        "customer%3Acust_1", "customer%3Acust_9"
    ]  # fmt: skip
    assert re.findall(r'class="num"><span>(\d+)<', page) == ["1", "1", "2", "0"]


def test_stored_words_stay_words(reviewer: Browser, http_server: RunningServer, people: People) -> None:
    memory_id = statement(http_server, people, HOSTILE, evidence_refs=["<img src=x onerror=alert(1)>"])
    typed = promoted(http_server.local, people, {"<b>": ["</pre><script>alert(2)</script>"]})
    for path in ("memory", f"memory/{memory_id}", f"memory/{typed}", "memory/over-time", f"why?memory_id={memory_id}"):
        page = reviewer.get(path)
        assert not re.search(r"<script>|<img src=x|<b>|</pre><script", page), path
    for path in ("memory?query=<script>x", "memory/over-time?user_id=<script>x", 'memory?user_id="><script>x'):
        assert "<script>x" not in reviewer.get(path)
    long = statement(http_server, people, "word " * 6500)
    assert len(reviewer.get("memory")) < 60_000
    assert "word word" in reviewer.get(f"memory/{long}")


def test_scripts_import_each_other_by_the_address_that_pages_use(reviewer: Browser) -> None:
    address = re.search(r'src="/console/static/(console\.js\?v=[^"]+)"', reviewer.get("memory"))
    assert address is not None
    assert f'from "./{address[1]}"' in reviewer.get("static/memory.js")
