"""The event loop of our own threads and programs: uvloop, where there is one for the platform."""

import sys
from typing import Any

# For anyio. Programs that call `AsyncFabric` bring a loop of their own, of either kind.
OPTIONS: dict[str, Any] = {"use_uvloop": sys.platform != "win32"}
