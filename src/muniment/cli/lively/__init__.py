"""A lively tenant to look at: sixty days of a shop that sells outdoor gear, told by real calls."""

from muniment.cli.lively.keys import KEYS, kept, keys_of, told_of
from muniment.cli.lively.telling import DAYS, is_told, tell

__all__ = ["DAYS", "KEYS", "is_told", "kept", "keys_of", "tell", "told_of"]
