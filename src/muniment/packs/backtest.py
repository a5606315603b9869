"""Backtest: recorded captures and recalls, decided under another pack and under the one in force (PAC-3).

Every transaction is `context.read_only`: the auditor's login, read-only. A mistake in this module cannot write.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic_core import to_json

from muniment.candidates import intake
from muniment.candidates.dry_extraction import DryReading
from muniment.candidates.extractors import extractors_of
from muniment.candidates.extractors.model import ModelExtractor
from muniment.candidates.rules import Draft, Found, draft_facts, own_words_holder, tier_for
from muniment.candidates.worth import worth_knowing
from muniment.context import FabricContext
from muniment.contradictions.judge import judge_neighbours
from muniment.contradictions.rules import compare
from muniment.contradictions.store import TextComparer
from muniment.language.redaction import redactor_of
from muniment.model.backtest import EXAMPLES, FATES, Backtest, Example, Fate, RuleDifference, Tally
from muniment.model.candidate import Candidate
from muniment.model.fields import Tier
from muniment.model.ids import make_ids
from muniment.pack import Pack
from muniment.packs import backtest_history as history
from muniment.packs import backtest_rules as policy
from muniment.packs.backtest_history import Past
from muniment.packs.backtest_recalls import Recalls
from muniment.packs.backtest_rules import Outcome

AT_ONCE = 100
_TEXT = 120
NOTES = (
    "each capture by itself, compared with the memories promoted when it was decided",
    "consents, calibrations and earlier rejections count as they are now",
    "no model was called: only stored answers of language models count, and plug-ins were not run",
)

Progress = Callable[[int], None]


@dataclass
class Differences:
    """The differences found so far, by rule and both outcomes."""

    count: Counter[policy.Changed] = field(default_factory=Counter[policy.Changed])
    examples: dict[policy.Changed, list[Example]] = field(default_factory=dict[policy.Changed, list[Example]])

    def add(self, changed: policy.Changed, example: Example) -> None:
        """Count a difference; the first few are kept as examples."""
        self.count[changed] += 1
        shown = self.examples.setdefault(changed, [])
        if len(shown) < EXAMPLES and all(one.id != example.id for one in shown):
            shown.append(example)

    def listed(self) -> tuple[RuleDifference, ...]:
        """The differences by rule, the most frequent first."""
        ordered = sorted(self.count.items(), key=lambda one: (one[0][0], -one[1], one[0]))
        return tuple(
            RuleDifference(rule=one[0], before=one[1], after=one[2], count=n, examples=tuple(self.examples[one]))
            for one, n in ordered
        )


@dataclass
class _Side:
    """One of the two packs, and what became of the candidates under it."""

    pack: Pack
    fates: Counter[Fate] = field(default_factory=Counter[Fate])
    refusals: Counter[str] = field(default_factory=Counter[str])

    def count(self, outcomes: Iterable[Outcome]) -> None:
        for one in outcomes:
            self.fates[one.fate] += 1
            if one.refusal is not None:
                self.refusals[one.refusal] += 1

    def tally(self) -> Tally:
        fates: dict[Fate, int] = {fate: self.fates[fate] for fate in FATES if self.fates[fate]}
        return Tally(candidates=sum(self.fates.values()), fates=fates, refusals=dict(sorted(self.refusals.items())))


# The facts of one capture under one pack: what each was before the gates, and what became of it.
_Outcomes = list[tuple[Candidate, Outcome]]


async def backtest(
    context: FabricContext,
    tenant_id: str,
    pack: Pack,
    against: Pack,
    *,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    recalls: int,
    texts: bool,
    on_progress: Progress | None,
) -> Backtest:
    """Run the latest captures and recalls of the window under both packs, and list every rule that differs."""
    run = _Run(context, tenant_id, _Side(against), _Side(pack), texts)
    ends = until or context.now()
    place, done, more = history.LAST, 0, False
    while not more and (page := await run.page(since, ends, place, min(AT_ONCE, limit - done + 1))):
        more = done + len(page) > limit
        page = page[: limit - done]
        await run.captures(page)
        done += len(page)
        if page:
            place = (page[-1].capture.seq, page[-1].capture.capture_id)
        if on_progress is not None:
            on_progress(done)
    again = Recalls(context, tenant_id, against, pack, run.differences.add)
    await again.run(since, ends, recalls, (lambda n: on_progress(done + n)) if on_progress is not None else None)
    return Backtest(
        pack=pack.ref,
        against=against.ref,
        since=since,
        until=ends,
        captures=done,
        unreadable=run.unreadable,
        more=more,
        before=run.before.tally(),
        after=run.after.tally(),
        recalls=again.tally,
        differences=run.differences.listed(),
        left_out=dict(sorted(run.left_out.items())),
        notes=NOTES,
    )


@dataclass
class _Run:
    """A backtest in progress."""

    context: FabricContext
    tenant_id: str
    before: _Side
    after: _Side
    texts: bool
    differences: Differences = field(default_factory=Differences)
    left_out: Counter[str] = field(default_factory=Counter[str])
    unreadable: int = 0

    async def page(self, since: datetime | None, until: datetime, place: history.Place, count: int) -> list[Past]:
        async with self.context.read_only(self.tenant_id) as tx:
            if await self.context.vault.tenant(tx) is None:
                return []
            return await history.captures(tx, self.context.vault, since, until, place, count)

    async def captures(self, page: Sequence[Past]) -> None:
        """Run a page of captures under both packs, and record the differences."""
        readable = [past for past in page if past.capture.content is not None]
        self.unreadable += len(page) - len(readable)
        if not readable:
            return
        async with self.context.read_only(self.tenant_id) as tx:
            comparer = [await self.context.reading_comparer(tx, side.pack) for side in (self.before, self.after)]
            both = (*extractors_of(self.before.pack), *extractors_of(self.after.pack))
            models = [one.name for one in both if isinstance(one, ModelExtractor)]
            stored = await history.answers(tx, self.context.vault, [one.capture.capture_id for one in readable], models)
        captures = [past.capture for past in readable]
        found = await DryReading(captures, stored, self.left_out, comparer[0].readers).by_pack(
            (self.before.pack, self.after.pack)
        )
        was = await self._under(self.before, readable, found[0], comparer[0])
        now = await self._under(self.after, readable, found[1], comparer[1])
        for past in readable:
            self._compare(past, was.get(past.capture.capture_id, []), now.get(past.capture.capture_id, []))

    async def _under(
        self, side: _Side, page: Sequence[Past], found: Mapping[str, list[Found]], comparer: TextComparer
    ) -> dict[str, _Outcomes]:
        """What becomes of a page under one pack, by capture."""
        pack, past_of = side.pack, {past.capture.capture_id: past for past in page}
        found = await worth_knowing(found, comparer.readers, pack)
        drafts, first = await self._drafts(pack, page, found)
        screened, refused = await intake.screen(drafts, comparer, pack, self.context.now())
        outcomes = {draft.candidate.candidate_id: policy.refused(gate, why) for draft, gate, why in refused}
        async with self.context.read_only(self.tenant_id) as tx:
            vault = self.context.vault
            passed, stopped = await intake.pass_last_gates(tx, vault, screened, comparer, pack, counts=_earlier)
            probes = [(one.embedded, past_of[one.draft.capture.capture_id]) for one in passed]
            around = await history.neighbours(tx, vault, probes, comparer, pack)
        for draft, gate, why in stopped:
            outcomes[draft.candidate.candidate_id] = policy.refused(gate, why, dict(draft.candidate.redactions))
        drafted = [one.draft.candidate for one in passed]
        tiers: list[Tier] = [tier_for(one.draft.candidate, one.draft.capture.kind, pack) for one in passed]
        around = await judge_neighbours(drafted, around, comparer, pack, tiers)
        for one, tier, near in zip(passed, tiers, around, strict=True):
            candidate = one.draft.candidate
            compared = compare(candidate, tier, near, pack, comparer.by)
            outcome = policy.admitted(candidate, one.draft.capture, compared, pack)
            outcomes[candidate.candidate_id] = outcome
        side.count(outcomes.values())
        by_capture: dict[str, _Outcomes] = {}
        for candidate_id, outcome in outcomes.items():
            by_capture.setdefault(first[candidate_id].capture_id, []).append((first[candidate_id], outcome))
        return by_capture

    async def _drafts(
        self, pack: Pack, page: Sequence[Past], found: Mapping[str, list[Found]]
    ) -> tuple[list[Draft], dict[str, Candidate]]:
        """The drafts of the captures, on the keys they are stored under; and each candidate as it was read, by id."""
        some = sum(1 + len(found.get(past.capture.capture_id, ())) for past in page)
        ids = iter(make_ids("mc", some, self.context.now()))
        spoken = {own_words_holder(past.capture, pack) for past in page if found.get(past.capture.capture_id)}
        drafts: list[Draft] = []
        first: dict[str, Candidate] = {}
        async with self.context.read_only(self.tenant_id) as tx:
            keys = await self.context.vault.keys(tx, spoken, skip_broken=True)
            for past in page:
                seen = found.get(past.capture.capture_id, [])
                read = [one.candidate for one in draft_facts(past.capture, pack, seen, ids)]
                first |= {one.candidate_id: one for one in read}
                same = (one.candidate_id for one in read)
                key = keys.get(own_words_holder(past.capture, pack))
                drafts += draft_facts(past.capture, pack, seen, same, key.digest if key else None)
        return drafts, first

    def _compare(self, past: Past, was: _Outcomes, now: _Outcomes) -> None:
        """Compare the facts that both packs find; one that only one of them finds is a difference of an extractor."""
        left = list(now)
        for candidate, before in was:
            match = next((one for one in left if _fact(one[0]) == _fact(candidate)), None)
            if match is None:
                changed = (f"extractor.{_name(candidate)}", "a fact", "no fact")
                self.differences.add(changed, self._example(past, candidate, before))
                continue
            left.remove(match)
            for changed in policy.differing(before, match[1]):
                self.differences.add(changed, self._example(past, candidate, before))
        for candidate, _ in left:
            changed = (f"extractor.{_name(candidate)}", "no fact", "a fact")
            self.differences.add(changed, Example(id=past.capture.capture_id))

    def _example(self, past: Past, candidate: Candidate, before: Outcome) -> Example:
        """The capture as an example; with `texts`, the beginning of the text masked by both packs, if it was queued."""
        if not self.texts or not past.queued or before.fate == "refused":
            return Example(id=past.capture.capture_id)
        text = candidate.text
        for side in (self.before, self.after):
            text = redactor_of(side.pack).text(text).content
        return Example(id=past.capture.capture_id, text=text if len(text) <= _TEXT else text[: _TEXT - 3] + "...")


def _earlier(draft: Draft, rejected: intake.Rejected) -> bool:
    """Whether a rejection came before the capture; ids begin with their time."""
    return rejected.candidate.capture_id < draft.capture.capture_id


def _name(candidate: Candidate) -> str:
    return candidate.extractor.partition("@")[0]


def _fact(candidate: Candidate) -> tuple[object, ...]:
    said = (candidate.write_class, candidate.entity, candidate.predicate, candidate.text, to_json(candidate.value))
    return (_name(candidate), *said)
