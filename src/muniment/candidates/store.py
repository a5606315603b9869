"""Stage 2, candidates: their statements. Candidates that passed are stored; of refused ones only the reason is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from psycopg.types.json import Jsonb

from muniment.candidates.calibration import Point, calibrated, calibration_source, dump_points, load_points
from muniment.candidates.gates import Rejected, fingerprint
from muniment.candidates.ontology import resolved, spellings
from muniment.candidates.rules import (
    Draft,
    Refused,
    confined_to,
    hashed_name,
    names_in_value,
    reset_candidate,
    uncalibrated_confidence,
)
from muniment.capture import store as captures
from muniment.contradictions.store import EmbeddedCandidate, TextComparer
from muniment.database.rows import candidate_of, consent_of, fact_content
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import NamedStatement, Row, Transaction
from muniment.errors import SealBroken
from muniment.language.embedding.bands import bands
from muniment.language.instructions import visible_text
from muniment.loops import give_way
from muniment.model.candidate import Candidate, Refusal
from muniment.model.capture import Capture, holder_of
from muniment.model.consent import Consent
from muniment.model.decision import refusing
from muniment.model.ids import make_id, make_ids
from muniment.pack import Pack
from muniment.review.store import Loaded

# What a row has of its candidate as it is.
_COPIED = (
    *("candidate_id", "capture_id", "author", "source", "entity", "predicate", "classification", "subject"),
    *("raw_confidence", "confidence", "trust", "consent_id", "extractor", "calibration", "corrects", "edits", "editor"),
    *("valid_from", "valid_until", "third_party", "language"),
)
_OF_SCOPE = ("user_id", "session_id", "workflow_id", "intent_id")
_NO_REDACTIONS = Jsonb({})


def new_ids(tx: Transaction, count: int) -> list[str]:
    """Make ids for that many candidates."""
    return make_ids("mc", count, tx.now)


async def next_ordinals(tx: Transaction, capture_ids: Iterable[str]) -> dict[str, int]:
    """Return the next free ordinal among the candidates of each capture."""
    rows = await tx.rows("candidate.ordinals", capture_ids=sorted(set(capture_ids)))
    return {row["capture_id"]: row["ordinal"] for row in rows}


async def redraft(
    tx: Transaction, vault: Vault, proposals: Sequence[Loaded], pack: Pack, *, audits: Mapping[str, str] | None = None
) -> list[Draft]:
    """Draft the candidates of proposals anew, to pass the gates again; archived and erased ones are left out.

    Each reopens its proposal; with `audits` it is a sample of the memory that its proposal became.
    """
    capture_ids = sorted({one.proposal.candidate.capture_id for one in proposals})
    found = await captures.read(tx, vault, capture_ids)
    ordinals = await next_ordinals(tx, capture_ids)
    ids = iter(new_ids(tx, len(proposals)))
    drafts: list[Draft] = []
    for one in proposals:
        old, proposal_id = one.proposal.candidate, one.proposal.proposal_id
        capture = found.get(old.capture_id)
        if capture is None or not one.row["content"] or (audits is not None and capture.content is None):
            continue
        candidate, ordinal = reset_candidate(old, next(ids), capture, pack), ordinals[old.capture_id]
        ordinals[old.capture_id] += 1
        if audits is not None:
            drafts.append(Draft(candidate, capture, ordinal, audits=audits[proposal_id]))
        else:
            drafts.append(Draft(candidate, capture, ordinal, *prior_of(one.row), reopens=proposal_id))
    return drafts


def prior_of(row: Row) -> tuple[tuple[str, ...], str]:
    """Return who edited the candidate before, and the user that it was confined to, from the row of an edit."""
    return tuple(row["prior_editors"] or ()), row["prior_confined_to"]


async def insert_candidates(
    tx: Transaction, vault: Vault, drafts: Sequence[Draft], fingerprints: Sequence[bytes | None]
) -> None:
    """Insert the candidates that passed the gates, with the fingerprints of those that will wait (REV-11)."""
    if not drafts:
        return
    counts: Counter[tuple[str, bytes]] = Counter()
    numbers: list[int] = []
    for draft in drafts:
        fact = (draft.capture.capture_id, draft.stated or b"")
        counts[fact] += 1
        numbers.append(counts[fact])
    holders = {holder_of(draft.candidate.subject, draft.candidate.scope.user_id) for draft in drafts}
    keys = await vault.keys(tx, holders, make=True)
    tick = await tx.tick()
    columns = _columns(drafts, keys, numbers) | {"fingerprint": fingerprints}
    tx.defer_columns("candidate.insert", columns, seq=tick.seq)


def _fact_digest(key: SubjectKey, capture_id: str, stated: bytes, number: int = 1) -> bytes:
    """Hash a fact of a capture, to recognise it later; `number` counts equal facts of one consolidation."""
    return key.digest(f"fact\0{capture_id}\0{number}\0".encode() + stated)[:16]


async def not_proposed_before(tx: Transaction, vault: Vault, drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts whose fact was never proposed from their capture, whatever became of it (CAP-11).

    A candidate from before there were digests is recognised by its extractor and its ordinal.
    """
    rows: dict[str, list[Row]] = {}
    for row in await tx.rows("candidate.facts_of", capture_ids=sorted({one.capture.capture_id for one in drafts})):
        rows.setdefault(row["capture_id"], []).append(row)
    holders = {row["holder"] for found in rows.values() for row in found if row["fact"] is not None}
    keys = await vault.keys(tx, holders, skip_broken=True)

    def is_same(draft: Draft, row: Row) -> bool:
        if row["fact"] is None:
            return (row["extractor"], row["ordinal"]) == (draft.candidate.extractor, draft.ordinal)
        key = keys.get(row["holder"])
        if key is None or draft.stated is None:
            return False
        digests = (_fact_digest(key, draft.capture.capture_id, one) for one in (draft.stated, *draft.stated_before))
        return row["fact"] in digests

    return [one for one in drafts if not any(is_same(one, row) for row in rows.get(one.capture.capture_id, ()))]


