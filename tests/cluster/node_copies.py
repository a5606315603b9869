"""Copies of a cluster's nodes: a server made with the programs that the node's server runs, and a log kept beside.

The programs are looked for in the folder that `MUNIMENT_TEST_CLUSTER_PROGRAMS` names, and else where the node says that
its own are: then the node has to be on this machine.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.faults.servers import eventually, value

# Read when the tests are collected: each test runs without settings from outside.
PROGRAMS = os.environ.get("MUNIMENT_TEST_CLUSTER_PROGRAMS")
_ENVIRONMENT = dict(os.environ)


class NodeCopy:
    """A copy of the data of the node at that superuser's address, in a folder of its own."""

    def __init__(self, node: str, folder: Path) -> None:
        self._node, self._folder = node, folder
        self._programs = programs_of(node)
        self._how: dict[str, Any] = {"cwd": "/", "env": _ENVIRONMENT, "stdin": subprocess.DEVNULL}
        if (account := _account()) is not None:
            os.chown(folder, *account)
            self._how |= {"user": account[0], "group": account[1], "extra_groups": []}
        self.data = folder / "data"

    def copy(self, *options: str) -> None:
        """Copy the node's data."""
        place = make_conninfo(self._node, dbname="")
        command = [self._programs / "pg_basebackup", "-d", place, "-D", self.data, "-c", "fast", *options]
        subprocess.run(command, check=True, capture_output=True, **self._how)

    def write(self, name: str, text: str = "") -> None:
        """Write a file into the copy, as the user that runs it."""
        file = self.data / name
        file.write_text(text)
        if (account := _account()) is not None:
            os.chown(file, *account)

    @contextlib.contextmanager
    def receiving(self) -> Generator[Path]:
        """A folder into which the node's log comes as it is written, segment by segment."""
        archive = self._folder / "archive"
        archive.mkdir()
        if (account := _account()) is not None:
            os.chown(archive, *account)
        command = [self._programs / "pg_receivewal", "-d", make_conninfo(self._node, dbname=""), "-D", archive]
        receiver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._how)
        try:
            eventually(lambda: receiver.poll() is not None or list(archive.iterdir()))
            assert receiver.poll() is None, "the log cannot be received"
            yield archive
        finally:
            receiver.terminate()
            receiver.wait(30)

    @contextlib.contextmanager
    def serving(self, *settings: str) -> Generator[str]:
        """A server on the copy; gives the superuser's address of the node's database there."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        own = ("listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={self._folder}")
        with (self._folder / "log").open("wb") as log:
            command = [self._programs / "postgres", "-D", self.data, *(f"--{one}" for one in (*own, *settings))]
            server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **self._how)
        try:
            place = make_conninfo(**(conninfo_to_dict(self._node) | {"host": "127.0.0.1", "port": port}))
            eventually(lambda: server.poll() is not None or _answers(place))
            assert server.poll() is None, (self._folder / "log").read_text()
            yield place
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait(30)


@contextlib.contextmanager
def copy_of(node: str) -> Generator[NodeCopy]:
    """A folder for a copy of that node, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="node-"))
    try:
        yield NodeCopy(node, folder)
    finally:
        shutil.rmtree(folder)


def programs_of(node: str) -> Path:
    """The folder of the programs; the test is not run where there are none."""
    folder = Path(PROGRAMS or str(value(node, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")))
    try:
        for name in ("postgres", "pg_basebackup", "pg_receivewal"):
            subprocess.run([folder / name, "--version"], check=True, capture_output=True, env=_ENVIRONMENT)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no programs of the cluster's PostgreSQL run in {folder}: copies of nodes were not made")
    return folder


def _account() -> tuple[int, int] | None:
    """Who runs a server, which root may not."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("nobody")
    return account.pw_uid, account.pw_gid


def _answers(place: str) -> bool:
    try:
        psycopg.connect(place).close()
    except psycopg.OperationalError:
        return False
    return True
