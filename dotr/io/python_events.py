"""Composite events as Python programs hold them, and the plan of an engine's rules.

Place:   api.py returns them; a term becomes an rdflib term when it is requested (python_values.py).
Method:  `Plan` shows people how the rules of an engine are detected; `dotr plan` shows more, from the same
         plans. `engine_picture` is what notebooks show of an engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, assert_never, overload

from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel, shown
from dotr.core.pipeline import Counters
from dotr.detect.plan import RulePlan
from dotr.detect.plan_step import (
    FactLog,
    LastValue,
    LatestOfGroups,
    MonotonicStack,
    PlanStep,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.emit.events import InstantEvents
from dotr.errors import UsageError
from dotr.events import Clock, Composite, Time
from dotr.io.changes import line_head
from dotr.io.event_frames import arrow_of, frame_of, polars_of
from dotr.io.event_pictures import event_table, events_along_time, funnel_bars, marks_of
from dotr.io.event_plots import plot_events, plot_funnels
from dotr.io.events import TermFormatter, format_jsonl, nquads
from dotr.pictures.markup import Html, element, fragment, text
from dotr.pictures.table import table
from dotr.program import After, Program, Tick
from dotr.program.names import duration_text, rhythm_text
from dotr.program.sequences import RowPattern, pattern_text
from dotr.rdf.rdflib_terms import rdflib_term
from dotr.rdf.terms import Term, is_list, members

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import rdflib
    import rdflib.term

    from dotr.explain.explanation import Explaining, Explanation

_NO_PREFIXES: Final[Mapping[str, str]] = {}
_SHOWN: Final = 20
"""Events that a repr shows."""


class MatchedFact(NamedTuple):
    """A fact that a position of a rule matched: its time, and attribute → value, None where unbound."""

    time: int | datetime
    values: dict[str, rdflib.term.Node | list[rdflib.term.Node] | None]


class Event:
    """A composite event, with its terms as rdflib's. `composite` has it in dotr's own form."""

    __slots__ = ("_clock", "_explaining", "_prefixes", "_program", "composite")

    def __init__(
        self,
        composite: Composite,
        clock: Clock,
        explaining: Explaining | None = None,
        prefixes: Mapping[str, str] = _NO_PREFIXES,
        program: Program | None = None,
    ) -> None:
        self.composite = composite
        self._program = program
        self._clock = clock
        self._explaining = explaining
        self._prefixes = prefixes

    @property
    def rule(self) -> str:
        """The name of the rule that found it."""
        return self.composite.rule

    @property
    def id(self) -> str:
        """Its IRI: equal matches have equal ids, wherever they are found."""
        return self.composite.id

    @property
    def time(self) -> int | datetime:
        """In the form of the input: an int in the run's unit, or an aware datetime in UTC."""
        return _stamp(self.composite.time, self._clock)

    @property
    def change(self) -> int:
        """1; -1 where an engine with `corrections` takes the event back."""
        return self.composite.change

    @property
    def corrected_at(self) -> int | datetime | None:
        """The watermark at which a correction took the event back or added it; None of any other event."""
        made = self.composite.correction
        return None if made is None else _stamp(made.at, self._clock)

    @property
    def cause(self) -> list[int | datetime]:
        """The times of the late graphs of that correction."""
        made = self.composite.correction
        return [] if made is None else [_stamp(one.time, self._clock) for one in made.causes]

    @property
    def bindings(self) -> dict[str, Any]:
        """WITH variable → value, in WITH order: a node of rdflib, of COLLECT a list of them."""
        return {name: _nodes(term) for name, term in self.composite.bindings}

    def __getitem__(self, variable: str) -> Any:
        """The value of a WITH variable, as `bindings` has it. Raises KeyError."""
        for name, term in self.composite.bindings:
            if name == variable:
                return _nodes(term)
        raise KeyError(variable)

    @property
    def match(self) -> dict[str, MatchedFact]:
        """Position → the fact that it matched, the trigger first. (A tick of EVERY has no values.)"""
        return {
            position: MatchedFact(
                _stamp(fact[0], self._clock),
                {name: None if t is None else _nodes(t) for name, t in zip(names, fact[1], strict=True)},
            )
            for position, names, fact in self.composite.match
        }

    @property
    def graph(self) -> rdflib.Graph:
        """The event's graph, with the program's prefixes, built again at each call."""
        import rdflib  # noqa: PLC0415  # half a second of start-up that many runs do not need

        graph = rdflib.Graph(bind_namespaces="none")
        for prefix, namespace in self._prefixes.items():
            graph.bind(prefix, namespace)
        for subject, predicate, object_ in self.composite.graph:
            graph.add((rdflib_term(subject), rdflib_term(predicate), rdflib_term(object_)))
        return graph

    def explain(self) -> Explanation:
        """Why it happened, down to stated triples, while it is kept: by an engine made with `keep="horizon"`.

        Raises UsageError D4176 where nothing is kept, D4173 where it is not kept any more.
        """
        return keeps(self._explaining).event(self.id)

    def to_json(self) -> str:
        """The JSON line of this event, without a newline; of one that a correction made, with `change`."""
        line = format_jsonl(self.composite, self._clock)
        correction = self.composite.correction
        if correction is None:
            return line
        return f"{{{line_head(self.composite.change, correction, self._clock)}{line[1:]}"

    def __repr__(self) -> str:
        write = TermFormatter(self._prefixes).term
        values = "".join(f" {name}={write(term)}" for name, term in self.composite.bindings)
        return f"<{self.rule} @ {self._clock.text(self.composite.time)}{values}>"

    def _repr_html_(self) -> str:
        return Events((self.composite,), self._clock, None, self._prefixes)._repr_html_()


