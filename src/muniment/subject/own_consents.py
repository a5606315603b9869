"""What a person does about their own consents: give, revoke, answer a request (SUB-1, CON-9)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from muniment.access import codes
from muniment.capture.rules import user_subject
from muniment.consent import store as consents
from muniment.context import FabricContext
from muniment.errors import InvalidInput
from muniment.model.consent import Consent, ConsentInput
from muniment.model.subject import MyConsentRequest
from muniment.subject import consent_requests
from muniment.subject.person import Person, reading
from muniment.subject.rules import purpose_for

_BASIS = "subject_opt_in"


def terms_of(
    person: Person,
    labels: Sequence[str],
    *,
    purpose: str | None = None,
    predicates: Sequence[str] = ("*",),
    valid_until: datetime | None = None,
    supersedes: str | None = None,
    evidence: Sequence[str] = (),
) -> ConsentInput:
    """Return a consent of a person's own, with how it was given; raises `InvalidInput`."""
    subject = user_subject(person.user_id, person.pack)
    if subject is None:
        raise InvalidInput("no subject can have this user's id, so nobody can consent for it", field="user_id")
    return ConsentInput(
        subject=subject,
        purpose=purpose or purpose_for(person.pack),
        predicates_allowed=tuple(predicates),
        data_classifications_allowed=tuple(labels),
        basis=_BASIS,
        valid_until=valid_until,
        supersedes=supersedes,
        evidence_refs=tuple(dict.fromkeys((*evidence, person.how))),
    )


async def give(context: FabricContext, person: Person, terms: ConsentInput) -> Consent:
    """Record a consent; one for everything of a label answers the open requests for that label."""
    tenant_id = person.principal.tenant_id
    consents.check(terms, person.pack, context.now())
    if terms.supersedes is not None:
        async with reading(context, person) as own:
            await consents.one(own.tx, context.vault, terms.supersedes, field="supersedes")
    await context.open_tenant(tenant_id)
    async with context.write_once(tenant_id, "privacy", under=person.pack) as tx:
        granted = await consents.grant(tx, context.vault, person.principal, terms, person.pack)
        if "*" in terms.predicates_allowed:
            await consent_requests.answer_all(tx, person.names, terms.data_classifications_allowed, person.user_id)
        return granted


async def revoke(context: FabricContext, person: Person, consent_id: str, evidence: Sequence[str]) -> Consent:
    """Revoke a consent of the person's own; raises `NotFound` for another's."""
    async with reading(context, person) as own:
        await consents.one(own.tx, context.vault, consent_id)
    references = tuple(dict.fromkeys((*evidence, person.how)))
    async with context.write_once(person.principal.tenant_id, "privacy") as tx:
        return await consents.revoke(tx, context.vault, person.principal, consent_id, references)


async def answer(
    context: FabricContext, person: Person, request_id: str, decision: Literal["grant", "refuse"]
) -> MyConsentRequest:
    """Answer a consent request, once; raises `NotFound`, `Conflict`."""
    async with reading(context, person) as own:
        await consent_requests.open_request(own.tx, request_id)
    async with (
        context.reported(person.principal, "me", request_id),
        context.write_once(person.principal.tenant_id, "privacy", under=person.pack) as tx,
    ):
        code_id = await person.hold_code(context, tx, decision, request_id)
        request = await consent_requests.open_request(tx, request_id)
        if decision == "grant":
            evidence = (f"consent_request:{request.request_id}", f"capture:{request.capture_id}")
            terms = terms_of(person, (request.label,), evidence=evidence)
            granted = terms.model_copy(update={"subject": request.subject})
            await consents.grant(tx, context.vault, person.principal, granted, person.pack)
            await consent_requests.run_again(tx, request.capture_id, person.user_id)
        recorded = "granted" if decision == "grant" else "refused"
        await consent_requests.record_answer(tx, request.request_id, recorded, person.user_id)
        if code_id is not None:
            await codes.use(tx, code_id)
    async with reading(context, person) as own:
        found = await own.consent_requests(closed=True)
    return next(one for one in found if one.request_id == request_id)
