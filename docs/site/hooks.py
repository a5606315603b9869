"""Hooks for MkDocs: they add files of the repository that pages link to.

Pages link to files outside docs/ as they lie in the repository, so that they read well there. Here these files become
part of the site, under `project/`, and the links follow.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PROJECT = "project"
# Every one of these is a page of the site; of other files a copy is.
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/RESULTS.md")
COPIES = ("examples", "deploy", "bench/beside.svg", "LICENSE")
_LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/ and is linked to."""
    for name in PAGES:
        text = _with_links((ROOT / name).read_text("utf-8"), PurePosixPath(name), f"{PROJECT}/{name}")
        files.append(File.generated(config, f"{PROJECT}/{name}", content=text))
    copies = {found for name in COPIES for found in _files_at(ROOT / name)}
    for path in sorted(copies | set(_linked_code())):
        place = f"{PROJECT}/{path.relative_to(ROOT).as_posix()}"
        # A program is shown by the browser as text, not offered to be saved.
        files.append(File.generated(config, _served(place), content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to where the site has these files."""
    here = page.file.src_uri
    if here.startswith(f"{PROJECT}/"):
        return markdown
    return _with_links(markdown, PurePosixPath("docs") / here, here)


def _with_links(text: str, source: PurePosixPath, served: str) -> str:
    """The text of a file of the repository, with links as they must be where the site has it."""

    def led(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        place = normpath(f"{source.parent}/{target}")
        if place.startswith("docs/"):
            place = place.removeprefix("docs/")
        elif place == "docs" or (ROOT / place).is_dir():
            return f"{label}({relpath('index.md', str(PurePosixPath(served).parent))})" if place == "docs" else label
        else:
            place = _served(f"{PROJECT}/{place}")
        return f"{label}({relpath(place, str(PurePosixPath(served).parent))}{anchor})"

    return _LINK.sub(led, text)


def _linked_code() -> Iterator[Path]:
    """The source files and tests that the page of rules links to."""
    page = ROOT / "docs" / "reference" / "rules.md"
    for match in _LINK.finditer(page.read_text("utf-8")):
        path = (page.parent / match[2]).resolve()
        if path.is_file() and (ROOT / "docs") not in path.parents:
            yield path


def _served(place: str) -> str:
    return place if PurePosixPath(place).suffix in {".md", ".svg", ".png"} else f"{place}.txt"


def _files_at(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    left_out = {"secrets", "__pycache__"}
    return sorted(path for path in place.rglob("*") if path.is_file() and not left_out & set(path.parts))