class Events(Sequence[Event]):
    """Events in output order; each is made when it is asked for. `+` makes lists of them."""

    __slots__ = ("_clock", "_composites", "_explaining", "_made", "_prefixes", "_program")

    def __init__(
        self,
        composites: Sequence[Composite],
        clock: Clock,
        explaining: Explaining | None = None,
        prefixes: Mapping[str, str] = _NO_PREFIXES,
        program: Program | None = None,
    ) -> None:
        self._prefixes = prefixes
        self._program = program
        self._composites = composites
        self._explaining = explaining
        self._clock = clock
        self._made: list[Event] | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> Events:
        """Events of one engine as a list that notebooks draw: `Events.of(engine.feed("log/"))`."""
        found = list(events)
        if not found:
            return NO_EVENTS
        first = found[0]
        composites = [event.composite for event in found]
        return cls(composites, first._clock, first._explaining, first._prefixes, first._program)  # its own

    def _events(self) -> list[Event]:
        if self._made is None:
            self._made = [
                Event(composite, self._clock, self._explaining, self._prefixes, self._program)
                for composite in self._composites
            ]
        return self._made

    def __bool__(self) -> bool:
        return bool(self._composites)

    def __len__(self) -> int:
        return len(self._composites)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        return self._events()[place]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events())

    def __add__(self, other: Iterable[Event]) -> list[Event]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Event]) -> list[Event]:
        return [*other, *self]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._events() == list(other)

    __hash__ = None  # type: ignore[assignment]  # a sequence of values

    def nquads(self) -> list[str]:
        """Each as N-Quads, as `dotr run --format nquads` prints it: the quickest way out."""
        composites = self._composites
        if isinstance(composites, InstantEvents):
            return composites.nquads(self._clock)
        return [nquads((composite,), self._clock) for composite in composites]

    def to_frame(self) -> pandas.DataFrame:
        """A row an event: `time`, `rule`, `id`, then every WITH variable, as numbers, texts and times of
        Python; an IRI is its text. What a rule has no variable for is None.
        """
        return frame_of(self._events())

    def to_arrow(self) -> pyarrow.Table:
        """A row an event, as `to_frame`, with a type a column: int64, double, decimal128, bool, date32,
        timestamp (µs; with UTC for values with a zone), lists of these, or string. A column whose values
        have no common type has their lexical forms. `time` is int64, or a timestamp in UTC.
        """
        return arrow_of(self._events())

    def to_polars(self) -> polars.DataFrame:
        """The table of `to_arrow` as a frame of polars. Raises EngineError D4205 without polars."""
        return polars_of(self._events())

    def __repr__(self) -> str:
        shown = [repr(event) for event in self[:_SHOWN]]
        more = [f"… {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return f"[{', '.join([*shown, *more])}]"

    def _repr_html_(self) -> str:
        """The events along time, and the first of them as a table, for notebooks."""
        terms = TermFormatter(self._prefixes)
        drawn = [] if len(self) < 2 else [self._picture(terms)]
        shown = event_table(self._composites[:_SHOWN], self._clock, terms, max(0, len(self) - _SHOWN))
        return fragment(*drawn, shown)

    def _picture(self, terms: TermFormatter) -> Html:
        rules = [] if self._program is None else [rule.name for rule in self._program.rules]
        there = {one.rule for one in self._composites}
        lanes = [rule for rule in rules if rule in there]
        marks = marks_of(self._composites, self._clock, terms.term)
        return events_along_time(marks, self._clock, lanes, rules=rules)

    def plot(self, ax: Any = None) -> Any:
        """The events along time, a row a rule, by matplotlib; the axes. Raises EngineError D4205."""
        return plot_events(self._composites, self._clock, ax)


def _nodes(term: Term) -> rdflib.term.Node | list[rdflib.term.Node]:
    """A term as rdflib's, a list as a list of them."""
    return [rdflib_term(member) for member in members(term)] if is_list(term) else rdflib_term(term)


def _stamp(time: Time, clock: Clock) -> int | datetime:
    if clock.integer:
        return time // clock.unit
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)


