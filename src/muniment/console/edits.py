"""Edits: a candidate as the fields of a form, and a form as what it changes."""

from typing import Any

from pydantic_core import from_json
from starlette.datastructures import FormData

from muniment.console.forms import lines_of
from muniment.console.spans import pretty
from muniment.console.visitors import text_of
from muniment.errors import InvalidInput
from muniment.model.candidate import Candidate
from muniment.verbs.keywords import EditFields


def typed_of(candidate: Candidate) -> dict[str, str]:
    """What stands in the form before anybody types: a text as it is, any other value as JSON."""
    return {
        "text": candidate.text,
        "value": candidate.value if isinstance(candidate.value, str) else pretty(candidate.value),
        "classification": candidate.classification,
        "evidence_refs": "\n".join(candidate.evidence_refs),
        "note": "",
    }


def changes_of(form: FormData, candidate: Candidate) -> EditFields:
    """What the form changes of the candidate; fields that are as they were, or not there, are none.

    Raises `InvalidInput` for a value that is not JSON where the candidate's is no text.
    """
    changes: EditFields = {}
    before = typed_of(candidate)
    if "text" in form and not _same(text := text_of(form, "text") or "", before["text"]):
        changes["text"] = text
    if "value" in form and not _same(value := text_of(form, "value") or "", before["value"]):
        changes["value"] = value if isinstance(candidate.value, str) else _json(value)
    label = text_of(form, "classification")
    if label is not None and label != candidate.classification:
        changes["classification"] = label
    if "evidence_refs" in form and (refs := lines_of(form, "evidence_refs")) != list(candidate.evidence_refs):
        changes["evidence_refs"] = refs
    return changes


def _same(typed: str, before: str) -> bool:
    """As a browser sends it: other line ends, no space around it."""
    return typed.replace("\r\n", "\n") == before.replace("\r\n", "\n").strip()


def _json(written: str) -> Any:
    try:
        return from_json(written, allow_inf_nan=False)
    except ValueError:
        raise InvalidInput('expected JSON: text stands in quotes, such as "email"', field="value") from None
