"""Notices: what the visitor is told by mail, in a chat and by the browser; each person sets it for themselves."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import FormData

from muniment.console.forms import raw_fields, read_form, redirect, text_field
from muniment.console.rendering import page
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import InvalidInput, RateLimited, TooLarge
from muniment.model.fields import WriteClass
from muniment.model.notices import DAILY_AT, DigestEvery, Notice, NoticeChannel
from muniment.notices.rules import MAY_READ, WORDS, Schedule, kinds_for

router = APIRouter()

TITLES: dict[NoticeChannel, str] = {"mail": "Mail", "chat": "Chat", "browser": "Browser"}
# A person has one for each channel.
_MOST = 10

Person = Annotated[Visitor, Depends(Requires("notices"))]


@dataclass(frozen=True)
class Card:
    """The form of one channel: the setting there is, and what the fields hold."""

    channel: NoticeChannel
    setting: Notice | None
    address: str
    kinds: frozenset[str]
    classes: frozenset[str]
    digest: str
    at: str
    time_zone: str
    # When the next digest goes out.
    next_digest: datetime | None = None

    @property
    def title(self) -> str:
        """The name of the channel."""
        return TITLES[self.channel]


@router.get("/notices")
async def notices(visitor: Person) -> Response:
    """What the visitor is told, a form for each channel."""
    return await _page(visitor)


@router.post("/notices")
async def set_notice(request: Request, visitor: Person) -> Response:
    """Set a channel."""
    form = await read_form(request, visitor)
    fields: dict[str, Any] = {
        "channel": text_field(form, "channel"),
        "address": text_field(form, "address"),
        "kinds": _chosen(form, "kinds"),
        "classes": _chosen(form, "classes") or None,
        "digest": text_field(form, "digest"),
        "at": text_field(form, "at") or DAILY_AT,
        "time_zone": text_field(form, "time_zone") or visitor.zone,
    }
    try:
        made = await visitor.fabric.notices.set(visitor.principal, **fields)
    except (InvalidInput, TooLarge) as error:
        return await _page(visitor, problem=error_text(error), typed=form)
    return redirect(visitor, "notices", f"{TITLES[made.channel]} saved", anchor=made.channel)


@router.post("/notices/{notice_id}/test")
async def test_notice(request: Request, visitor: Person, notice_id: str) -> Response:
    """Send a test message."""
    await read_form(request, visitor)
    try:
        tested = await visitor.fabric.notices.test(visitor.principal, notice_id)
    except (InvalidInput, RateLimited) as error:
        return await _page(visitor, problem=error_text(error))
    if tested.last_error is not None:
        return await _page(visitor, problem=f"The test was not accepted: {tested.last_error}")
    return redirect(visitor, "notices", "Test sent", anchor=tested.channel)


@router.post("/notices/{notice_id}/remove")
async def remove(request: Request, visitor: Person, notice_id: str) -> Response:
    """Remove a setting of the visitor's own."""
    await read_form(request, visitor)
    await visitor.fabric.notices.remove(visitor.principal, notice_id)
    return redirect(visitor, "notices", "Removed")


def _chosen(form: FormData, name: str) -> list[str]:
    return [value for value in form.getlist(name) if isinstance(value, str)]


async def _page(visitor: Visitor, *, problem: str | None = None, typed: FormData | None = None) -> Response:
    found = await visitor.fabric.notices.list(visitor.principal, limit=_MOST)
    may = kinds_for(visitor.principal.roles)
    now = visitor.fabric.access.now()
    cards = [_card(channel, found, may, typed, now, visitor.zone) for channel in TITLES]
    kinds = [(kind, WORDS[kind]) for kind in MAY_READ if kind in may]
    classes = get_args(WriteClass)
    return page(
        "notices.html",
        visitor,
        problem=problem,
        cards=cards,
        kinds=kinds,
        classes=classes,
        digests=get_args(DigestEvery),
        zone=visitor.zone,
    )


def _card(
    channel: NoticeChannel, found: list[Notice], may: frozenset[str], typed: FormData | None, now: datetime, zone: str
) -> Card:
    """The form of a channel; `zone` is the visitor's, in which a digest is offered."""
    setting = next((one for one in found if one.channel == channel), None)
    if typed is not None and typed.get("channel") == channel:
        fields = raw_fields(typed, "address", "digest", "at", "time_zone")
        kinds, classes = frozenset(_chosen(typed, "kinds")), frozenset(_chosen(typed, "classes"))
        digest, at, zone = fields["digest"], fields["at"], fields["time_zone"]
        return Card(channel, setting, fields["address"], kinds, classes, digest, at, zone)
    if setting is None:
        return Card(channel, None, "", may, frozenset(), "", DAILY_AT, zone)
    return Card(
        channel,
        setting,
        setting.address or "",
        frozenset(setting.kinds),
        frozenset(setting.classes),
        setting.digest or "",
        setting.at,
        setting.time_zone,
        Schedule(setting.digest, setting.at, setting.time_zone).next_after(now),
    )
