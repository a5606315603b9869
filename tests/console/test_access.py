"""Who gets which page: every route of the console with every role, without a session, and with another tenant's ids."""

import re
from collections.abc import Iterator

import httpx2
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from muniment import Principal
from muniment.access.roles import ALLOWED, Right
from muniment.console.pages import PAGES
from muniment.console.visitors import Requires
from muniment.testing import People, TestServer
from tests.console.browser import Browser
from tests.console.seeded import SAID, SUBJECT, SeededTenant, seed_tenant
from tests.interfaces.http import RunningServer

ROLES = ("reviewer", "correction_writer", "auditor", "privacy_officer", "admin", "subject")
# Whoever may use the console at all: the count in the menu and its stream, which say nothing to who may not read the queue.
FOR_EVERYBODY = {"/live"}
ROUTES = [one for module in PAGES for one in module.router.routes if isinstance(one, APIRoute)]


def _rights(dependant: Dependant) -> set[Right]:
    """The verbs that a route asks for before it runs."""
    own: set[Right] = {dependant.call.verb} if isinstance(dependant.call, Requires) else set()
    return own.union(*(_rights(one) for one in dependant.dependencies))


def _concrete(path: str) -> str:
    """The path with ids that name nothing."""
    return re.sub(r"{[^}]+}", "pm_none", path).removeprefix("/")


def _guarded() -> list[tuple[str, str, set[Right]]]:
    """Every method and path with the verbs it asks for."""
    return [
        (method, _concrete(route.path), _rights(route.dependant))
        for route in ROUTES
        for method in sorted((route.methods or set()) & {"GET", "POST"})
    ]


@pytest.fixture(scope="module")
def own_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.mark.rule("ISO-5")
def test_every_route_of_the_console_asks_for_a_right() -> None:
    without = {f"/{path}" for _, path, rights in _guarded() if not rights}
    assert without == FOR_EVERYBODY
    assert len(_guarded()) > 100


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_no_page_and_no_act_that_is_not_its_own(
    own_server: RunningServer, people: People, role: str
) -> None:
    who = people.person(f"only_{role}", role)
    if role == "subject":
        who = Principal(tenant_id=people.tenant_id, id="cust_1", kind="end_user", roles={"subject"})
    browser = Browser(own_server, who)
    wrong: list[str] = []
    for method, path, rights in _guarded():
        if not rights or all(role in ALLOWED[one] for one in rights):
            continue
        status = browser.post(path).status_code if method == "POST" else _status(browser, path)
        if status != 403:
            wrong.append(f"{method} {path}: {status}")
    browser.close()
    assert wrong == []


def _status(browser: Browser, path: str) -> int:
    return browser._http.get(f"/console/{path}").status_code


def test_without_a_session_every_page_asks_to_sign_in_and_every_script_is_refused(own_server: RunningServer) -> None:
    with httpx2.Client(base_url=own_server.url, timeout=30) as http:
        for method, path, _ in _guarded():
            page = http.request(method, f"/console/{path}", headers={"Accept": "text/html"})
            assert page.status_code == 303, (method, path, page.status_code)
            assert page.headers["location"].startswith("/console/signin?next="), path
            script = http.request(method, f"/console/{path}", headers={"Accept": "application/json"})
            assert script.status_code == 401, (method, path, script.status_code)


@pytest.mark.rule("ISO-4")
def test_another_tenants_ids_are_ids_that_do_not_exist(own_server: RunningServer, people: People) -> None:
    seeded: SeededTenant = seed_tenant(own_server, people)
    elsewhere = People(f"{people.tenant_id}_other")
    roles = ("reviewer", "auditor", "privacy_officer", "admin", "correction_writer")
    stranger = Browser(own_server, elsewhere.person("mallory", *roles))
    visitor = Browser(own_server, seeded.everybody)
    told = (SAID, "green tea", "Anna", "customer:cust_3", "shop@1.0.0", "company:globex")
    named = [path for path in seeded.paths.values() if re.search(r"_[0-9a-f]{20}", path)]
    assert len(named) > 10
    for path in named:
        assert _status(visitor, path) == 200, path
        made_up = re.sub(r"_[0-9a-f]{20}", f"_{'0' * 20}", path)
        got, none = (stranger._http.get(f"/console/{one}") for one in (path, made_up))
        assert got.status_code == none.status_code, path
        assert not [one for one in told if one in got.text], path
    assert "Rex" not in stranger.get("people", subject=SUBJECT)
    for browser in (stranger, visitor):
        browser.close()