def _columns(drafts: Sequence[Draft], keys: dict[str, SubjectKey], numbers: Sequence[int]) -> dict[str, Sequence[Any]]:
    facts = [draft.candidate for draft in drafts]
    scopes = [fact.scope for fact in facts]
    holders = [holder_of(fact.subject, fact.scope.user_id) for fact in facts]
    editors = [
        [*draft.prior_editors, fact.editor] if fact.edits is not None else []
        for draft, fact in zip(drafts, facts, strict=True)
    ]
    return {
        **{name: [getattr(fact, name) for fact in facts] for name in _COPIED},
        **{name: [getattr(scope, name) for scope in scopes] for name in _OF_SCOPE},
        "live_capture_id": [fact.capture_id for fact in facts],
        "capture_seq": [draft.capture.seq for draft in drafts],
        "class": [fact.write_class for fact in facts],
        "holder": holders,
        "qualifiers": [Jsonb(scope.qualifiers) if scope.qualifiers else None for scope in scopes],
        "claimed_by": [fact.claimed_by or None for fact in facts],
        "flags": [list(fact.flags) for fact in facts],
        "ordinal": [draft.ordinal for draft in drafts],
        "gates": [_gates(tuple((one.gate, one.reason, one.detail) for one in fact.gates)) for fact in facts],
        "redactions": [Jsonb(fact.redactions) if fact.redactions else _NO_REDACTIONS for fact in facts],
        "exceptions": [Jsonb(fact.exceptions) if fact.exceptions else None for fact in facts],
        "prior_editors": [list(draft.prior_editors) if draft.candidate.edits is not None else None for draft in drafts],
        "editors": editors,
        "confined_to": [confined_to(fact) for fact in facts],
        "prior_confined_to": [draft.prior_confined_to for draft in drafts],
        "consolidation": [draft.consolidation for draft in drafts],
        "fact": [
            _fact_digest(keys[holder], draft.candidate.capture_id, draft.stated, number)
            if draft.stated is not None
            else None
            for draft, holder, number in zip(drafts, holders, numbers, strict=True)
        ],
        "content": [
            keys[holder].seal("candidates.content", fact.candidate_id, fact_content(fact))
            for fact, holder in zip(facts, holders, strict=True)
        ],
    }


@lru_cache(maxsize=1024)
def _gates(passed: tuple[tuple[str, str, str], ...]) -> Jsonb:
    """The gates that a candidate passed, as they are stored; most of a batch passed them alike."""
    return Jsonb([(gate, f"{reason} {detail}".rstrip()) for gate, reason, detail in passed])


