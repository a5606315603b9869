"""Every error a caller can meet, each with a code that stays the same from release to release.

    MunimentError
    ├── InvalidInput         invalid_input            a field is missing, of the wrong type or form
    │   ├── TooLarge         too_large                a field is past its limit
    │   └── UnknownLabel     unknown_classification   the pack declares no such classification
    ├── PackInvalid          pack_invalid             a pack was refused, with every error at its line
    ├── NotFound             not_found                nothing of that id in this tenant
    ├── Unauthenticated      unauthenticated          no credential, or not a valid one
    ├── RateLimited          rate_limited             too many calls, or too many wrong credentials
    ├── Denied               denied                   the principal may not do this
    │   ├── RoleMissing      role_missing             it lacks the role
    │   ├── PinRefused       pin_refused              the pack in force does not let runs pin that version
    │   ├── SecondPersonRequired second_person_required  another admin must put this pack in force
    │   └── SelfApproval     self_approval            four eyes: the author cannot approve
    ├── Conflict             conflict                 somebody else was first
    │   ├── AlreadyDecided   already_decided          the proposal has its final verdict
    │   ├── IdempotencyConflict idempotency_conflict  the same key with other content
    │   ├── RequestRepeated  request_repeated         the request was carried out before
    │   ├── VersionConflict  version_conflict         it was changed since you read it
    │   ├── ConsentChanged   consent_changed          the consent was superseded or revoked already
    │   ├── KeyRotated       key_rotated              the tenant's key was rotated meanwhile
    │   ├── PackChanged      pack_changed             another pack was put in force meanwhile
    │   └── PackImmutable    pack_immutable           that version is registered with other content
    ├── NotPromotable        not_promotable           what the proposal relies on changed since its review
    │   └── LeftOut          left_out                 not ordinary: approve it individually, or acknowledge it
    ├── HistoryCollected     history_collected        the moment lies beyond the replay horizon
    ├── MomentAmbiguous      moment_ambiguous         the time occurred twice, as a clock was set back
    ├── ClockAhead           clock_ahead              a clock is too far ahead of the database's
    ├── ServerUnavailable    server_unavailable       a client's server does not answer, or answers wrongly
    ├── EmbedderUnavailable  embedder_unavailable     the embedder is missing, unreachable, or answers wrongly
    ├── ReadersUnavailable   readers_unavailable      the tenant's language version is not here, or does not answer
    ├── PackageMissing       package_missing          a package that this use needs is not installed
    ├── ExtractorFailed      extractor_failed         an extractor raised, is missing, or got a wrong answer
    └── StorageError
        ├── StorageUnavailable storage_unavailable    no database, or the connection was lost
        ├── SchemaMissing    schema_missing           the database was never migrated, or not far enough
        ├── SchemaNewer      schema_newer             the database is newer than this program
        ├── KeyUnavailable   key_unavailable          no master key, or not the one this data was sealed with
        ├── PurgeIncomplete  purge_incomplete         erased data is still in files beneath the tables
        ├── ArchiveBroken    archive_broken           an archive file is missing, changed or unreadable
        ├── BackupBroken     backup_broken            a backup is changed, incomplete, or for somebody else
        └── SealBroken       seal_broken              sealed content does not open: changed, moved or erased

Expected outcomes (refused, held, contradicted) are values, not errors.
"""

from collections.abc import Iterable
from typing import ClassVar


class MunimentError(Exception):
    """Base of all errors: `code` is stable, `field` names the input at fault where there is one."""

    code: ClassVar[str] = "error"

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message

    def as_dict(self) -> dict[str, object]:
        """The error as all interfaces show it."""
        shown: dict[str, object] = {"code": self.code, "message": self.message}
        if self.field is not None:
            shown["field"] = self.field
        return shown


class InvalidInput(MunimentError, code="invalid_input"):
    """A field is missing, of the wrong type or form."""


class TooLarge(InvalidInput, code="too_large"):
    """A field is past its limit."""


class UnknownLabel(InvalidInput, code="unknown_classification"):
    """The pack declares no such classification."""


class PackInvalid(MunimentError, code="pack_invalid"):
    """A pack was refused; `problems` holds every error with its line."""

    def __init__(self, problems: Iterable["PackProblem"]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(p) for p in self.problems))

    def as_dict(self) -> dict[str, object]:
        """The error with its problems, each at its line."""
        return super().as_dict() | {"problems": [p.as_dict() for p in self.problems]}


class PackProblem:
    """One thing wrong with a pack: where (line, path) and what was expected."""

    def __init__(self, line: int | None, path: str, message: str) -> None:
        self.line = line
        self.path = path
        self.message = message

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        return f"{place}{self.path}: {self.message}" if self.path else f"{place}{self.message}"

    def as_dict(self) -> dict[str, object]:
        """The problem as data."""
        return {"line": self.line, "path": self.path, "message": self.message}


class NotFound(MunimentError, code="not_found"):
    """Nothing of that id in this tenant; another tenant's id answers the same."""


