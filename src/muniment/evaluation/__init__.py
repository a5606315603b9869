"""Evaluations: figures for the parts that judge text, on anybody's data."""
