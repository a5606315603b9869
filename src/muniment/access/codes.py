"""One-time codes: by one, a person proves that an act which somebody else carries to us is their own (SUB-5).

A code is made for whoever sends it by a channel that the agent cannot read. It is for one act on one thing of one user,
once, and for a quarter of an hour. Its secret has 60 random bits and is stored nowhere.
"""

import hmac
import secrets
from datetime import timedelta
from hashlib import sha256

from pydantic_core import to_json

from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Transaction
from muniment.errors import Denied
from muniment.model.context import Principal
from muniment.model.ids import make_id
from muniment.model.subject import Act, OneTimeCode

TERM = timedelta(minutes=15)
# Without letters and digits that look alike.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 12
_GROUP = 4


async def make(tx: Transaction, vault: Vault, by: Principal, user_id: str, act: Act, target: str) -> OneTimeCode:
    """Make a code for that act of that user on that thing; the code is in the result and stored nowhere."""
    key = await vault.tenant_data_key(tx)
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    code_id, tick = make_id("otc", tx.now), await tx.tick()
    expires_at = tick.at + TERM
    stands_for = {"user_id": user_id, "act": act, "target": target}
    digest = _digest(key, secret, code_id, **stands_for)
    signed = {"by": by.id, "by_kind": by.kind, "seq": tick.seq, "at": tick.at}
    await tx.do("subject.add_code", code_id=code_id, digest=digest, expires_at=expires_at, **stands_for, **signed)
    tx.emit("memory.note", by.id, about="one_time_code", code_id=code_id, act=act, target=target)
    shown = "-".join(secret[at : at + _GROUP] for at in range(0, _LENGTH, _GROUP))
    return OneTimeCode(code_id=code_id, user_id=user_id, act=act, target=target, expires_at=expires_at, code=shown)


async def hold(tx: Transaction, vault: Vault, code: str, user_id: str, act: Act, target: str) -> str:
    """Lock the code that was presented for that act and return its id; to be called before the tick.

    Raises `Denied` for a code that was used, has ended, is wrong, or stands for anything else; it does not say which.
    """
    secret = code.upper().replace("-", "").replace(" ", "").replace("O", "0").replace("I", "1").replace("L", "1")
    key = await vault.tenant_data_key(tx)
    stands_for = {"user_id": user_id, "act": act, "target": target}
    found: str | None = None
    for row in await tx.rows("subject.codes", **stands_for):
        if hmac.compare_digest(_digest(key, secret, row["code_id"], **stands_for), row["digest"]):
            found = row["code_id"]
    if found is None:
        raise Denied("the code is not valid for this, was used before or has ended", field="code")
    return found


async def use(tx: Transaction, code_id: str) -> None:
    """Record that a held code was used, in the transaction of the act; raises `Denied` if it ended just now."""
    tick = await tx.tick()
    if not await tx.do("subject.use_code", code_id=code_id, seq=tick.seq, at=tick.at):
        raise Denied("the code has ended", field="code")
    tx.event_rows.add("one_time_codes.used", code_id=code_id, used_seq=tick.seq, used_at=tick.at)


def _digest(key: SubjectKey, secret: str, code_id: str, *, user_id: str, act: str, target: str) -> bytes:
    stands_for = to_json([code_id, user_id, act, target])
    return hmac.digest(key.derived("one-time-codes"), secret.encode() + b"\0" + stands_for, sha256)
