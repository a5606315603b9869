"""Requests of end users to have everything about them erased, and their release (SUB-3)."""

import psycopg

from muniment.database import cursors
from muniment.database.storage import Transaction
from muniment.errors import Conflict, NotFound
from muniment.model.ids import make_id
from muniment.model.subject import ErasureRequest


async def ask(tx: Transaction, user_id: str) -> ErasureRequest:
    """Record that an end user asks for the erasure of everything; raises `Conflict` while a request of theirs waits."""
    tick = await tx.tick()
    request_id = make_id("erq", tick.at)
    values = {"user_id": user_id, "memory_id": None, "seq": tick.seq, "at": tick.at}
    try:
        await tx.do("subject.ask_for_erasure", request_id=request_id, **values)
    except psycopg.errors.UniqueViolation as error:
        raise Conflict("was asked for before, and waits for its release") from error
    tx.emit("memory.note", user_id, about="erasure_requested", request_id=request_id)
    return ErasureRequest(request_id=request_id, user_id=user_id, asked_at=tick.at)


async def one(tx: Transaction, request_id: str) -> ErasureRequest:
    """Return a request; raises `NotFound`."""
    row = await tx.row("subject.erasure_request", request_id=request_id)
    if row is None:
        raise NotFound("no such request", field="request_id")
    return ErasureRequest(**row)


async def open_one(tx: Transaction, request_id: str) -> ErasureRequest:
    """Return a request that waits; raises `NotFound`, or `Conflict` for one that was answered."""
    request = await one(tx, request_id)
    if request.answer is not None:
        raise Conflict(f"was {request.answer} before", field="request_id")
    return request


async def open_of(tx: Transaction, user_id: str) -> list[str]:
    """Return the ids of a user's requests that wait."""
    return [row["request_id"] for row in await tx.rows("subject.open_erasure_requests", user_id=user_id)]


async def listed(tx: Transaction, count: int, after: str | None, *, waiting: bool) -> list[ErasureRequest]:
    """Return a page of requests, the latest first; raises `NotFound` for an unknown `after`."""
    place = await cursors.page_start(tx, "subject.erasure_request_place", after, latest_first=True)
    rows = await tx.rows("subject.erasure_requests", open=waiting, count=count, **place)
    return [ErasureRequest(**row) for row in rows]


async def of_user(tx: Transaction, user_id: str) -> list[ErasureRequest]:
    """Return the requests of a user that wait."""
    rows = await tx.rows("subject.erasure_requests_of", user_id=user_id)
    return [ErasureRequest(**row) for row in rows]


async def answer_all(tx: Transaction, user_id: str, by: str, erasure_id: str) -> None:
    """Answer what a user asked for, in the transaction of the erasure; after the tick."""
    for request_id in await open_of(tx, user_id):
        await answer(tx, request_id, "released", by, erasure_id)


async def answer(tx: Transaction, request_id: str, decision: str, by: str, erasure_id: str | None = None) -> None:
    """Answer a request, once; raises `Conflict` if somebody else was first."""
    tick = await tx.tick()
    values = {"answer": decision, "by": by, "erasure_id": erasure_id, "seq": tick.seq, "at": tick.at}
    if not await tx.do("subject.answer_erasure", request_id=request_id, **values):
        raise Conflict("was answered at this moment", field="request_id")
    named = {"answer": decision, "answered_seq": tick.seq, "answered_at": tick.at, "answered_by": by}
    tx.event_rows.add("erasure_requests.answered", request_id=request_id, **named, erasure_id=erasure_id)
    tx.emit("memory.note", by, about="erasure_request_answered", request_id=request_id, answer=decision)
