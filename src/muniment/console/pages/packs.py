"""Packs: the registered versions, what differs between two, what another would have done, and registering one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Request, Response

from muniment.console.addresses import instant
from muniment.console.forms import number_of, typed, went
from muniment.console.rendering import page
from muniment.console.running import Progress, answered
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import Conflict, InvalidInput, MunimentError, NotFound, PackInvalid, StorageUnavailable
from muniment.loops import in_thread
from muniment.model.activation import Activation
from muniment.model.backtest import FATES, Backtest, Fate, Tally
from muniment.model.pack_difference import PackDifference
from muniment.pack import builtin_pack, load_pack

router = APIRouter()

AT_ONCE = 200
MOST_CAPTURES, MOST_RECALLS = 10_000, 2_000
TRIED = ("pack", "text", "against", "since", "until", "limit", "recalls", "texts")

Reader = Annotated[Visitor, Depends(Allowed("read_packs"))]
Admin = Annotated[Visitor, Depends(Allowed("packs"))]
Tester = Annotated[Visitor, Depends(Allowed("backtest"))]


@dataclass(frozen=True)
class Wrong:
    """Why something was refused: in one sentence, or a pack's problems each at its line."""

    said: str
    problems: tuple[tuple[int | None, str, str], ...] = ()
    field: str | None = None

    @classmethod
    def of(cls, error: MunimentError) -> "Wrong":
        """The error as it is shown beside a form."""
        if isinstance(error, PackInvalid):
            many = tuple((one.line, one.path, one.message) for one in error.problems)
            return cls(f"the pack is refused, with {len(many)} problem{'s' if len(many) != 1 else ''}", many, "text")
        return cls(told(error), field=error.field)


def written(value: Any) -> str:
    """A part of a pack as YAML."""
    if value is None or isinstance(value, bool | int | float | str):
        return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100).rstrip()


def fates_of(before: Tally, after: Tally) -> list[tuple[Fate, int, int]]:
    """What becomes of the candidates, under one pack and the other."""
    return [
        (fate, before.fates.get(fate, 0), after.fates.get(fate, 0))
        for fate in FATES
        if fate in before.fates or fate in after.fates
    ]


def refusals_of(before: Tally, after: Tally) -> list[tuple[str, int, int]]:
    """Why candidates are refused, under one pack and the other."""
    reasons = sorted({*before.refusals, *after.refusals})
    return [(reason, before.refusals.get(reason, 0), after.refusals.get(reason, 0)) for reason in reasons]


@router.get("/packs")
async def listed(visitor: Reader, after: str | None = None) -> Response:
    """The registered packs, the latest first."""
    found = await visitor.fabric.packs.list(visitor.principal, limit=AT_ONCE, after=after or None)
    more = found[-1].ref if len(found) == AT_ONCE else None
    # Of the pack of the same name that was registered before it, if that is on the page.
    before: dict[str, str | None] = {}
    latest: dict[str, str] = {}
    for one in found:
        before[one.ref] = latest.get(one.pack.meta.id)
        latest[one.pack.meta.id] = one.ref
    shown: dict[str, Any] = {"packs": found[::-1], "before": before, "more": more, "after": after}
    in_force, own = await _in_force(visitor), builtin_pack()
    is_older = in_force is not None and in_force.pack != own.ref and in_force.pack.startswith(f"{own.meta.id}@")
    offered = own.ref if is_older and all(one.ref != own.ref for one in found) else None
    return page("packs.html", visitor, at="packs", in_force=in_force, offered=offered, **shown)


async def _in_force(visitor: Visitor) -> Activation | None:
    try:
        return await visitor.fabric.packs.in_force(visitor.principal)
    except NotFound:
        return None


@router.get("/packs/history")
async def activations(visitor: Reader, after: int | None = None) -> Response:
    """Every pack that was in force, the latest first."""
    found = await visitor.fabric.packs.activations(visitor.principal, limit=AT_ONCE, after=after)
    more = found[-1].seq if len(found) == AT_ONCE else None
    return page("pack_history.html", visitor, at="packs", activations=found, more=more, after=after)


@router.get("/packs/new")
async def asked(visitor: Admin, builtin: bool = False) -> Response:
    """The form to register one; with the pack that this version of the program brings already in it."""
    text = written(builtin_pack().document()) if builtin else ""
    return page("pack_new.html", visitor, at="packs", text=text, wrong=None, checked=None)


@router.post("/packs/check")
async def check(request: Request, visitor: Admin) -> Response:
    """Say whether a pack could be registered."""
    text = typed(await form_of(request, visitor), "text")["text"]
    try:
        checked = (await in_thread(load_pack, text)).ref
    except PackInvalid as error:
        return _refused(visitor, text, error)
    return page("pack_new.html", visitor, at="packs", text=text, wrong=None, checked=checked)


@router.post("/packs")
async def register(request: Request, visitor: Admin) -> Response:
    """Register a pack."""
    text = typed(await form_of(request, visitor), "text")["text"]
    try:
        made = await visitor.fabric.packs.register(visitor.principal, text)
    except StorageUnavailable:
        raise
    except MunimentError as error:
        return _refused(visitor, text, error)
    return went(visitor, "packs", f"{made.ref} is registered")


def _refused(visitor: Visitor, text: str, error: MunimentError) -> Response:
    wrong = Wrong.of(error)
    return page("pack_new.html", visitor, status=400, at="packs", text=text, wrong=wrong, checked=None)


@router.get("/packs/compare")
async def choose(visitor: Reader, one: str | None = None, other: str | None = None) -> Response:
    """In what two registered packs differ; which two is chosen here."""
    given = {"one": one or "", "other": other or "", "text": ""}
    return await _compared(visitor, given)


