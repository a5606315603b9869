"""The pages, one file for each part of the menu."""

from types import ModuleType

from muniment.console.pages import (
    audit,
    captures,
    consent,
    contradictions,
    erasures,
    live,
    memory,
    metrics,
    packs,
    proposal,
    queue,
    recalls,
    why,
)

PAGES: tuple[ModuleType, ...] = (
    queue,
    proposal,
    contradictions,
    captures,
    live,
    memory,
    why,
    recalls,
    consent,
    erasures,
    audit,
    metrics,
    packs,
)
