"""Adapters to agent frameworks, each by the interface that the framework gives (ADP-1); import the one you need."""
