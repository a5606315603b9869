"""Language versions by tenant: which one reads its texts, and whether this process has it (CAN-15).

The version belongs to the tenant: a new tenant gets that of the process that opens it, and keeps it until an operator
adopts another one with `muniment db language`. A process that lacks it decides nothing about texts in the tenant.
"""

from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic

from psycopg import AsyncConnection, sql

from muniment.database.address import Address
from muniment.database.storage import Transaction
from muniment.errors import ReadersUnavailable
from muniment.language.readers import RULES, Readers

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

    def __init__(self, readers: Readers | None) -> None:
        self._readers = readers
        # With the time at which each was read.
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()

    @property
    def own(self) -> str:
        """The version that new tenants get from this process."""
        return self._readers.version if self._readers is not None else RULES

    async def read(self, tx: Transaction) -> str:
        """Return the version of the tenant."""
        version, read_at = self._known.get(tx.tenant_id, ("", 0.0))
        if version and monotonic() - read_at < _CACHED_SECONDS:
            return version
        row = await tx.row("candidate.language")
        version = row["version"] if row is not None else RULES
        self._known[tx.tenant_id] = version, monotonic()
        if len(self._known) > _CACHED:
            self._known.popitem(last=False)
        return version

    async def adopt(self, tx: Transaction, by: str, version: str | None = None) -> None:
        """Make a version that of the tenant, by default this process's own; recorded in the log."""
        adopted = version or self.own
        tick = await tx.tick()
        tx.defer("candidate.adopt_language", seq=tick.seq, at=tick.at, version=adopted, by=by)
        tx.emit("memory.note", by, about="language", version=adopted)
        self.forget(tx.tenant_id)

    def forget(self, tenant_id: str) -> None:
        """Read the tenant's version again next time."""
        self._known.pop(tenant_id, None)

    def readers(self, version: str) -> Readers | None:
        """Return the readers of a version, None for the rules alone; raises `ReadersUnavailable` if it is not here."""
        if version == RULES:
            return None
        if self._readers is None or self._readers.version != version:
            raise ReadersUnavailable(
                f"the tenant's language version is {version}, and this process has {self.own}: install the package"
                " muniment-models of that version, or adopt this one with muniment db language"
            )
        return self._readers

    def problem(self, version: str) -> str | None:
        """Return why this process cannot use a version; the files of its readers are checked."""
        try:
            readers = self.readers(version)
            if readers is not None:
                readers.weights.check()
        except ReadersUnavailable as error:
            return error.message
        return None


async def missing_languages(address: Address, languages: Languages) -> list[MissingLanguage]:
    """List the tenants whose version this process cannot use; the schema has to be current."""
    found: list[MissingLanguage] = []
    problems: dict[str, str | None] = {RULES: None}
    async with await AsyncConnection.connect(address.direct().for_task("jobs"), autocommit=True) as jobs:
        tenants = [str(row[0]) for row in await (await jobs.execute("SELECT tenant_id FROM tenants")).fetchall()]
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
    return str(row[0]) if row is not None else RULES
