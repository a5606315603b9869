"""The docs as a site: it builds without warnings, loads nothing from other sites, and generated pages are up to date."""

import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from tests.console.chromium import chromium

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "images").glob("*.svg"))


class _Loaded(HTMLParser):
    """Collects the addresses that a browser fetches for a page by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "link":
            self.found.append(attributes.get("href") or "")
        elif tag != "a":
            self.found += [value for name in ("src", "srcset", "data", "href") if (value := attributes.get(name))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("site")
    # Without --quiet, which would hide warnings such as broken links.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return built


def test_every_page_is_built_and_loads_nothing_from_elsewhere(site: Path) -> None:
    built = sorted(site.rglob("*.html"))
    assert len(built) > len(list((ROOT / "docs").rglob("*.md")))
    for page in built:
        loaded = _Loaded()
        loaded.feed(page.read_text("utf-8"))
        assert loaded.found
        for address in loaded.found:
            assert "//" not in address, f"{page.relative_to(site)} loads {address}"
            assert (page.parent / address).exists(), f"{page.relative_to(site)} loads {address}"
    for ours in ("site.css", "site.js"):
        assert "//" not in (site / ours).read_text("utf-8").replace("// ", ""), ours


def test_the_front_page_links_to_every_page() -> None:
    front = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert "(glossary.md)" in front
    for part in ("tutorial", "how-to", "explanation", "reference"):
        for page in (ROOT / "docs" / part).glob("*.md"):
            assert f"({part}/{page.name})" in front, page.name


def test_files_outside_the_docs_are_in_the_site_and_linked(site: Path) -> None:
    page = (site / "how-to" / "settle-a-contradiction.html").read_text("utf-8")
    assert 'href="../project/examples/two_truths.py.txt"' in page
    program = (site / "project" / "examples" / "two_truths.py.txt").read_text("utf-8")
    assert program == (ROOT / "examples" / "two_truths.py").read_text("utf-8")
    assert 'href="project/index.html"' in (site / "index.html").read_text("utf-8")


def test_the_generated_pages_of_the_reference_are_up_to_date() -> None:
    pages: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "site" / "reference.py"))["pages"]()
    assert len(pages) == 6
    for place, text in pages.items():
        assert (ROOT / "docs" / place).read_text("utf-8") == text, f"{place} is out of date: make reference"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_can_be_read_aloud_in_light_and_in_dark(picture: Path) -> None:
    drawn = ElementTree.parse(picture).getroot()
    assert drawn.get("role") == "img"
    assert drawn.get("aria-label")
    assert "prefers-color-scheme: dark" in picture.read_text("utf-8")


def test_the_components_of_the_console_are_shown_with_its_own_style_sheet(site: Path) -> None:
    folder, sheet = site / "reference" / "components", ROOT / "src/muniment/console/static/console.css"
    assert (folder / "console.css").read_text("utf-8") == sheet.read_text("utf-8")
    framed = (site / "reference" / "console-components.html").read_text("utf-8")
    for theme in ("light", "dark"):
        assert f'src="components/{theme}.html"' in framed
        assert f'data-theme="{theme}"' in (folder / f"{theme}.html").read_text("utf-8")


def test_the_components_are_shown_whole_without_scrolling_inside_of_a_frame(site: Path) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.goto((site / "reference" / "console-components.html").as_uri())
        for theme in ("light", "dark"):
            frame = page.locator(f"iframe[src='components/{theme}.html']")
            frame.scroll_into_view_if_needed()
            expect(frame).not_to_have_attribute("height", "2400")
            inside = page.frame_locator(f"iframe[src='components/{theme}.html']").locator("html")
            hidden = inside.evaluate("(html) => html.scrollHeight - html.clientHeight")
            assert hidden == 0, theme
