"""The address of the database, and the login of each task."""

import base64
import os
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
        if self.pooler is None:
            login["options"] = _options(self._settings(task))
        return make_conninfo(**(place | login))

    def direct(self) -> "Address":
        """The same database, not through the pooler."""
        return replace(self, pooler=None)

    def local_settings(self, task: str) -> tuple[str, ...]:
        """The statements that each transaction of a task begins with; none if its connections keep their settings."""
        if self.pooler is None:
            return ()
        return tuple(f"SET LOCAL {name} = {value}" for name, value in self._settings(task).items())

    def _settings(self, task: str) -> dict[str, str]:
        return _SEARCH_PATH | _OF_TASK.get(task, {}) | {"lock_timeout": "'10s'" if self.pooler else "10s"}

    def password(self, task: str) -> str:
        """The password of a task's login."""
        assert self.login_secret is not None
        kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"muniment/login/" + task.encode())
        return base64.urlsafe_b64encode(kdf.derive(self.login_secret)).decode().rstrip("=")


def _parsed(url: str, field: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except Exception as error:
        raise InvalidInput("expected an address such as postgresql://owner@host/database", field=field) from error


def _options(settings: dict[str, str]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())
