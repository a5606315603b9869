"""The page on HTTP shows the example as it is in its file, and the example and the page's own requests run."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import httpx2
import pytest

from muniment import Fabric
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.server_thread import RemoteFabric, ServerThread

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "over_http.py"
PAGE = (ROOT / "docs" / "how-to" / "use-over-http.md").read_text("utf-8")


@pytest.fixture
def remote(server: TestServer, database: str) -> Iterator[RemoteFabric]:
    url = server.url(database)
    with ServerThread.on(url) as served, RemoteFabric(Fabric.open(url, master_keys=MASTER_KEYS), served.url) as opened:
        yield opened


def test_the_page_shows_the_example_as_it_is_in_its_file() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert EXAMPLE.read_text("utf-8").endswith(block.partition("import Client\n")[2])


def test_the_example_runs_and_runs_again(remote: RemoteFabric, people: People) -> None:
    given = {
        "MUNIMENT_SERVER": remote.url,
        "AGENT_KEY": remote.token(people.run(agent_id="refund_bot")),
        "REVIEWER_KEY": remote.token(people.reviewer),
    }
    for became in ("promoted", "duplicate"):
        done = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLE)],
            env={"PATH": os.environ["PATH"], **given},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            became,
            "customer:cust_8861 preferred language: French (approved by boris)",
        ]


def test_the_requests_on_the_page_are_answered(remote: RemoteFabric, people: People) -> None:
    token = remote.token(people.run(agent_id="refund_bot"))
    commands = re.findall(r"^    curl -s .*?'\{.*?\}'$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(commands) == 2
    for command, status in zip(commands, (201, 200), strict=True):
        words = shlex.split(dedent(command))
        path, body = words[2].removeprefix("localhost:8600"), json.loads(words[-1])
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx2.post(f"{remote.url}{path}", json=body, headers=headers).status_code == status
