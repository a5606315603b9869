"""Errors that a Citus 14 coordinator reported for its nodes, as they were recorded, and errors of one server."""

from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.errors import Diagnostic
from psycopg.pq import DiagnosticField

from muniment.database.cluster.errors import CommitWarnings, NodeAway, node_lost, violates
from muniment.errors import StorageUnavailable

UNIQUE = 'duplicate key value violates unique constraint "{}"'
FOREIGN = 'insert or update on table "kids_102022" violates foreign key constraint "{}"'
LONG = "kids_tenant_id_parent_key_version_which_is_long_and_longer_fkey"
CLOSED = (
    "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n"
    "\tbefore or while processing the request.\ninvalid socket"
)


def fields(
    state: str, message: str, function: str, severity: str = "ERROR", constraint: str = ""
) -> dict[int, bytes | None]:
    found = {
        DiagnosticField.SEVERITY: severity,
        DiagnosticField.SEVERITY_NONLOCALIZED: severity,
        DiagnosticField.SQLSTATE: state,
        DiagnosticField.MESSAGE_PRIMARY: message,
        DiagnosticField.SOURCE_FUNCTION: function,
        DiagnosticField.CONSTRAINT_NAME: constraint,
    }
    return {int(field): text.encode() for field, text in found.items() if text}


def error(state: str, message: str, function: str = "ReportResultError", **more: Any) -> psycopg.Error:
    return errors.lookup(state)(message, info=fields(state, message, function, **more))


def warned(*warnings: tuple[str, str, str]) -> CommitWarnings:
    noted = CommitWarnings()
    for state, message, function in warnings:
        noted.on_notice(Diagnostic(fields(state, message, function, severity="WARNING"), "utf-8"))
    return noted


@pytest.mark.parametrize(
    ("found", "constraint"),
    [
        (error("23505", UNIQUE.format("requests_once_102014")), "requests_once"),
        (error("23505", UNIQUE.format("verdicts_one_final_1020140")), "verdicts_one_final"),
        (
            error("23505", "doppelter Schlüsselwert verletzt Unique-Constraint »proposals_pkey_102009«"),
            "proposals_pkey",
        ),
        (error("23503", FOREIGN.format("kids_tenant_id_parent_key_version_which_is_long_6c6abdff_102022")), LONG),
        (error("23514", 'new row for relation "kids_102022" violates check constraint "kids_n_check"'), "kids_n_check"),
        # Of a shard on the coordinator itself, and of one server.
        (error("23505", "", "_bt_check_unique", constraint="requests_once_102014"), "requests_once"),
        (error("23505", "", "_bt_check_unique", constraint="requests_once"), "requests_once"),
    ],
)
def test_the_constraint_of_a_node_s_error_is_known_by_its_name_in_the_shard(
    found: psycopg.Error, constraint: str
) -> None:
    assert violates(found, constraint)
    assert not violates(found, "memories_pkey")


@pytest.mark.parametrize(
    "found",
    [
        error("23505", UNIQUE.format("memory_requests_once_102014")),
        error("23505", UNIQUE.format("requests_once_2_102014")),
        error("23505", UNIQUE.format("requests_once_more_102014")),
        # A text that says so is none: an error of one server is told by its field, and another error by its SQLSTATE.
        error("23505", UNIQUE.format("requests_once_102014"), "_bt_check_unique"),
        error("23505", UNIQUE.format("requests_once"), "_bt_check_unique", constraint="requests_pkey"),
        error("P0001", UNIQUE.format("requests_once_102014")),
    ],
)
def test_no_other_error_is_taken_for_a_constraint_s(found: psycopg.Error) -> None:
    assert not violates(found, "requests_once")


def test_a_constraint_that_fails_on_a_node_at_the_commit_is_the_error_that_it_is_on_one_server() -> None:
    found = warned(
        ("23503", FOREIGN.format("late_fkey_102030"), "ReportResultError"),
        ("01000", "failed to commit transaction on 127.0.0.1:9711", "FinishRemoteTransactionCommit"),
    ).take()
    assert isinstance(found, errors.ForeignKeyViolation)
    assert violates(found, "late_fkey")
    assert found.sqlstate == "23503"


@pytest.mark.rule("SCL-3")
@pytest.mark.parametrize("state", ["XX000", "57P01", "08006"])
def test_a_node_that_is_lost_at_the_commit_is_away(state: str) -> None:
    noted = warned(
        (state, CLOSED, "ReportResultError"),
        ("01000", "failed to commit transaction on 127.0.0.1:9721", "FinishRemoteTransactionCommit"),
    )
    found = noted.take()
    assert isinstance(found, psycopg.OperationalError)
    assert node_lost(found)
    assert noted.take() is None, "it was told once"


@pytest.mark.rule("SCL-3")
def test_a_warning_that_is_not_about_a_commit_is_no_error() -> None:
    assert warned(("25P01", "there is no transaction in progress", "UserAbortTransactionBlock")).take() is None
    assert warned(("08006", "connection to the remote node failed", "ReportResultError")).take() is None
    assert warned(("P0001", "failed to commit transaction on here", "exec_stmt_raise")).take() is None


@pytest.mark.rule("SCL-3")
def test_a_lost_node_is_told_from_a_lost_server_and_from_a_refused_statement() -> None:
    refused = "connection to the remote node muniment_recall@127.0.0.1:9721 failed with the following error: refused"
    assert node_lost(error("08006", refused, "ReportConnectionError"))
    assert node_lost(error("57P01", "terminating connection due to administrator command"))
    essential = "failure on connection marked as essential: 127.0.0.1:37433"
    assert node_lost(error("XX000", essential, "MarkRemoteTransactionFailed"))
    assert node_lost(error("XX000", CLOSED))
    assert not node_lost(error("XX000", essential, "elog_node_display"))
    assert not node_lost(error("57P01", "terminating connection due to administrator command", "ProcessInterrupts"))
    assert not node_lost(psycopg.OperationalError("the connection is closed"))
    assert not node_lost(error("40P01", "deadlock detected", "DeadLockReport"))
    assert isinstance(NodeAway(), StorageUnavailable)
    assert NodeAway().code == "storage_unavailable"
