"""Which of several servers is the primary: of those that accept writes, the one on the newest timeline.

A failover begins a new timeline. A former primary that comes back beside the new one accepts writes too, on the old
timeline: what it holds is out of date, and what is written there is lost once it follows the new one.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple, TypeVar

import anyio
import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import tuple_row

from muniment.database.address import servers_of

log = logging.getLogger("muniment.database")

FORMER = "only a former primary answers, from which another server has taken over: stop it, and make it a standby"
_TIMELINE = """SELECT (SELECT system_identifier FROM pg_control_system())::text,
  CASE WHEN NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END"""
# Seconds that each server has to answer at the start.
_ANSWER_SECONDS = 3.0

Connected = TypeVar("Connected", bound="AsyncConnection[Any]")


class Timeline(NamedTuple):
    """A server's system, which it shares with its standbys, and the timeline that it writes on; None on a standby."""

    system: str
    number: int | None


class Primaries:
    """Connects to the primary of an address that names several servers, and to no former one."""

    def __init__(self, conninfo: str) -> None:
        self._servers = servers_of(conninfo)
        # The newest timeline that was seen, by system.
        self._newest: dict[str, int] = {}
        self._asking = anyio.Lock()
        # Why there is no primary, where more is known than that none answers.
        self.problem: str | None = None

    @property
    def several(self) -> bool:
        """Whether the address names several servers."""
        return len(self._servers) > 1

    async def connect(
        self, connect: Callable[..., Awaitable[Connected]], conninfo: str, **how: Any
    ) -> tuple[Connected, Timeline]:
        """Connect with `connect` to the primary; raises `OperationalError` if there is none, or only a former one."""
        await self._ask_all()
        attributes = conninfo_to_dict(conninfo).get("target_session_attrs")
        problem, error = None, psycopg.OperationalError(FORMER)
        for place in servers_of(conninfo):
            try:
                connection = await connect(make_conninfo(place, target_session_attrs=attributes), **how)
            except psycopg.OperationalError as refused:
                error = refused
                continue
            timeline = await _timeline(connection)
            if not self.is_former(timeline):
                self._note(timeline)
                self.problem = None
                return connection, timeline
            problem = FORMER
            await connection.close()
        self.problem = problem
        raise error

    def is_former(self, timeline: Timeline | None) -> bool:
        """Whether another server of the same system has written on a newer timeline."""
        return (
            timeline is not None
            and timeline.number is not None
            and timeline.number < self._newest.get(timeline.system, 0)
        )

    def _note(self, timeline: Timeline) -> None:
        if timeline.number is not None:
            self._newest[timeline.system] = max(timeline.number, self._newest.get(timeline.system, 0))

    async def _ask_all(self) -> None:
        """Before the first connection, ask every server: the first that accepts writes may be a former primary."""
        async with self._asking:
            if self._newest:
                return
            found: list[Timeline] = []

            async def ask(place: str) -> None:
                with anyio.move_on_after(_ANSWER_SECONDS):
                    try:
                        async with await AsyncConnection.connect(place, autocommit=True) as connection:
                            found.append(await _timeline(connection))
                    except (psycopg.Error, OSError):
                        return

            async with anyio.create_task_group() as tasks:
                for place in self._servers:
                    tasks.start_soon(ask, place)
            for timeline in found:
                self._note(timeline)
            if any(self.is_former(one) for one in found):
                log.warning("a former primary accepts writes beside the primary: stop it, and make it a standby")


async def _timeline(connection: "AsyncConnection[Any]") -> Timeline:
    row = await (await connection.cursor(row_factory=tuple_row).execute(_TIMELINE)).fetchone()
    assert row is not None
    if not connection.autocommit:
        await connection.rollback()
    return Timeline(*row)


# Servers that follow this one; a copy in the making, and a receiver of the log for an archive, are none.
FOLLOWS = "state <> 'backup' AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')"
_STATE: LiteralString = f"""SELECT (SELECT system_identifier FROM pg_control_system())::text, pg_is_in_recovery(),
  CASE WHEN NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END,
  CASE WHEN current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
    AND NOT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))
    THEN 'synchronous_standby_names is ' || current_setting('synchronous_standby_names') || '; following: '
      || coalesce((SELECT string_agg(application_name, ', ') FROM pg_stat_replication WHERE {FOLLOWS}), 'none') END,
  pg_is_in_recovery() AND current_setting('restore_command') = '' AND pg_has_role('pg_read_all_stats', 'USAGE')
    AND NOT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'),
  (SELECT count(*) FROM pg_stat_replication r WHERE {FOLLOWS} AND NOT EXISTS (
    SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid))"""  # noqa: S608  a constant


class _State(NamedTuple):
    """What a server says of itself."""

    system: str
    recovering: bool
    # None on a standby.
    timeline: int | None
    # Why writes wait for a standby that confirms them; None where they do not wait.
    unconfirmed: str | None
    # A standby to which no server sends its log, and that reads none from an archive.
    cut_off: bool
    # Servers that follow this one, for which it keeps no log.
    without_slot: int


@dataclass(frozen=True)
class ServerState:
    """What one of several servers of an address is, as `db status` says it."""

    server: str
    state: str


async def server_states(servers: Iterable[str]) -> tuple[ServerState, ...]:
    """What each of the servers is, by the owner's address of each."""
    found: dict[str, _State | None] = {}
    for place in servers:
        try:
            limited = make_conninfo(place, connect_timeout=int(_ANSWER_SECONDS))
            async with await AsyncConnection.connect(limited, autocommit=True, row_factory=tuple_row) as connection:
                row = await (await connection.execute(_STATE)).fetchone()
                found[place] = _State(*row) if row is not None else None
        except (psycopg.Error, OSError):
            found[place] = None
    newest: dict[str, int] = {}
    for state in filter(None, found.values()):
        newest[state.system] = max(state.timeline or 0, newest.get(state.system, 0))
    return tuple(ServerState(_named(place), _words(state, newest)) for place, state in found.items())


def _words(state: _State | None, newest: dict[str, int]) -> str:
    if state is None:
        return "does not answer"
    if state.timeline is not None and state.timeline < newest[state.system]:
        return "former primary, not used: stop it, and make it a standby"
    words = ["standby" if state.recovering else "primary"]
    if state.cut_off:
        words.append("receives nothing; its server's log says why")
    if state.unconfirmed is not None:
        words.append(f"writes wait, because no standby confirms them: {state.unconfirmed}")
    if state.without_slot:
        words.append(f"standbys without a replication slot: {state.without_slot}; a purge can cut them off")
    return "; ".join(words)


def _named(place: str) -> str:
    given = conninfo_to_dict(place)
    return f"{given.get('host') or given.get('hostaddr')}:{given.get('port', 5432)}"
