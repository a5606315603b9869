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
    packs,
    proposal,
    queue,
    refused,
    second_look,
    state,
    why,
)

PAGES = (
    queue,
    second_look,
    proposal,
    state,
    refused,
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
)
