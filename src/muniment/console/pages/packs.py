"""Packs: registered versions, comparing two, backtesting one on history, registering, activating and retiring."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import number_field, raw_fields, read_form, redirect, text_field, time_field
from muniment.console.listing import load_listing
from muniment.console.progress import Progress, respond
from muniment.console.rendering import page
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, MunimentError, NotFound, PackInvalid, StorageUnavailable
from muniment.loops import in_thread
from muniment.model.activation import Activation
from muniment.model.backtest import FATES, Backtest
from muniment.pack import Pack, builtin_pack, load_pack

router = APIRouter()

PAGE_SIZE = 200
MOST_CAPTURES, MOST_RECALLS = 10_000, 2_000
BACKTEST_FIELDS = ("pack", "text", "against", "since", "until", "limit", "recalls", "texts", "kind", "value")
_CACHED_PACKS = 64

Reader = Annotated[Visitor, Depends(Requires("read_packs"))]
Admin = Annotated[Visitor, Depends(Requires("packs"))]
Tester = Annotated[Visitor, Depends(Requires("backtest"))]


@dataclass(frozen=True)
class PackProblem:
    """Why a form was refused: a message, and for an invalid pack its problems by line."""

    message: str
    details: tuple[tuple[int | None, str, str], ...] = ()
    field: str | None = None

    @classmethod
    def of(cls, error: MunimentError) -> "PackProblem":
        """The problem to show beside the form; raises the error itself if no other input would avoid it."""
        if isinstance(error, StorageUnavailable):
            raise error
        if isinstance(error, PackInvalid):
            details = tuple((one.line, one.path, one.message) for one in error.problems)
            count = f"{len(details)} problem{'s' if len(details) != 1 else ''}"
            return cls(f"the pack is not valid: {count}", details, "text")
        return cls(error_text(error), field=error.field)


_REGISTERED: OrderedDict[tuple[str, str], Pack] = OrderedDict()


async def registered_pack(visitor: Visitor, ref: str) -> Pack:
    """Return a registered pack, cached since it never changes; raises `NotFound`, `RoleMissing`."""
    await visitor.fabric.access.allow(visitor.principal, "read_packs")
    key = (visitor.principal.tenant_id, ref)
    if key not in _REGISTERED:
        _REGISTERED[key] = (await visitor.fabric.packs.get(visitor.principal, ref)).pack
        while len(_REGISTERED) > _CACHED_PACKS:
            _REGISTERED.popitem(last=False)
    _REGISTERED.move_to_end(key)
    return _REGISTERED[key]


def as_yaml(value: Any) -> str:
    """A part of a pack as YAML."""
    if value is None or isinstance(value, bool | int | float | str):
        return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100).rstrip()


@router.get("/packs")
async def packs(request: Request, visitor: Reader) -> Response:
    """The registered packs, newest first."""
    fetch = partial(visitor.fabric.packs.list, visitor.principal)
    found = await load_listing(request, "packs", (), fetch, "ref", size=PAGE_SIZE)
    in_force, own = await in_force_now(visitor), builtin_pack()
    is_older = in_force is not None and in_force.pack != own.ref and in_force.pack.startswith(f"{own.meta.id}@")
    offered = own.ref if is_older and all(one.ref != own.ref for one in found.items) else None
    context: dict[str, Any] = {"listing": found, "in_force": in_force, "offered": offered}
    return page("packs.html", visitor, problem=found.problem, **context)


async def in_force_now(visitor: Visitor) -> Activation | None:
    """Return the activation of the pack in force; None in a tenant without any writes."""
    try:
        return await visitor.fabric.packs.in_force(visitor.principal)
    except NotFound:
        return None


@router.get("/packs/history")
async def history(request: Request, visitor: Reader) -> Response:
    """Every pack that was in force, newest first."""

    async def fetch(after: str | None, limit: int) -> Sequence[Activation]:
        if after is not None and not (after.isascii() and after.isdigit()):
            raise InvalidInput("expected a whole number", field="after")
        return await visitor.fabric.packs.activations(visitor.principal, limit=limit, after=int(after or 0) or None)

    found = await load_listing(request, "packs/history", (), fetch, "seq", size=PAGE_SIZE)
    return page("pack_history.html", visitor, problem=found.problem, listing=found)


@router.get("/packs/new")
async def new(visitor: Admin, builtin: bool = False) -> Response:
    """The form to register a pack, empty or with the built-in pack of this release."""
    return _register_page(visitor, as_yaml(builtin_pack().document()) if builtin else "")


@router.post("/packs/check")
async def check(request: Request, visitor: Admin) -> Response:
    """Check whether a pack could be registered."""
    text = raw_fields(await read_form(request, visitor), "text")["text"]
    try:
        return _register_page(visitor, text, checked=(await in_thread(load_pack, text)).ref)
    except PackInvalid as error:
        return _register_page(visitor, text, error)


@router.post("/packs")
async def register(request: Request, visitor: Admin) -> Response:
    """Register a pack."""
    text = raw_fields(await read_form(request, visitor), "text")["text"]
    try:
        made = await visitor.fabric.packs.register(visitor.principal, text)
    except MunimentError as error:
        return _register_page(visitor, text, error)
    return redirect(visitor, "packs", f"{made.ref} is registered")


def _register_page(
    visitor: Visitor, text: str, error: MunimentError | None = None, checked: str | None = None
) -> Response:
    problem = PackProblem.of(error) if error is not None else None
    return page("pack_new.html", visitor, problem=problem, text=text, checked=checked)


@router.get("/packs/compare")
async def choose(request: Request, visitor: Reader) -> Response:
    """The differences between two registered packs, which are chosen here."""
    return await _compare_page(visitor, query_fields(request, "one", "other") | {"text": ""})


@router.post("/packs/compare")
async def compare(request: Request, visitor: Reader) -> Response:
    """The differences between a registered pack and a pasted one."""
    return await _compare_page(visitor, raw_fields(await read_form(request, visitor), "one", "other", "text"))


async def _compare_page(visitor: Visitor, typed: dict[str, str]) -> Response:
    difference = problem = None
    other = typed["text"] if typed["text"].strip() else typed["other"]
    if typed["one"] and other:
        try:
            difference = await visitor.fabric.packs.compare(visitor.principal, typed["one"], other)
        except MunimentError as error:
            problem = PackProblem.of(error)
    context: dict[str, Any] = {"refs": await _refs(visitor), "typed": typed, "difference": difference}
    return page("pack_compare.html", visitor, problem=problem, as_yaml=as_yaml, **context)


@router.get("/packs/backtest")
async def backtest_form(visitor: Tester, pack: str | None = None) -> Response:
    """The form to backtest a pack."""
    typed = dict.fromkeys(BACKTEST_FIELDS, "") | {"pack": pack or "", "limit": "1000", "recalls": "200"}
    return await _backtest_page(visitor, typed)


async def _backtest_page(
    visitor: Visitor, typed: dict[str, str], report: Backtest | None = None, error: MunimentError | None = None
) -> Response:
    problem = PackProblem.of(error) if error is not None else None
    context: dict[str, Any] = {"typed": typed, "report": report, "refs": await _refs(visitor)}
    if report is not None:
        before, after = report.before, report.after
        context["fates"] = _counts({**before.fates}, {**after.fates}, FATES)
        context["refusals"] = _counts(before.refusals, after.refusals, sorted({*before.refusals, *after.refusals}))
    limits: dict[str, Any] = {"most_captures": MOST_CAPTURES, "most_recalls": MOST_RECALLS}
    return page("backtest.html", visitor, problem=problem, **limits, **context)


def _counts(before: Mapping[str, int], after: Mapping[str, int], keys: Iterable[str]) -> list[tuple[str, int, int]]:
    """What both packs count for each key, without keys that neither has."""
    return [(key, before.get(key, 0), after.get(key, 0)) for key in keys if key in before or key in after]


@router.post("/packs/backtest")
async def backtest(request: Request, visitor: Tester) -> Response:
    """Run recorded history through a pack and another; nothing is written."""
    form = await read_form(request, visitor)
    typed = raw_fields(form, *BACKTEST_FIELDS)

    async def work(on_progress: Progress) -> Response:
        try:
            pack = typed["text"] if typed["text"].strip() else typed["pack"]
            if not pack:
                raise InvalidInput("choose a registered pack, or paste one", field="pack")
            report = await visitor.fabric.packs.backtest(
                visitor.principal,
                pack,
                against=typed["against"] or None,
                since=time_field(form, "since"),
                until=time_field(form, "until"),
                limit=number_field(form, "limit", 1000),
                recalls=number_field(form, "recalls", 200),
                texts=text_field(form, "texts") is not None,
                on_progress=lambda done: on_progress(done, None),
            )
        except MunimentError as error:
            return await _backtest_page(visitor, typed, error=error)
        return await _backtest_page(visitor, typed, report)

    return await respond(request, work)


@router.get("/packs/{ref}/activate")
async def activation(visitor: Admin, ref: str) -> Response:
    """What activating a version would do, and the form to do it."""
    return await _activation_page(visitor, ref)


@router.post("/packs/{ref}/activate")
async def activate(request: Request, visitor: Admin, ref: str) -> Response:
    """Activate a version, if the pack in force is still the one that was shown."""
    form = raw_fields(await read_form(request, visitor), "reason", "expected")
    reason, expected = form["reason"], form["expected"] or None
    try:
        made = await visitor.fabric.packs.activate(visitor.principal, ref, reason=reason, expected=expected)
    except NotFound:
        raise
    except MunimentError as error:
        return await _activation_page(visitor, ref, reason, PackProblem.of(error))
    return redirect(visitor, "packs", f"{made.pack} is in force")


async def _activation_page(
    visitor: Visitor, ref: str, reason: str = "", problem: PackProblem | None = None
) -> Response:
    try:
        plan = await visitor.fabric.packs.plan_activation(visitor.principal, ref)
    except Conflict as error:  # It is in force already, or retired.
        return await _pack_page(visitor, ref, problem or PackProblem.of(error))
    context: dict[str, Any] = {"plan": plan, "reason": reason, "as_yaml": as_yaml}
    return page("pack_activate.html", visitor, problem=problem, **context)


@router.post("/packs/{ref}/retire")
async def retire(request: Request, visitor: Admin, ref: str) -> Response:
    """Retire a version."""
    reason = raw_fields(await read_form(request, visitor), "reason")["reason"]
    try:
        done = await visitor.fabric.packs.retire(visitor.principal, ref, reason=reason)
    except NotFound:
        raise
    except MunimentError as error:
        return await _pack_page(visitor, ref, PackProblem.of(error))
    return redirect(visitor, "packs", f"{done.pack} is retired")


@router.get("/packs/{ref}")
async def pack(visitor: Reader, ref: str) -> Response:
    """One registered pack, section by section."""
    return await _pack_page(visitor, ref)


async def _pack_page(visitor: Visitor, ref: str, problem: PackProblem | None = None) -> Response:
    found = await visitor.fabric.packs.get(visitor.principal, ref)
    document = found.pack.document()
    sections = [(name, as_yaml(value)) for name, value in document.items() if value not in (None, {}, [])]
    context: dict[str, Any] = {"found": found, "sections": sections, "meta": found.pack.meta}
    return page("pack.html", visitor, problem=problem, **context)


async def _refs(visitor: Visitor) -> list[str]:
    """The registered packs to choose from, newest first."""
    return [one.ref for one in await visitor.fabric.packs.list(visitor.principal, limit=PAGE_SIZE)][::-1]
