"""Reads what people say about themselves in messages, by rules for English."""
