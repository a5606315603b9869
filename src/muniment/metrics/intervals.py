"""The Wilson score interval: how certain a share is that was counted on few cases."""

from math import sqrt


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Return the lower and upper bound of the share that `successes` of `trials` indicates.

    `z` is the number of standard deviations either way, 1.96 for 95 %. Without trials the interval is 0.0 to 1.0. The
    share itself always lies within. Raises ValueError for counts or a z that make no sense.
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
