"""Pauses of a random length: clients that were turned away at the same moment come back at different ones."""

from random import SystemRandom

_random = SystemRandom()


def jittered(seconds: float, share: float) -> float:
    """Return about so many seconds, up to that share more or less."""
    return seconds * _random.uniform(1 - share, 1 + share)
