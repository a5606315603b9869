"""Bringing memories in from other systems and taking them along: imports, exports, backups of tenants and of homes."""
