"""Readers of other memory systems: their exports and stores, as items that can be imported.

Each reader yields what it found with its place: an item, or the error of one that cannot be read. Those that only turn
one form into another are pure; `stores.py` opens files and databases.
"""
