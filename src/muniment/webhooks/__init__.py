"""Webhooks: registration, delivery of events as signed CloudEvents."""
