"""Hooks for MkDocs: they add files of the repository that pages link to.

Pages link to files outside docs/ by their path in the repository, so that the links also work there. These hooks copy
the files into the site, under `project/`, and rewrite the links.
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
# These become pages of the site; the files of COPIES are copied as they are.
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/RESULTS.md", "bench/SCALE.md")
COPIES = ("examples", "clients/typescript/examples", "deploy", "bench/beside.svg", "bench/pack.yaml", "LICENSE")
_LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/ that pages link to."""
    for name in PAGES:
        text = _with_links((ROOT / name).read_text("utf-8"), PurePosixPath(name), f"{PROJECT}/{name}")
        files.append(File.generated(config, f"{PROJECT}/{name}", content=text))
    copies = {found for name in COPIES for found in _files_at(ROOT / name)}
    for path in sorted(copies | set(_linked_code())):
        place = f"{PROJECT}/{path.relative_to(ROOT).as_posix()}"
        # With the suffix .txt a browser shows a program instead of offering to save it.
        files.append(File.generated(config, _served(place), content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links that leave docs/ to the copies in the site."""
    here = page.file.src_uri
    if here.startswith(f"{PROJECT}/"):
        return markdown
    return _with_links(markdown, PurePosixPath("docs") / here, here)


def _with_links(text: str, source: PurePosixPath, served: str) -> str:
    """Rewrite the links of a file for its place in the site."""

    def rewritten(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        place = normpath(f"{source.parent}/{target}")
        if place.startswith("docs/"):
            place = place.removeprefix("docs/")
        elif place == "docs" or (ROOT / place).is_dir():
            # The site has no page for a folder: only its name is shown.
            index = relpath("index.md", str(PurePosixPath(served).parent))
            return f"{label}({index})" if place == "docs" else label.strip("[]")
        else:
            place = _served(f"{PROJECT}/{place}")
        return f"{label}({relpath(place, str(PurePosixPath(served).parent))}{anchor})"

    return _LINK.sub(rewritten, text)


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
