"""A connection that sends a batch of statements in one round trip.

psycopg connects, pools and converts values. The batch itself goes straight through libpq in pipeline mode, with one
Sync at its end and one reader on the socket: psycopg's cursors and pipelines cost several times as much Python.
"""

import asyncio
import os
import select
import socket
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self, cast

import psycopg
from anyio import CancelScope
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.adapt import Dumper, PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.json import set_json_loads
from pydantic_core import from_json

from muniment.database.cluster.errors import CommitWarnings
from muniment.database.primaries import Primaries, Timeline
from muniment.database.server_liveness import Row, ServerLiveness
from muniment.database.socket_watch import SocketWatch
from muniment.database.statements import Statement
from muniment.loops import give_way

# A statement and its arguments, in the order of its parameters.
Command = tuple[Statement, Sequence[Any]]

# Statements that a connection keeps prepared; the one used longest ago gives way.
PREPARED_MAX = 200
CANCEL_SECONDS = 5.0


# A prepared statement that is gone, or whose result changed with the schema: such a connection is of no more use.
_STALE = (b"26000", b"0A000")
_IS_CLUSTER = Statement(
    "is_cluster", "SELECT 1 AS one WHERE to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL", planned_once=False
)


class Reply(NamedTuple):
    """What the server answered to one statement: its rows, how many it changed, and the name of the command."""

    rows: list[Row]
    changed: int
    command: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Sent:
    """One message to the server: a command's execution, or a preparation or deallocation that goes with it."""

    command: bool = True
    prepares: tuple[str, tuple[int, ...]] | None = None
    # The text of the prepared statement that it executes.
    answers: str | None = None


