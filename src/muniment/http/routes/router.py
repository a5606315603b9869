"""The router of `/v1`: what all its routes have in common."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.security import HTTPBearer

from muniment.http import problems
from muniment.http.idempotency import IdempotentRoute

# The document has the schema once, under this name.
_PROBLEM = {"$ref": f"#/components/schemas/{problems.Problem.__name__}"}
PROBLEM_RESPONSES: Mapping[int | str, dict[str, Any]] = {
    status: {"description": words, "content": {problems.CONTENT_TYPE: {"schema": _PROBLEM}}}
    for status, words in (("4XX", "the request is refused"), ("5XX", "the server cannot answer it now"))
}
_BEARER = HTTPBearer(auto_error=False, description="An API key (`muniment key create`) or a token of the issuer's.")


def v1_router() -> APIRouter:
    """A router whose routes are complete: the app takes them over as they are."""
    return APIRouter(
        prefix="/v1", route_class=IdempotentRoute, dependencies=[Depends(_BEARER)], responses=dict(PROBLEM_RESPONSES)
    )
