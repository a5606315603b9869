"""Tells errors of a cluster's nodes apart, by constraint and by lost connection, and reads warnings at a commit.

A node's error arrives through the coordinator with its SQLSTATE, but without the field that names the constraint: the
name stands in the message, with the number of the shard behind it. A node that does not commit is reported by warnings,
and the coordinator's own error, if there is one, says nothing about the reason.

INVARIANT: no text of a message is read unless Citus made it, which the diagnostics say (`source_function`).
"""

import re
from functools import lru_cache

import psycopg
from psycopg.errors import Diagnostic, lookup
from psycopg.pq import DiagnosticField

from muniment.errors import StorageUnavailable

# The functions of Citus that pass on the error of a node, or that a node did not commit.
_PASSES_ON = "ReportResultError"
_NOT_COMMITTED = "FinishRemoteTransactionCommit"
# The function of Citus that says to which address it could not connect, as whom, and why.
_NOT_CONNECTED = "ReportConnectionError"
# PostgreSQL's function that waits at a commit until the synchronous standby has it. Its only warnings say that the wait
# was cancelled: the commit is then reported as successful, whether the standby has it or not.
_AWAITS_STANDBY = "SyncRepWaitForLSN"
# The connection from the coordinator to a node failed.
_LOST = "08006"
# When a connection ends, libpq makes a result without SQLSTATE, which Citus reports as an internal error. It does the
# same when it needs a connection that was lost. An internal error of the node itself looks equal: the node is tested.
_INTERNAL = "XX000"
_LOSES = (
    _PASSES_ON,
    "MarkRemoteTransactionFailed",
    "CheckRemoteTransactionsHealth",
    "ErrorIfPostCommitFailedShardPlacements",
)
# The longest name. Where the shard's number would make a name longer, Citus shortens it and adds a hash of it.
_LONGEST = 63
_HASHED = len("_01234567")


class NodeAway(StorageUnavailable):
    """The node of the cluster that holds the tenant's rows does not answer; other tenants are not affected."""

    def __init__(self, message: str = "the node of the cluster that holds this tenant does not answer") -> None:
        super().__init__(message)


class NotReplicated(psycopg.OperationalError):
    """A commit is in the database, but whether the synchronous standby has it is not known."""


def violates(error: psycopg.Error, constraint: str) -> bool:
    """Whether an error is the violation of that constraint, on this server or in a shard of a cluster."""
    found = error.diag
    if found.constraint_name is not None:
        return _in_shards(constraint).fullmatch(found.constraint_name) is not None
    if found.source_function != _PASSES_ON or not (error.sqlstate or "").startswith("23"):
        return False
    # Identifiers only: values, which callers choose, are in the detail.
    return _in_shards(constraint).search(found.message_primary or "") is not None


@lru_cache(maxsize=64)
def _in_shards(constraint: str) -> re.Pattern[str]:
    """The name of a constraint, alone or as the shards have it."""
    forms = [re.escape(constraint)]
    for digits in range(1, 20):
        suffix = 1 + digits
        if len(constraint) + suffix <= _LONGEST:
            forms.append(rf"{re.escape(constraint)}_[0-9]{{{digits}}}")
        else:
            kept = constraint[: _LONGEST - suffix - _HASHED]
            forms.append(rf"{re.escape(kept)}_[0-9a-f]{{8}}_[0-9]{{{digits}}}")
    return re.compile(rf"(?<![\w$])(?:{'|'.join(forms)})(?![\w$])")


def node_lost(error: BaseException) -> bool:
    """Whether the coordinator, which answered with this error, lost a node or could not reach it."""
    if not isinstance(error, psycopg.Error):
        return False
    state, function = error.sqlstate or "", error.diag.source_function
    if state == _INTERNAL:
        return function in _LOSES
    return state.startswith("08") or (state.startswith("57P") and function == _PASSES_ON)


def refused_connection(error: psycopg.Error) -> str | None:
    """Which node the coordinator could not connect to, as whom, and why, in Citus's words; None if it says nothing.

    For the owner and superusers: it names hosts and users.
    """
    if error.diag.source_function != _NOT_CONNECTED:
        return None
    return (error.diag.message_primary or "").partition("\n")[0]


class CommitWarnings:
    """The warnings that a connection received while it committed.

    INVARIANT: a node that did not commit is an error, whatever the coordinator answers; so is a commit that the
    synchronous standby did not confirm (SCL-4).
    """

    def __init__(self) -> None:
        self._last: psycopg.Error | None = None
        self._found: psycopg.Error | None = None

    def on_notice(self, warning: Diagnostic) -> None:
        """Keep a warning about a commit; registered as the connection's handler of notices."""
        if warning.severity_nonlocalized != "WARNING":
            return
        if warning.source_function == _PASSES_ON:
            self._last = _as_error(warning)
        elif warning.source_function == _NOT_COMMITTED:
            self._found = self._last or _lost("a node did not commit")
            self._last = None
        elif warning.source_function == _AWAITS_STANDBY:
            self._found = NotReplicated(warning.message_primary or "")

    def take(self) -> psycopg.Error | None:
        """The error of a commit since this was last asked; None if every node, and the standby, has it."""
        found, self._found, self._last = self._found, None, None
        return found


def _lost(message: str) -> psycopg.Error:
    return lookup(_LOST)(message, info={DiagnosticField.SQLSTATE: _LOST.encode()})


def _as_error(warning: Diagnostic) -> psycopg.Error:
    """The error that a warning would be if the node's statement had failed before the commit."""
    message = warning.message_primary or ""
    if warning.sqlstate in (None, _INTERNAL):
        return _lost(message)
    try:
        kind = lookup(warning.sqlstate)
    except KeyError:
        kind = psycopg.DatabaseError
    fields = {
        DiagnosticField.SQLSTATE: warning.sqlstate,
        DiagnosticField.MESSAGE_PRIMARY: warning.message_primary,
        DiagnosticField.MESSAGE_DETAIL: warning.message_detail,
        DiagnosticField.SOURCE_FUNCTION: warning.source_function,
    }
    return kind(message, info={field: text.encode() for field, text in fields.items() if text is not None})