class Connection(AsyncConnection[Row]):
    """A connection whose waits end with `OperationalError` if the server stops answering."""

    liveness: ServerLiveness | None = None
    hung_up: bool = False
    # The tenant of the transaction that it is lent to.
    tenant_id: str | None = None
    # Which timeline its server writes on, where the address names several servers.
    timeline: Timeline | None = None
    # Whether its server is a cluster's, which plans each statement for its values alone.
    of_cluster: bool = False
    # False behind a pooler that gives each transaction another server connection: no statement is prepared by name.
    names_statements: bool = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepare_threshold = None
        self._transformer = Transformer(self)
        # The name of each prepared statement, by its text and the types of its parameters.
        self._named: OrderedDict[tuple[str, tuple[int, ...]], bytes] = OrderedDict()
        self._names_given = 0
        # The names of the columns that each prepared statement answers with, by its text.
        self._columns: dict[str, list[str]] = {}
        self._commit_warnings = CommitWarnings()
        self.add_notice_handler(self._commit_warnings.on_notice)

    @classmethod
    async def connect(cls, conninfo: str = "", **how: Any) -> Self:
        """Connect; of several servers to the one that `primaries` finds."""
        primaries: Primaries | None = how.pop("primaries", None)
        if primaries is None or not primaries.several:
            return await super().connect(conninfo, **how)
        connection, timeline = await primaries.connect(super().connect, conninfo, **how)
        connection.timeline = timeline
        return connection

    async def exchange(self, commands: Iterable[Command]) -> list[Reply]:
        """Run these statements in one round trip and return what each answered; raise the first error.

        `commands` may be a generator: the server works on what was sent while the next command is made. If the caller
        is cancelled, the server is asked to stop, and the connection cannot be used any more.
        """
        pgconn = self.pgconn
        if pgconn.status != ConnStatus.OK:
            raise psycopg.OperationalError("the connection is closed")
        if pgconn.pipeline_status != PipelineStatus.OFF:
            raise RuntimeError("two tasks use one transaction at the same time")
        # The values of a list are all converted first, so that an invalid one raises before anything is sent.
        streams = not isinstance(commands, list)
        prepared = ((statement, self._converted(arguments)) for statement, arguments in commands)
        ready = prepared if streams else list(prepared)
        pgconn.enter_pipeline_mode()
        try:
            sent: list[_Sent] = []
            for statement, converted in ready:
                self._send(statement, converted, sent)
                if streams:
                    pgconn.flush()
                    await give_way()
            pgconn.pipeline_sync()
            results = await self._results()
            pgconn.exit_pipeline_mode()
        except Exception:
            pgconn.finish()
            raise
        except BaseException:
            await self._abandon()
            raise
        return self._replies(sent, results)

    async def ask_whether_of_cluster(self) -> None:
        """Set `of_cluster`; one round trip."""
        (found,) = await self.exchange([(_IS_CLUSTER, [])])
        self.of_cluster = bool(found.rows)

    @property
    def has_begun(self) -> bool:
        """Whether a transaction is open on it, also a failed one."""
        return self.pgconn.transaction_status != TransactionStatus.IDLE

    def has_ended(self) -> bool:
        """Whether the server has closed this idle connection; needs no round trip."""
        try:
            poll = select.poll()
            poll.register(self.pgconn.socket, select.POLLIN)
            # The server may send its reason first: read until the end of the stream shows.
            while poll.poll(0):
                self.pgconn.consume_input()
        except (psycopg.Error, OSError):
            return True
        return self.pgconn.status != ConnStatus.OK

    async def wait(self, gen: PQGen[Any], *args: Any, **kwargs: Any) -> Any:
        """Wait as the driver does, and close the connection if `liveness` finds that the server is gone."""
        if self.liveness is None:
            return await super().wait(gen, *args, **kwargs)
        with self.liveness.waiting(self._hang_up, self.tenant_id):
            return await super().wait(gen, *args, **kwargs)

    def _converted(self, arguments: Sequence[Any]) -> "_Converted":
        if not arguments:
            return _NOTHING
        transformer = self._transformer
        converted = [TextArray.of(cast("list[Any]", one)) if type(one) is list else one for one in arguments]
        values = transformer.dump_sequence(converted, [PyFormat.AUTO] * len(converted))
        return _Converted(values, transformer.types or (), transformer.formats)

    def _send(self, statement: Statement, converted: "_Converted", sent: list[_Sent]) -> None:
        pgconn = self.pgconn
        values, types, formats = converted
        if statement.planned_once and self.names_statements:
            key = (statement.sql, types)
            name = self._named.get(key)
            if name is None:
                name = self._prepare(key, sent)
            else:
                self._named.move_to_end(key)
            pgconn.send_query_prepared(name, values, formats, statement.binary)
            sent.append(_executed(statement.sql))
        else:
            pgconn.send_query_params(statement.sql.encode(), values, types, formats, statement.binary)
            sent.append(_COMMAND)

    def _prepare(self, key: tuple[str, tuple[int, ...]], sent: list[_Sent]) -> bytes:
        pgconn = self.pgconn
        if len(self._named) >= PREPARED_MAX:
            (text, _), oldest = self._named.popitem(last=False)
            self._columns.pop(text, None)
            # Not DEALLOCATE: that is a statement, and fails in an aborted transaction and before BEGIN.
            pgconn.send_close_prepared(oldest)
            sent.append(_Sent(command=False))
        self._names_given += 1
        name = self._named[key] = b"m%d" % self._names_given
        pgconn.send_prepare(name, key[0].encode(), key[1])
        sent.append(_Sent(command=False, prepares=key))
        return name

    async def _results(self) -> list[PGresult]:
        """Every result up to the Sync, read as the socket becomes readable."""
        pgconn, watch = self.pgconn, SocketWatch(self.pgconn.socket)
        results: list[PGresult] = []
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def fail(error: Exception) -> None:
            watch.stop()
            done.set_exception(error)

        def read() -> None:
            if done.done():
                return
            try:
                while not (complete := self._read(results)) and watch.has_more():
                    pass
                if complete:
                    done.set_result(None)
            except Exception as error:
                fail(error)

        def write() -> None:
            if done.done():
                return
            try:
                if not pgconn.flush():
                    watch.stop_writing()
            except Exception as error:
                fail(error)

        unsent = pgconn.flush()
        watch.start_reading(read)
        if unsent:
            watch.start_writing(write)
        try:
            if self.liveness is None:
                await done
            else:
                with self.liveness.waiting(self._hang_up, self.tenant_id):
                    await done
        finally:
            watch.stop()
        return results

    def _read(self, results: list[PGresult]) -> bool:
        """Read what has arrived; return whether the Sync is among it."""
        pgconn = self.pgconn
        pgconn.consume_input()
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                continue
            if result.status == ExecStatus.PIPELINE_SYNC:
                return True
            results.append(result)
            if pgconn.status != ConnStatus.OK:
                raise _connection_error(result)
        return False

    def _replies(self, sent: list[_Sent], results: list[PGresult]) -> list[Reply]:
        for message, result in zip(sent, results, strict=True):
            if message.prepares is not None and result.status != ExecStatus.COMMAND_OK:
                self._named.pop(message.prepares, None)
        failed = next((result for result in results if result.status == ExecStatus.FATAL_ERROR), None)
        uncommitted = self._commit_warnings.take()
        if failed is not None:
            error = error_from_result(failed, "utf-8")
            if uncommitted is not None:
                raise uncommitted from error
            if failed.error_field(DiagnosticField.SQLSTATE) in _STALE:
                self.pgconn.finish()
                raise psycopg.OperationalError("the connection's prepared statements are out of date") from error
            raise error
        if uncommitted is not None:
            raise uncommitted
        return [
            self._reply(result, message.answers)
            for message, result in zip(sent, results, strict=True)
            if message.command
        ]

    def _reply(self, result: PGresult, prepared: str | None) -> Reply:
        if result.status != ExecStatus.TUPLES_OK:
            return Reply([], result.command_tuples or 0, result.command_status)
        if not (count := result.ntuples):
            return Reply([], 0)
        transformer = self._transformer
        transformer.set_pgresult(result)
        names = self._columns.get(prepared) if prepared is not None else None
        if names is None:
            names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
            if prepared is not None:
                self._columns[prepared] = names
        return Reply([dict(zip(names, row, strict=True)) for row in transformer.load_rows(0, count, tuple)], count)

    async def _abandon(self) -> None:
        """Ask the server to stop what it does for this connection, and close it."""
        with CancelScope(shield=True), suppress(Exception):
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self.cancel_safe(timeout=CANCEL_SECONDS)
        self.pgconn.finish()

    def _hang_up(self) -> None:
        # libpq takes it for the server's end of the connection. Closing the file would break the event loop.
        self.hung_up = True
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(self.pgconn.socket)) as line:
            line.shutdown(socket.SHUT_RDWR)


