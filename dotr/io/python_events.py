"""Composite events as Python programs hold them, and the plan of an engine's rules.

Place:   api.py returns them; a term becomes an rdflib term when it is requested (python_values.py).
Method:  `Plan` shows people how the rules of an engine are detected; `dotr plan` shows more, from the same
         plans. `engine_table` is what notebooks show of an engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple, assert_never, overload

from dotr.core.deployment import Deployment
from dotr.core.funnel import shown
from dotr.core.pipeline import Counters
from dotr.detect.plan import RulePlan
from dotr.detect.plan_step import (
    FactLog,
    LastValue,
    MonotonicStack,
    PlanStep,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.emit.events import InstantEvents
from dotr.errors import UsageError
from dotr.events import Clock, Composite, Time
from dotr.io.events import TermFormatter, format_jsonl, nquads
from dotr.io.python_values import rdflib_term
from dotr.program import Every, Program
from dotr.program.names import duration_text
from dotr.rdf.terms import Term

if TYPE_CHECKING:
    import pandas
    import rdflib

    from dotr.explain.explanation import Explaining, Explanation

_NO_PREFIXES: Final[Mapping[str, str]] = {}
_SHOWN: Final = 20
"""Events that a repr shows."""


class MatchedFact(NamedTuple):
    """A fact that a position of a rule matched: its time, and attribute → value, None where unbound."""

    time: int | datetime
    values: dict[str, rdflib.term.Node | None]


class Event:
    """A composite event, with its terms as rdflib's. `composite` has it in dotr's own form."""

    __slots__ = ("_clock", "_explaining", "_prefixes", "composite")

    def __init__(
        self,
        composite: Composite,
        clock: Clock,
        explaining: Explaining | None = None,
        prefixes: Mapping[str, str] = _NO_PREFIXES,
    ) -> None:
        self.composite = composite
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
    def bindings(self) -> dict[str, rdflib.term.Node]:
        """WITH variable → value, in WITH order."""
        return {name: rdflib_term(term) for name, term in self.composite.bindings}

    def __getitem__(self, variable: str) -> rdflib.term.Node:
        """The value of a WITH variable. Raises KeyError."""
        for name, term in self.composite.bindings:
            if name == variable:
                return rdflib_term(term)
        raise KeyError(variable)

    @property
    def match(self) -> dict[str, MatchedFact]:
        """Position → the fact that it matched, the trigger first. (A tick of EVERY has no values.)"""
        return {
            position: MatchedFact(
                _stamp(fact[0], self._clock),
                {name: None if t is None else rdflib_term(t) for name, t in zip(names, fact[1], strict=True)},
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
        """The JSON line of this event, without a newline."""
        return format_jsonl(self.composite, self._clock)

    def __repr__(self) -> str:
        write = TermFormatter(self._prefixes).term
        values = "".join(f" {name}={write(term)}" for name, term in self.composite.bindings)
        return f"<{self.rule} @ {self._clock.text(self.composite.time)}{values}>"

    def _repr_html_(self) -> str:
        return Events((self.composite,), self._clock, None, self._prefixes)._repr_html_()


class Events(Sequence[Event]):
    """Events in output order; each is made when it is asked for. `+` makes lists of them."""

    __slots__ = ("_clock", "_composites", "_explaining", "_made", "_prefixes")

    def __init__(
        self,
        composites: Sequence[Composite],
        clock: Clock,
        explaining: Explaining | None = None,
        prefixes: Mapping[str, str] = _NO_PREFIXES,
    ) -> None:
        self._prefixes = prefixes
        self._composites = composites
        self._explaining = explaining
        self._clock = clock
        self._made: list[Event] | None = None

    def _events(self) -> list[Event]:
        if self._made is None:
            self._made = [
                Event(composite, self._clock, self._explaining, self._prefixes)
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

    def __repr__(self) -> str:
        shown = [repr(event) for event in self[:_SHOWN]]
        more = [f"… {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return f"[{', '.join([*shown, *more])}]"

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        composites = self._composites[:_SHOWN]
        write = TermFormatter(self._prefixes).term
        names = list(dict.fromkeys(name for one in composites for name, _ in one.bindings))
        rows = []
        for one in composites:
            values = dict(one.bindings)
            cells = [self._clock.text(one.time), one.rule]
            cells += [write(values[name]) if name in values else "" for name in names]
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        head = "".join(f"<th>{escape(name)}</th>" for name in ("time", "rule", *names))
        more = len(self) - len(rows)
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>"
            + "".join(f"<tr>{row}</tr>" for row in rows)
            + "</tbody></table>"
            + (f"<p>and {more:,} more</p>" if more else "")
        )


def frame_of(events: Iterable[Event]) -> pandas.DataFrame:
    """Events, of any run, as `Events.to_frame` gives them."""
    import pandas  # noqa: PLC0415  # a second of start-up that many runs do not need

    found = list(events)
    names = list(dict.fromkeys(name for event in found for name, _ in event.composite.bindings))
    rows = [
        [event.time, event.rule, event.id, *(_python(dict(event.composite.bindings).get(n)) for n in names)]
        for event in found
    ]
    return pandas.DataFrame(rows, columns=["time", "rule", "id", *names])


def _python(term: Term | None) -> object:
    if term is None:
        return None
    node = rdflib_term(term)
    value: object = node.toPython()  # type: ignore[attr-defined]  # every node of ours has it
    return str(value) if isinstance(value, str) else value


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


def engine_table(title: str, program: Program, counters: Counters) -> str:
    """A table of the rules, with how many events each had and how far it came, under a title."""
    rows = [
        (rule.name, f"{counters.events.get(rule.name, 0):,}", shown(counters.funnel.get(rule.name, ())))
        for rule in program.rules
    ]
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return (
        f"<p>{escape(title)}</p><table><thead><tr><th>rule</th><th>events</th><th>how far</th></tr></thead>"
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"
    )


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
        lines = []
        for plan in self.rules[:SHOWN]:
            for number, row in enumerate(_rows(plan)):
                cells = (plan.rule.name if number == 0 else "", *row)
                lines.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        head = "".join(f"<th>{name}</th>" for name in ("rule", "position", "of", "keeps"))
        more = len(self.rules) - SHOWN
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>" + (
            f"<p>and {more:,} more</p>" if more > 0 else ""
        )


def _rows(plan: RulePlan) -> list[_Row]:
    """(position, stream, what is kept of it) of the trigger and of every conjunct."""
    trigger = plan.rule.trigger
    if isinstance(trigger, Every):
        first: _Row = (trigger.name, f"every {duration_text(trigger.duration)}", "")
    else:
        first = (trigger.name, f"each fact of {trigger.stream}", "")
    return [first, *((step.title, f"of {step.conjunct.position.stream}", kept(step)) for step in plan.steps)]


def kept(step: PlanStep) -> str:
    """What bounds the state of a conjunct."""
    content = step.column.content
    match content:
        case LastValue():
            what = "the last fact"
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
