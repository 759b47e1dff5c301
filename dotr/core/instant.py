"""One instant: its triples become K(t), and the queries find its facts in it.

Place:   the two steps that see one instant only and know no other time. The pipeline and the workers of a
         batch call them.
Method:  step 1, enrich: K(t) is the least model over background and instant (DOTR paper, sec. 4, "knowledge
         inference", without its deletions). The background is closed and indexed once, an instant is an
         overlay over it that is dropped afterwards (enrich/materialiser.py). The literal reading closes the
         rules over everything that holds at t, again at each t. Step 2 is extract.py.
         First comes the quick way, within a part of the budget (budget.py): queries share, triples are
         entered as they came. If that takes too long, it is abandoned for the canonical way: triples in
         order, only what queries need is derived, every query by itself. Only the canonical way refuses, so
         that all ways of running refuse the same.
         Facts of several instants go to detection in one batch: an instant whose facts trigger no rule only
         adds to what is remembered. So its facts, which have their own times, wait for the next instant that
         triggers some, and the detector goes through those alone.
Why not: every instant by itself, always: most streams have few triggers, and making and reading a dictionary
         for one fact takes longer than remembering the fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from dotr.budget import BUDGET, OVERLONG, SLACK, Exhausted
from dotr.enrich.closing import MANY_FACTS, MUCH_DATALOG, load_background, narrowed, saved_lists
from dotr.enrich.materialiser import Limits, Materialiser
from dotr.enrich.owl import rules_over
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError
from dotr.events import Clock, Fact, Instant, Message, Time
from dotr.extract.extractor import (
    ANSWER_LIMIT,
    MANY_ANSWERS,
    MUCH_WORK,
    CanonicalExtractor,
    Extractor,
    wanted,
)
from dotr.extract.full import Explosion
from dotr.extract.sharing import Shares
from dotr.extract.units import SingleTripleReader
from dotr.program import Entailment, Program
from dotr.rdf.blanks import label_stream
from dotr.rdf.mapped import Content
from dotr.rdf.terms import Memo, Term, Triple

if TYPE_CHECKING:
    from dotr.extract.forms import Form, FormExtractor


def enricher(
    program: Program, background: Collection[Triple], materialize_all: bool = False, budget: int = BUDGET
) -> Materialiser:
    """The program's rules over its background, closed and indexed: `instant` opens K(t), `forget` drops it.

    Unless `materialize_all`, what no query can reach is neither derived nor kept.
    Raises ProgramError for the rules, DataError D3101 for a background that contradicts its ontology.
    """
    relations = wanted(program, materialize_all)
    rules, limits = rules_over(program, background), Limits(budget=budget)
    materialiser = Materialiser(rules, background, needed=relations, limits=limits)
    clashes = materialiser.clashes()
    if clashes:
        raise DataError(clashes)
    return materialiser


def reopened(
    program: Program, saved: Content, materialize_all: bool = False, budget: int = BUDGET
) -> Materialiser:
    """The enricher whose `closed.save()` returned these bytes, for the same program: nothing is closed again.

    Raises EngineError D5101 for bytes that are damaged or of another version.
    """
    relations = wanted(program, materialize_all)
    rules = rules_over(program, saved_lists(saved))
    return Materialiser(
        rules, (), closed=load_background(rules, saved, relations), limits=Limits(budget=budget)
    )


Facts: TypeAlias = Mapping[str, Sequence[Fact]]

InstantFacts: TypeAlias = tuple[Time, Sequence[Triple] | Sequence[Message], Facts, bool]
"""(time, input, stream → facts, whether a graph came) of an instant; the input is triples, or messages where
something lasts."""


_NOTHING_WAITS: Final[defaultdict[str, list[Fact]]] = defaultdict(list)
"""Of one instant."""


class FactBatch:
    """Owns the facts of instants until they are detected.

    `waking`: the streams whose facts trigger rules (`Detector.waking`); None: nothing waits. `most`: how many
    instants it takes, `size`: how many came, `first` and `last`: their times. `known`: those to detect, in
    order, each with the facts that waited for it. `waiting`: stream → facts of those after the last `known`.
    """

    __slots__ = ("_ends", "first", "known", "last", "most", "size", "waiting", "waking")

    def __init__(self, waking: Set[str] | None, most: int) -> None:
        self.waking, self.most = waking, most
        self.known: list[InstantFacts] = []
        self.size = 0
        self.first: Time | None = None
        self.last: Time | None = None
        self.waiting: defaultdict[str, list[Fact]] = defaultdict(list)
        self._ends: list[int] = []

    @property
    def room(self) -> int:
        """How many more instants it takes."""
        return self.most - self.size

    @classmethod
    def of(cls, known: InstantFacts) -> FactBatch:
        """One instant."""
        batch = cls.__new__(cls)
        batch.waking, batch.most, batch.size = None, 1, 1
        batch.first = batch.last = known[0]
        batch.known, batch.waiting, batch._ends = [known], _NOTHING_WAITS, [1]
        return batch

    def put(self, known: InstantFacts) -> None:
        """Take an instant; its facts may wait."""
        time, came, facts, graph = known
        self.came(time, time, 1)
        if self.waking is not None and (self.waiting or self.waking.isdisjoint(facts)):
            for name, found in facts.items():
                self.waiting[name] += found
            if self.waking.isdisjoint(facts):
                return
            facts, self.waiting = self.waiting, defaultdict(list)
        self.known.append((time, came, facts, graph))
        self._ends.append(self.size)

    def came(self, first: Time, last: Time, many: int) -> None:
        """Count instants that were added to `known` or `waiting`."""
        if self.first is None:
            self.first = first
        self.last = last
        self.size += many

    def withdraw(self, time: Time) -> None:
        """Drop what waits of the instant at `time`, the last one."""
        for name, facts in list(self.waiting.items()):
            facts[:] = [fact for fact in facts if fact[0] < time]
            if not facts:
                del self.waiting[name]

    def wake(self, time: Time, came: Sequence[Triple], end: int) -> defaultdict[str, list[Fact]]:
        """All that waits is detected at `time`, of instant number `end`, for which `came` is the input;
        returns the new, empty `waiting`.
        """
        self.known.append((time, came, self.waiting, True))
        self._ends.append(end)
        self.waiting = defaultdict(list)
        return self.waiting

    def closed(self) -> FactBatch:
        """The batch itself; what waits is detected at the time of its last instant."""
        if self.last is not None and self.size > self.instants(0, len(self.known)):
            self.wake(self.last, (), self.size)
        return self

    def instants(self, start: int, end: int) -> int:
        """How many instants a range of `known` stands for."""
        ends = self._ends
        return (ends[end - 1] if end else 0) - (ends[start - 1] if start else 0)


Finding: TypeAlias = Callable[[Diagnostic], None]

MOST = 1_000
"""The limit of findings of one code that are reported and remembered."""


class Findings:
    """Owns what was reported; `say` is called with what was not."""

    def __init__(self, say: Finding) -> None:
        self._say = say
        self._said: dict[str, dict[tuple[str, str], Time]] = {}

    def found(self, findings: Iterable[Diagnostic], time: Time, clock: Clock) -> None:
        """Report new findings about an instant."""
        for finding in findings:
            said = self._said.setdefault(finding.code, {})
            about = (finding.message, finding.label)
            if said.get(about, time + 1) <= time or (len(said) > MOST and about not in said):
                continue
            said[about] = time
            if len(said) > MOST:
                last = (f"after {MOST} of them, further ones are not reported",)
                finding = finding._replace(label="", notes=last)
            self._say(finding._replace(place=f"@ {clock.text(time)}"))


Graphs: TypeAlias = Sequence[list[Triple]]

Pick: TypeAlias = Callable[[Sequence[Triple]], Sequence[Triple]]
"""Some of an instant's triples."""

