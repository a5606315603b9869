"""Rules of the capture stage: what a capture takes and how it is checked, who vouches for it, and whom it is about."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from muniment.errors import InvalidInput
from muniment.language.messages.speakers import names_another_speaker
from muniment.model.candidate import Candidate
from muniment.model.capture import CaptureInput, Circumstances, FactFields, Happening, TypedFact
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.fields import (
    CaptureKind,
    Ceid,
    EvidenceRefs,
    Instant,
    Intent,
    Json,
    Label,
    Name,
    Probability,
    Qualifiers,
    Source,
    SourceClass,
    Text,
    build,
    build_many,
)
from muniment.model.ids import holds_card_number, is_ceid
from muniment.model.inputs import Passed, VerbInput
from muniment.model.speakers import CHANNEL, IMPORT, TOOL, USER
from muniment.pack import Pack

# ---- sources: what a credential vouches for in a capture and in its facts (ISO-8) ----


def vouched_for(author: Principal, item: CaptureInput) -> str | None:
    """Return what the author's credential vouches for in a capture: `user`, the tool of its origin, or None.

    With None the capture is its author's own word, whatever it claims to be. Of an import it is the system that it was
    read from: nobody speaks for that, and it is not the word of who imports (IMP-2).
    """
    origin = item.origin
    if item.claims is not None:
        return origin
    if origin is not None and origin.startswith(IMPORT):
        return None
    if origin is not None and origin.startswith(TOOL):
        name = origin.removeprefix(TOOL)
        return origin if name and author.speaks_for.has_tool(name) else None
    if names_another_speaker(item.payload, item.user_id, item.subject):
        return None
    if author.kind == "end_user":
        return USER if item.user_id == author.id else None
    if item.kind != "message" or (origin is not None and not origin.startswith(CHANNEL)):
        return None
    channel = origin.removeprefix(CHANNEL) if origin is not None else None
    return USER if author.speaks_for.has_channel(channel) else None


def vouched_in(candidate: Candidate, of_capture: str | None) -> str | None:
    """Return what is vouched for in one fact of a capture: as in the capture, if the fact's class of source agrees."""
    own = f"{candidate.author} {class_of_source(candidate.source, of_capture)} {candidate.extractor}"
    return of_capture if candidate.claimed_by == own else None


def class_of_source(source: Source, vouched: str | None) -> str:
    """Return `operator`, `system`, `agent`, `end_user`, a tool as `tool:name`, or an import as `import:system`.

    `vouched` is what the author's credential may speak for in this capture; without it the class is the author's own,
    whatever the capture claims (ISO-8).
    """
    if vouched is None:
        return source
    return "end_user" if vouched == USER else vouched


def source_of(candidate: Candidate) -> SourceClass:
    """Return the source that rules go by: `import` for what an import brought in, else the kind of its author."""
    own = candidate.claimed_by.removeprefix(f"{candidate.author} ")
    return "import" if own.startswith(IMPORT) else candidate.source


# ---- subjects: a user is the subject `namespace:id` of the pack's namespace ----


def user_subject(user_id: str | None, pack: Pack) -> str | None:
    """Return the CEID of a user; None without a user, and for an id that no CEID can hold (CAP-12)."""
    if user_id is None:
        return None
    ceid = f"{pack.identity.users}:{user_id}"
    return ceid if is_ceid(ceid) and not holds_card_number(user_id) else None


def subject_of(subject: str | None, user_id: str | None, pack: Pack) -> str | None:
    """Return the subject if there is one, else the user's CEID."""
    return subject if subject is not None else user_subject(user_id, pack)


def user_of(subject: str | None, pack: Pack) -> str | None:
    """Return the user id that a subject stands for, if it is a user."""
    namespace, colon, user_id = (subject or "").partition(":")
    return user_id if colon and namespace in pack.identity.users_spelled else None


def with_aliases_resolved(item: CaptureInput, pack: Pack) -> CaptureInput:
    """Return a capture about the subject, and with a fact about the entity, that the pack's aliases mean (PAC-7).

    It is done before anything is sealed: all that is said of one subject is sealed under one key.
    """
    identity, fact = pack.identity, item.fact
    changed: dict[str, Any] = {}
    if item.subject is not None and (subject := identity.resolve(item.subject)) != item.subject:
        changed["subject"] = subject
    if fact is not None and fact.entity is not None and (entity := identity.resolve(fact.entity)) != fact.entity:
        changed["fact"] = fact.model_copy(update={"entity": entity})
    return item.model_copy(update=changed) if changed else item


# ---- inputs: what `capture`, `propose` and `correct` take ----


