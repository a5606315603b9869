"""Clients in other languages, and what generates them from the server's own description."""
