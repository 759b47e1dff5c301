"""Random programs and streams of facts, small and rich in ties, equations, chains, ticks and consumption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from dotr.detect.analysis import rule_reaches
from dotr.events import Fact
from dotr.program import After, Conjunct, Every, Expression, Position, Program, Rule, Trigger
from tests.detect.building import (
    absent,
    at,
    before,
    between,
    both,
    each,
    equal,
    facts,
    first,
    last,
    program,
    rule,
    total,
    within,
)

TERMS = [1, 2, '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>', "<urn:x:a>", '"a"', None]
"""1 = 1.0 with different texts; unbound keys; two that equal nothing else."""


@dataclass(frozen=True)
class Story:
    """A program and what it is shown. `always`: facts of stream A that the background answers at every
    instant.
    """

    program: Program
    instants: Mapping[int, Mapping[str, Sequence[Fact]]]
    always: Sequence[tuple[object, object]]

    @property
    def without_graph(self) -> Sequence[str]:
        """Queries that may have facts without a graph."""
        return ["A"] if self.always else []

    def at_tick(self, time: int) -> Mapping[str, Sequence[Fact]]:
        return {"A": facts(time, *self.always)} if self.always else {}


@st.composite
def rules(draw: st.DrawFn, number: int, chainable: Sequence[Rule], cycle: bool) -> Rule:
    """A rule over streams A and B, the rules before it, and under `cycle` itself (BEFORE)."""
    name = f"R{number}"
    streams: list[Position] = [at("A"), at("B")] + [at(r.name, chained=True) for r in chainable]

    def position(own: str, extra: Sequence[Position] = ()) -> Position:
        chosen = draw(st.sampled_from([*streams, *streams, *extra]))
        return at(own, chosen.stream, " ".join(chosen.variables), chosen.chained)

    trigger: Trigger
    trigger = Every(draw(st.integers(2, 4)), "T") if draw(st.integers(0, 5)) == 0 else position("T")
    bound = ["T"]
    if isinstance(trigger, Position) and draw(st.integers(0, 3)) == 0:
        trigger = After(trigger, draw(st.integers(1, 4)), "Due")
        bound = ["Due", "T"]
    tied = draw(st.booleans())
    conjuncts: list[Conjunct] = []
    totals: list[str] = []
    attributes = [] if isinstance(trigger, Every) else ["T.k", "T.v"]
    for i in range(draw(st.integers(0, 3))):
        own = f"C{i}"
        reference = draw(st.sampled_from(bound))
        strict = cycle and draw(st.booleans())
        extra = [at(name, chained=True)] if strict else []
        here = position(own, extra)
        loop = here.stream == name
        window = (before if loop or draw(st.booleans()) else within)(draw(st.integers(0, 4)), reference)
        on: list[Expression] = []
        if attributes and (tied or draw(st.booleans())):
            on.append(
                equal(
                    f"{own}.k",
                    draw(
                        st.sampled_from([a for a in attributes if a.endswith(".k")] if tied else attributes)
                    ),
                )
            )
        if draw(st.integers(0, 3)) == 0:
            on.append(equal(f"{own}.v", 1))
        condition = both(*on) if on else None
        match draw(st.sampled_from(["each", "last", "first", "not", "count"])):
            case "each":
                conjuncts.append(each(here, window, condition))
            case "last":
                conjuncts.append(last(here, window, condition, k=draw(st.integers(1, 2))))
            case "first":
                conjuncts.append(first(here, window, condition))
            case "not":
                gap = not loop and len(bound) > 1 and draw(st.booleans())
                conjuncts.append(absent(here, between(bound[-1], bound[0]) if gap else window, condition))
                continue
            case _:
                conjuncts.append(total("COUNT", None, f"n{i}", here, window, condition))
                totals.append(f"?n{i}")
                continue
        bound.append(own)
        attributes += [f"{own}.k", f"{own}.v"]
    chosen = [b for b in bound if b not in ("T", "Due")]
    consuming = [c for c in chosen if draw(st.integers(0, 3)) == 0]
    values = [a for a in attributes if a.endswith(".k")] or ["T.time"]
    give = {"k": draw(st.sampled_from(values)), "v": draw(st.sampled_from([*values, *totals, "T.time"]))}
    return rule(name, trigger, *conjuncts, give=give, consuming=consuming)


@st.composite
def stories(draw: st.DrawFn, pause: int = 0) -> Story:
    """`pause`: so much longer are some of the gaps between times."""
    cycle = draw(st.integers(0, 4)) == 0
    made: list[Rule] = []
    for number in range(draw(st.integers(1, 3))):
        made.append(draw(rules(number, made if draw(st.booleans()) else [], cycle)))
    whole = program(*made)
    whole = Program(queries={"A": _query(whole, "A"), "B": _query(whole, "B")}, rules=whole.rules)
    row = st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS[:3]))
    always = draw(st.lists(row, max_size=1))
    times = draw(st.lists(st.integers(-3, 24), min_size=1, max_size=8, unique=True))
    instants: dict[int, dict[str, Sequence[Fact]]] = {}
    later = 0
    for time in sorted(times):
        later += pause if pause and draw(st.booleans()) else 0
        time += later
        rows = {name: draw(st.lists(row, max_size=3)) for name in ("A", "B")}
        rows["A"] = [*rows["A"], *always] if draw(st.booleans()) else rows["A"]
        instants[time] = {name: facts(time, *found) for name, found in rows.items() if found}
    return Story(whole, instants, always)


def _query(whole: Program, name: str) -> object:
    known = program(rule("X", at(name))).queries[name]
    return whole.queries.get(name, known)


def longest(whole: Program) -> int:
    return max((r.influence for r in rule_reaches(whole) if r.influence is not None), default=0)