OnState: TypeAlias = Callable[[Time, Sequence[Triple]], None]

AGAIN = frozenset({MANY_FACTS, MUCH_DATALOG, MANY_ANSWERS, MUCH_WORK, OVERLONG})
"""Errors of the quick way that the canonical way decides on."""

REFUSABLE = AGAIN | {"D2106", "D2107", "D2601", "D2604", "D3101"}
"""Errors of an instant, raised before detection has seen any of it."""


def is_refusable(error: DotrError) -> bool:
    """Whether an instant of what lasts is at fault, also if its schema makes the rules invalid (D30xx,
    D31xx).
    """
    code = error.diagnostics[0].code
    return code in REFUSABLE or code.startswith(("D30", "D31"))


class Instants:
    """Owns the two steps that see one instant, and their canonical counterparts once an instant is heavy.

    `enrich`: the program's rules over its background. `shares`: see `Extractor`. `limit`: more answers of one
    query at one instant are an explosion. `budget`: units of work of an instant's Datalog, and of each query
    at it.
    """

    def __init__(
        self,
        program: Program,
        enrich: Materialiser,
        *,
        shares: Shares | None = None,
        limit: int = ANSWER_LIMIT,
        budget: int = BUDGET,
    ) -> None:
        self.program = program
        self.enrich = enrich
        self.extract = Extractor(program.queries, enrich.store, limit=limit, budget=budget, shares=shares)
        self.clock = Clock()
        self._limit, self._budget = limit, budget
        enrich.store.meter.open(budget // SLACK)
        self._findings: Findings | None = None
        self._ontology = program.entailment is not Entailment.NONE
        self._entries: Memo[Term, SingleTripleReader | None] = Memo(self._entry_of, longest=1 << 12)
        self._mixture: list[Term] = []  # predicates of the last instant's triples, in order
        self._read: Pick | None = None  # found when they come again
        self._canonical: tuple[Materialiser, CanonicalExtractor] | None = None
        self._state: list[Triple] = []
        self.on_state: OnState | None = None
        """Called with every instant at which graphs came and the triples of K(t) that do not hold by the
        background alone, sorted; everything must be materialised."""

    def begin(self, clock: Clock, on_finding: Finding | None = None) -> None:
        """Begin a run that writes time so; `on_finding` is called with warnings about instants that are not
        in error.
        """
        if on_finding is not None and self.enrich.over_schema:
            self._findings = Findings(on_finding)
        self.clock = self.enrich.store.moment.clock = clock
        self._canonical = None

    def entered(self, due: Sequence[Instant], place: int, batch: FactBatch) -> int:
        """Put the facts of instants from `place` on into `batch`, as many as it takes, up to the first that
        is not a single triple that no rule reads; returns its place. Cost: a function call per instant.
        """
        if self.on_state is not None:
            return place
        waking, entries, waiting = batch.waking, self._entries, batch.waiting
        start, before = place, batch.size - place
        for time, graphs in islice(due, place, place + batch.room):
            if graphs is None or len(graphs) != 1 or len(graph := graphs[0]) != 1:
                break
            subject, predicate, object_ = graph[0]  # type: ignore[misc]  # a graph: nothing lasts here
            enter = entries[predicate]  # type: ignore[index]  # as above
            if enter is None or subject[0] == "_" or object_[0] == "_":
                break
            try:
                enter(subject, object_, time, waiting)  # type: ignore[arg-type]  # as above
            except (Explosion, Exhausted):  # heavier: like any other instant
                batch.withdraw(time)
                break
            place += 1
            if waking is None or not waking.isdisjoint(waiting):
                waiting = batch.wake(time, graph, before + place)  # type: ignore[arg-type]  # as above
        if place > start:
            batch.came(due[start][0], due[place - 1][0], place - start)
        return place

    def of_form(self, form: Form) -> FormExtractor | str:
        """What finds the facts of graphs of a form, or why nothing does."""
        from dotr.extract.forms import FormExtractor, Unfit  # noqa: PLC0415  # start-up: few runs have tables

        if self._ontology or self._findings is not None or self.on_state is not None:
            return "the ontology, or the state, is asked for at every instant"
        try:
            return FormExtractor(self.extract, self.enrich.store, form, self.enrich.alone)
        except Unfit as unfit:
            return str(unfit)

    def overlaid(self, time: Time, graphs: Graphs | None) -> InstantFacts:
        """The facts of the instant of `graphs`; None is a tick without a graph. Cost: the triples,
        and what they touch.

        Raises DataError, ProgramError for an instant in error; the next one is not affected.
        """
        if graphs is None:
            return time, (), self._facts(time, (), ()), False
        triples = _together(graphs)
        mixture = [p for subject, p, object_ in triples if subject[0] != "_" != object_[0]]
        if len(mixture) < len(triples):  # there are blank nodes
            triples = _together(label_stream(graphs, time))
            mixture = [predicate for _, predicate, _ in triples]
        if mixture != self._mixture:  # graphs that come one after the other are alike, most often
            self._mixture, self._read = mixture, None
        elif self._read is None:
            self._read = self._reading(mixture)
        facts = self._facts(time, triples, triples if self._read is None else self._read(triples))
        if self.on_state is not None:
            self.on_state(time, self._state)
        return time, triples, facts, True

    def _facts(self, time: Time, triples: Sequence[Triple], read: Sequence[Triple]) -> Facts:
        """Both steps for an instant, of whose triples only `read` matter to the quick way."""
        try:
            return self._once(self.enrich, self.extract, time, read)
        except ProgramError as error:
            if error.diagnostics[0].code not in AGAIN:
                raise
        enrich, extract = self._canonically()
        facts = self._once(enrich, extract, time, sorted(triples))
        if enrich.joined:
            self._canonical = None  # indexes made for rules must not cost later instants
        if self.on_state is not None:
            self._state = self._whole(sorted(triples))
        return facts

    def _whole(self, triples: Sequence[Triple]) -> list[Triple]:
        """The facts of an instant that the quick way abandoned. Raises ProgramError for too much work."""
        enrich = Materialiser((), closed=self.enrich.closed, limits=Limits(budget=self._budget))
        enrich.store.moment.clock = self.clock
        enrich.instant(triples)
        return sorted(enrich.added())

    def _once(
        self,
        enrich: Materialiser,
        extract: Extractor | CanonicalExtractor,
        time: Time,
        triples: Sequence[Triple],
    ) -> Facts:
        try:
            enrich.instant(triples)
        except DotrError as error:
            raise type(error)(self._placed(error.diagnostics, time)) from None
        try:
            facts = extract.facts(time)
            if self._ontology and (clashes := enrich.clashes()):
                raise DataError(self._placed(clashes, time))
            if self._findings is not None and (found := enrich.findings()):
                self._findings.found(found, time, self.clock)
            if self.on_state is not None and enrich is self.enrich:
                self._state = sorted(enrich.added())
        finally:
            enrich.forget()
        return facts

    def _canonically(self) -> tuple[Materialiser, CanonicalExtractor]:
        """The same background, rules and queries, without the quick way's sharing and extra derivations."""
        if self._canonical is None:
            needs = wanted(self.program, materialize_all=False)
            closed = narrowed(self.enrich.closed, needs)
            enrich = Materialiser((), closed=closed, limits=Limits(budget=self._budget))
            enrich.store.moment.clock = self.clock
            extract = CanonicalExtractor(
                self.program.queries, self.extract.shapes, enrich.store, self._limit, self._budget
            )
            self._canonical = enrich, extract
        return self._canonical

    def _entry_of(self, predicate: Term) -> SingleTripleReader | None:
        """Both steps for an instant of one triple of this predicate, if one function can do them."""
        if self._ontology or not self.enrich.inert(predicate):
            return None
        return self.extract.entry(predicate)

    def _reading(self, mixture: Sequence[Term]) -> Pick:
        """What picks the triples that matter from those of these predicates."""
        read = [place for place, predicate in enumerate(mixture) if not self.enrich.ignores(predicate)]
        return itemgetter(*read) if 1 < len(read) < len(mixture) else tuple  # of one place it gives no tuple

    def _placed(self, found: Iterable[Diagnostic], time: Time) -> list[Diagnostic]:
        """Findings about an instant, with its time for a place."""
        return [one if one.place else one._replace(place=f"@ {self.clock.text(time)}") for one in found]


def instant_triples(graphs: Graphs, time: Time) -> list[Triple]:
    """The triples of one instant; blank nodes are relabelled per graph (not copied if there are none)."""
    for graph in graphs:
        for subject, _, object_ in graph:
            if subject[0] == "_" or object_[0] == "_":
                return _together(label_stream(graphs, time))
    return _together(graphs)


def _together(graphs: Graphs) -> list[Triple]:
    return graphs[0] if len(graphs) == 1 else [triple for graph in graphs for triple in graph]
