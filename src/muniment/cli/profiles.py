"""The built-in profiles: what each promotes at once, and what waits for whom."""

from collections.abc import Sequence

import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.output import Screen
from muniment.model.profile import Profile

app = typer.Typer()


@command(app, "profiles")
def profiles(call: Call) -> None:
    """List the built-in profiles: what each promotes at once, and what waits for whom.

    A profile is a pack by name: give it to --pack-file or MUNIMENT_PACK, or register it with muniment pack register.
    """
    from muniment.packs.profiles import profiles as built_in

    call.show(built_in(), _draw)


def _draw(screen: Screen, found: Sequence[Profile]) -> None:
    for number, one in enumerate(found):
        if number:
            screen.line()
        screen.line((one.name, "bold"), f" ({one.pack})")
        screen.line(one.summary, indent=4)
        rows = [
            (
                row.write_class,
                "people" if row.threshold is None else f"{row.threshold:.2f}",
                "" if row.working is None else f"{row.working:.2f}",
                ", ".join(row.proven_sources),
            )
            for row in one.classes
        ]
        screen.table(("class", "at once from", "working tier", "proven"), rows)
        for item in one.waiting:
            screen.line(f"{item.what}: {item.waits_for}", indent=4)
        if any(row.threshold is not None for row in one.classes):
            screen.line(f"cap {one.cap:.2f}, {one.sample_share:.0%} sampled, undo for {one.undo_term}", indent=4)
