"""PgBouncer in transaction mode between a program and a test server: each transaction gets any server connection."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.database.storage import TASKS

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
PORT = 6432
SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {pool_size}
"""
# After each transaction the server connection is as if it were new: nothing can depend on a session.
EMPTIED = """server_reset_query = DISCARD ALL
server_reset_query_always = 1
"""


@dataclass(frozen=True)
class Pooler:
    """A running PgBouncer: the address of the database behind it, and its process."""

    address: str
    pid: int


@contextmanager
def pooler_before(conninfo: str, database: str, *, pool_size: int = 1, emptied: bool = True) -> Generator[Pooler]:
    """A pooler before that database of the server; only where `PGBOUNCER` is installed.

    By default the strictest one: a single server connection for each login, emptied after each transaction.
    """
    assert PGBOUNCER is not None, "pgbouncer is not installed"
    place = conninfo_to_dict(conninfo)
    host, port, as_root = str(place["host"]), int(place.get("port", 5432)), os.geteuid() == 0
    with tempfile.TemporaryDirectory(prefix="pool") as name:
        folder = Path(name)
        # It refuses to run as root, and nobody else can enter the folder of the server's socket.
        if host.startswith("/"):
            server = Path(host, f".s.PGSQL.{port}")
            (folder / ".s.PGSQL.5432").hardlink_to(server)
            host, port, account = name, 5432, (server.stat().st_uid, server.stat().st_gid)
        else:
            nobody = pwd.getpwnam("nobody")
            account = (nobody.pw_uid, nobody.pw_gid)
        text = SETTINGS.format(folder=folder, host=host, port=port, pool_size=pool_size)
        (folder / "pgbouncer.ini").write_text(text + (EMPTIED if emptied else ""))
        (folder / "users.txt").write_text("".join(f'"muniment_{task}" ""\n' for task in TASKS))
        if as_root:
            os.chown(folder, *account)
        process = subprocess.Popen(
            [PGBOUNCER, "-q", str(folder / "pgbouncer.ini")],
            user=account[0] if as_root else None,
            group=account[1] if as_root else None,
        )
        try:
            address = make_conninfo(host=name, port=PORT, dbname=database, user="muniment_recall")
            _wait_for(address)
            yield Pooler(address, process.pid)
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(address: str) -> None:
    for _ in range(200):
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("pgbouncer does not answer")
