"""Consent and erasure: what a subject allowed, and how a person is forgotten."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from muniment.http.bodies import Page, RevokeBody, given, page
from muniment.http.caller import Asking, May
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import After, Limit
from muniment.model.consent import Consent, ConsentInput, ConsentReach
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.fields import Ceid, Name
from muniment.model.name_search import NameSearch, NameSearchInput

router = APIRouter(tags=["privacy"], route_class=IdempotentRoute)

Officer = Annotated[Asking, Depends(May("consent"))]


@router.get("/consents")
async def list_(
    asking: Annotated[Asking, Depends(May("read_consent"))],
    subject: Annotated[str | None, Query(max_length=256)] = None,
    limit: Limit = 50,
    after: After = None,
) -> Page[Consent]:
    """The records of a subject, or of the tenant, oldest first, each with its state now."""
    found = await asking.fabric.consent.list(asking.principal, subject=subject, limit=limit, after=after)
    return page(found, limit, "consent_id")


@router.post("/consents", status_code=201)
async def grant(asking: Officer, body: ConsentInput) -> Consent:
    """Record a consent; with `supersedes` it renews or changes an earlier one."""
    return await asking.fabric.consent.grant(asking.principal, **given(body))


@router.post("/consents/{consent_id}/revoke")
async def revoke(asking: Officer, consent_id: str, body: RevokeBody | None = None) -> Consent:
    """Revoke a consent: its memories are hidden from the very next recall on."""
    return await asking.fabric.consent.revoke(asking.principal, consent_id, **(given(body) if body else {}))


@router.get("/consents/reach")
async def reach(
    asking: Annotated[Asking, Depends(May("read_consent"))], consent_id: Name | None = None, subject: Ceid | None = None
) -> list[ConsentReach]:
    """What a revocation would hide: the live memories on a consent and its renewals, or on each of a subject's."""
    return list(await asking.fabric.consent.reach(asking.principal, consent_id=consent_id, subject=subject))


@router.get("/erasures")
async def erasures(
    asking: Annotated[Asking, Depends(May("read_erasures"))], limit: Limit = 50, after: After = None
) -> Page[Erasure]:
    """The receipts of erasures, the latest first."""
    found = await asking.fabric.erasures(asking.principal, limit=limit, after=after)
    return page(found, limit, "erasure_id")


@router.post("/erasures/search")
async def search_texts(asking: Annotated[Asking, Depends(May("erase"))], body: NameSearchInput) -> NameSearch:
    """Look for a name in every opened text, a page at a time; each page is recorded, the name as a keyed hash alone."""
    return await asking.fabric.search_texts(asking.principal, **given(body))


@router.post("/erasures", status_code=201)
async def erase(asking: Annotated[Asking, Depends(May("erase"))], body: ErasureInput) -> Erasure:
    """Forget a subject, an end user, or both where they are one person. It cannot be undone."""
    return await asking.fabric.erase(asking.principal, **given(body))