class CaptureFields(Happening):
    """What `capture` takes."""


class CaptureMany(VerbInput):
    """What `capture_many` takes."""

    items: Annotated[Any, Passed(Sequence[Mapping[str, Any]])] = Field(alias="captures")


class ProposeFields(FactFields, Circumstances):
    """What `propose` takes: a typed fact, and the circumstances of its capture."""

    kind: CaptureKind = "statement"


class CorrectFields(VerbInput):
    """What `correct` takes beside its target."""

    value: Json = None
    text: Text | None = None
    confidence: Probability = 0.60
    classification: Label | None = None
    subject: Ceid | None = None
    user_id: Name | None = None
    intent_id: Intent | None = None
    qualifiers: Qualifiers = Field(default_factory=dict)
    evidence_refs: EvidenceRefs = ()
    observed_at: Instant | None = None
    valid_from: Instant | None = Field(None, description="from when it holds; by default as its target")
    valid_until: Instant | None = Field(None, description="until when it holds; by default as its target")
    origin: Name | None = None
    idempotency_key: Name | None = None


_FROM_RUN = ("user_id", "session_id", "run_id", "intent_id", "workflow_id", "decision_key", "qualifiers")
_CAPTURES: TypeAdapter[list[CaptureInput]] = TypeAdapter(Annotated[list[CaptureInput], Field(fail_fast=True)])
# The fields that are checked here, before pydantic checks the rest.
_CHECKED_HERE = frozenset({"fact", "claims", "user_id"})
# `corrects` is set only by `correct`.
_OF_FACT = frozenset(TypedFact.model_fields) - {"corrects"}


def run_fields(asker: Asker) -> dict[str, Any]:
    """Return the fields of a run context that everything captured in it gets; an end user captures for itself."""
    if not isinstance(asker, RunContext):
        own = isinstance(asker, Principal) and asker.kind == "end_user"
        return {"user_id": asker.id} if own else {}
    return {name: getattr(asker, name) for name in _FROM_RUN}


def check_user(asker: Asker, items: Iterable[CaptureInput], *, within: str | None = None) -> None:
    """Raise `InvalidInput` for a capture for all users by an end user, or by an agent bound to one user (ISO-5)."""
    if not (asker.user_bound if isinstance(asker, RunContext) else asker.kind == "end_user"):
        return
    for place, item in enumerate(items):
        if item.user_id is None:
            field = f"{within}.{place}.user_id" if within is not None else "user_id"
            raise InvalidInput("cannot be null: this credential acts for a single user", field=field)


def capture_input(known: dict[str, Any], fields: Mapping[str, Any]) -> CaptureInput:
    """Check a capture; fields of the run are filled in unless the caller sets them."""
    return build(CaptureInput, _filled(known, fields))


def capture_inputs(
    known: dict[str, Any], items: Sequence[Mapping[str, Any]], *, within: str, first: int
) -> list[CaptureInput]:
    """Check many captures; an error names the item, counted from `first`."""
    checked_here = _CHECKED_HERE if known.get("user_id") is not None else _CHECKED_HERE - {"user_id"}
    if all(type(item) is dict and checked_here.isdisjoint(item) for item in items):
        filled: list[Mapping[str, Any]] = [{**known, **item} for item in items]
    else:
        filled = [_filled_at(known, item, f"{within}.{place}") for place, item in enumerate(items, first)]
    return build_many(CaptureInput, _CAPTURES, filled, within=within, first=first)


def _filled_at(known: dict[str, Any], fields: Mapping[str, Any], place: str) -> dict[str, Any]:
    try:
        return _filled(known, fields)
    except InvalidInput as error:
        error.field = f"{place}.{error.field}" if error.field else place
        raise


def _filled(known: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(fields, Mapping):
        raise InvalidInput("expected a mapping of fields")
    if own_part := {"fact", "claims"}.intersection(fields):
        raise InvalidInput("is not a known field", field=min(own_part))
    filled = {**known, **fields}
    own = known.get("user_id")
    if own is not None and filled["user_id"] not in (own, None):
        raise InvalidInput("is another user than the run's own", field="user_id")
    return filled


def proposal_input(known: dict[str, Any], fields: Mapping[str, Any], *, corrects: str | None = None) -> CaptureInput:
    """Check a proposal: the typed fact within its capture."""
    filled = _filled(known, fields)
    stated = {name: filled.pop(name) for name in list(filled) if name in _OF_FACT}
    fact = build(TypedFact, stated | {"corrects": corrects})
    if "payload" in filled:
        raise InvalidInput("is not a known field", field="payload")
    return build(CaptureInput, {"kind": "statement"} | filled | {"fact": fact})