def keeps(explaining: Explaining | None) -> Explaining:
    """What explains, where something was kept. Raises UsageError D4176."""
    if explaining is None:
        raise UsageError.of(
            "D4176",
            "this engine keeps nothing to explain with",
            hint='make it with Engine(…, keep="horizon")',
        )
    return explaining


NO_EVENTS: Final = Events((), Clock())


class Funnels(Mapping[str, Funnel]):
    """Rule → (step, facts that came so far) of a run until now, as a value: `engine.funnel()`."""

    __slots__ = ("_events", "_funnels")

    def __init__(self, program: Program, counters: Counters) -> None:
        self._funnels = {rule.name: list(counters.funnel.get(rule.name, ())) for rule in program.rules}
        self._events = {name: counters.events.get(name, 0) for name in self._funnels}

    def __getitem__(self, rule: str) -> Funnel:
        return self._funnels[rule]

    def __iter__(self) -> Iterator[str]:
        return iter(self._funnels)

    def __len__(self) -> int:
        return len(self._funnels)

    def __repr__(self) -> str:
        lines = [f"{name}  {self._events[name]:,}   {shown(self[name])}" for name in self]
        return "\n".join(lines) or "no rules"

    def _repr_html_(self) -> str:
        """Bars, for notebooks."""
        drawn = (funnel_bars(name, self._events[name], self[name], n) for n, name in enumerate(self))
        return fragment(*drawn)

    def plot(self, ax: Any = None) -> Any:
        """A bar a step, by matplotlib; the axes. Raises EngineError D4205 without it."""
        return plot_funnels(self._funnels, self._events, ax)


def engine_picture(title: str, program: Program, counters: Counters) -> str:
    """The rules, with how many events each had and how far it came, under a title."""
    cells = (
        (rule.name, f"{counters.events.get(rule.name, 0):,}", shown(counters.funnel.get(rule.name, ())))
        for rule in program.rules
    )
    rows = [[text(cell) for cell in row] for row in cells]
    return fragment(element("p", text(title)), table(("rule", "events", "how far"), rows, numbers={1}))


SHOWN: Final = 20
"""Rules that are shown."""

_Row = tuple[str, str, str]


class Plan:
    """The plan of every rule of a program, in its order: `rules`, as it was when this was made."""

    __slots__ = ("rules",)

    def __init__(self, deployment: Deployment) -> None:
        self.rules: tuple[RulePlan, ...] = tuple(deployment.rule_plans())

    def __repr__(self) -> str:
        lines = [f"<dotr plan: {len(self.rules):,} rule{'' if len(self.rules) == 1 else 's'}>"]
        for plan in self.rules[:SHOWN]:
            lines.append(plan.rule.name)
            lines += ["  " + "  ".join(filter(None, row)) for row in _rows(plan)]
        more = len(self.rules) - SHOWN
        return "\n".join([*lines, *([f"… {more:,} more"] if more > 0 else [])])

    def _repr_html_(self) -> str:
        """A table with a line for every position of every rule, for notebooks."""
        rows = [
            [text(cell) for cell in (plan.rule.name if number == 0 else "", *row)]
            for plan in self.rules[:SHOWN]
            for number, row in enumerate(_rows(plan))
        ]
        head = ("rule", "position", "of", "keeps")
        return fragment(table(head, rows, more=max(0, len(self.rules) - SHOWN)))


def _rows(plan: RulePlan) -> list[_Row]:
    """(position, stream, what is kept of it) of the trigger and of every conjunct."""
    trigger = plan.rule.trigger
    if isinstance(trigger, Tick):
        first: _Row = (trigger.name, f"every {rhythm_text(trigger.rhythm)}", "")
    elif isinstance(trigger, After):
        late = f"{duration_text(trigger.duration)} after each fact of {trigger.position.stream}"
        first = (trigger.name, late, "all facts")
    elif isinstance(trigger, RowPattern):
        first = (trigger.name, f"matches of {pattern_text(trigger.pattern)}", "rows of open matches")
    else:
        first = (trigger.name, f"each fact of {trigger.stream}", "")
    return [first, *((step.title, f"of {step.conjunct.position.stream}", kept(step)) for step in plan.steps)]


def kept(step: PlanStep) -> str:
    """What bounds the state of a conjunct."""
    content = step.column.content
    match content:
        case LastValue():
            what = "the last fact"
        case LatestOfGroups():
            what = "the last fact of each group"
        case FactLog(held=held):
            what = "all facts, as intervals" if held else "all facts"
        case RunningTotal(function):
            what = f"a running {function}"
        case MonotonicStack():
            what = "the facts that are last above some threshold"
        case RankedTotal(function=function):
            what = f"a running {function} above each of several thresholds"
        case Ranked():
            what = "all facts above some threshold"
        case _:
            assert_never(content)
    return f"{what}{' of each key' if step.column.keys else ''}, for {duration_text(step.retention)}"
