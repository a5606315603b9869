"""How many examples the random tests try: a few in `make test`, many in `make soak`, which sets MUNIMENT_SOAK."""

import os

SOAKING = bool(os.environ.get("MUNIMENT_SOAK"))
_TIMES = 20 if SOAKING else 1


def examples(few: int) -> int:
    """So many, and twenty times as many in a soak."""
    return few * _TIMES
