"""Language versions by tenant: which one reads its texts, and whether this process has it (CAN-15).

The version belongs to the tenant: a new tenant gets that of the process that opens it, and keeps it until an operator
adopts another one with `muniment db language`. A process that lacks it decides nothing about texts in the tenant. Two
versions change by themselves, before a text is judged (`successor`): earlier rules become those of this program, and a
tenant that was opened while the installed readers could not be used gets the version of the readers once they can.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

from psycopg import AsyncConnection, sql

from muniment.database.address import Address
from muniment.database.storage import Transaction
from muniment.errors import ReadersUnavailable
from muniment.language.readers import RULES, BrokenReaders, Readers

# The version of a tenant without a record of any: it was opened before versions were recorded.
FIRST_RULES = "rules-1"
# The version of a tenant that was opened while the installed readers could not be used. Nobody has it.
UNCHOSEN = "unchosen"
_RULES = re.compile(r"rules-(\d+)")
_OWN_RULES = int(RULES.removeprefix("rules-"))
_CACHED = 4096
# A version is read again after so long: an operator may have adopted another one since.
_CACHED_SECONDS = 60.0


@dataclass(frozen=True)
class MissingLanguage:
    """A tenant whose language version this program lacks, and why; its captures wait."""

    tenant_id: str
    version: str
    problem: str


class Languages:
    """The language version of each tenant, and the trained readers that this process has, if any."""

    def __init__(self, readers: Readers | BrokenReaders | None) -> None:
        self._readers = readers if isinstance(readers, Readers) else None
        self._broken = readers if isinstance(readers, BrokenReaders) else None
        # With the time at which each was read.
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()

    @property
    def own(self) -> str:
        """The version that new tenants get from this process; `UNCHOSEN` where its readers cannot be used."""
        if self._broken is not None:
            return UNCHOSEN
        return self._readers.version if self._readers is not None else RULES

    async def read(self, tx: Transaction) -> str:
        """Return the version of the tenant."""
        version, read_at = self._known.get(tx.tenant_id, ("", 0.0))
        if version and monotonic() - read_at < _CACHED_SECONDS:
            return version
        row = await tx.row("candidate.language")
        version = row["version"] if row is not None else FIRST_RULES
        self._known[tx.tenant_id] = version, monotonic()
        if len(self._known) > _CACHED:
            self._known.popitem(last=False)
        return version

    async def start(self, tx: Transaction, by: str) -> None:
        """Record the version of a tenant that is being opened."""
        await self._record(tx, by, self.own)
        if self.own != RULES:
            tx.emit("memory.note", by, about="language", version=self.own)

    async def adopt(self, tx: Transaction, by: str, version: str | None = None) -> None:
        """Make a version that of the tenant, by default this process's own; recorded in the log."""
        adopted = version or self.own
        await self._record(tx, by, adopted)
        tx.emit("memory.note", by, about="language", version=adopted)

    async def _record(self, tx: Transaction, by: str, version: str) -> None:
        tick = await tx.tick()
        tx.defer("candidate.adopt_language", seq=tick.seq, at=tick.at, version=version, by=by)
        self.forget(tx.tenant_id)

    def successor(self, version: str) -> str | None:
        """Return the version that a tenant of this one gets before this process judges a text there; None: it stays.

        The rules ship with the program, so that an upgrade brings the tenants along.
        """
        if version == UNCHOSEN and self._readers is not None:
            return self._readers.version
        number = _rules_number(version)
        return RULES if number is not None and number < _OWN_RULES else None

    async def move(self, tx: Transaction, by: str) -> None:
        """Give the tenant the successor of its version, unless another process was quicker."""
        await tx.tick()
        self.forget(tx.tenant_id)
        version = self.successor(await self.read(tx))
        if version is not None:
            await self.adopt(tx, by, version)

    def forget(self, tenant_id: str) -> None:
        """Read the tenant's version again next time."""
        self._known.pop(tenant_id, None)

    def readers(self, version: str) -> Readers | None:
        """Return the readers of a version, None for the rules alone; raises `ReadersUnavailable` if it is not here."""
        number = _rules_number(version)
        if number is not None and number <= _OWN_RULES:
            return None
        if self._readers is not None and self._readers.version == version:
            return self._readers
        if number is not None:
            raise ReadersUnavailable(
                f"the tenant's language version is {version}, and this program has {RULES}: upgrade it"
            )
        why = self._broken.problem if self._broken is not None else f"this process has {self.own}"
        if version == UNCHOSEN:
            raise ReadersUnavailable(
                "the tenant has no language version yet, as the trained readers could not be used when it was opened,"
                f" and {why}: install the package muniment-models again, or adopt a version with muniment db language"
            )
        raise ReadersUnavailable(
            f"the tenant's language version is {version}, and {why}: install the package muniment-models of that"
            " version, or adopt another with muniment db language"
        )

    def problem(self, version: str) -> str | None:
        """Return why this process cannot use a version; its readers are loaded to see, and their files checked."""
        try:
            readers = self.readers(self.successor(version) or version)
            if readers is not None:
                readers.weights.check()
                readers.load()
        except ReadersUnavailable as error:
            return error.message
        return None

    def own_problem(self) -> str | None:
        """Return why the version that this program has cannot be used."""
        return self._broken.problem if self._broken is not None else self.problem(self.own)


def _rules_number(version: str) -> int | None:
    found = _RULES.fullmatch(version)
    return int(found[1]) if found else None


async def missing_languages(address: Address, languages: Languages, tenants: Iterable[str]) -> list[MissingLanguage]:
    """List those of the tenants whose version this process cannot use; the schema has to be current."""
    found: list[MissingLanguage] = []
    problems: dict[str, str | None] = {}
    async with await AsyncConnection.connect(address.direct().for_task("auditor")) as auditor:
        for tenant_id in tenants:
            version = await _version(auditor, tenant_id)
            if version not in problems:
                problems[version] = languages.problem(version)
            if (problem := problems[version]) is not None:
                found.append(MissingLanguage(tenant_id, version, problem))
    return found


async def _version(auditor: AsyncConnection[tuple[object, ...]], tenant_id: str) -> str:
    async with auditor.transaction():
        await auditor.execute(sql.SQL("SET LOCAL muniment.tenant = {}").format(sql.Literal(tenant_id)))
        rows = await auditor.execute(
            "SELECT version FROM language_versions WHERE tenant_id = %s ORDER BY seq DESC LIMIT 1", [tenant_id]
        )
        row = await rows.fetchone()
    return str(row[0]) if row is not None else FIRST_RULES