def mark_done(tx: Transaction, capture_ids: Iterable[str], numbers: Mapping[str, int] | None = None) -> None:
    """Mark captures as consolidated: for the first time, or for the number in `numbers`."""
    known = numbers or {}
    tx.defer_many("candidate.mark_done", [(one, known.get(one, 1)) for one in capture_ids])


async def record_refusals(tx: Transaction, refused: Sequence[Refused], *, keep: bool) -> list[Refusal]:
    """Return the refusals of drafts; `keep` records them: capture, gate, reason and time, no content (CAN-5)."""
    made: list[Refusal] = []
    rows: list[tuple[Any, ...]] = []
    for draft, gate, decision in refused:
        capture_id, why = draft.candidate.capture_id, decision.reasons[0]
        rejection = why.detail if gate == "rejection" and why.code == "rejected_before" else None
        made.append(Refusal(capture_id=capture_id, gate=gate, reason=why.code, at=tx.now, rejection=rejection))
        fact_key = (capture_id, draft.consolidation, draft.candidate.extractor, draft.ordinal)
        rows.append((*fact_key, gate, why.code, rejection, draft.candidate.language))
    if not refused or not keep:
        return made
    tick = await tx.tick()
    tx.defer_many("candidate.refuse", rows, seq=tick.seq, at=tick.at)
    for (draft, _, _), refusal in zip(refused, made, strict=True):
        tx.emit(
            "memory.refused",
            "auto",
            capture_id=refusal.capture_id,
            gate=refusal.gate,
            reason=refusal.reason,
            write_class=draft.candidate.write_class,
            **({"consolidation": draft.consolidation} if draft.consolidation > 1 else {}),
            **({"rejection": refusal.rejection} if refusal.rejection else {}),
        )
    return made


def consents_query(candidates: Iterable[Candidate], pack: Pack) -> list[NamedStatement]:
    """Return the statement that reads the consents of the candidates' subjects; none without a subject."""
    subjects = {candidate.subject for candidate in candidates if candidate.subject is not None}
    spelled = sorted({name for subject in subjects for name in pack.identity.spellings(subject)})
    return [("consent.of_subjects", {"subjects": spelled})] if spelled else []


async def consents_for(tx: Transaction, candidates: Sequence[Candidate], pack: Pack) -> dict[str, list[Consent]]:
    """Read the consents of the candidates' subjects under all their names, by the name they were given under."""
    found: dict[str, list[Consent]] = {}
    for name, values in consents_query(candidates, pack):
        for row in await tx.rows(name, **values):
            found.setdefault(row["subject"], []).append(consent_of(row))
    return found


def consents_of(candidate: Candidate, found: Mapping[str, Sequence[Consent]], pack: Pack) -> tuple[Consent, ...]:
    """Return those consents that are of the candidate's subject, under whatever name."""
    names = pack.identity.spellings(candidate.subject) if candidate.subject is not None else ()
    return tuple(consent for name in names for consent in found.get(name, ()))


def calibrations_query(candidates: Iterable[Candidate], pack: Pack) -> list[NamedStatement]:
    """Return the statement that reads the calibrations of the candidates' sources; none without a source."""
    sources = sorted({calibration_source(one.claimed_by, pack) for one in candidates if one.claimed_by})
    return [("candidate.calibrations", {"sources": sources})] if sources else []


async def calibrations_for(tx: Transaction, candidates: Sequence[Candidate], pack: Pack) -> dict[str, Row]:
    """Read the latest calibrations of the candidates' sources, by source."""
    rows = [row for name, values in calibrations_query(candidates, pack) for row in await tx.rows(name, **values)]
    return {row["source"]: row for row in rows}


def calibrate(candidate: Candidate, calibrations: Mapping[str, Row], pack: Pack, *, proven: bool) -> Candidate:
    """Set a candidate's confidence by its source's calibration; without one by its claim (CAN-6).

    The claim counts up to the cap, or as it is where the source is `proven`.
    """
    found = calibrations.get(calibration_source(candidate.claimed_by, pack))
    if found is None or not found["points"]:
        raw = candidate.raw_confidence
        claimed = raw if proven else uncalibrated_confidence(raw, pack)
        return candidate.model_copy(update={"confidence": claimed, "calibration": None})
    confidence = calibrated(candidate.raw_confidence, load_points(found["points"]))
    return candidate.model_copy(update={"confidence": confidence, "calibration": found["calibration_id"]})


