"""Packs with the rules and attributes that a test of redaction is about."""

from typing import Any

from muniment.pack import Pack


def pack_with(*rules: dict[str, Any], attributes: dict[str, Any] | None = None) -> Pack:
    """A pack of those rules, in their order, and those classified attributes."""
    return Pack.model_validate(
        {
            "pack_meta": {"id": "redaction.test", "version": "1.0.0"},
            "identity": {"classified_attributes": attributes or {}},
            "policy_layer": {"guardrails": {"redaction_rules": list(rules)}},
        }
    )