class Unauthenticated(MunimentError, code="unauthenticated"):
    """There is no credential, or not a valid one; the error does not say which."""


class RateLimited(MunimentError, code="rate_limited"):
    """Too many calls under this credential, or too many wrong credentials; retry after `wait` seconds."""

    def __init__(self, message: str, *, wait: float = 1.0) -> None:
        super().__init__(message)
        self.wait = wait


class Denied(MunimentError, code="denied"):
    """The principal may not do this."""


class RoleMissing(Denied, code="role_missing"):
    """The principal lacks the role this takes."""


class PinRefused(Denied, code="pin_refused"):
    """The pack in force does not let runs pin that version, or it was retired."""


class SecondPersonRequired(Denied, code="second_person_required"):
    """The pack must be put in force by an admin other than the one who registered it."""


class SelfApproval(Denied, code="self_approval"):
    """Four eyes: whoever wrote or edited a proposal cannot approve it."""


class Conflict(MunimentError, code="conflict"):
    """Somebody else was first."""


class AlreadyDecided(Conflict, code="already_decided"):
    """The proposal already has its final verdict."""


class IdempotencyConflict(Conflict, code="idempotency_conflict"):
    """The idempotency key was used with other content."""


class RequestRepeated(Conflict, code="request_repeated"):
    """The request was carried out before, under the same idempotency key; it is not carried out again."""


class VersionConflict(Conflict, code="version_conflict"):
    """What was to be changed is not as the caller read it any more."""


class ConsentChanged(Conflict, code="consent_changed"):
    """The consent was superseded or revoked already."""


class KeyRotated(Conflict, code="key_rotated"):
    """The tenant's key was rotated meanwhile; try again."""


class PackChanged(Conflict, code="pack_changed"):
    """Another pack was put in force meanwhile; try again, and the new pack decides."""


class PackImmutable(Conflict, code="pack_immutable"):
    """That pack version is registered with other content."""


class NotPromotable(MunimentError, code="not_promotable"):
    """What the proposal relies on changed since its review."""


class LeftOut(NotPromotable, code="left_out"):
    """Left out of a batch approval: it is not ordinary, and was not acknowledged."""


class HistoryCollected(MunimentError, code="history_collected"):
    """The moment asked about lies beyond the replay horizon."""


class MomentAmbiguous(MunimentError, code="moment_ambiguous"):
    """The time occurred twice, because the tenant's clock was set back; `numbers` has both sequence numbers."""

    def __init__(self, message: str, *, field: str | None = None, numbers: Iterable[int] = ()) -> None:
        super().__init__(message, field=field)
        self.numbers = tuple(numbers)

    def as_dict(self) -> dict[str, object]:
        """The error with the sequence numbers that the time may mean."""
        return super().as_dict() | {"numbers": list(self.numbers)}


class ClockAhead(MunimentError, code="clock_ahead"):
    """A clock is further ahead of the database's own clock than its owner allows; nothing was written."""


class ServerUnavailable(MunimentError, code="server_unavailable"):
    """A client's server cannot be reached, did not answer in time, or is not a Muniment server."""


class EmbedderUnavailable(MunimentError, code="embedder_unavailable"):
    """The embedder is missing, unreachable, or answers wrongly."""


class PackageMissing(MunimentError, code="package_missing"):
    """A package that this use needs is not installed; the message says which, and how to install it."""


class ReadersUnavailable(MunimentError, code="readers_unavailable"):
    """The language version of the tenant is not in this process: its readers are missing, changed, or do not answer.

    Nothing was decided; a capture waits for a process that has the version.
    """


class ExtractorFailed(MunimentError, code="extractor_failed"):
    """An extractor raised, is missing, or got a wrong answer; the message holds no content of the capture.

    `later`: the capture is not at fault; it is tried again after that many seconds, and no attempt is counted.
    `unreachable`: a language model fails as a whole, not with this capture alone.
    """

    def __init__(
        self, message: str, *, field: str | None = None, later: float | None = None, unreachable: bool = False
    ) -> None:
        super().__init__(message, field=field)
        self.later, self.unreachable = later, unreachable


class StorageError(MunimentError):
    """The database or the keys above its content."""


class StorageUnavailable(StorageError, code="storage_unavailable"):
    """There is no database, or the connection to it was lost."""


class SchemaMissing(StorageError, code="schema_missing"):
    """The database was never migrated, or not far enough."""


class SchemaNewer(StorageError, code="schema_newer"):
    """The database was migrated by a newer program."""


class KeyUnavailable(StorageError, code="key_unavailable"):
    """No master key, or not the one this data was sealed with."""


class SealBroken(StorageError, code="seal_broken"):
    """Sealed content does not open: it was changed, moved or erased."""


class PurgeIncomplete(StorageError, code="purge_incomplete"):
    """Erased data is still in files beneath the tables."""


class BackupBroken(StorageError, code="backup_broken"):
    """A backup was changed, is incomplete, is sealed for another key, or does not verify; nothing of it is kept."""


class ArchiveBroken(StorageError, code="archive_broken"):
    """An archive file is missing, was changed, or cannot be read."""
