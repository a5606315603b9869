"""Where a verification that is not finished goes on: its state as a line of text, signed."""

import hmac
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from hashlib import sha256

from pydantic import BaseModel, ConfigDict, ValidationError

from muniment.audit.row_audit import Expected
from muniment.errors import InvalidInput
from muniment.model.chain import Break

# A cursor with a hundred breaks and a thousand rows that did not fit has some 200,000 characters.
LONGEST = 1_000_000
_UNPACKED = 8_000_000


class Position(BaseModel):
    """All that a verification has to know of what it looked at before."""

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    tenant_id: str
    number: int
    hash: bytes
    end: tuple[int, int]
    events: int
    batches: int
    breaks: list[Break]
    more: bool
    until: dict[str, str] | None
    listed: dict[str, int]
    left: dict[str, int]
    suspects: list[tuple[str, str, int, bytes, bytes | None, int]]
    rows: int
    rows_more: bool

    def text(self, secret: bytes) -> str:
        """The cursor."""
        packed = zlib.compress(self.model_dump_json().encode())
        return urlsafe_b64encode(_signature(secret, packed) + packed).decode()

    def expected(self) -> dict[tuple[str, str], Expected]:
        """The rows that did not fit."""
        return {(one[0], one[1]): Expected(*one[2:]) for one in self.suspects}


def position(cursor: str, secret: bytes, tenant_id: str) -> Position:
    """What a cursor says; raises `InvalidInput` for one that no verification of this tenant gave."""
    try:
        whole = urlsafe_b64decode(cursor.encode()) if len(cursor) <= LONGEST else b""
        packed = whole[32:]
        if not hmac.compare_digest(_signature(secret, packed), whole[:32]):
            raise ValueError
        found = Position.model_validate_json(zlib.decompressobj().decompress(packed, _UNPACKED))
    except (ValueError, zlib.error, ValidationError):
        raise InvalidInput("expected a cursor as an answer had it", field="cursor") from None
    if found.tenant_id != tenant_id:
        raise InvalidInput("is of another tenant", field="cursor")
    return found


def counted(counts: Counter[str]) -> dict[str, int]:
    """Those that are not zero."""
    return {name: count for name, count in counts.items() if count}


def _signature(secret: bytes, packed: bytes) -> bytes:
    return hmac.digest(secret, packed, sha256)