@router.post("/packs/compare")
async def compare(request: Request, visitor: Reader) -> Response:
    """In what a pack that was pasted differs from a registered one."""
    form = await form_of(request, visitor)
    return await _compared(visitor, typed(form, "one", "other", "text"))


async def _compared(visitor: Visitor, given: dict[str, str]) -> Response:
    difference: PackDifference | None = None
    wrong: Wrong | None = None
    other = given["text"] if given["text"].strip() else given["other"]
    if given["one"] and other:
        try:
            difference = await visitor.fabric.packs.compare(visitor.principal, given["one"], other)
        except StorageUnavailable:
            raise
        except MunimentError as error:
            wrong = Wrong.of(error)
    shown: dict[str, Any] = {"refs": await _refs(visitor), "given": given, "difference": difference, "wrong": wrong}
    return page("pack_compare.html", visitor, status=400 if wrong else 200, at="packs", written=written, **shown)


@router.get("/packs/backtest")
async def history(visitor: Tester, pack: str | None = None) -> Response:
    """The form to try a pack on history."""
    given = dict.fromkeys(TRIED, "") | {"pack": pack or "", "limit": "1000", "recalls": "200"}
    return await _tried(visitor, given)


async def _tried(
    visitor: Visitor, given: dict[str, str], report: Backtest | None = None, wrong: Wrong | None = None
) -> Response:
    shown: dict[str, Any] = {"given": given, "report": report, "wrong": wrong, "refs": await _refs(visitor)}
    if report is not None:
        shown |= {
            "fates": fates_of(report.before, report.after),
            "refusals": refusals_of(report.before, report.after),
        }
    limits = {"most_captures": MOST_CAPTURES, "most_recalls": MOST_RECALLS}
    return page("backtest.html", visitor, status=400 if wrong else 200, at="packs", **limits, **shown)


@router.post("/packs/backtest")
async def backtest(request: Request, visitor: Tester) -> Response:
    """Run recorded history through a pack beside another; nothing is written."""
    form = await form_of(request, visitor)
    given = typed(form, *TRIED)

    async def work(on_progress: Progress) -> Response:
        try:
            pack = given["text"] if given["text"].strip() else given["pack"]
            if not pack:
                raise InvalidInput("choose a registered pack, or paste one", field="pack")
            report = await visitor.fabric.packs.backtest(
                visitor.principal,
                pack,
                against=given["against"] or None,
                since=_when(given, "since"),
                until=_when(given, "until"),
                limit=number_of(form, "limit", 1000),
                recalls=number_of(form, "recalls", 200),
                texts=text_of(form, "texts") is not None,
                on_progress=lambda done: on_progress(done, None),
            )
        except StorageUnavailable:
            raise
        except MunimentError as error:
            return await _tried(visitor, given, wrong=Wrong.of(error))
        return await _tried(visitor, given, report)

    return await answered(request, work)


def _when(given: dict[str, str], name: str) -> datetime | None:
    return instant(given[name].strip(), name)


@router.get("/packs/{ref}/activate")
async def activation(visitor: Admin, ref: str) -> Response:
    """What activating a version would do, and the form to do it."""
    return await _planned(visitor, ref)


@router.post("/packs/{ref}/activate")
async def activate(request: Request, visitor: Admin, ref: str) -> Response:
    """Put a version in force, if the one that was shown to be in force still is."""
    form = typed(await form_of(request, visitor), "reason", "expected")
    try:
        made = await visitor.fabric.packs.activate(
            visitor.principal, ref, reason=form["reason"], expected=form["expected"] or None
        )
    except (StorageUnavailable, NotFound):
        raise
    except MunimentError as error:
        return await _planned(visitor, ref, form["reason"], Wrong.of(error))
    return went(visitor, "packs", f"{made.pack} is in force")


async def _planned(visitor: Visitor, ref: str, reason: str = "", wrong: Wrong | None = None) -> Response:
    try:
        plan = await visitor.fabric.packs.plan_activation(visitor.principal, ref)
    except Conflict as error:  # It is in force already, or retired.
        return await _one(visitor, ref, wrong or Wrong.of(error))
    shown: dict[str, Any] = {"plan": plan, "reason": reason, "wrong": wrong, "written": written}
    return page("pack_activate.html", visitor, status=400 if wrong else 200, at="packs", **shown)


@router.post("/packs/{ref}/retire")
async def retire(request: Request, visitor: Admin, ref: str) -> Response:
    """End the use of a version."""
    reason = typed(await form_of(request, visitor), "reason")["reason"]
    try:
        done = await visitor.fabric.packs.retire(visitor.principal, ref, reason=reason)
    except (StorageUnavailable, NotFound):
        raise
    except MunimentError as error:
        return await _one(visitor, ref, Wrong.of(error))
    return went(visitor, "packs", f"{done.pack} is retired")


@router.get("/packs/{ref}")
async def one(visitor: Reader, ref: str) -> Response:
    """One registered pack, section by section."""
    return await _one(visitor, ref)


async def _one(visitor: Visitor, ref: str, wrong: Wrong | None = None) -> Response:
    found = await visitor.fabric.packs.get(visitor.principal, ref)
    document = found.pack.document()
    sections = [(name, written(value)) for name, value in document.items() if value not in (None, {}, [])]
    shown: dict[str, Any] = {"found": found, "sections": sections, "meta": found.pack.meta, "wrong": wrong}
    return page("pack.html", visitor, status=400 if wrong else 200, at="packs", **shown)


async def _refs(visitor: Visitor) -> list[str]:
    """The registered packs, to choose from, the latest first."""
    return [one.ref for one in await visitor.fabric.packs.list(visitor.principal, limit=AT_ONCE)][::-1]
