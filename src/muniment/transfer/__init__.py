"""Bringing memories in from other systems, and taking them along: imports, exports, backups of a tenant and of a home."""
