"""The address of the database, and the login of each task."""

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.errors import InvalidInput

# Temporary tables last, so that none takes the place of one of ours.
_SEARCH_PATH = {"search_path": "muniment,public,pg_temp"}
# A search of the vector index continues until it has the wanted number of rows after filtering.
_SEARCHING = {"hnsw.iterative_scan": "strict_order", "hnsw.ef_search": "200", "hnsw.max_scan_tuples": "100000"}
_OF_TASK = {
    # A crash can lose recall records of the WAL writer's last delay; no other task gives up durability.
    "recall": {"synchronous_commit": "off", **_SEARCHING},
    "writer": _SEARCHING,
    "auditor": _SEARCHING,
}

# Where a standby can take over, a server that no longer answers is given up within seconds.
_FAILING_OVER = {"connect_timeout": 2, "keepalives_idle": 4, "keepalives_interval": 2, "tcp_user_timeout": 8_000}


@dataclass(frozen=True)
class Address:
    """A database: the owner's address for migrations, and the same place for the logins of the tasks.

    The socket of the embedded server is in a folder that only its owner can enter, so no password is needed. Elsewhere
    the passwords of the logins are derived from one secret, so that nothing more has to be configured.
    """

    owner: dict[str, Any] = field(repr=False)
    login_secret: bytes | None = field(repr=False)
    # The address of a pooler through which the tasks connect; its server connections keep nothing between transactions.
    pooler: dict[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, login_secret: bytes | None) -> "Address":
        """Parse `postgresql://...` or a libpq keyword string; raises `InvalidInput`.

        With MUNIMENT_POOLER the address is a pooler's, and the owner's is MUNIMENT_OWNER_URL.
        """
        place = _parsed(url, "url")
        match os.environ.get("MUNIMENT_POOLER"):
            case None | "":
                return cls(place, login_secret)
            case "transaction":
                owner = os.environ.get("MUNIMENT_OWNER_URL")
                if not owner:
                    raise InvalidInput(
                        "set it: migrations and purges do not go through a pooler", field="MUNIMENT_OWNER_URL"
                    )
                return cls(_parsed(owner, "MUNIMENT_OWNER_URL"), login_secret, place)
            case _:
                raise InvalidInput("expected transaction, or nothing", field="MUNIMENT_POOLER")

    def for_owner(self) -> str:
        """The connection string of the owner, for migrations."""
        settings = {"options": _options(_SEARCH_PATH), "client_encoding": "utf8", "application_name": "muniment-owner"}
        return make_conninfo(**(self.owner | settings))

    def for_task(self, task: str) -> str:
        """The connection string of a task's login."""
        place = {k: v for k, v in (self.pooler or self.owner).items() if k != "password"}
        if self.login_secret is not None:
            place["password"] = self.password(task)
        login: dict[str, Any] = {
            "user": f"muniment_{task}",
            "client_encoding": "utf8",
            "connect_timeout": 3,
            "keepalives_idle": 30,
            "tcp_user_timeout": 30_000,
            "application_name": f"muniment-{task}",
        }
        if self.hosts > 1:
            login |= _FAILING_OVER
        if self.pooler is None:
            login["options"] = _options(_SEARCH_PATH | _settings_of(task))
        return make_conninfo(**(place | login))

    def for_standby(self, place: Mapping[str, Any]) -> str:
        """The connection string of the auditor's login on that standby, where every transaction is read-only."""
        there: dict[str, Any] = {"dbname": self.owner.get("dbname"), **place, "target_session_attrs": "any"}
        there.pop("password", None)
        if self.login_secret is not None:
            there["password"] = self.password("auditor")
        settings = _SEARCH_PATH | {"default_transaction_read_only": "on"}
        login: dict[str, Any] = {
            "user": "muniment_auditor",
            "client_encoding": "utf8",
            "application_name": "muniment-standby",
            "options": _options(settings),
            **_FAILING_OVER,
        }
        return make_conninfo(**(there | login))

    @property
    def hosts(self) -> int:
        """How many servers the tasks' address names: one of them is the primary."""
        return len(_hosts(self.pooler or self.owner))

    def servers(self) -> tuple[str, ...]:
        """The owner's connection string of each server, whether it is the primary or a standby."""
        return servers_of(self.for_owner())

    def direct(self) -> "Address":
        """The same database, not through the pooler."""
        return replace(self, pooler=None)

    def local_settings(self, task: str) -> tuple[str, ...]:
        """The statements that a task's transaction begins with where its session's settings do not reach.

        That is behind a pooler, and on the nodes of a cluster: the coordinator hands on what a transaction sets.
        """
        quoted = {name: f"'{value}'" for name, value in _settings_of(task).items()}
        return tuple(f"SET LOCAL {name} = {value}" for name, value in (_SEARCH_PATH | quoted).items())

    def password(self, task: str) -> str:
        """The password of a task's login."""
        assert self.login_secret is not None
        kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"muniment/login/" + task.encode())
        return base64.urlsafe_b64encode(kdf.derive(self.login_secret)).decode().rstrip("=")


def _parsed(url: str, field: str) -> dict[str, Any]:
    try:
        place = conninfo_to_dict(url)
    except Exception as error:
        raise InvalidInput("expected an address such as postgresql://owner@host/database", field=field) from error
    # INVARIANT: of several servers only the primary is used: a standby may lag (TIR-5, SCL-4).
    if len(_hosts(place)) > 1 and place.setdefault("target_session_attrs", "read-write") not in _OF_PRIMARY:
        raise InvalidInput("expected target_session_attrs=read-write, or none", field=field)
    return place


_OF_PRIMARY = ("read-write", "primary")


def _hosts(place: Mapping[str, Any]) -> list[str]:
    return str(place.get("host") or place.get("hostaddr") or "").split(",")


def servers_of(conninfo: str) -> tuple[str, ...]:
    """Split an address of several servers into one for each, of the primary or a standby."""
    place: dict[str, Any] = conninfo_to_dict(conninfo)
    count = len(_hosts(place))
    if count == 1:
        return (conninfo,)
    lists = {name: str(place[name]).split(",") for name in ("host", "hostaddr", "port") if place.get(name)}
    each = {name: found * count if len(found) == 1 else found for name, found in lists.items()}
    return tuple(
        make_conninfo(**(place | {name: found[n] for name, found in each.items()} | {"target_session_attrs": "any"}))
        for n in range(count)
    )


def _settings_of(task: str) -> dict[str, str]:
    return _OF_TASK.get(task, {}) | {"lock_timeout": "10s"}


def _options(settings: dict[str, str]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())
