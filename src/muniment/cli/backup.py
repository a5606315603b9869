"""Backups of an embedded home, and restoring: a home from its backup, or one tenant from its sealed backup."""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.options import PLACE, TENANT, argument, flag
from muniment.cli.output import Screen, counted, format_time
from muniment.errors import BackupBroken, InvalidInput

if TYPE_CHECKING:
    from muniment.database.embedded import Lease
    from muniment.transfer.home_backup import HomeBackup
    from muniment.transfer.tenant_backup import TenantBackup

app = typer.Typer()


@command(app, "backup", options=PLACE)
def backup(
    call: Call,
    file: Annotated[Path, argument("FILE", "Where the backup is written; a new file.")],
    with_key: Annotated[
        bool, flag("--with-key", "Put the master key into it: then whoever has the file can open all of it.")
    ] = False,
    no_check: Annotated[
        bool, flag("--no-check", "Do not restore it into a temporary folder and verify every tenant.")
    ] = False,
) -> None:
    """Write a backup of the embedded database, while it runs, and try it out.

    Keep the master key (master.key in the home) in another place: the backup is of no use without it.
    """
    from muniment.transfer import home_backup

    settings = call.settings()
    if settings.url is not None:
        raise InvalidInput("an external database is backed up with the tools of its server", field="url")
    with call.progress("writing"):
        done = home_backup.write(settings.home, settings.archives, file, with_key=with_key)
    if not no_check:
        with tempfile.TemporaryDirectory(prefix=".check.", dir=file.absolute().parent) as folder:
            key = settings.home / "master.key"
            try:
                _restore_home(call, file, Path(folder) / "home", key if key.is_file() else None)
            except BackupBroken:
                file.unlink(missing_ok=True)
                raise
            home_backup.remove(Path(folder) / "home")
    shown = {"file": str(file), "checked": not no_check, **vars(done)}
    call.show(shown, lambda screen, _: _draw(screen, shown, "written"))


def _draw(screen: Screen, shown: dict[str, Any], done: str) -> None:
    made = format_time(datetime.fromisoformat(shown["created_at"]))
    screen.line(f"{counted(len(shown['tenants']), 'tenant')} {done}, {shown['size']:,} bytes, of {made}")
    if shown["checked"]:
        screen.line("every tenant verifies")


@command(app, "restore", options=(*TENANT, *PLACE))
def restore(
    call: Call,
    file: Annotated[Path, argument("FILE", "A backup of a home, or with --tenant that of a tenant.")],
    master_key: Annotated[
        Path | None, flag("--master-key FILE", "Of a home: the file with its master key, if it is not in the backup.")
    ] = None,
    secret_key: Annotated[
        Path | None, flag("--secret-key FILE", "Of a tenant: the key that it is sealed for (muniment export key).")
    ] = None,
    signed_by: Annotated[
        str | None, flag("--signed-by KEY", "Of a tenant: the key that it was signed with, as the sender says.")
    ] = None,
    by: Annotated[str | None, flag("--by NAME", "Who restores; by default the user of this machine.")] = None,
) -> None:
    """Restore an embedded database, or with --tenant one tenant.

    Nothing is kept unless everything verifies: the digests or the signature, the chain, and every row.
    """
    named = call.options["tenant"]
    if secret_key is None and signed_by is None and named in (None, os.environ.get("MUNIMENT_TENANT")):
        # The variable says where other commands act: it does not make a home's backup that of a tenant.
        _restore_new_home(call, file, master_key)
        return
    if named is None:
        raise InvalidInput("give --tenant to restore a tenant", field="tenant")
    if master_key is not None:
        raise InvalidInput("belongs to a home: a tenant takes --secret-key", field="master_key")
    if secret_key is None or signed_by is None:
        raise InvalidInput("a tenant takes --secret-key and --signed-by", field="secret_key")
    import anyio

    done = anyio.run(_restore_tenant, call, file, secret_key, signed_by, by or call.local_admin().id)
    memories = counted(done.memories, "memory", "memories")
    lines = [f"{memories} of {done.tenant_id} restored", "everything verifies"]
    call.show_line({**vars(done), "memories": done.memories}, *lines)
    call.note("webhooks are parked: muniment webhook resume calls them from here")


def _restore_new_home(call: Call, file: Path, master_key: Path | None) -> None:
    settings = call.settings()
    if settings.url is not None:
        raise InvalidInput("a backup of a home is restored into a home: give --home", field="url")
    done = _restore_home(call, file, settings.home, master_key)
    shown = {"home": str(settings.home), "checked": True, **vars(done)}
    call.show(shown, lambda screen, _: _draw(screen, shown, "restored"))
    call.note("who was erased since the backup was made is in it again: erase them again")


def _restore_home(call: Call, file: Path, home: Path, master_key: Path | None) -> "HomeBackup":
    """Restore a home and verify every tenant in it; a home that does not verify is removed."""
    import anyio

    from muniment.transfer import home_backup

    with call.progress("restoring"):
        done = home_backup.restore(file, home, _prepare, master_key=master_key)
        try:
            anyio.run(_verify, home, done.tenants)
        except BaseException:
            home_backup.remove(home)
            raise
    return done


def _prepare(lease: "Lease") -> None:
    """Make the logins and the schema of a new server, or bring what was loaded to this program's schema."""
    import anyio

    from muniment.opening import prepared

    anyio.run(prepared, lease)


async def _verify(home: Path, tenants: tuple[str, ...]) -> None:
    from muniment.fabric import AsyncFabric
    from muniment.model.context import Principal

    async with AsyncFabric.open(home=home) as fabric:
        for tenant_id in tenants:
            auditor = Principal(tenant_id=tenant_id, id="restore", kind="operator", roles={"auditor"})
            found = await fabric.verify(auditor)
            if not found.ok:
                raise BackupBroken(f"tenant {tenant_id} does not verify: {found.breaks[0].kind}")
            if not (await fabric.verify_archives(auditor)).ok:
                raise BackupBroken(f"the archives of tenant {tenant_id} do not verify")


async def _restore_tenant(call: Call, file: Path, secret_key: Path, signed_by: str, by: str) -> "TenantBackup":
    from muniment.opening import connect
    from muniment.transfer import tenant_backup
    from muniment.transfer.backup_format import check_signature
    from muniment.transfer.backup_format import secret_key as read_key

    secret = read_key(secret_key)
    try:
        stream = file.open("rb")
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {(error.strerror or 'no file').lower()}", field="file") from None
    with stream:
        with call.progress("checking the signature"):
            signed = check_signature(stream, signed_by)
        stream.seek(0)
        opened = await connect(call.settings(), None)
        try:
            with call.progress("restoring") as steps:

                def report(table: str, rows: int) -> None:
                    steps.update(f"{table}: {counted(rows, 'row')}")

                return await tenant_backup.restore(
                    opened.context, opened.address, call.tenant, by, stream, signed, secret, report
                )
        finally:
            await opened.close()
