"""Registered packs, the one in force, backtests of another, and the backfill that follows a new ontology."""
