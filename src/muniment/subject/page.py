"""A person's export as one web page to read, with nothing loaded from anywhere (SUB-5). Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from html import escape

from muniment.model.consent import Consent
from muniment.model.subject import MyCapture, MyExport, MyMemory, MyProposal, MyRecall

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:1rem auto;padding:0 1rem;color:#1b1b1b;"
    "background:#fff}li{margin:.6rem 0}small{color:#555;display:block}h2{margin-top:2rem}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}small{color:#aaa}}"
)
_WITHHELD = "Sealed under another key: it is about somebody else, or kept under another of your ids."


def render(whole: MyExport) -> str:
    """Return the export as HTML; every text of it is escaped."""
    head = f"What is held about {whole.user_id or whole.subject}"
    texts = {one.memory_id: one.text for one in whole.memories if one.text}
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(head)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<style>{_STYLE}</style></head><body><h1>{escape(head)}</h1>",
        f"<p>As of {_time(whole.exported_at)}, in {escape(whole.tenant_id)}.</p>",
        *([f"<p>Called {escape(whole.display_name)}.</p>"] if whole.display_name else []),
        *_section("Memories", (_fact(one, _of_memory(one)) for one in whole.memories)),
        *_section("Facts that wait for a decision", (_fact(one, _of_proposal(one)) for one in whole.proposals)),
        *_section("What was said and captured", (_fact(one, _of_capture(one)) for one in whole.captures)),
        *_section("Consents", (_consent(one) for one in whole.consents)),
        *_section(
            "Questions for your consent",
            (_item(one.question or "", f"{one.label}, asked {_time(one.asked_at)}, {one.answer or 'open'}")
             for one in whole.consent_requests),
        ),
        *_section(
            "Who recalled what",
            (_item(one.query or "(no question)", f"{one.agent_id}, {_time(one.at)}: {_named(one, texts)}")
             for one in whole.recalls),
        ),
        *_section(
            "Requests to be erased",
            (_item(one.request_id, f"{_time(one.asked_at)}, {one.answer or 'open'}") for one in whole.erasure_requests),
        ),
        "</body></html>",
    ]  # fmt: skip
    return "\n".join(parts)


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    found = list(items)
    yield f"<h2>{escape(title)} ({len(found)})</h2>"
    yield "<ul>" + "".join(found) + "</ul>" if found else "<p>None.</p>"


def _fact(one: MyMemory | MyProposal | MyCapture, about: str) -> str:
    text = _WITHHELD if one.withheld else one.text
    value = f" {one.value}" if one.value is not None and str(one.value) not in text else ""
    return _item(text + value, about)


def _item(text: str, about: str) -> str:
    return f"<li>{escape(text)}<small>{escape(about)}</small></li>"


def _of_memory(one: MyMemory) -> str:
    origin = "you said it" if one.said_by_you else f"from {one.author}"
    ended = f", {one.state}" + (f" {_time(one.ended_at)}" if one.ended_at is not None else "")
    words = f"{one.memory_id}: {one.write_class}, {one.classification}, {origin}, approved by {one.approver}"
    return f"{words}, since {_time(one.promoted_at)}{ended if one.state != 'live' else ''}"


def _of_proposal(one: MyProposal) -> str:
    return f"{one.proposal_id}: {one.write_class}, {one.classification}, since {_time(one.enqueued_at)}"


def _of_capture(one: MyCapture) -> str:
    return f"{one.capture_id}: {one.kind} by {'you' if one.said_by_you else one.author}, {_time(one.captured_at)}"


def _named(one: MyRecall, texts: Mapping[str, str]) -> str:
    return "; ".join(texts.get(memory_id, memory_id) for memory_id in one.memory_ids) or "nothing"


def _consent(one: Consent) -> str:
    allowed = ", ".join((*one.data_classifications_allowed, *one.predicates_allowed))
    until = f" until {_time(one.valid_until)}" if one.valid_until is not None else ""
    shown = f", documented in {', '.join(one.evidence_refs)}" if one.evidence_refs else ""
    words = f"{one.consent_id}: {one.action}, {one.state}, {_time(one.captured_at)}{until}, basis {one.basis}{shown}"
    return _item(f"{one.purpose}: {allowed}", words)


def _time(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at is not None else ""
