"""Demos: a tenant filled with sixty days of a shop, and the story of one correction.

Their data are the YAML files of this package.
"""

from muniment.demo.keys import HOLDERS, create_keys, create_tokens, delete_keys, write_keys
from muniment.demo.player import DAYS, is_complete, play

__all__ = ["DAYS", "HOLDERS", "create_keys", "create_tokens", "delete_keys", "is_complete", "play", "write_keys"]
