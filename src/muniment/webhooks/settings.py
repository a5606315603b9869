"""The settings of webhooks: whether private addresses are allowed, and when a failed delivery is tried again."""

import os
import re
from dataclasses import dataclass
from datetime import timedelta

from muniment.errors import InvalidInput
from muniment.jitter import jittered

PRIVATE_VARIABLE = "MUNIMENT_WEBHOOKS_ALLOW_PRIVATE"
RETRIES_VARIABLE = "MUNIMENT_WEBHOOKS_RETRIES"
# Seconds before each further try: 5 s, 30 s, 2 min, 10 min, 1 h, 6 h, 24 h.
PAUSES = (5, 30, 120, 600, 3600, 21600, 86400)
_JITTER = 0.2
_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def parse_switch(value: str, variable: str, *, field: str) -> bool:
    """The value of a variable that is 1 or 0; raises `InvalidInput`."""
    if (word := value.strip().lower()) not in (*_ON, *_OFF):
        raise InvalidInput(f"expected 1 or 0 in {variable}", field=field)
    return word in _ON


@dataclass(frozen=True)
class WebhookSettings:
    """`allow_private` allows private addresses, and http without TLS; `pauses` are the seconds between tries."""

    allow_private: bool = False
    pauses: tuple[int, ...] = PAUSES

    @classmethod
    def gather(cls, allow_private: bool | None = None) -> "WebhookSettings":
        """The settings with the environment's values for what is not given; raises `InvalidInput`."""
        value = parse_switch(os.environ.get(PRIVATE_VARIABLE, ""), PRIVATE_VARIABLE, field="private_webhooks")
        pauses = os.environ.get(RETRIES_VARIABLE, "").strip()
        if pauses and not re.fullmatch(r"[0-9]{1,7}(,[0-9]{1,7}){0,31}", pauses):
            raise InvalidInput(f"expected seconds with commas, such as 5,30,120, in {RETRIES_VARIABLE}")
        return cls(
            value if allow_private is None else allow_private,
            tuple(int(one) for one in pauses.split(",")) if pauses else PAUSES,
        )

    def pause(self, tries: int) -> timedelta | None:
        """How long to wait after that many tries, with some jitter; None after the last try."""
        if tries > len(self.pauses):
            return None
        return timedelta(seconds=jittered(self.pauses[tries - 1], _JITTER))
