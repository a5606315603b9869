"""How sure a share is that was counted on few cases: the Wilson score interval."""

from math import sqrt


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Returns the lower and the upper end of the share that `successes` of `trials` speaks for.

    `z` is the number of standard deviations either way, 1.96 for 95 %. No trials say nothing: 0.0 to 1.0. The share
    itself always lies between the two. Raises ValueError when the counts or z make no sense.
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise ValueError("successes must lie between 0 and trials")
    if z < 0:
        raise ValueError("z must not be negative")
    if not trials:
        return 0.0, 1.0
    share = successes / trials
    weight = 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / weight
    reach = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / weight
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))
