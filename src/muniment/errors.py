"""Every error a caller can meet, each with a code that stays the same from release to release.

    MunimentError
    ├── InvalidInput         invalid_input            a field is missing, of the wrong type or form
    │   ├── TooLarge         too_large                a field is past its limit
    │   └── UnknownLabel     unknown_classification   the pack declares no such classification
    ├── PackInvalid          pack_invalid             a pack was refused, with every error at its line
    ├── NotFound             not_found                nothing of that id in this tenant
    ├── Unauthenticated      unauthenticated          no credential, or none that holds
    ├── RateLimited          rate_limited             too many calls, or too many wrong credentials
    ├── Denied               denied                   the principal may not do this
    │   ├── RoleMissing      role_missing             it lacks the role
    │   ├── PinRefused       pin_refused              the pack in force does not let runs pin that version
    │   ├── SecondPersonRequired second_person_required  another admin has to put this pack in force
    │   └── SelfApproval     self_approval            four eyes: the author cannot approve
    ├── Conflict             conflict                 somebody else was first
    │   ├── AlreadyDecided   already_decided          the proposal has its final verdict
    │   ├── IdempotencyConflict idempotency_conflict  same key, other content
    │   ├── RequestRepeated  request_repeated         the request was carried out before
    │   ├── VersionConflict  version_conflict         it was changed since you read it
    │   ├── ConsentChanged   consent_changed          the consent was superseded or revoked already
    │   ├── KeyRotated       key_rotated              the tenant's key was rotated at this moment
    │   ├── PackChanged      pack_changed             another pack was put in force at this moment
    │   └── PackImmutable    pack_immutable           that version is registered with other content
    ├── NotPromotable        not_promotable           what the proposal rests on changed since its review
    │   └── LeftOut          left_out                 not ordinary: it is approved alone, or acknowledged
    ├── HistoryCollected     history_collected        the moment lies beyond the replay horizon
    ├── MomentAmbiguous      moment_ambiguous         the time was twice, since a clock was brought back
    ├── ClockAhead           clock_ahead              a clock is further ahead of the database's than that allows
    ├── ServerUnavailable    server_unavailable       a client's server does not answer, or not as one
    ├── EmbedderUnavailable  embedder_unavailable     the embedder is missing, away, or answers wrongly
    ├── ExtractorFailed      extractor_failed         an extractor raised, is missing, or is answered wrongly
    └── StorageError
        ├── StorageUnavailable storage_unavailable    no database, or it went away
        ├── SchemaMissing    schema_missing           the database was never migrated, or not far enough
        ├── SchemaNewer      schema_newer             the database is newer than this program
        ├── KeyUnavailable   key_unavailable          no master key, or not the one this data was sealed with
        ├── PurgeIncomplete  purge_incomplete         something erased is still kept beneath the tables
        ├── ArchiveBroken    archive_broken           an archive file is missing, changed or unreadable
        └── SealBroken       seal_broken              sealed content does not open: changed, moved or erased

Expected outcomes (refused, held, contradicted) are values, not errors.
"""

from collections.abc import Iterable
from typing import ClassVar


class MunimentError(Exception):
    """Base of all errors: `code` is stable, `field` names the input at fault where there is one."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message

    def as_dict(self) -> dict[str, object]:
        """The error as every door shows it."""
        shown: dict[str, object] = {"code": self.code, "message": self.message}
        if self.field is not None:
            shown["field"] = self.field
        return shown


class InvalidInput(MunimentError):
    """A field is missing, of the wrong type or form."""

    code = "invalid_input"


class TooLarge(InvalidInput):
    """A field is past its limit."""

    code = "too_large"


class UnknownLabel(InvalidInput):
    """The pack declares no such classification."""

    code = "unknown_classification"


class PackInvalid(MunimentError):
    """A pack was refused; `problems` holds every error with its line."""

    code = "pack_invalid"

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


class NotFound(MunimentError):
    """Nothing of that id in this tenant; another tenant's id answers the same."""

    code = "not_found"


class Unauthenticated(MunimentError):
    """There is no credential, or none that holds; which of the two is not told."""

    code = "unauthenticated"


class RateLimited(MunimentError):
    """Too many calls under this credential, or too many wrong credentials; `wait` seconds later it may go."""

    code = "rate_limited"

    def __init__(self, message: str, *, wait: float = 1.0) -> None:
        super().__init__(message)
        self.wait = wait


