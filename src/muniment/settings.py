"""Settings of a fabric, from the arguments of `open` and from the environment."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, Unpack

from muniment.candidates.extractors.models import Models
from muniment.database.replica import MAX_LAG_SECONDS, ReplicaSettings
from muniment.errors import InvalidInput
from muniment.home_folder import database_address, home_folder
from muniment.language.assertion import Judge, judge
from muniment.language.embedding import Embedder
from muniment.language.readers import BrokenReaders, Readers, find_readers
from muniment.notices.settings import NoticeSettings
from muniment.pack import PROFILES, Pack, load_pack, profile_pack
from muniment.webhooks.settings import WebhookSettings

Clock = Callable[[], datetime]

DEFAULT_INDEX_MB = 512
_MB = 1024 * 1024
# Upper limit of MUNIMENT_REPLICA_MAX_LAG, in seconds.
LONGEST_LAG = 3600


class OpenOptions(TypedDict, total=False):
    """What `open` takes beside the address of the database; see `AsyncFabric.open`."""

    pack: str | Path | Pack | None
    activate: bool
    home: str | Path | None
    clock: Clock | None
    judge: Judge
    embedder: str | Embedder | None
    redis_url: str | None
    private_webhooks: bool | None
    archives: str | Path | None
    models: Models | Mapping[str, Any] | str | Path | None
    processes: int
    index_mb: int | None
    replica_url: str | None
    readers: Readers | BrokenReaders | None
    local_owner: bool


@dataclass(frozen=True)
class Settings:
    """The arguments of `open`, completed from the environment."""

    url: str | None
    home: Path
    pack: Pack | None
    clock: Clock
    judge: Judge = judge
    embedder: str | Embedder | None = None
    redis_url: str | None = None
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    archives: Path | None = None
    activate: bool = False
    models: Models = field(default_factory=Models)
    # Processes that share the work of one program: each takes its part of the limits.
    processes: int = 1
    # Memory for the index that recalls are ranked from, of all processes together; 0 turns it off.
    index_bytes: int = DEFAULT_INDEX_MB * _MB
    # The trained readers, or why those that are installed cannot be used; None for the rules alone.
    readers: Readers | BrokenReaders | None = None
    # Whoever opens the home is taken for its one user (MEM-5); only for an embedded database.
    local_owner: bool = False
    # Where mail is handed in, and the address that links lead to.
    notices: NoticeSettings = field(default_factory=NoticeSettings)
    # The standby that auditors' reads may go to, and how far behind it may be.
    replica: ReplicaSettings | None = None

    @classmethod
    def gather(cls, url: str | None, **options: Unpack[OpenOptions]) -> "Settings":
        """Complete the arguments from the environment; raises `InvalidInput`, `PackInvalid`."""
        home, activate = options.get("home"), options.get("activate", False)
        url = database_address(url, home)
        own = _pack(options.get("pack"))
        if activate and own is None:
            raise InvalidInput("needs a pack: give one with `pack` or MUNIMENT_PACK", field="activate")
        folder = home_folder(home)
        return cls(
            url,
            folder,
            own,
            options.get("clock") or (lambda: datetime.now(UTC)),
            options.get("judge", judge),
            options.get("embedder") or os.environ.get("MUNIMENT_EMBEDDER") or None,
            options.get("redis_url") or os.environ.get("MUNIMENT_REDIS_URL") or None,
            WebhookSettings.gather(options.get("private_webhooks")),
            _archives(options.get("archives"), None if url is not None else folder),
            activate,
            Models.gather(options.get("models")),
            _processes(options.get("processes", 1)),
            _index_mb(options.get("index_mb")) * _MB,
            options["readers"] if "readers" in options else installed_readers(),
            options.get("local_owner", False),
            NoticeSettings.gather(),
            _replica(options.get("replica_url")) if url is not None else None,
        )


def installed_readers() -> Readers | BrokenReaders | None:
    """Return the readers of the package muniment-models; None without it, or where MUNIMENT_READERS is `off`.

    Where the package is broken, that says why: what needs no readers works without them.
    """
    named = os.environ.get("MUNIMENT_READERS") or "on"
    if named not in ("on", "off"):
        raise InvalidInput("expected MUNIMENT_READERS to be on or off", field="readers")
    return find_readers() if named == "on" else None


def _processes(count: int) -> int:
    if count < 1:
        raise InvalidInput("expected a number from 1 on", field="processes")
    return count


def _index_mb(megabytes: int | None) -> int:
    named = os.environ.get("MUNIMENT_INDEX_MB") or DEFAULT_INDEX_MB
    try:
        size = int(megabytes if megabytes is not None else named)
    except ValueError:
        size = -1
    if size < 0:
        raise InvalidInput("expected a number of megabytes from 0 on", field="index_mb")
    return size


def _replica(url: str | None) -> ReplicaSettings | None:
    named = url or os.environ.get("MUNIMENT_REPLICA_URL") or None
    if named is None:
        return None
    text = os.environ.get("MUNIMENT_REPLICA_MAX_LAG") or str(MAX_LAG_SECONDS)
    try:
        most = float(text)
    except ValueError:
        most = -1.0
    if not 0 < most <= LONGEST_LAG:
        raise InvalidInput(
            f"expected a number of seconds above 0, at most {LONGEST_LAG}", field="MUNIMENT_REPLICA_MAX_LAG"
        )
    return ReplicaSettings(named, most)


def _pack(pack: str | Path | Pack | None) -> Pack | None:
    named = pack or os.environ.get("MUNIMENT_PACK") or None
    if named is None or isinstance(named, Pack):
        return named
    path = Path(named)
    if str(named) in PROFILES and not (isinstance(named, Path) and path.is_file()):
        return profile_pack(str(named))
    if not path.is_file():
        raise InvalidInput(f"no file {path}, and no profile: {', '.join(PROFILES)}", field="pack")
    return load_pack(path)


def _archives(folder: str | Path | None, home: Path | None) -> Path | None:
    """The folder of archive files; None where no folder is set and the database is not embedded."""
    named = folder or os.environ.get("MUNIMENT_ARCHIVES") or (home / "archives" if home is not None else None)
    return Path(named).expanduser().absolute() if named is not None else None