async def record_calibration(tx: Transaction, source: str, points: Sequence[Point]) -> None:
    """Record a source's new calibration curve."""
    tick = await tx.tick()
    verdicts, approved = sum(one.verdicts for one in points), sum(one.approved for one in points)
    what = {"calibration_id": make_id("cal", tick.at), "source": source, "verdicts": verdicts, "approved": approved}
    tx.defer("jobs.calibrate", seq=tick.seq, at=tick.at, points=Jsonb(dump_points(points)), **what)
    tx.emit("memory.note", "auto", about="calibrated", **what)


# ---- remembered rejections: a rejected fact is found again by keyed hashes, without its content (REV-6) ----

# Rejections read for each candidate: those that share most hashes with it.
MOST_REJECTIONS = 20
# Candidates handled between two event-loop checkpoints.
SLICE = 25


def rejection_hashes(
    embedded: EmbeddedCandidate, comparer: TextComparer, key: SubjectKey, pack: Pack | None = None
) -> list[int]:
    """Return keyed hashes of a candidate: one of what it asserts, and some of its text's vector.

    With a pack also those of what it asserts under other names of its entity and predicate: what was rejected before
    there was an alias is found by the name that it had.
    """
    spelled = {fingerprint(one) for one in (spellings(embedded.candidate, pack) if pack else [embedded.candidate])}
    parts = [b"said\0" + one for one in sorted(spelled)]
    if embedded.vector is not None:
        prefix = f"near\0{comparer.embedder.name}\0".encode()
        parts += [prefix + band for band in bands(embedded.vector[None, :])[0]]
    return [int.from_bytes(key.digest(b"rejection\0" + part)[:8], "big", signed=True) for part in parts]


def rejections_query(
    embedded: Sequence[EmbeddedCandidate], hashes: Iterable[int], pack: Pack, now: datetime
) -> NamedStatement:
    """Return the statement that finds the rejections which candidates with those hashes may repeat."""
    users = {one.candidate.scope.user_id for one in embedded}
    values = {
        "marks": sorted(hashes),
        "users": sorted(user for user in users if user is not None),
        "since": now - pack.memory_layer.rejections.remember,
        "count": MOST_REJECTIONS * len(embedded),
    }
    return ("candidate.rejected", values)