class TextArray(bytes):
    """A list of texts as the database reads it."""

    @classmethod
    def of(cls, items: list[Any]) -> "TextArray | list[Any]":
        """Write a list of texts; any other list is left to the driver, which takes ten times as long."""
        if not items or set(map(type, items)) != {str}:
            return items
        written = "".join(items)
        if "\0" in written:
            return items
        if "\\" in written or '"' in written:
            items = [one.replace("\\", "\\\\").replace('"', '\\"') for one in items]
        return cls(('{"' + '","'.join(items) + '"}').encode())


class _TextArrayDumper(Dumper):
    oid = psycopg.adapters.types["text"].array_oid

    def dump(self, obj: TextArray) -> bytes:
        return obj


psycopg.adapters.register_dumper(TextArray, _TextArrayDumper)
# The same values as by the standard library's parser, in a third of the time.
set_json_loads(from_json)


class _Converted(NamedTuple):
    """The arguments of a statement as libpq takes them."""

    values: Sequence[Any] | None
    types: tuple[int, ...]
    formats: Sequence[Any] | None


_NOTHING = _Converted(None, (), None)
_COMMAND = _Sent()


@lru_cache(maxsize=1024)
def _executed(text: str) -> _Sent:
    """The execution of the prepared statement with that text."""
    return _Sent(answers=text)


def _connection_error(result: PGresult) -> psycopg.Error:
    """The error for a result that came because the connection ended."""
    error = error_from_result(result, "utf-8")
    return error if isinstance(error, psycopg.OperationalError) else psycopg.OperationalError(str(error))
