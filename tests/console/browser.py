"""A browser without script: fetches pages and posts forms."""

import re
from html import unescape
from typing import Any

import httpx2

from muniment import Principal
from tests.interfaces.http import RunningServer


class Browser:
    """The session of a signed-in person."""

    def __init__(self, http_server: RunningServer, who: Principal) -> None:
        self._http = httpx2.Client(base_url=http_server.url, headers={"Accept": "text/html"}, timeout=30)
        self._http.post("/console/signin", data={"key": http_server.key(who)})

    def get(self, path: str, status: int = 200, **query: Any) -> str:
        answer = self._http.get(f"/console/{path}", params=query or None)
        assert answer.status_code == status, answer.text
        return answer.text

    def post(self, path: str, accept: str = "text/html", **fields: Any) -> httpx2.Response:
        token = self.get("nowhere", 404).partition('data-form-token="')[2].partition('"')[0]
        return self._http.post(f"/console/{path}", data={"form_token": token, **fields}, headers={"Accept": accept})

    def close(self) -> None:
        self._http.close()


def words(page: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
