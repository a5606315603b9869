"""A database that is away, in our words: what callers are told, and the driver's errors that mean it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import psycopg

from muniment.errors import StorageUnavailable

DISK_FULL = "the disk of the database is full"


def no_answer() -> str:
    """All that is known of a server that is not ours to start."""
    return "the database does not answer"


def unavailable(error: BaseException, explain: Callable[[], str] = no_answer) -> StorageUnavailable:
    """The error to raise in place of the driver's; `explain` says why there is no answer."""
    return StorageUnavailable(DISK_FULL if isinstance(error, psycopg.errors.DiskFull) else explain())


@contextmanager
def answering(explain: Callable[[], str] = no_answer) -> Generator[None]:
    """For connections without a pool: raises `StorageUnavailable` when the server goes away, or is away already."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise unavailable(error, explain) from error
