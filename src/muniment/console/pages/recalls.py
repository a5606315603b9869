"""Recalls: the latest, by user, run, agent or memory, and what one returned with its papers."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.addresses import address, asked
from muniment.console.rendering import page
from muniment.console.visitors import Allowed, Visitor, told
from muniment.errors import InvalidInput, NotFound
from muniment.model.recalls import RecallNoted
from muniment.recall.verbs import LOOKED_THROUGH

router = APIRouter()
Reader = Annotated[Visitor, Depends(Allowed("read_memory"))]

PAGE = 50
_NARROWED = ("user_id", "run_id", "agent_id", "memory_id")


@router.get("/why/recalls")
async def browse(request: Request, visitor: Reader) -> Response:
    """The latest recalls, by what is asked for."""
    typed = asked(request, *_NARROWED, "after")
    given: dict[str, Any] = {name: value or None for name, value in typed.items()}
    found: list[RecallNoted] = []
    problem = None
    try:
        found = await visitor.fabric.recalls.list(visitor.principal, limit=PAGE + 1, **given)
    except (InvalidInput, NotFound) as error:
        problem = told(error)
    return page(
        "recalls.html",
        visitor,
        status=200 if problem is None else 400,
        at="why",
        typed=typed,
        recalls=found[:PAGE],
        next=found[PAGE - 1].recall_id if len(found) > PAGE else None,
        problem=problem,
        narrowed=any(typed[name] for name in _NARROWED),
        looked_through=LOOKED_THROUGH,
        address=address,
    )


@router.get("/why/recalls/{recall_id}")
async def one(recall_id: str, visitor: Reader) -> Response:
    """One recall with what it returned."""
    found = await visitor.fabric.recalls.get(visitor.principal, recall_id)
    return page("recall.html", visitor, at="why", recall=found, address=address)
