"""The address of the database, and the login of each task."""

import base64
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.errors import InvalidInput

# Temporary tables last, so that none takes the place of one of ours.
_SETTINGS = "-c search_path=muniment,public,pg_temp"
# A search of the vector index continues until it has the wanted number of rows after filtering.
_SEARCHING = " -c hnsw.iterative_scan=strict_order -c hnsw.ef_search=200 -c hnsw.max_scan_tuples=100000"
_OF_TASK = {
    # A crash can lose recall records of the WAL writer's last delay; no other task gives up durability.
    "recall": " -c synchronous_commit=off" + _SEARCHING,
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

    @classmethod
    def parse(cls, url: str, login_secret: bytes | None) -> "Address":
        """Parse `postgresql://...` or a libpq keyword string; raises `InvalidInput`."""
        try:
            return cls(conninfo_to_dict(url), login_secret)
        except Exception as error:
            raise InvalidInput("expected an address such as postgresql://owner@host/database", field="url") from error

    def for_owner(self) -> str:
        """The connection string of the owner, for migrations."""
        return make_conninfo(**(self.owner | {"options": _SETTINGS, "application_name": "muniment-owner"}))

    def for_task(self, task: str) -> str:
        """The connection string of a task's login."""
        place = {k: v for k, v in self.owner.items() if k != "password"}
        if self.login_secret is not None:
            place["password"] = self.password(task)
        settings = _SETTINGS + _OF_TASK.get(task, "")
        login: dict[str, Any] = {
            "user": f"muniment_{task}",
            "options": f"{settings} -c lock_timeout=10s",
            "connect_timeout": 3,
            "keepalives_idle": 30,
            "tcp_user_timeout": 30_000,
            "application_name": f"muniment-{task}",
        }
        return make_conninfo(**(place | login))

    def password(self, task: str) -> str:
        """The password of a task's login."""
        assert self.login_secret is not None
        kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"muniment/login/" + task.encode())
        return base64.urlsafe_b64encode(kdf.derive(self.login_secret)).decode().rstrip("=")
