"""Writing in: captures, proposals, corrections."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from muniment.errors import InvalidInput
from muniment.http.bodies import Captured, CapturesBody, CorrectionBody, ProposalBody, Receipts, given
from muniment.http.caller import Asking, IdempotencyKey, May
from muniment.http.idempotency import IdempotentRoute
from muniment.model.candidate import Refusal
from muniment.model.capture import Receipt
from muniment.model.proposal import Submission

router = APIRouter(tags=["writing"], route_class=IdempotentRoute)


@router.post("/captures", status_code=201)
async def capture(
    asking: Annotated[Asking, Depends(May("capture"))], body: Captured, key: IdempotencyKey = None
) -> Receipt | Receipts:
    """Write down what happened: one thing, or many in `captures`, all or none. Once this answers it is committed."""
    asker = await asking.asker(body.run)
    if not isinstance(body, CapturesBody):
        return await asking.fabric.capture(asker, **_keyed(given(body, "run"), key))
    items = [given(item) for item in body.captures]
    if key is not None:
        items = [
            item if item.get("idempotency_key") else item | {"idempotency_key": f"{key}#{n}"}
            for n, item in enumerate(items)
        ]
    return Receipts(receipts=tuple(await asking.fabric.capture_many(asker, items)))


@router.post("/proposals", status_code=201)
async def propose(
    asking: Annotated[Asking, Depends(May("propose"))], body: ProposalBody, key: IdempotencyKey = None
) -> Submission | Refusal:
    """Propose a typed fact: it is captured, passes the gates and enters the queue.

    What a gate refuses comes back with the gate and the reason; the capture stays.
    """
    return await asking.fabric.propose(await asking.asker(body.run), **_keyed(given(body, "run"), key))


@router.post("/corrections", status_code=201)
async def correct(
    asking: Annotated[Asking, Depends(May("correct"))], body: CorrectionBody, key: IdempotencyKey = None
) -> Submission | Refusal:
    """Correct a memory, or what stands on a key. Another person approves it."""
    return await asking.fabric.correct(await asking.asker(body.run), **_keyed(given(body, "run"), key))


def _keyed(fields: dict[str, Any], key: str | None) -> dict[str, Any]:
    own = fields.get("idempotency_key")
    if key is None or own == key:
        return fields
    if own is not None:
        raise InvalidInput("is another key than the header's", field="idempotency_key")
    return fields | {"idempotency_key": key}
