"""Taking data along: a subject's, an answer, or a whole tenant as a backup that is sealed for a receiver."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import ASKER, PLACE, RUN, TENANT, argument, flag
from muniment.cli.output import Screen, counted
from muniment.database.home import new_file as private_file
from muniment.errors import InvalidInput
from muniment.model.exports import Export

if TYPE_CHECKING:
    from muniment.transfer.tenant_backup import TenantBackup

app = typer.Typer()
export = group(app, "export")


@command(export, "subject", options=ASKER)
def export_subject(
    call: Call,
    subject: Annotated[str | None, argument("SUBJECT", "The subject, such as customer:cust_8861.")] = None,
    user: Annotated[str | None, flag("--user ID", "The end user, or who the subject is.")] = None,
    page: Annotated[Path | None, flag("--page FILE", "Also write it as a web page, into this new file.")] = None,
) -> None:
    """Take along everything that is held about one subject: with --json as data, with --page as a page to read."""
    with call.open() as fabric:
        found = fabric.export(call.principal("privacy_officer"), subject=subject, user_id=user)
    whole = found.subject
    assert whole is not None
    if page is not None:
        from muniment.subject.page import render

        with new_file(page) as stream:
            stream.write(render(whole).encode())
    call.show(found, _draw_subject)


def _draw_subject(screen: Screen, found: Export) -> None:
    for name in ("memories", "proposals", "captures", "consents", "consent_requests", "recalls"):
        screen.line(f"{name.replace('_', ' ')}: {len(getattr(found.subject, name))}")


@command(export, "answer", options=(*RUN, *ASKER))
def export_answer(call: Call, query: Annotated[str | None, argument("QUERY", "What the run asks.")] = None) -> None:
    """Take along what a run is told: a recall with the provenance of each record, recorded as an export."""
    from muniment.cli.recall_views import draw_recall

    auditor = call.principal("auditor")
    with call.open() as fabric:
        found = fabric.export(auditor, run=call.run(), query=query)
    answer = found.answer
    assert answer is not None
    call.show(found, lambda screen, _: draw_recall(screen, answer))


@command(export, "key")
def make_key(
    call: Call, file: Annotated[Path, argument("FILE", "Where the secret key is written; a new file.")]
) -> None:
    """Make a key to receive backups with: the secret key stays in the file, the public key is given to the sender."""
    from muniment.transfer.backup_format import new_receiver

    secret, public = new_receiver()
    with new_file(file) as stream:
        stream.write(f"{secret}\n".encode())
    call.show_line({"public_key": public, "file": str(file)}, public)


@command(export, "tenant", options=(*TENANT, *PLACE))
def export_tenant(
    call: Call,
    file: Annotated[Path, argument("FILE", "Where the backup is written; a new file.")],
    to: Annotated[str, flag("--to KEY", "The receiver's public key (muniment export key).")],
    by: Annotated[str | None, flag("--by NAME", "Who exports; by default the user of this machine.")] = None,
) -> None:
    """Write a whole tenant as a backup that only the receiver can open. Everybody goes on working meanwhile.

    It runs on the database, by the login of its owner. Give the receiver the key that it is signed with, which is
    printed, by another way than the file.
    """
    import anyio

    from muniment.transfer.backup_format import receiver_key

    receiver = receiver_key(to)
    with new_file(file) as stream:
        done = anyio.run(_write_tenant, call, receiver, by or call.local_admin().id, stream)
        stream.flush()
        os.fsync(stream.fileno())
    shown: dict[str, Any] = {"file": str(file), **vars(done), "memories": done.memories}
    call.show(shown, lambda screen, _: _draw_backup(screen, done))


async def _write_tenant(call: Call, receiver: Any, by: str, stream: BinaryIO) -> "TenantBackup":
    from muniment.audit.verbs import seal
    from muniment.opening import connect
    from muniment.transfer.tenant_backup import write_backup

    opened = await connect(call.settings(), None)
    try:
        await seal(opened.context, call.tenant)
        with call.progress("exporting") as steps:

            def report(table: str, rows: int) -> None:
                steps.update(f"{table}: {counted(rows, 'row')}")

            return await write_backup(opened.context, opened.address, call.tenant, by, receiver, stream, report)
    finally:
        await opened.close()


def _draw_backup(screen: Screen, done: "TenantBackup") -> None:
    screen.line(f"{counted(done.memories, 'memory', 'memories')} of {done.tenant_id}, {done.size:,} bytes")
    screen.line(f"signed by {done.signed_by}")


@contextmanager
def new_file(path: Path) -> Generator[BinaryIO]:
    """Open a new file that only its owner can read; it is removed if the work on it fails."""
    try:
        opened = private_file(path)
    except FileExistsError:
        raise InvalidInput(f"{path} is there already", field="file") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is no path").lower()
        raise InvalidInput(f"cannot write {path}: {reason}", field="file") from None
    try:
        with opened as stream:
            yield stream
    except BaseException:
        path.unlink(missing_ok=True)
        raise
