"""What callers pass to verbs: checks of single arguments, the base of the input types, pages, and the inputs of recall.

An error names the field and does not repeat the value.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from muniment.errors import InvalidInput, TooLarge
from muniment.model.compiled import Format
from muniment.model.context import RunContext
from muniment.model.fields import (
    Artifact,
    AsOf,
    Entities,
    Instant,
    Name,
    Query,
    TenantId,
    Tier,
    WriteClass,
    field_error,
    invalid,
)

# The most entries that a page can have.
PAGE = 1000
_T = TypeVar("_T")
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_TENANT: TypeAdapter[str] = TypeAdapter(TenantId)
_CLASS: TypeAdapter[WriteClass] = TypeAdapter(WriteClass)


def check_name(value: Any, field: str) -> str:
    """Check an id or a name; raises `InvalidInput`."""
    return _checked(_NAME, value, field)


def check_tenant(value: Any, field: str) -> str:
    """Check a tenant's id; raises `InvalidInput`."""
    return _checked(_TENANT, value, field)


def check_write_class(value: Any, field: str) -> WriteClass:
    """Check a write class; raises `InvalidInput`."""
    return _checked(_CLASS, value, field)


def _checked(kind: TypeAdapter[_T], value: Any, field: str) -> _T:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        raise invalid(error, within=field) from None


def check_whole_number(value: Any, field: str, *, least: int, most: int) -> int:
    """Check a whole number and its bounds; raises `InvalidInput` or `TooLarge`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("expected a whole number", field=field)
    if value < least:
        raise InvalidInput(f"must be at least {least}", field=field)
    if value > most:
        raise TooLarge(f"must be at most {most}", field=field)
    return value


class VerbInput(Artifact):
    """Base of the input types: the fields that a caller passes, each with its type and documentation."""


@dataclass(frozen=True)
class Whole:
    """Metadata of an `int` field: a whole number within bounds, refused by our own messages."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        bounds = core_schema.int_schema(ge=self.least, le=self.most)
        return core_schema.with_info_before_validator_function(self._check, bounds)

    def _check(self, value: Any, info: ValidationInfo) -> int:
        return check_whole_number(value, info.field_name or "", least=self.least, most=self.most)


@dataclass(frozen=True)
class Passed:
    """Metadata of a field whose callers pass another type than it holds.

    `caller` is the type in Python signatures, `body` the one over HTTP; `send` names the function of
    `muniment.client.connection` that turns the first into the second.
    """

    caller: Any
    body: Any = None
    send: str | None = None


PageSize = Annotated[int, Whole(1, PAGE)]


class Listing(VerbInput):
    """A page of a list."""

    limit: PageSize = Field(50, description="the number of entries at most")
    after: Name | None = Field(None, description="the id of the last entry of the previous page")


def _is_run(value: Any) -> Any:
    if value is not None and not isinstance(value, RunContext):
        raise InvalidInput("expected a RunContext", field="run")
    return value


# A run that is asked about, not one that asks.
OtherRun = Annotated[RunContext, BeforeValidator(_is_run)]


class RecallFields(VerbInput):
    """What a recall is narrowed by."""

    limit: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = Field(
        None, description="the number of records at most; the pack in force bounds it"
    )
    tiers: Annotated[frozenset[Tier], Field(fail_fast=True)] | None = Field(None, description="only of these tiers")
    classes: Annotated[frozenset[WriteClass], Field(fail_fast=True)] | None = Field(
        None, description="only of these classes"
    )
    entities: Annotated[frozenset[Entities], Field(max_length=256, fail_fast=True)] | None = Field(
        None, description="only about these entities; one that ends in `.*` is all under its parts"
    )
    hops: Annotated[int, Field(strict=True, ge=0, le=2)] = Field(
        0, description="also about entities up to this many steps away in the entity graph"
    )
    as_of: AsOf | None = Field(None, description="what was known at that past moment, or at that sequence number")
    valid_at: Instant | None = Field(
        None, description="only what holds in the world at that time; by default now, with `as_of` at its moment"
    )

    @model_validator(mode="after")
    def _hops_begin_somewhere(self) -> Self:
        if self.hops and not self.entities:
            raise field_error("hops", "give the entities that the steps begin at")
        if self.hops and any(one.endswith("*") for one in self.entities or ()):
            raise field_error("hops", "steps begin at whole entities, not at one that ends in *")
        return self


class RecallInput(RecallFields):
    """A recall."""

    query: Query | None = Field(None, description="the question or topic; by default the most important come first")


# Over HTTP no tokenizer is read from a file of the server's.
_SERVED_TOKENIZER = Annotated[
    str, StringConstraints(strict=True, pattern=r"^(wordllama|characters|tiktoken:[a-z0-9_.-]{1,64})$")
]


class CompileFields(RecallFields):
    """How a recall is compiled, beside what it is narrowed by."""

    token_budget: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = Field(
        1024, description="the number of tokens at most"
    )
    format: Format = "markdown"
    tokenizer: (
        Annotated[
            str, StringConstraints(strict=True, min_length=1, max_length=4096), Passed(str, body=_SERVED_TOKENIZER)
        ]
        | None
    ) = Field(None, description="`wordllama`, `characters` or `tiktoken:<name>`")


class CompileInput(CompileFields, RecallInput):
    """A recall to compile."""


class ExplainInput(VerbInput):
    """Which memory to explain, in which recall or at which moment, and for which run."""

    memory_id: Name
    recall_id: Name | None = None
    as_of: AsOf | None = None
    valid_at: Instant | None = Field(None, description="whether it holds in the world at that time; by default then")
    run: OtherRun | None = Field(None, description="an agent's own run; else the run that is asked about")

    @model_validator(mode="after")
    def _one_moment(self) -> Self:
        if self.recall_id is not None and any(one is not None for one in (self.as_of, self.valid_at, self.run)):
            raise field_error("recall_id", "a recall has its own times and run; leave out as_of, valid_at and run")
        return self
