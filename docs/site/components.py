"""A hook for MkDocs: the components of the console, each shown once, in light and in dark.

The pages are made with the site from components.html, with the console's own macros and charts, and its style sheet
beside them; docs/reference/console-components.md frames them.
"""

from pathlib import Path
from types import SimpleNamespace

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from muniment.console.charts import Bars, Interval, Point, bars, columns, intervals, reliability
from muniment.console.rendering import environment
from muniment.model.decision import Reason

SHEET = Path(__file__).parents[2] / "src" / "muniment" / "console" / "static" / "console.css"
BODY = Path(__file__).with_name("components.html")
FOLDER = "reference/components"
# What lies over a page stays in its card here.
IN_PLACE = (
    "body { display: block !important } dialog, dialog .actions, .thumbs, .toasts { position: static !important } "
    ".thumbs { display: flex !important }"
)
# The page that frames them gives each the height that it says (site.js).
SAYS_HEIGHT = (
    'const say = () => parent.postMessage({ height: document.documentElement.scrollHeight }, "*");'
    'addEventListener("load", say); addEventListener("resize", say);'
)

DANGEROUS = SimpleNamespace(dangers=(Reason(code="addresses_model"), Reason(code="low_trust", detail="0.30")))
DOUBTFUL = SimpleNamespace(dangers=(Reason(code="sensitive", detail="PII"),))
RECALLED = SimpleNamespace(
    records=[SimpleNamespace(id="pm_1", text="prefers channel: email", tier="semantic")],
    low_confidence=[],
    conflicts=[],
    all_ids=["pm_1"],
    omitted=2,
)
PREVIEW = SimpleNamespace(
    error=None, status="promoted", supersedes=["pm_2"], before=RECALLED, after=RECALLED, disappears=[], appears=["pm_1"]
)
PLAN = SimpleNamespace(
    approved=["mwp_1", "mwp_2"],
    by_class={"preference": 2},
    by_tier={"semantic": 2},
    by_label={"INTERNAL": 2},
    by_subject={"customer:cus_77": 2},
    subjects=1,
    left_out={"mwp_000003": ""},
    more=False,
)
DRAWN = (
    (
        "Decisions per day",
        columns(
            [f"{day} Nov" for day in range(1, 8)],
            [
                Bars("clara", (5, 3, 4, 2, 6, 1, 3)),
                Bars("boris", (2, 4, 1, 3, 2, 5, 2)),
                Bars("ada", (1, 0, 1, 0, 2, 0, 1)),
            ],
            about="Decisions per day",
        ),
        ("clara", "boris", "ada"),
    ),
    (
        "Time in the queue",
        bars([Bars("preference", (3, 7, 8, 9))], about="Time in the queue", unit=lambda hours: f"{hours:g} h"),
        ("shortest", "median", "90th percentile", "longest"),
    ),
    ("Accuracy", intervals([Interval("preference", 0.86, 0.93, 0.97)], about="Accuracy", floor_at=0.9), ()),
    ("Calibration", reliability([Point(0.4, 0.6, 20), Point(0.8, 0.9, 60)], about="Calibration"), ()),
)


def page(theme: str) -> str:
    """Return the page of all components in one scheme."""
    body = (
        environment()
        .from_string(BODY.read_text("utf-8"))
        .render(
            proposal=DANGEROUS,
            doubtful=DOUBTFUL,
            listing=SimpleNamespace(after="x", first_url="#first", next_url="#next"),
            preview=PREVIEW,
            query="how to reply",
            plan=PLAN,
            action="approve",
            why={"sensitive": ["mwp_000003"]},
            drawn=DRAWN,
        )
    )
    return (
        f'<!doctype html>\n<html lang="en" data-theme="{theme}">\n<head><meta charset="utf-8"><title>Components, '
        f'{theme}</title>\n<link rel="stylesheet" href="console.css"><style>{IN_PLACE}</style></head>\n<body><main>\n'
        f"<h1>Components, {theme}</h1>\n{body}\n</main><script>{SAYS_HEIGHT}</script></body>\n</html>\n"
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add both pages, and the style sheet beside them."""
    made = {f"{theme}.html": page(theme) for theme in ("light", "dark")} | {SHEET.name: SHEET.read_text("utf-8")}
    for name, content in made.items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    return files
