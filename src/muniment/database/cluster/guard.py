"""Refuses to serve while a cluster keeps less than is promised (SCL-2), and repairs what can be repaired."""

import asyncio
import logging
import time

from psycopg import AsyncConnection

from muniment.database.address import Address
from muniment.database.cluster import checks
from muniment.database.cluster.nodes import is_divided
from muniment.errors import StorageUnavailable

log = logging.getLogger("muniment.cluster")

# Seconds between two checks of a cluster, after one that failed, found or repaired something, and of a single server.
CHECK_EVERY = 60.0
CHECK_AGAIN_AFTER = 6.0
CHECK_ONE_SERVER_EVERY = 600.0
_TAKES_AT_MOST = 30.0
# From so many failed checks in a row on, nothing is served.
_FAILED_AT_MOST = 5


class ClusterGuard:
    """Remembers whether the last check of the cluster found something.

    A transaction on a cluster starts a check when one is due, and does not wait for it.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._found: list[str] = []
        # `require_ready` checked when the database was opened.
        self._next_at = time.monotonic() + CHECK_EVERY
        self._check: asyncio.Task[None] | None = None
        self._failed = 0

    def require(self) -> None:
        """Raise `StorageUnavailable` while the last check found something."""
        if time.monotonic() >= self._next_at and self._check is None:
            self._check = asyncio.get_running_loop().create_task(self._check_again())
        if self._failed >= _FAILED_AT_MOST:
            raise StorageUnavailable(f"the cluster is not safe to use: the last {self._failed} checks of it failed")
        if self._found:
            raise weakened(self._found)

    async def close(self) -> None:
        """Cancel a check in progress."""
        if self._check is not None:
            self._check.cancel()
            await asyncio.gather(self._check, return_exceptions=True)

    async def check_now(self) -> tuple[str, ...]:
        """Check now; return each promise that is not kept, in words. Calls are refused while there is one."""
        async with (
            asyncio.timeout(_TAKES_AT_MOST),
            await AsyncConnection.connect(self._conninfo, autocommit=True) as connection,
        ):
            found = await checks.problems(connection, serving=self._conninfo)
        if found != self._found:
            log.warning("%s", found[0] if found else "all checks of the cluster pass again")
        self._found, self._failed = found, 0
        self._next_at = time.monotonic() + (CHECK_AGAIN_AFTER if found else CHECK_EVERY)
        return tuple(found)

    async def _check_again(self) -> None:
        try:
            await self.check_now()
        except Exception as error:
            # A database that is away fails every call anyway; a cluster that cannot be checked is not served for long.
            self._failed += 1
            self._next_at = time.monotonic() + CHECK_AGAIN_AFTER
            log.warning("the cluster cannot be checked: %s", type(error).__name__)
        finally:
            self._check = None


def weakened(problems: list[str]) -> StorageUnavailable:
    """The error of a cluster that fails a check."""
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    return StorageUnavailable(
        f"the cluster is not safe to use: {problems[0]}{more}; "
        "`muniment db distribute` lists all problems and repairs what it can"
    )


class ClusterRepair:
    """Repairs a cluster at intervals, as the owner of its tables: a shard that was moved has lost settings."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._next_at = 0.0

    async def repair_when_due(self) -> int:
        """Repair what can be repaired, if a check is due; return for how many columns."""
        if time.monotonic() < self._next_at:
            return 0
        self._next_at = time.monotonic() + CHECK_EVERY
        try:
            async with asyncio.timeout(_TAKES_AT_MOST):
                if not await self._is_cluster():
                    self._next_at = time.monotonic() + CHECK_ONE_SERVER_EVERY
                    return 0
                repaired = await self._repair()
        except Exception as error:
            log.warning("the cluster cannot be repaired: %s", type(error).__name__)
            return 0
        if repaired:
            # Shards are being moved: the next one is repaired soon.
            self._next_at = time.monotonic() + CHECK_AGAIN_AFTER
            log.warning("the planner kept samples of %d columns with content: switched off and removed", repaired)
        return repaired

    async def _is_cluster(self) -> bool:
        # By a login of the program: on one server a worker may not have the owner's password.
        conninfo = self._address.direct().for_task("recall")
        async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
            return await is_divided(connection)

    async def _repair(self) -> int:
        owner = self._address.for_owner()
        async with await AsyncConnection.connect(owner, autocommit=True) as connection:
            return await checks.repair(connection, serving=owner)
