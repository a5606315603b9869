"""Erasing a person: whom it concerns, what is deleted, the purge beneath the tables, and the receipt."""
