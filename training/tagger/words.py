"""Lists of words and phrases for the templates, one file each in `words/`."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "words"


@cache
def words(name: str) -> tuple[str, ...]:
    """Return the phrases of a list; those on one line are separated by commas, and a line after `# ` is a comment."""
    content = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line for line in content.splitlines() if line and not line.startswith("# "))
    return tuple(word.strip() for line in lines for word in line.split(",") if word.strip())
