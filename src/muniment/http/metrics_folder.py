"""The folder in which several processes of a server keep their metrics, so that each can add up those of all."""

from collections.abc import Iterator
from pathlib import Path

# Read by prometheus_client when it is imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_LIVE = "gauge_livesum_"


def live_processes(folder: Path) -> Iterator[str]:
    """The ids of the processes that have not ended."""
    return (file.stem.removeprefix(_LIVE) for file in folder.glob(f"{_LIVE}*.db"))


def forget_process(folder: Path, pid: int) -> None:
    """Count no longer what a process that has ended had open; what it has counted stays."""
    (folder / f"{_LIVE}{pid}.db").unlink(missing_ok=True)
