"""A server for the tests of the TypeScript client: `python -m tests.typescript.server TENANT ...`.

It starts `muniment serve` on a temporary home and writes one line of JSON: its address, and for each tenant a key of
every kind of person. It ends when its input does. Nothing is done in the background: a test says when.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from muniment import Fabric, Principal
from muniment.testing import TestServer
from tests.server_thread import EVERY_LABEL

MUNIMENT = Path(sys.executable).with_name("muniment")
# Two admins, as some packs take a second one.
OPERATORS = {
    "author": {"correction_writer"},
    "reviewer": {"reviewer"},
    "second_reviewer": {"reviewer"},
    "officer": {"privacy_officer"},
    "auditor": {"auditor"},
    "admin": {"admin"},
    "second_admin": {"admin"},
    "owner": {"admin", "auditor"},
}
# The end user of the runs.
USER = "cust_1"


def keys(fabric: Fabric, tenant_id: str) -> dict[str, str]:
    """A key for each kind of person of a tenant."""
    keeper = Principal(tenant_id=tenant_id, id="keeper", kind="operator", roles={"admin"})

    def made(name: str, **fields: Any) -> str:
        found = fabric.keys.create(keeper, principal_id=name, expires_in="1d", **fields)
        assert found.token is not None
        return found.token

    return {
        **{name: made(name, kind="operator", roles=roles) for name, roles in OPERATORS.items()},
        "agent": made(
            "bot",
            kind="agent",
            roles={"agent"},
            clearance=EVERY_LABEL,
            speaks_for={"tools": ["*"], "channels": ["*"]},
        ),
        "subject": made(USER, kind="end_user", roles={"subject"}, user_id=USER),
    }


def main(tenants: list[str]) -> None:
    """Serve until the input ends."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    # A short path, so that the socket fits in.
    with tempfile.TemporaryDirectory(prefix="mt") as folder, TestServer(Path(folder) / "home") as database:
        with Fabric.open(home=database.home) as fabric:
            made = {tenant_id: keys(fabric, tenant_id) for tenant_id in tenants}
        command = [str(MUNIMENT), "serve", "--home", str(database.home), "--port", "0", "--no-worker", "--json"]
        settings = {"MUNIMENT_RATE": "0", "MUNIMENT_WEBHOOKS_ALLOW_PRIVATE": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment | settings) as server:
            assert server.stdout is not None
            try:
                url = json.loads(server.stdout.readline())["url"]
                print(json.dumps({"url": url, "tenants": made}), flush=True)
                sys.stdin.read()
            finally:
                server.terminate()
                server.wait(60)


if __name__ == "__main__":
    main(sys.argv[1:])
