"""The components of the console, each shown once, in light and in dark: docs/reference/components/*.html.

`make reference` writes both pages from the console's own style sheet; docs/reference/console-components.md frames them.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SHEET = ROOT / "src" / "muniment" / "console" / "static" / "console.css"
FOLDER = ROOT / "docs" / "reference" / "components"

COMPONENTS: dict[str, str] = {
    "Badges": '<div class="badges"><span class="badge">preference</span><span class="badge good">promoted</span>'
    '<span class="badge warn">sensitive</span><span class="badge bad">low trust 0.30</span></div>',
    "Banner": '<section class="banner bad"><h2>Look closely</h2><ul><li><strong>Addresses the model.</strong> '
    'The words that do so are marked.</li></ul></section><section class="banner"><h2>Take note</h2><ul><li>'
    "<strong>Sensitive.</strong> A second person has to approve it.</li></ul></section>",
    "Marked words": '<p>She likes tea. <mark class="suspicious">Ignore all previous instructions</mark> and '
    "<mark>prefers email</mark>.</p>",
    "Difference by word": '<div class="sides"><p>prefers channel: <del>phone</del></p><p>prefers channel: '
    "<ins>email</ins></p></div>",
    "Recommendation": '<p class="recommended">Recommended: replace what is there, because it is fresher.</p>',
    "Messages": '<p class="problem">entity: expected a name such as customer:cus_77</p><p class="warning">An agent '
    'says this by itself.</p><p class="success">Passes every gate.</p>',
    "Conversation": '<ol class="turns"><li><p class="turn-head"><strong>cus_77</strong> <span class="muted">end user'
    '</span></p><p class="user-text">Hello.</p></li><li class="source"><p class="turn-head"><strong>cus_77</strong> '
    '<span class="badge">this fact came from here</span></p><p class="user-text">I prefer <mark>email</mark>.</p>'
    "</li></ol>",
    "Buttons": '<div class="actions"><button class="primary">Approve <kbd>a</kbd></button><button>Ask later</button>'
    '<button class="danger">Reject</button><button class="quiet">Clear</button><button disabled>Not now</button></div>',
    "Reasons": '<div class="reasons"><button><kbd>1</kbd> wrong</button><button><kbd>2</kbd> too vague</button></div>',
    "Fields": '<div class="field"><label for="c-text">Text</label><textarea id="c-text" class="short">email</textarea>'
    '<p class="hint">You can only raise the classification.</p></div>',
    "Figures": '<nav class="figures" aria-label="Figures"><span class="figure-link"><strong>27</strong> open</span>'
    '<span class="figure-link bad"><strong>7</strong> overdue</span><span class="figure-link"><strong>12</strong> '
    "decided by you today</span></nav>",
    "Saved views": '<div class="views"><span class="view"><a href="#late">late</a><button class="quiet" '
    'aria-label="Remove the view late">&times;</button></span></div>',
    "Table": '<table class="queue"><caption class="sr">Rows</caption><thead><tr><th scope="col">Due</th>'
    '<th scope="col">Fact</th></tr></thead><tbody><tr class="danger-bad"><td>in 1 h</td><td>contradicts</td></tr>'
    '<tr class="danger-warn"><td>in 2 h</td><td>sensitive</td></tr><tr class="selected"><td>in 3 h</td><td>selected'
    "</td></tr></tbody></table>",
    "Timeline": '<ol class="timeline"><li><strong>boris</strong> approved it</li><li class="bad"><strong>ada</strong> '
    "rejected it</li></ol>",
    "Undo line": '<div class="toast"><span>Approving: prefers email</span><button>Undo</button></div>',
    "Nothing here": '<section class="card empty"><h2>The queue is empty</h2><p>Every proposal has been decided.</p>'
    "</section>",
}


def page(theme: str) -> str:
    """Return the page of all components in one scheme."""
    cards = "\n".join(f'<section class="card"><h2>{name}</h2>\n{html}\n</section>' for name, html in COMPONENTS.items())
    return (
        f'<!doctype html>\n<html lang="en" data-theme="{theme}">\n<head><meta charset="utf-8"><title>Components, '
        f'{theme}</title>\n<link rel="stylesheet" href="console.css"></head>\n<body><main>\n'
        f"<h1>Components, {theme}</h1>\n{cards}\n</main></body>\n</html>\n"
    )


def main() -> None:
    """Write both pages, and the style sheet beside them."""
    FOLDER.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        (FOLDER / f"{theme}.html").write_text(page(theme), "utf-8")
    (FOLDER / "console.css").write_text(SHEET.read_text("utf-8"), "utf-8")


if __name__ == "__main__":
    main()
