"""The HTTP interface as a client sees it: a running server, API keys, and a valid request for each route."""

import json
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import StringIO
from socket import create_connection
from time import monotonic
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from muniment import Fabric, Principal, RunContext
from muniment.http import logs
from muniment.http.settings import ServerSettings
from muniment.model.context import Asker
from muniment.model.events import Event
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.server_thread import EVERY_LABEL, NO_LIMITS, ServerThread
from tests.stories import CONSENT, KEY, promoted, proposed

RUN: dict[str, Any] = {"run_id": "run_1", "user_id": "cust_1"}
SUBJECT = "customer:cust_1"
PACK = "muniment.builtin@1.3.0"
PROBLEM = "application/problem+json"
# The only ones without a credential.
OPEN = ("/healthz", "/readyz", "/metrics", "/docs", "/openapi.json")


class RunningServer:
    """A server on a database with a fake clock, and `local`, a fabric opened directly on the same database."""

    def __init__(
        self,
        server: TestServer,
        database: str,
        settings: ServerSettings = NO_LIMITS,
        proxies: str = "127.0.0.1",
        **opened: Any,
    ) -> None:
        self.clock = FakeClock()
        place = server.url(database)
        self.served = ServerThread.on(place, settings, proxies, clock=self.clock, **opened)
        self.local = Fabric.open(place, clock=self.clock, master_keys=MASTER_KEYS, **opened)

    def __enter__(self) -> Self:
        self.served.__enter__()
        self.http = httpx2.Client(base_url=self.served.url, timeout=30)
        self.local.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self.local.close()
        self.served.stop()

    @property
    def url(self) -> str:
        return self.served.url

    @cached_property
    def document(self) -> dict[str, Any]:
        """What the server says of itself."""
        return self.http.get("/openapi.json").json()

    def routes(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Method, path and operation of all under `/v1`, as the document has them."""
        return [
            (method.upper(), path, operation)
            for path, methods in self.document["paths"].items()
            for method, operation in methods.items()
            if path.startswith("/v1/")
        ]

    def key(self, asker: Asker, **fields: Any) -> str:
        """A key for that asker, made by an admin of its tenant."""
        return self.made(asker, **fields)[0]

    def made(self, asker: Asker, **fields: Any) -> tuple[str, str]:
        """The same, and its id."""
        who = asker.principal if isinstance(asker, RunContext) else asker
        admin = People(who.tenant_id).person("keeper", "admin")
        usual = {
            "clearance": EVERY_LABEL if "agent" in who.roles else None,
            "expires_in": "never",
            "speaks_for": who.speaks_for,
            "roles": who.roles,
            "user_id": who.id if who.kind == "end_user" else None,
        }
        made = self.local.keys.create(
            admin, principal_id=who.id, kind=who.kind, **(usual | fields)  # type: ignore[arg-type]
        )  # fmt: skip
        assert made.token is not None
        return made.token, made.key_id

    def ask(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, once: str | None = None, **more: Any
    ) -> httpx2.Response:
        """One request, with what is given."""
        headers: dict[str, str] = {**more.pop("headers", {})}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        if once is not None:
            headers["Idempotency-Key"] = once
        if body is not None:
            more["json"] = body
        return self.http.request(method, path, headers=headers, **more)

    def events(self, people: People) -> list[Event]:
        """The whole log of a tenant."""
        found: list[Event] = []
        while page := self.local.events(people.auditor, after=found[-1].seq if found else 0, limit=1000):
            found += page
        return found

    def denials(self, people: People) -> list[dict[str, Any]]:
        """The security events of a tenant."""
        return [event.data for event in self.events(people) if event.type == "memory.security"]


class Story:
    """A tenant in which something of everything is there; names in braces of paths and bodies stand for its ids."""

    def __init__(self, http_server: RunningServer, people: People) -> None:
        local = http_server.local
        self.people = people
        self.tokens: dict[str, str] = {}
        self._http_server = http_server
        self.ids: dict[str, str] = {}
        run = people.run()
        self.ids["proposal_id"] = proposed(local, run, **KEY, value="email").proposal_id
        self.ids["memory_id"] = promoted(local, people, "post", predicate="prefers_reply")
        contradicting = proposed(local, run, entity=SUBJECT, predicate="prefers_reply", value="fax").proposal_id
        (found,) = local.contradictions.list(people.reviewer, proposal_id=contradicting)
        self.ids["contradiction_id"] = found.contradiction_id
        rejected = proposed(local, run, entity=SUBJECT, predicate="eats", value="rye").proposal_id
        self.ids["rejected"] = local.queue.reject(people.reviewer, rejected, reason="no").proposal_id
        self.ids["recall_id"] = local.recall(run).recall_id
        self.ids["consent_id"] = local.consent.grant(people.officer, subject=SUBJECT, **CONSENT).consent_id
        items = [{"id": "m0", "text": "Ulm is open.", "user_id": "cust_1"}]
        self.ids["import_id"] = local.imports.run(people.admin, "mem0", items).import_id
        self.ids["webhook_id"] = local.webhooks.add(people.admin, url="https://8.8.8.8/hook").webhook_id
        self.ids["notice_id"] = local.notices.set(people.reviewer, channel="browser").notice_id
        self.ids["capture_id"] = local.capture(run, kind="message", text="x", classification="INTERNAL").capture_id
        local.consolidate(people.tenant_id)
        pack = local.packs.register(people.admin, f'pack_meta: {{id: "p{uuid4().hex[:8]}", version: "1.0.0"}}')
        self.ids["ref"] = pack.ref
        self.ids["write_class"], self.ids["tenant_id"] = "preference", people.tenant_id
        self.ids["fact_id"], self.ids["session_id"] = self.ids["memory_id"], "s1"
        self.ids["request_id"] = local.me.forget_everything(holder(people, "subject")).request_id

    def token(self, role: str, *also: str) -> str:
        """A key of somebody with that role alone, or with those."""
        roles = "_".join((role, *also))
        if roles not in self.tokens:
            self.tokens[roles] = self._http_server.key(holder(self.people, role, *also))
        return self.tokens[roles]


def holder(people: People, *roles: str) -> Principal:
    """Somebody with these roles and no other: an agent, an end user, or an operator."""
    kind = {("agent",): "agent", ("subject",): "end_user"}.get(roles, "operator")
    return Principal(tenant_id=people.tenant_id, id=f"only_{'_'.join(roles)}", kind=kind, roles=frozenset(roles))  # type: ignore[arg-type]


_BESIDE = ("memory.security", "memory.api_key_created")


def tenant_state(http_server: RunningServer, people: People) -> list[Any]:
    """The state of a tenant without denials and keys: what an attack must not change."""
    local = http_server.local
    return [
        [event.event_id for event in http_server.events(people) if event.type not in _BESIDE],
        local.queue.list(people.reviewer, closed=True, limit=1000),
        local.contradictions.list(people.reviewer, closed=True),
        local.consent.list(people.officer),
        local.webhooks.list(people.admin),
        local.erasures(people.auditor),
        [(one.ref, one.in_force, one.retired) for one in local.packs.list(people.auditor)],
    ]


# A body that each route takes, by its method and path under `/v1`; those that are not here take none.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/captures"): {"kind": "message", "text": "hello", "classification": "INTERNAL", "run": RUN},
    ("POST", "/proposals"): {
        "write_class": "preference", "entity": SUBJECT, "predicate": "reads", "value": "news",
        "classification": "INTERNAL", "run": RUN,
    },
    ("POST", "/captures/{capture_id}/rerun"): {"reason": "requested"},
    ("POST", "/corrections"): {"memory_id": "{memory_id}", "value": "phone"},
    ("POST", "/recall"): {"run": RUN, "query": "post"},
    ("POST", "/compile"): {"run": RUN, "query": "post", "token_budget": 200},
    ("POST", "/explain"): {"memory_id": "{memory_id}", "run": RUN},
    ("POST", "/memories/{memory_id}/retract"): {"reason": "wrong"},
    ("POST", "/golden"): {"results": [{"query": "q", "passed": True}]},
    ("POST", "/queue/approve"): {"proposal_ids": ["{proposal_id}"]},
    ("POST", "/queue/reject"): {"proposal_ids": ["{proposal_id}"], "reason": "no"},
    ("POST", "/queue/assign"): {"proposal_ids": ["{proposal_id}"]},
    ("POST", "/queue/{proposal_id}/edit"): {"value": "letter"},
    ("POST", "/queue/{proposal_id}/check"): {"value": "letter"},
    ("POST", "/queue/{proposal_id}/reject"): {"reason": "no"},
    ("POST", "/queue/{proposal_id}/override"): {"priority": 0.9},
    ("POST", "/contradictions/{contradiction_id}/resolve"): {"way": "supersede"},
    ("POST", "/consents"): {"subject": SUBJECT, **CONSENT},
    ("POST", "/consents/documents"): {
        "documents": [
            {
                "consent_id": "cns_2025_05_04_a01", "subject_ceid": SUBJECT, "tenant_id": "{tenant_id}", "purpose": "support",
                "scope": {"predicates_allowed": ["*"], "data_classifications_allowed": ["PII"]}, "basis": "opt_in",
                "captured_at": "2025-05-04T09:30:00Z",
            }
        ],
    },
    ("POST", "/imports"): {"system": "mem0", "items": [{"id": "m1", "text": "It rains.", "user_id": "cust_1"}]},
    ("POST", "/imports/preview"): {"system": "mem0", "items": [{"id": "m1", "text": "It rains.", "user_id": "cust_1"}]},
    ("POST", "/imports/outcomes"): {"capture_ids": ["{capture_id}"]},
    ("POST", "/exports"): {"subject": SUBJECT},
    ("POST", "/erasures"): {"subject": "customer:nobody"},
    ("POST", "/codes"): {"user_id": "cust_1", "act": "confirm", "target": "mwp_1"},
    ("POST", "/me/consents"): {"data_classifications_allowed": ["PII"]},
    ("POST", "/me/consent-requests/{request_id}/answer"): {"answer": "grant"},
    ("POST", "/me/memories/{memory_id}/correct"): {"text": "It rains."},
    ("POST", "/me/outcomes"): {"capture_ids": ["{capture_id}"]},
    ("POST", "/erasures/search"): {"name": "Nobody"},
    ("POST", "/erasures/facts"): {"fact_id": "{fact_id}"},
    ("POST", "/sessions/{session_id}/end"): {"run": {**RUN, "session_id": "s1"}},
    ("POST", "/notices"): {"channel": "browser"},
    ("POST", "/views"): {"name": "mine", "filters": {"write_class": "preference"}},
    ("POST", "/views/remove"): {"name": "mine"},
    ("POST", "/subjects/name"): {"subject": SUBJECT, "name": "Ann"},
    ("POST", "/queue/{proposal_id}/comments"): {"text": "Who said this?"},
    ("POST", "/queue/{proposal_id}/second-look"): {"would": "approve"},
    ("POST", "/queue/search"): {"words": "letter"},
    ("POST", "/queue/plan"): {"proposal_ids": ["{proposal_id}"]},
    ("POST", "/statements/check"): {"text": "It rains.", "classification": "INTERNAL", "write_class": "statement"},
    ("POST", "/items"): {"run": RUN, "namespace": ["prefs"], "key": "food", "value": {"likes": "bread"}},
    ("POST", "/items/delete"): {"run": RUN, "namespace": ["prefs"], "key": "food"},
    ("POST", "/items/get"): {"run": RUN, "namespace": ["prefs"], "key": "food"},
    ("POST", "/items/search"): {"run": RUN, "namespace": ["prefs"]},
    ("POST", "/items/namespaces"): {"run": RUN},
    ("POST", "/items/status"): {"run": RUN, "namespace": ["prefs"]},
    ("POST", "/webhooks"): {"url": "https://8.8.8.8/other"},
    ("POST", "/webhooks/{webhook_id}/replay"): {"after": 0},
    ("POST", "/packs"): {"pack": 'pack_meta: {id: acme, version: "1.0.0"}'},
    ("POST", "/packs/exceptions"): {"kind": "email", "value": "help@acme.example"},
    ("POST", "/packs/compare"): {"one": PACK, "other": "{ref}"},
    ("POST", "/packs/backtest"): {"pack": "{ref}"},
    ("POST", "/work/clock/reset"): {"reason": "the clock was ahead"},
    ("POST", "/packs/backfills"): {"ref": PACK},
    ("POST", "/packs/{ref}/activate"): {"reason": "it is time"},
    ("POST", "/packs/{ref}/retire"): {"reason": "old"},
}  # fmt: skip


def body_of(method: str, path: str, ids: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """A good body for that route, with the story's ids in it."""
    return _with(BODIES.get((method, path.removeprefix("/v1"))), ids or {})


def _with(value: Any, ids: Mapping[str, str]) -> Any:
    match value:
        case str() if value.startswith("{"):
            return ids.get(value[1:-1], value)
        case dict():
            return {name: _with(one, ids) for name, one in value.items()}
        case list():
            return [_with(one, ids) for one in value]
        case _:
            return value


def without_number(answer: httpx2.Response) -> dict[str, Any]:
    """A problem but for the number of its request, which every answer has."""
    assert answer.headers["content-type"] == PROBLEM
    body: dict[str, Any] = answer.json()
    assert body.pop("request_id") == answer.headers["x-request-id"]
    return body


@contextmanager
def logged() -> Generator["Lines"]:
    """What the server writes to its log meanwhile."""
    loggers = [logging.getLogger(name) for name in ("muniment", "procrastinate", "uvicorn.error")]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    stream = StringIO()
    logs.set_up("json", stream=stream)
    try:
        yield Lines(stream)
    finally:
        for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate
            one.setLevel(level)


class Lines:
    """The lines of a log."""

    def __init__(self, stream: StringIO) -> None:
        self._stream = stream

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def of(self, answer: httpx2.Response) -> list[dict[str, Any]]:
        """Those of one request, once the last of them, which comes after its answer, is there."""
        number = answer.headers["x-request-id"]
        deadline = monotonic() + 60
        while True:
            result = [json.loads(line) for line in self.text.splitlines(keepends=True) if line.endswith("\n")]
            found = [line for line in result if line.get("request_id") == number]
            if any(line["message"] == "request" for line in found):
                return found
            assert monotonic() < deadline, "no line in the log"


class Wire:
    """A connection without a client's manners: what is sent goes out as it is."""

    def __init__(self, http_server: RunningServer, patience: float = 30) -> None:
        place = urlsplit(http_server.url)
        assert place.hostname is not None and place.port is not None
        self.socket = create_connection((place.hostname, place.port), patience)
        self._got = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, head: str, body: bytes = b"") -> None:
        """Lines of a request's head, then its body."""
        lines = [line.strip() for line in head.strip().splitlines()]
        self.socket.sendall("\r\n".join([*lines, "Host: here", "", ""]).encode("latin-1") + body)

    def until(self, end: bytes) -> bytes:
        """What comes, up to and with that."""
        while end not in self._got:
            came = self.socket.recv(65536)
            assert came, f"it ended: {self._got!r}"
            self._got += came
        found, _, self._got = self._got.partition(end)
        return found + end

    def answer(self) -> tuple[int, bytes]:
        """Status and body of the answer."""
        head = self.until(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(self._got) < size:
            came = self.socket.recv(65536)
            assert came, "it ended"
            self._got += came
        body, self._got = self._got[:size], self._got[size:]
        return int(head.split(b" ")[1]), body