class Denied(MunimentError):
    """The principal may not do this."""

    code = "denied"


class RoleMissing(Denied):
    """The principal lacks the role this takes."""

    code = "role_missing"


class PinRefused(Denied):
    """The pack in force does not let runs pin that version, or it was retired."""

    code = "pin_refused"


class SecondPersonRequired(Denied):
    """The pack must be put in force by an admin other than the one who registered it."""

    code = "second_person_required"


class SelfApproval(Denied):
    """Four eyes: who wrote or edited it cannot approve it."""

    code = "self_approval"


class Conflict(MunimentError):
    """Somebody else was first."""

    code = "conflict"


class AlreadyDecided(Conflict):
    """The proposal already has its final verdict."""

    code = "already_decided"


class IdempotencyConflict(Conflict):
    """The idempotency key was used with other content."""

    code = "idempotency_conflict"


class RequestRepeated(Conflict):
    """The request was carried out before, under the same idempotency key; it is not carried out again."""

    code = "request_repeated"


class VersionConflict(Conflict):
    """What was to be changed is not as the caller read it any more."""

    code = "version_conflict"


class ConsentChanged(Conflict):
    """The consent was superseded or revoked already."""

    code = "consent_changed"


class KeyRotated(Conflict):
    """The tenant's key was rotated at this moment; the same again works."""

    code = "key_rotated"


class PackChanged(Conflict):
    """Another pack was put in force at this moment; the same again is decided under that one."""

    code = "pack_changed"


class PackImmutable(Conflict):
    """That pack version is registered with other content."""

    code = "pack_immutable"


class NotPromotable(MunimentError):
    """What the proposal rests on changed since its review."""

    code = "not_promotable"


class LeftOut(NotPromotable):
    """Left out of many that are approved together: it is not ordinary, and was not acknowledged."""

    code = "left_out"


class HistoryCollected(MunimentError):
    """The moment asked about lies beyond the replay horizon."""

    code = "history_collected"


class MomentAmbiguous(MunimentError):
    """The time asked about was twice: a tenant's clock was brought back over it. `numbers` names both moments."""

    code = "moment_ambiguous"

    def __init__(self, message: str, *, field: str | None = None, numbers: Iterable[int] = ()) -> None:
        super().__init__(message, field=field)
        self.numbers = tuple(numbers)

    def as_dict(self) -> dict[str, object]:
        """With the sequence numbers of the moments that the time may mean."""
        return super().as_dict() | {"numbers": list(self.numbers)}


class ClockAhead(MunimentError):
    """A clock is further ahead of the database's own than its owner allows; nothing was written."""

    code = "clock_ahead"


class ServerUnavailable(MunimentError):
    """A client's server cannot be reached, did not answer in time, or answers what is no answer of ours."""

    code = "server_unavailable"


class EmbedderUnavailable(MunimentError):
    """The embedder is missing, away, or answers wrongly."""

    code = "embedder_unavailable"


class ExtractorFailed(MunimentError):
    """An extractor raised, is missing, or is answered wrongly; the message holds nothing of the capture.

    `later` says that it is no fault of the capture's: it is put off and no try counted.
    """

    code = "extractor_failed"

    def __init__(self, message: str, *, field: str | None = None, later: bool = False) -> None:
        super().__init__(message, field=field)
        self.later = later


class StorageError(MunimentError):
    """The database or the keys above its content."""


class StorageUnavailable(StorageError):
    """There is no database to talk to, or it went away."""

    code = "storage_unavailable"


class SchemaMissing(StorageError):
    """The database was never migrated, or not far enough."""

    code = "schema_missing"


class SchemaNewer(StorageError):
    """The database was migrated by a newer program."""

    code = "schema_newer"


class KeyUnavailable(StorageError):
    """No master key, or not the one this data was sealed with."""

    code = "key_unavailable"


class SealBroken(StorageError):
    """Sealed content does not open: it was changed, moved or erased."""

    code = "seal_broken"


class PurgeIncomplete(StorageError):
    """Something that was erased is still kept beneath the tables."""

    code = "purge_incomplete"


class ArchiveBroken(StorageError):
    """An archive file is missing, was changed, or cannot be read."""

    code = "archive_broken"
