"""The weights of Muniment's trained readers: says in which folder they are, and does nothing else."""

from pathlib import Path

__all__ = ["weights"]


def weights() -> Path:
    """Return the folder with `manifest.json` and the files that it names."""
    return Path(__file__).parent / "weights"
