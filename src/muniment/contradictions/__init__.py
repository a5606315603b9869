"""Memories and proposals that cannot both hold: found, listed and resolved."""
