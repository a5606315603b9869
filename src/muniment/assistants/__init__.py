"""Assistants on a user's machine that speak MCP: their configuration files, and the hooks that they call.

What a hook runs (`hook_events`, `hook_client`) imports the standard library alone: it is started at every prompt.
"""
