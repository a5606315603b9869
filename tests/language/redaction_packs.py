"""Packs with the rules, attributes and exceptions that a test of redaction is about."""

from typing import Any

from muniment.pack import Pack


def pack_with(
    *rules: dict[str, Any], attributes: dict[str, Any] | None = None, exceptions: dict[str, Any] | None = None
) -> Pack:
    """A pack of those rules, in their order, those classified attributes, and those exceptions."""
    return Pack.model_validate(
        {
            "pack_meta": {"id": "redaction.test", "version": "1.0.0"},
            "identity": {"classified_attributes": attributes or {}},
            "policy_layer": {"guardrails": {"redaction_rules": list(rules), "redaction_exceptions": exceptions or {}}},
        }
    )