async def rejections_for(
    tx: Transaction, vault: Vault, embedded: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[tuple[Rejected, ...]]:
    """Return for each candidate the rejections that it may repeat, opened; the gate decides whether it does."""
    # Without the tenant's own key nothing was ever rejected, and a reader makes none.
    if not embedded or (tenant_data_key := await vault.existing_tenant_data_key(tx)) is None:
        return [()] * len(embedded)
    # Hashed only if anything was ever rejected.
    if not await tx.rows("candidate.any_rejected"):
        return [()] * len(embedded)
    hashes: set[int] = set()
    for number, one in enumerate(embedded, 1):
        hashes.update(rejection_hashes(one, comparer, tenant_data_key, pack))
        if number % SLICE == 0:
            await give_way()
    name, values = rejections_query(embedded, hashes, pack, tx.now)
    ids: list[str] = []
    rejected: list[Candidate] = []
    for row in await tx.rows(name, **values):
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            content = key.open("candidates.content", row["candidate_id"], row["content"])
        except SealBroken:
            continue  # What nobody can read any more is forgotten.
        ids.append(row["proposal_id"])
        rejected.append(resolved(candidate_of(row, content), pack))
    fingerprints = [fingerprint(candidate) for candidate in rejected]
    before = list(zip(ids, await comparer.embed(rejected), fingerprints, strict=True))
    return await _judged(embedded, [list(_similar(one, before, comparer)) for one in embedded], comparer, pack)


def _similar(
    embedded: EmbeddedCandidate, before: Sequence[tuple[str, EmbeddedCandidate, bytes]], comparer: TextComparer
) -> Iterator[Rejected]:
    """Yield the rejections near enough to say the same, or to be read, and those with the same fingerprint."""
    own, least = fingerprint(embedded.candidate), comparer.by.thresholds.duplicate_similarity
    least = min(least, comparer.reach) if comparer.readers is not None else least
    for proposal_id, other, theirs in before:
        near = 0.0 if embedded.vector is None or other.vector is None else float(embedded.vector @ other.vector)
        if near >= least or theirs == own:
            yield Rejected(proposal_id, other.candidate, near)


async def _judged(
    embedded: Sequence[EmbeddedCandidate], found: list[list[Rejected]], comparer: TextComparer, pack: Pack
) -> list[tuple[Rejected, ...]]:
    """Let the trained judge read the nearest rejections of each candidate, where there is one."""
    if comparer.readers is None or not any(found):
        return [tuple(some) for some in found]
    most = pack.memory_layer.contradiction.judge.pairs
    nearest = [sorted(some, key=lambda one: -one.similarity) for some in found]
    texts = [
        (visible_text(one.candidate.text), visible_text(other.candidate.text))
        for one, some in zip(embedded, nearest, strict=True)
        for other in some[:most]
    ]
    scores = iter(await comparer.readers.read_pairs(texts))
    return [(*(one._replace(scores=next(scores)) for one in some[:most]), *some[most:]) for some in nearest]


async def remember_rejection(
    tx: Transaction, vault: Vault, proposal_id: str, candidate: Candidate, comparer: TextComparer
) -> None:
    """Store the hashes of a rejected candidate."""
    (embedded,) = await comparer.embed([candidate])
    hashes = rejection_hashes(embedded, comparer, await vault.tenant_data_key(tx))
    tx.defer_many("candidate.remember", [(one,) for one in sorted(set(hashes))], proposal_id=proposal_id)


# ---- the names in a capture's facts, stored so that an erasure of those persons finds the capture (ERA-5) ----

# The reason for refusing a fact about somebody who was erased after its capture and before it was read.
ERASED = "subject_erased"


async def store_names(tx: Transaction, vault: Vault, admitted: Iterable[Draft], refused: Iterable[Refused]) -> None:
    """Store the names in facts, admitted or refused, that the rows of their captures do not have.

    An edit or a correction also gets the names of the fact that it replaces.
    """
    rows: dict[tuple[str, str, str], None] = {}
    facts = [(draft, draft.candidate.candidate_id) for draft in admitted]
    facts += [(draft, "") for draft, _, _ in refused]
    for draft, candidate_id in facts:
        for name in await _names(tx, vault, draft):
            if name not in _names_in_row(draft.capture):
                rows[draft.candidate.capture_id, candidate_id, name] = None
    if rows:
        tx.defer_many("candidate.name", sorted(rows))
    for draft, candidate_id in facts:
        new = {"capture_id": draft.candidate.capture_id, "candidate_id": candidate_id}
        if draft.candidate.edits is not None:
            tx.defer("candidate.name_as_edited", **new, edits=draft.candidate.edits)
        if draft.candidate.corrects is not None:
            tx.defer("candidate.name_as_corrected", **new, corrects=draft.candidate.corrects)


async def erased_since(
    tx: Transaction, vault: Vault, drafts: Sequence[Draft], erasures: Sequence[Row]
) -> tuple[list[Draft], list[Refused]]:
    """Split the drafts into those to go on with, and those that an erasure after their capture covers."""
    if not erasures:
        return list(drafts), []
    named: dict[str, set[str]] = {}
    own = {draft.candidate.candidate_id: set(await _names(tx, vault, draft)) for draft in drafts}
    for draft in drafts:
        named.setdefault(draft.candidate.capture_id, set()).update(own[draft.candidate.candidate_id])
    kept: list[Draft] = []
    gone: list[Refused] = []
    for draft in drafts:
        # As in the condition `covered_fact`: a plain text is covered whenever its capture is.
        candidate = draft.candidate
        names = own[candidate.candidate_id] if candidate.entity is not None else named[candidate.capture_id]
        if any(row["seq"] > draft.capture.seq and not names.isdisjoint(row["names"]) for row in erasures):
            gone.append((draft, "consent", refusing(ERASED, candidate.classification)))
        else:
            kept.append(draft)
    return kept, gone


async def _names(tx: Transaction, vault: Vault, draft: Draft) -> list[str]:
    """The entity of a fact as it is, and the hashes of the entities in its value."""
    candidate = draft.candidate
    names = [candidate.entity] if candidate.entity is not None else []
    if in_value := names_in_value(candidate):
        key = await vault.tenant_data_key(tx)
        names += [hashed_name(key.digest, one) for one in in_value]
    return names


def _names_in_row(capture: Capture) -> tuple[str | None, str | None]:
    """The names in the capture's own row: its subject, and the entity of a fact handed in with it."""
    fact = capture.content.fact if capture.content is not None else None
    return capture.subject, fact.entity if fact is not None else None
