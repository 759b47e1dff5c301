"""The funnel of each rule, from its trigger facts to its events; and one question about a state.

Place:   the pipeline counts facts for funnels, a batch where it extracts; both build funnels from the counts
         of detection (program/names.py). Summaries, `dotr status` and `engine.counters` show them. `dotr
         query` and `Engine.query` ask the question; the state is K(t), fully derived.
Method:  trigger facts are counted by query at instants with a graph (for ISTREAM and DSTREAM at every
         instant), ticks are computed from the first and the last time, facts of a chained rule are its
         matches.
         dotr evaluates SELECT and ASK, pyoxigraph CONSTRUCT and DESCRIBE. DESCRIBE gives concise bounded
         descriptions: the triples of a resource and of its blank nodes.
Bad input: D1201 an unreadable query · D4178 a CONSTRUCT or DESCRIBE with unsupported clauses · D4179 no
           query of that name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import pyoxigraph as ox

from dotr.budget import BUDGET, Exhausted, Meter, at_deployment
from dotr.errors import EngineError, ProgramError, UsageError
from dotr.events import Clock, Time, Values
from dotr.expressions.aggregates import AGGREGATES, word_of
from dotr.expressions.rhythms import ticks_between
from dotr.extract.extractor import much_work_of
from dotr.extract.full import BoundedFullQuery
from dotr.extract.query import Query
from dotr.joins.store import TripleIndex
from dotr.lang.grammar.cursor import nearest
from dotr.program import After, Program, Rhythm, Select, Tick, Trigger
from dotr.program.names import REFUSED, TRIGGER, Passed, added, counts, unreached
from dotr.program.sequences import RowPattern
from dotr.rdf.index import Background
from dotr.rdf.terms import Triple, canonical, literal
from dotr.reference.enrich import quad

Funnel: TypeAlias = list[tuple[str, int]]
"""(what, how many): the trigger's facts first, then partial matches left after each step of detection. Of a
sequence: its rows, what its elements refused (REFUSED), starts, matches."""


LOST: Final = "WITH, DEFINE"
"""The step that drops matches without a value of WITH, or without a valid graph."""


class FactCounts:
    """Owns the counts of facts by query. `same`: streams whose facts come under another name; `filtered`:
    streams whose facts are those of a base that pass a threshold, counted by their readers.

    `seen` counts at instants with a graph, `quiet` at those without, by the names of the facts.
    """

    __slots__ = ("_filtered", "_same", "_standing", "quiet", "seen")

    def __init__(
        self,
        same: Mapping[str, str] | None = None,
        filtered: Mapping[str, str] | None = None,
        standing: Collection[str] = (),
    ) -> None:
        self.seen = counts()
        self.quiet = counts()
        self._same, self._filtered = dict(same or {}), dict(filtered or {})
        self._standing = frozenset(standing)

    @property
    def total(self) -> int:
        """The number of all facts."""
        return sum(count for counted in (self.seen, self.quiet) for (count,) in counted.values())

    def streams(self, names: Iterable[str]) -> dict[str, int]:
        """How many facts each of some streams had; streams of a base that had facts are left out."""
        found: dict[str, int] = {}
        for stream in names:
            base = self._filtered.get(stream)
            name = base or self._same.get(stream, stream)
            count = self.seen[name][0] + (self.quiet[name][0] if stream in self._standing else 0)
            if base is None or not count:
                found[stream] = count
        return found


def funnels(
    program: Program,
    streams: Mapping[str, int],
    passed: Mapping[str, Passed],
    first: Time | None,
    last: Time | None,
) -> dict[str, Funnel]:
    """Rule → its funnel, in program order.

    `streams`: facts by query; `passed`: what detection counted; `first`, `last`: the first and the last
    closed instant, for ticks. A rule without counts has its trigger alone; see `joined`.
    """
    rules = {rule.name: rule for rule in program.rules}
    found: dict[str, Funnel] = {}

    def trigger(position: Trigger) -> tuple[str, int]:
        if isinstance(position, Tick):
            return "ticks", _ticks(position.rhythm, first, last)
        if isinstance(position, RowPattern):  # detection counts its rows
            return "rows", 0
        if isinstance(position, After):  # detection counts those whose tick came
            return position.position.name, 0
        if position.chained:
            return position.name, matches(position.stream) if position.stream in rules else 0
        return position.name, streams.get(position.stream, 0)

    def matches(name: str) -> int:
        found = funnel(name)
        return 0 if len(found) == 1 and unreached(rules[name]) else found[-1][1]

    def funnel(name: str) -> Funnel:
        if name not in found:
            found[name] = [("", 0)]  # a rule that reads its own events: do not recur
            rule = rules[name]
            counted = passed.get(name, [])
            steps = [trigger(rule.trigger)]
            if counted and counted[0][0] == TRIGGER:  # some facts of a base
                steps, counted = [(steps[0][0], counted[0][1] or 0)], counted[1:]
            found[name] = steps + [(step, steps[0][1] if n is None else n) for step, n in counted]
        return found[name]

    return {name: funnel(name) for name in rules}


def joined(
    program: Program, before: Mapping[str, Funnel], now: Mapping[str, Funnel], events: Mapping[str, int]
) -> dict[str, Funnel]:
    """The funnels of a run that began with `before`. Ticks already cover the whole run.

    `events`: all events of the run by rule; if fewer than the matches, some lacked a value of WITH or a valid
    graph. A rule that was never evaluated, since a stream that it must choose from was empty, is reported as
    such. A funnel ends with the first step that nothing passed, for whether later steps were evaluated says
    how the work was divided.
    """
    found: dict[str, Funnel] = {}
    for rule in program.rules:
        old, new = before.get(rule.name, ()), now[rule.name]
        ticks = isinstance(rule.trigger, Tick)
        trigger = new[0] if ticks or not old else (new[0][0], new[0][1] + old[0][1])
        steps = added([(step, n) for step, n in old[1:] if step != LOST], list(new[1:]))
        if not steps and trigger[1]:
            steps = unreached(rule)
        funnel = [trigger, *((step, n or 0) for step, n in steps)]
        left = events.get(rule.name, 0)
        if not rule.private and left < funnel[-1][1]:
            funnel.append((LOST, left))
        empty = next(
            (n for n, (step, count) in enumerate(funnel) if not count and is_passed(step)), len(funnel)
        )
        found[rule.name] = funnel[: empty + 1]
    return found


def is_passed(step: str) -> bool:
    """Whether a step counts what passed it; else what an element of a sequence refused."""
    return not step.startswith(REFUSED)


def matches_lost(funnels: Mapping[str, Funnel]) -> dict[str, int]:
    """Rule → the matches that WITH and DEFINE dropped, of rules where they did."""
    found = {}
    for name, funnel in funnels.items():
        if len(funnel) > 1 and funnel[-1][0] == LOST:
            found[name] = funnel[-2][1] - funnel[-1][1]
    return found


def _ticks(rhythm: Rhythm, first: Time | None, last: Time | None) -> int:
    """The ticks from the first to the last instant, including those that could not match."""
    return 0 if first is None or last is None else max(0, ticks_between(rhythm, first - 1, last))


def shown(funnel: Sequence[tuple[str, int]]) -> str:
    """`Temp 940 → LAST Spike 12 → WHERE 0`; `rows 8 (ON not true: Down 5) → starts 8 → matches 1`.
    Aggregates, which drop no match, are joined into one step.
    """
    steps: list[tuple[list[str], int]] = []
    refused = [
        f"{step.removeprefix(REFUSED)} {count:,}" for step, count in funnel if count and not is_passed(step)
    ]
    passed = [step for step in funnel if is_passed(step[0])]
    for number, (name, count) in enumerate(passed):
        if name == "WITH" and count == passed[number - 1][1]:
            continue
        if number > 1 and {word_of(name), word_of(steps[-1][0][-1])} <= AGGREGATES.keys():
            steps[-1][0].append(name)
        else:
            steps.append(([name], count))
        if not count:  # later steps are empty, too
            break
    texts = [f"{', '.join(names)} {count:,}" for names, count in steps]
    if refused:
        texts[0] += f" ({REFUSED}{', '.join(refused)})"
    return " → ".join(texts)


_NO_WORDS: Final = re.compile(
    r'"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|<[^<>"{}|^`\\\s]*>|#[^\n]*'
)
_FORM: Final = re.compile(r"(?<![:\w?$])(SELECT|ASK|CONSTRUCT|DESCRIBE)(?![:\w])", re.IGNORECASE)
_MORE: Final = re.compile(r"(?<![:\w?$])(SERVICE|FROM|NOW|RAND|UUID|STRUUID)(?![:\w])", re.IGNORECASE)


def makes_a_graph(text: str) -> bool:
    """Whether a query is a CONSTRUCT or DESCRIBE."""
    found = _FORM.search(_NO_WORDS.sub(" ", text))
    return found is not None and found[1].upper() in ("CONSTRUCT", "DESCRIBE")


def graph_of(text: str, name: str, prefixes: Mapping[str, str], state: Iterable[Triple]) -> list[Triple]:
    """The triples of a CONSTRUCT or DESCRIBE, in order. Raises ProgramError, UsageError."""
    more = _MORE.search(_NO_WORDS.sub(" ", text))
    if more is not None:
        raise UsageError.of(
            "D4178",
            f"a CONSTRUCT or DESCRIBE cannot use {more[1].upper()} here",
            place=name,
            notes=("it is answered from the state at one time, and always in the same way",),
            hint="SELECT can use NOW()",
        )
    store = ox.Store()
    store.bulk_extend(map(quad, state))
    try:
        found = store.query(text, prefixes=dict(prefixes))
        assert isinstance(found, ox.QueryTriples)
        return sorted((str(t.subject), str(t.predicate), canonical(str(t.object))) for t in found)
    except SyntaxError as error:
        message = str(error).splitlines()[0][:200]
        raise ProgramError.of("D1201", f"this query cannot be read: {message}", place=name) from None


def named_query(program: Program, name: str) -> Select:
    """A QUERY of the program. Raises UsageError D4179."""
    if name not in program.written:
        names = list(program.written)
        hint = nearest(name, names) or f"queries: {', '.join(names) or 'none'}"
        raise UsageError.of("D4179", f"there is no query `{name}` in the rules", hint=hint)
    return program.written[name]


def answer(
    select: Select,
    state: Collection[Triple],
    moment: tuple[Clock, Time] | None = None,
    budget: int = BUDGET,
    verify: bool = False,
) -> bool | list[Values]:
    """The answer of a SELECT or ASK.

    `moment`: the value of NOW(). `verify` compares with the full engine. Raises ProgramError D4132, D4133
    past the budget of a deployment, EngineError D4090.
    """
    store = TripleIndex(Background(state))
    if moment is not None:
        store.moment.clock, store.moment.time = moment
    limit = at_deployment(budget, len(state))
    try:
        rows = Query(select, store, meter=Meter(limit)).solutions()
    except Exhausted as exhausted:
        raise much_work_of(exhausted, "of the command", select, limit, "over what holds") from None
    if verify:
        _compare(select, state, moment, rows)
    return bool(rows) if select.ask else rows


def _compare(
    select: Select, state: Collection[Triple], moment: tuple[Clock, Time] | None, rows: Sequence[Values]
) -> None:
    """Raise EngineError D4090 unless the full engine answers the same."""
    full, store = BoundedFullQuery(select), ox.Store()
    store.bulk_extend(map(quad, state))
    now = literal("") if moment is None else moment[0].term(moment[1])
    same = full.ask(store, now) is bool(rows) if select.ask else full.solutions(store, now) == rows
    if not same:
        raise EngineError.of(
            "D4090",
            "engine and full SPARQL engine answer differently",
            select.span,
            hint="this is a bug of dotr: please report query, rules and input",
        )
