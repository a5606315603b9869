"""Request bodies and pages: how a verb's input is read from JSON. Unknown fields are refused everywhere."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Le
from fastapi import Query
from pydantic import BaseModel, Discriminator, Field, Strict, Tag, WrapValidator, create_model
from pydantic.fields import FieldInfo

from muniment.capture.rules import ProposeFields
from muniment.consent.verbs import ConsentFields
from muniment.errors import InvalidInput
from muniment.http.caller import inside_run
from muniment.model.capture import Happening
from muniment.model.consent import ConsentDocument
from muniment.model.context import Run, RunContext
from muniment.model.fields import Artifact, Name
from muniment.model.inputs import PAGE, OtherRun, Passed, Whole
from muniment.model.proposal import ProposalDocument
from muniment.verbs.declaration import Declaration

T = TypeVar("T")
# Captures of one request (CAP-8).
BATCH_LIMIT = 1000
_RUN = "the agent's run; tenant and agent are the credential's"
Limit = Annotated[int, Query(ge=1, le=PAGE, description="how many at most")]
After = Annotated[str | None, Query(min_length=1, max_length=256, description="`next` of the previous page")]
AfterNumber = Annotated[int | None, Query(ge=0, le=2**62, description="`next` of the previous page")]


def _inside_run(value: Any, build: Callable[[Any], Run]) -> Run:
    with inside_run():
        return build(value)


OwnRun = Annotated[Run, WrapValidator(_inside_run)]
_MaybeRun = OwnRun | None


class RunAsked(Run):
    """A run that a reviewer or an auditor asks about: of any agent of the tenant."""

    agent_id: Name | None = None


_RunAbout = Annotated[RunAsked, WrapValidator(_inside_run)]


class Page(BaseModel, Generic[T]):
    """One page of a list; `next` is the `after` of the page that follows, none at the end."""

    items: Sequence[T]
    next: str | None = None


def page(items: Sequence[T], limit: int, key: str) -> Page[T]:
    """A page of what was found; a full one may be followed by another."""
    return Page(items=items, next=str(getattr(items[-1], key)) if items and len(items) >= limit else None)


class CaptureBody(Happening):
    """One capture."""

    run: OwnRun | None = Field(default=None, description=_RUN)


class CapturesBody(Artifact):
    """Many captures, all or none."""

    captures: Annotated[tuple[Happening, ...], Field(min_length=1, max_length=BATCH_LIMIT, fail_fast=True)]
    run: OwnRun | None = Field(default=None, description=_RUN)


def _how_many(body: Any) -> Literal["ONE", "MANY"]:
    many = "captures" in body if isinstance(body, dict) else isinstance(body, CapturesBody)
    return "MANY" if many else "ONE"


Captured = Annotated[
    Annotated[CaptureBody, Tag("ONE")] | Annotated[CapturesBody, Tag("MANY")], Discriminator(_how_many)
]


class ProposalBody(ProposeFields):
    """A typed fact to propose."""

    run: OwnRun | None = Field(default=None, description=_RUN)


class ProposalDocumentBody(ProposalDocument):
    """A proposal document, as it is exchanged; its checks are computed anew."""

    run: OwnRun | None = Field(default=None, description=_RUN)


class ConsentBody(ConsentFields):
    """A consent to record."""


def _is_document(mark: str, document: type[Artifact]) -> Callable[[Any], Literal["FIELDS", "DOCUMENT"]]:
    def which(body: Any) -> Literal["FIELDS", "DOCUMENT"]:
        is_document = mark in body if isinstance(body, dict) else isinstance(body, document)
        return "DOCUMENT" if is_document else "FIELDS"

    return which


Proposed = Annotated[
    Annotated[ProposalBody, Tag("FIELDS")] | Annotated[ProposalDocumentBody, Tag("DOCUMENT")],
    Discriminator(_is_document("candidate", ProposalDocumentBody)),
]
Consented = Annotated[
    Annotated[ConsentBody, Tag("FIELDS")] | Annotated[ConsentDocument, Tag("DOCUMENT")],
    Discriminator(_is_document("subject_ceid", ConsentDocument)),
]


def body_of(verb: Declaration[Any]) -> type[Artifact] | None:
    """The model of a verb's body: the fields of its input that the path has not, and the run; None for no body."""
    fields = dict(verb.input.model_fields) if verb.input is not None and verb.caller != "tenant" else {}
    taken: dict[str, Any] = {
        name: (_translated(one.annotation, tuple(one.metadata), strict=True), _described(one))
        for name, one in fields.items()
        if name not in verb.path_fields
    }
    if verb.caller == "run":
        taken["run"] = (OwnRun, Field(description=_RUN))
    elif verb.caller == "asker" and "run" not in taken:
        taken["run"] = (_MaybeRun, Field(default=None, description=_RUN))
    if not taken:
        return None
    name = "".join(part.title() for part in verb.name.replace(".", "_").split("_"))
    return create_model(f"{name}Body", __base__=Artifact, __doc__=verb.input.__doc__ if verb.input else None, **taken)


def _described(one: FieldInfo) -> Any:
    if one.is_required():
        return Field(description=one.description)
    if one.default_factory is not None:
        return Field(default_factory=one.default_factory, description=one.description)
    return Field(default=one.default, description=one.description)


def in_query(one: FieldInfo) -> Any:
    """The type of a field in a query, where numbers and flags are written as text."""
    return Annotated[_translated(one.annotation, tuple(one.metadata), strict=False), Query(description=one.description)]


def _translated(kind: Any, metadata: tuple[Any, ...], *, strict: bool) -> Any:
    for mark in metadata:
        if isinstance(mark, Passed) and mark.body is not None:
            return mark.body
    if get_origin(kind) is Annotated and kind != OtherRun:
        inner, *more = get_args(kind)
        return _translated(inner, (*more, *metadata), strict=strict)
    if kind == OtherRun:
        return _RunAbout
    if type(None) in get_args(kind):
        held: Any = None
        for part in get_args(kind):
            one = part if part is type(None) else _translated(part, (), strict=strict)
            held = one if held is None else held | one
        return held
    if kind in (int, bool):
        return _plain(kind, metadata, strict=strict)
    kept = tuple(mark for mark in metadata if not isinstance(mark, Passed))
    return Annotated[(kind, *kept)] if kept else kind


def _plain(kind: Any, metadata: tuple[Any, ...], *, strict: bool) -> Any:
    """A number or a flag with its bounds; strict in JSON, which has numbers and flags of its own."""
    marks: list[Any] = []
    for mark in metadata:
        if isinstance(mark, Whole):
            marks += [Ge(mark.least), Le(mark.most)]
        marks += [one for one in (mark.metadata if isinstance(mark, FieldInfo) else [mark]) if isinstance(one, Ge | Le)]
    marks += [Strict()] if strict else []
    return Annotated[(kind, *marks)] if marks else kind


def given_fields(body: BaseModel, *apart: str) -> dict[str, Any]:
    """What a body says, as a verb's own arguments; what it does not say keeps the verb's default."""
    return {name: getattr(body, name) for name in body.model_fields_set.difference(apart)}


def run_asked(run: RunAsked, tenant_id: str) -> RunContext:
    """The run that a reviewer or an auditor asks about; raises `InvalidInput` where it is nobody's."""
    if run.agent_id is None:
        raise InvalidInput("is required: whose run is it", field="run.agent_id")
    # It is asked what such a run would see: the role it is asked about is taken for one that its agent holds.
    return RunContext(**given_fields(run), tenant_id=tenant_id, roles={run.role})
