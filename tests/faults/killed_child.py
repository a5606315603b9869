"""Run by test_kill: approves proposals in forked children, each killed before its own n-th statement.

usage: killed_child.py URL TENANT PROPOSAL...   prints the number of statements an approval takes
"""

import asyncio
import os
import signal
import sys
from typing import Any
from unittest.mock import patch

from muniment import AsyncFabric
from muniment.database.connection import Connection
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS


async def approve(url: str, people: People, proposal_id: str, kill_at: int) -> int:
    """Approve one proposal; die before the statement of that number. The commit is the last."""
    statements = 0

    def count() -> None:
        nonlocal statements
        statements += 1
        if statements == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    async with AsyncFabric.open(url, master_keys=MASTER_KEYS) as fabric:
        await fabric.queue.get(people.reviewer, proposal_id)
        send = Connection._send

        def counted(self: Connection, *arguments: Any) -> None:
            count()
            send(self, *arguments)
            # The server works on it, although the round trip is not complete.
            self.pgconn.flush()

        with patch.object(Connection, "_send", counted):
            await fabric.queue.approve(people.reviewer, proposal_id)
    return statements


def main() -> None:
    url, tenant, first, *rest = sys.argv[1:]
    people = People(tenant)
    total = asyncio.run(approve(url, people, first, 0))
    print(total)
    for kill_at, proposal_id in enumerate(rest[:total], 1):
        child = os.fork()
        if child == 0:
            asyncio.run(approve(url, people, proposal_id, kill_at))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (kill_at, status)


if __name__ == "__main__":
    main()
