"""Which database `open` is about, from its arguments and the environment: an address, or the home folder of its own."""

import os
from pathlib import Path

from muniment.errors import InvalidInput


def database_address(url: str | None, home: str | Path | None) -> str | None:
    """The address of the database; None if it is the embedded one. Raises `InvalidInput`."""
    if url is not None and not url.strip():
        raise InvalidInput("must not be empty", field="url")
    if url is not None and home is not None:
        raise InvalidInput("give an address or a home folder, not both", field="url")
    if url is None and home is None:
        return os.environ.get("MUNIMENT_DATABASE_URL") or None
    return url


def home_folder(home: str | Path | None) -> Path:
    """The folder of the embedded database."""
    return Path(home or os.environ.get("MUNIMENT_HOME") or ".muniment").expanduser().absolute()
