"""The pages, one module for each section of the menu."""

from muniment.console.pages import (
    audit,
    captures,
    consent,
    contradictions,
    erasures,
    live,
    me,
    memory,
    metrics,
    notices,
    packs,
    proposal,
    queue,
    why,
)

PAGES = (
    queue,
    proposal,
    contradictions,
    captures,
    live,
    memory,
    why,
    consent,
    erasures,
    audit,
    metrics,
    packs,
    me,
    notices,
)
