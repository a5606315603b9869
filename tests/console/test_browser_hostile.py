"""Hostile stored content: wherever it is shown, none of it runs, the page stays whole, and the text is as written."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page

from muniment import Fabric
from muniment.console.visitors import sign_notice
from muniment.testing import People
from tests.console import axe
from tests.console.chromium import PAGE_CHECKS, Window
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, promoted, proposed, run_worker

RUNS = "window.__pwned=1"
MARKUP = (
    f'<script>{RUNS}</script><img src=x onerror="{RUNS}"><svg/onload={RUNS}>"\'><iframe srcdoc="<script>{RUNS}</script>">'
    f"</title></textarea></pre><style>*{{display:none}}</style>{{{{ 7*7 }}}}{{% raise %}}&lt;b&gt;&#60;"
)
ADDRESS = f"javascript:{RUNS}//https://elsewhere.example/x.js"
TURNED = "\u202egnp.exe\u2066\u2069\u200f\u061c"
LONG = "W" * 3000
FACES = "👩‍👩‍👧‍👦🏳️‍🌈" * 40 + "Z̷̧̛͓̈́" * 40 + "﷽" * 30 + "مرحبا بالعالم " * 5
# A name holds less than a text: 256 characters, no line ends.
NAME = f"<script>{RUNS}</script>\"'><img src=x onerror={RUNS}>{TURNED}👩‍👧{'W' * 120}"
# A person's holds nothing invisible: such a name is refused.
WHO = f"<script>{RUNS}</script>\"'><img src=x onerror={RUNS}>👩{'W' * 120}"
REASON = f"{MARKUP} {ADDRESS}"[:500]
TEXT = f"{MARKUP} {ADDRESS} {TURNED} {FACES} {LONG}"
WHOLE = ("\u202e" + "<b>words</b> 🦜 " * 3000)[: 32 * 1024 // 2]
MASK = f"<img src=x onerror={RUNS}>"
ENTITY = "customer:" + "w" * 120
PREDICATE = "p" + "w" * 120


class Poisoned:
    """A tenant in which every text that anybody can write is meant to do harm."""

    def __init__(self, http_server: RunningServer) -> None:
        self.people = people = People(f"<script>{RUNS}</script>{uuid4().hex[:12]}{'W' * 60}")
        local = http_server.local
        self.run = people.run(NAME, session_id=NAME, workflow_id=NAME, qualifiers={"region": NAME})
        self.boris = people.person(WHO, "reviewer")
        given: dict[str, Any] = {"entity": ENTITY, "predicate": PREDICATE, "evidence_refs": [NAME, ADDRESS]}
        self.plain = proposed(local, self.run, **given, value={MARKUP: [TEXT, {"a": LONG}]}).proposal_id
        local.queue.assign(self.boris, self.plain)
        self.statement = proposed(local, self.run, write_class="statement", text=TEXT).proposal_id
        self.whole = proposed(local, self.run, write_class="statement", text=WHOLE).proposal_id
        local.capture(self.run, kind="message", text=f"I prefer <b>email</b>. {TEXT}", classification="INTERNAL")
        local.capture(self.run, kind="tool_result", payload={NAME: TEXT}, classification="INTERNAL", origin=NAME)
        self._remembered(local)
        self._papers(local)
        run_worker(local, people.tenant_id)

    def _remembered(self, local: Fabric) -> None:
        people = self.people
        self.memory = self._approved(local, entity=ENTITY, predicate="says", value=f"{TEXT} one")
        again = proposed(local, self.run, entity=ENTITY, predicate="says", value=f"{TEXT} two", evidence_refs=[ADDRESS])
        (found,) = local.contradictions.list(people.reviewer, proposal_id=again.proposal_id)
        self.contradicting, self.contradiction = again.proposal_id, found.contradiction_id
        self.other = self._approved(local, entity=ENTITY, predicate="knows", value="company:" + "v" * 120)
        self.gone = proposed(local, self.run, entity=ENTITY, predicate="gone", value="x").proposal_id
        local.queue.reject(self.boris, self.gone, reason=NAME, note=f"{MARKUP} {ADDRESS}")
        self.recall = local.recall(self.run, query=f"{MARKUP} {ADDRESS}").recall_id

    def _approved(self, local: Fabric, **fields: Any) -> str:
        item = proposed(local, self.run, **fields, evidence_refs=[NAME, ADDRESS])
        done = local.queue.approve(self.boris, item.proposal_id, note=f"{MARKUP} {LONG[:1000]}")
        assert done.memory_id is not None
        return done.memory_id

    def _papers(self, local: Fabric) -> None:
        people = self.people
        officer = people.person(WHO, "privacy_officer")
        local.consent.grant(
            officer,
            subject=ENTITY,
            **(CONSENT | {"purpose": NAME, "basis": NAME}),
            evidence_refs=[NAME, ADDRESS],
            valid_until=local._fabric.access.now().replace(year=2100),
        )
        promoted(local, people, "x", entity="customer:cust_2", subject="customer:cust_2", user_id=f"{NAME}2")
        local.erase(officer, subject="customer:cust_2", user_id=f"{NAME}2")
        for version in ("1.0.0", "1.1.0"):
            rule = f"{{name: own, pattern: zebra, mask: '{MASK}{version}'}}"
            local.packs.register(
                people.person(WHO, "admin"),
                f"pack_meta: {{id: shop, version: '{version}'}}\npolicy_layer: {{guardrails: {{redaction_rules: [{rule}]}}}}",
            )
        local.packs.activate(people.person(WHO, "admin"), "shop@1.0.0", reason=REASON)


@pytest.fixture(scope="module")
def poisoned(site: RunningServer) -> Poisoned:
    return Poisoned(site)


@pytest.fixture(scope="module")
def window(chromium_browser: Browser, site: RunningServer, poisoned: Poisoned) -> Iterator[Window]:
    somebody = poisoned.people.person(WHO + "eve", "reviewer", "auditor", "privacy_officer", "admin")
    with Window(chromium_browser, site.url).sign_in(site, somebody) as opened:
        opened.page.on("dialog", lambda dialog: opened.problems.append(f"asked: {dialog.message}"))
        yield opened


# Words of ours that a stored direction has turned round, their first letter to the right of the next; and names that could.
TURNED_ROUND = r"""(names) => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    if (node.parentElement.closest(".user-text, pre, code, .mono, [dir], option, textarea, svg") || !node.parentElement.checkVisibility()) continue;
    const among = node.parentElement.childNodes.length > 1 && !node.parentElement.matches("bdi, span, a, strong");
    if (/[\u202a-\u202e\u2066-\u2069]/.test(node.data) && (among || !names.includes(node.data.trim()))) found.push(node.data.trim());
    const word = /^[\x20-\x7e\s]*$/.test(node.data) && /[A-Za-z]{2,}/.exec(node.data);
    if (!word) continue;
    const at = (place) => { const range = document.createRange(); range.setStart(node, place); range.setEnd(node, place + 1); return range.getBoundingClientRect(); };
    const first = at(word.index), last = at(word.index + 1);
    if (first.top === last.top && first.left > last.left) found.push(node.data.trim());
  }
  return found;
}"""


def harmless(window: Window) -> None:
    """Nothing ran, nothing leads out, nothing sticks out or is turned round, at a desk and on a phone."""
    page = window.page
    assert page.evaluate("window.__pwned") is None
    assert page.locator("main script, main iframe, main style, main img:not([alt=''])").count() == 0
    leads = page.locator("a[href]").evaluate_all(
        "all => all.map(a => new URL(a.getAttribute('href'), location).origin)"
    )
    assert set(leads) == {window.url}
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(PAGE_CHECKS, "layout") == [], f"{width} px: {page.url}"
    assert page.evaluate(TURNED_ROUND, [NAME, f"{NAME}2"]) == [], page.url
    window.assert_no_problems()


def says(page: Page, text: str) -> bool:
    """Whether the page shows that, letter by letter, whatever it wraps."""
    return page.evaluate("text => document.querySelector('main').textContent.includes(text)", text)


PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "queue": ("queue", (MARKUP[:100],)),
    "proposal": ("queue/{plain}", (ADDRESS, NAME, ENTITY)),
    "statement": ("queue/{statement}", (TEXT,)),
    "32 KiB": ("queue/{whole}", (WHOLE,)),
    "contradicting": ("queue/{contradicting}", (f"{TEXT} two", ADDRESS, NAME)),
    "rejected": ("queue/{gone}", (NAME, f"{MARKUP} {ADDRESS}")),
    "preview": ("queue/{contradicting}/preview?query={address}", (ADDRESS,)),
    "contradiction": ("contradictions/{contradiction}", (ADDRESS, NAME)),
    "memory": ("memory?state=all", (MARKUP[:100], NAME, ENTITY)),
    "found by words": ("memory?query=%3Cscript%3E&user_id={name}", (NAME,)),
    "one memory": ("memory/{memory}", (f"{TEXT} one", NAME, ADDRESS)),
    "over time": ("memory/over-time?entity={entity}", (ENTITY,)),
    "graph": ("memory/graph?entity={entity}", (ENTITY,)),
    "why": ("why?memory_id={memory}&recall_id={recall}", (NAME,)),
    "replay": ("why/replay?recall_id={recall}", ()),
    "consent": ("consent", (NAME, ENTITY)),
    "ledger": ("consent?subject={entity}", (NAME, ADDRESS, ENTITY)),
    "renewal": ("consent/new?subject={entity}", ()),
    "erasure": ("erasures?subject={entity}&user_id={name}", (NAME, ENTITY)),
    "log": ("audit", (WHO,)),
    "log of one": ("audit?actor={who}", (WHO,)),
    "trail": ("audit/trail?memory_id={memory}", (f"{TEXT} one", NAME, ADDRESS)),
    "metrics": ("metrics", ()),
    "packs": ("packs", (WHO, REASON)),
    "pack": ("packs/shop@1.0.0", (f"{MASK}1.0.0", WHO)),
    "activation": ("packs/shop@1.1.0/activate", (f"{MASK}1.1.0", WHO)),
    "packs in force": ("packs/history", (WHO, REASON)),
    "compare": ("packs/compare?one=shop@1.0.0&other=shop@1.1.0", (f"{MASK}1.1.0",)),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_was_stored_to_do_harm_is_shown_and_does_none(window: Window, poisoned: Poisoned, place: str) -> None:
    address, expected = PLACES[place]
    page = window.go(address.format_map(_Quoted(poisoned)))
    for text in expected:
        assert says(page, text), f"{text[:200]} is not on {page.url}"
    harmless(window)


class _Quoted(dict[str, str]):
    """What stands in an address: ids of the tenant, and harmful words as a browser writes them."""

    def __init__(self, poisoned: Poisoned) -> None:
        super().__init__(vars(poisoned) | {"entity": ENTITY})

    def __missing__(self, key: str) -> str:
        return quote({"name": NAME, "who": WHO, "address": ADDRESS}[key], safe="")


@pytest.mark.parametrize("place", PLACES)
def test_axe_finds_nothing_serious_in_it(window: Window, poisoned: Poisoned, place: str) -> None:
    page = window.go(PLACES[place][0].format_map(_Quoted(poisoned)))
    assert axe.findings_in(page, axe.LOOKS) == []


@pytest.mark.parametrize("place", ["proposal", "one memory", "trail", "ledger", "pack", "contradicting"])
def test_what_opens_does_no_harm_either(window: Window, poisoned: Poisoned, place: str) -> None:
    page = window.go(PLACES[place][0].format_map(_Quoted(poisoned)))
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    harmless(window)


def test_an_edit_of_it_keeps_every_letter_and_its_check_runs_nothing(window: Window, poisoned: Poisoned) -> None:
    page = window.go(f"queue/{poisoned.statement}#edit")
    field = page.get_by_label("Text", exact=True)
    assert field.input_value() == TEXT
    field.fill(f"{MARKUP} other")
    compared = page.locator("[data-check] .user-text")
    compared.wait_for()
    kept = "element => [...element.childNodes].map(one => one.nodeName === 'DEL' ? '' : one.textContent).join('')"
    assert compared.evaluate(kept) == f"{MARKUP} other"
    harmless(window)


def test_a_message_that_comes_with_the_address_is_words_too(window: Window) -> None:
    token = window.go("queue").locator("body").get_attribute("data-form-token") or ""
    page = window.go(f"queue?notice={quote(sign_notice(token, MARKUP))}")
    window.toast("<script>")
    assert "notice=" not in page.url
    assert page.locator("[data-toasts] > .toast > span").text_content() == MARKUP
    harmless(window)
