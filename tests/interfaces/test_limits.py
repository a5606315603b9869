"""Limits by the clock: how fast a bucket fills again, and what a guess costs whom."""

import pytest

from muniment.errors import RateLimited
from muniment.http import limits
from muniment.http.credentials import GuessLimiter
from muniment.http.limits import RateLimiter
from muniment.http.settings import ServerSettings

KEY, OTHER = "mun_dA.key_1.secret", "mun_dA.key_2.secret"
HERE, THERE = "192.0.2.1", "192.0.2.2"


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_bucket_gives_its_burst_at_once_then_its_rate_and_says_how_long_to_wait(clock: Clock) -> None:
    buckets = RateLimiter(0.5, 2, clock=clock)
    for _ in range(2):
        buckets.take("a")
    with pytest.raises(RateLimited) as result:
        buckets.take("a")
    assert result.value.wait == 2
    buckets.take("b")
    clock.now = 2
    buckets.take("a")
    clock.now = 1000
    for _ in range(2):
        buckets.take("a")
    with pytest.raises(RateLimited):
        buckets.take("a")


def test_who_has_not_asked_for_longest_is_forgotten_first(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_KEPT", 2)
    buckets = RateLimiter(1, 1, clock=clock)
    for name in ("old", "new"):
        buckets.take(name)
    for name in ("old", "new"):
        with pytest.raises(RateLimited):
            buckets.take(name)
    buckets.take("newest")
    with pytest.raises(RateLimited):
        buckets.take("new")
    buckets.take("old")


def test_who_guesses_at_one_key_is_shut_out_from_that_key_from_there_and_for_a_while(clock: Clock) -> None:
    guessing = GuessLimiter(clock=clock)
    for n in range(10):
        guessing.wrong(HERE, f"{KEY}{n}")
    with pytest.raises(RateLimited):
        guessing.check(HERE, KEY)
    guessing.check(HERE, OTHER)
    guessing.check(THERE, KEY)
    with pytest.raises(RateLimited):
        guessing.wrong(HERE, OTHER)
    clock.now = 6
    guessing.check(HERE, KEY)


def test_what_was_good_lately_passes_until_it_is_wrong_itself(clock: Clock) -> None:
    guessing = GuessLimiter(clock=clock)
    guessing.right(KEY)
    for n in range(10):
        guessing.wrong(HERE, f"{KEY}{n}")
    guessing.check(HERE, KEY)
    # It was revoked since.
    with pytest.raises(RateLimited):
        guessing.wrong(HERE, KEY)
    with pytest.raises(RateLimited):
        guessing.check(HERE, KEY)


def test_each_of_several_processes_gets_its_part_of_the_limits_and_at_least_one() -> None:
    whole = ServerSettings()
    two, many = whole.part(2), whole.part(1000)
    assert (two.rate, two.burst, two.connections, two.streams) == (250, 500, 500, 16)
    assert two.bodies_at_once == whole.bodies_at_once // 2
    assert (many.rate, many.burst, many.connections, many.streams) == (0.5, 1, 2, 1)
    # A body of any allowed size has room in every process.
    assert many.bodies_at_once == whole.body_limit == many.body_limit
    assert ServerSettings(rate=0).part(2).rate == 0


def test_wrong_credentials_are_counted_in_parts_too(clock: Clock) -> None:
    guessing = GuessLimiter(4, clock=clock)
    for _ in range(2):
        guessing.wrong(HERE, KEY)
    with pytest.raises(RateLimited) as refused:
        guessing.wrong(HERE, KEY)
    assert refused.value.wait > 6
