"""API keys, roles, and what an interface checks before it calls a verb."""
