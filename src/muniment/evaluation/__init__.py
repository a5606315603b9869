"""Evaluations of the parts that judge text and of memory as a whole; `muniment eval` runs them.

Each module has a function `figures` that takes records and returns the figures as a dictionary.
"""
