"""Loading many consents at once: a file or pasted text, with the errors by line and nothing lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import raw_fields, read_form, text_field
from muniment.console.progress import Progress, respond
from muniment.console.rendering import page
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import InvalidInput, MunimentError
from muniment.loops import in_thread
from muniment.model.consent import ConsentOutcome, ConsentTerms
from muniment.transfer.sources import consents
from muniment.transfer.sources.found import Found

router = APIRouter()

MOST_LINES = 10_000
# Consents that are recorded between two reports of progress.
AT_ONCE = 100
# Errors that the page lists; all lines that have one are in its field.
ERRORS_SHOWN = 200

Officer = Annotated[Visitor, Depends(Requires("consent"))]


@dataclass(frozen=True)
class Failed:
    """A line that was not loaded: where it is, what it is, and why."""

    place: str
    name: str
    field: str
    why: str
    raw: str


@dataclass(frozen=True)
class Loaded:
    """What became of the lines; `left` is a file of those that were not loaded."""

    recorded: int
    repeated: int
    failed: tuple[Failed, ...]
    left: str


@router.get("/consent/load")
async def load_form(visitor: Officer) -> Response:
    """The form to load consents."""
    return await _load_page(visitor)


@router.post("/consent/load")
async def load(request: Request, visitor: Officer) -> Response:
    """Record each consent of a text by itself; lines with an error come back, with why."""
    form = await read_form(request, visitor)
    text = raw_fields(form, "text")["text"].removeprefix("\ufeff")
    any_purpose = text_field(form, "any_purpose") is not None

    async def work(on_progress: Progress) -> Response:
        try:
            done = await _load(visitor, text, any_purpose=any_purpose, on_progress=on_progress)
        except InvalidInput as error:
            return await _load_page(visitor, text=text, any_purpose=any_purpose, problem=error_text(error))
        return await _load_page(visitor, text=done.left, any_purpose=any_purpose, done=done)

    return await respond(request, work)


async def _load_page(
    visitor: Visitor,
    *,
    text: str = "",
    any_purpose: bool = False,
    problem: str | None = None,
    done: Loaded | None = None,
) -> Response:
    terms = await visitor.fabric.consent.terms(visitor.principal)
    context: dict[str, Any] = {"text": text, "any_purpose": any_purpose, "done": done, "terms": terms}
    context |= {"most": MOST_LINES, "errors_shown": ERRORS_SHOWN}
    return page("consent_load.html", visitor, problem=problem, **context)


async def _load(visitor: Visitor, text: str, *, any_purpose: bool, on_progress: Progress) -> Loaded:
    """Record what can be recorded; raises `InvalidInput` for a text that cannot be read at all."""
    found = await in_thread(_read, text, visitor.principal.tenant_id)
    terms = await visitor.fabric.consent.terms(visitor.principal)
    outcomes: dict[int, ConsentOutcome] = {}
    valid: list[int] = []
    for place, one in enumerate(found):
        error = one.item if isinstance(one.item, InvalidInput) else _wrong_purpose(one.item, terms, any_purpose)
        if error is None:
            valid.append(place)
        else:
            outcomes[place] = ConsentOutcome(error=error.code, field=error.field, message=error.message)
    for first in range(0, len(valid), AT_ONCE):
        some = valid[first : first + AT_ONCE]
        documents: Any = [found[place].item for place in some]
        try:
            made = await visitor.fabric.consent.grant_many(visitor.principal, documents, each=True)
        except MunimentError as error:
            if not first:
                raise
            # What was recorded before stays, and is told; the rest comes back to be loaded again.
            failed = ConsentOutcome(error=error.code, field=error.field, message=error.message)
            outcomes |= dict.fromkeys(valid[first:], failed)
            break
        outcomes |= dict(zip(some, made, strict=True))
        on_progress(first + len(some), len(valid))
    return _summary(text, found, [outcomes[place] for place in range(len(found))])


def _read(text: str, tenant_id: str) -> list[Found]:
    found: list[Found] = []
    for one in consents.items(text, tenant_id):
        found.append(one)
        if len(found) > MOST_LINES:
            raise InvalidInput(f"has more than {MOST_LINES:,} consents: load it in parts", field="file")
    if not found:
        raise InvalidInput("has no consents: expected a header and lines, or JSON lines", field="file")
    return found


def _wrong_purpose(document: dict[str, Any], terms: ConsentTerms, any_purpose: bool) -> InvalidInput | None:
    problem = None if any_purpose else terms.purpose_problem(document.get("purpose"))
    return InvalidInput(problem, field="purpose") if problem is not None else None


def _summary(text: str, found: Sequence[Found], outcomes: Sequence[ConsentOutcome]) -> Loaded:
    failed = tuple(
        Failed(one.place, _name(one), outcome.field or "", outcome.message or outcome.error or "", one.raw)
        for one, outcome in zip(found, outcomes, strict=True)
        if not outcome.recorded
    )
    header = consents.header_of(text)
    left = "\n".join([*([header] if header else []), *(one.raw for one in failed)]) if failed else ""
    repeated = sum(one.repeated for one in outcomes)
    return Loaded(sum(one.recorded for one in outcomes) - repeated, repeated, failed, left)


def _name(one: Found) -> str:
    """The consent and the subject of a line, as far as it can be read."""
    if isinstance(one.item, InvalidInput):
        return ""
    given = (one.item.get(name) for name in ("consent_id", "subject_ceid"))
    return ", ".join(value[:120] for value in given if isinstance(value, str) and value)
