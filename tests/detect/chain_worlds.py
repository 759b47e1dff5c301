"""Random rules shaped like chains and trees of EACH, most of whose candidates lead nowhere.

Conjuncts are measured from the one before or from any earlier one; conditions look at the candidate, at its
reference, at the trigger, sometimes at anything else, in ON, in WHERE, behind keys, as NOT between two of
them, or about what LAST or an aggregate finds for one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.program import (
    Absent,
    Attribute,
    Between,
    Choose,
    Conjunct,
    Const,
    Every,
    Expression,
    Position,
    Rule,
    Selection,
    Summarise,
    TimeOf,
    Var,
    Within,
)
from dotr.program.rules import After
from dotr.rdf.terms import integer
from tests.detect.building import A, attribute, call, program, rule
from tests.detect.worlds import HOLES, QUERIES, VARIABLES, World, filled, instants

CONSTANTS = tuple(integer(number) for number in (0, 1, 2))

WORDS = ((Selection.EACH, 1),) * 6 + (
    (Selection.LAST, 1),
    (Selection.FIRST, 1),
    (Selection.LAST, 2),
    (Selection.FIRST, 2),
)


@st.composite
def chains(draw: st.DrawFn) -> World:
    if draw(st.integers(0, 3)):
        rules = [constants(draw(chain(f"T{i}", i)), draw) for i in range(draw(st.sampled_from((1, 1, 2))))]
    else:  # rules that differ in constants, and some in how they end
        base = draw(chain("T", 0))
        rules = [replace(constants(base, draw), name=f"T{i}") for i in range(draw(st.sampled_from((2, 3))))]
        if not base.consuming:
            rules = [replace(one, where=one.where if draw(st.integers(0, 3)) else None) for one in rules]
    return World(program(*rules), draw(instants(draw(st.integers(0, 3)) == 0)))


def constants(base: Rule, draw: st.DrawFn) -> Rule:
    """The rule with constants."""
    return filled(base, base.name, [draw(st.sampled_from(CONSTANTS)) for _ in HOLES], {})


@st.composite
def chain(draw: st.DrawFn, name: str, index: int) -> Rule:
    event = Position("Start", draw(st.sampled_from(QUERIES)), VARIABLES)
    if index and draw(st.booleans()):
        event = Position("Start", f"T{index - 1}", VARIABLES, chained=True)
    kind = draw(st.integers(0, 9))
    trigger = event if kind else Every(2, "Start")
    if kind == 1:
        trigger = After(event, 2, "Due")
    keyed = draw(st.booleans())
    positions: list[Position] = [] if isinstance(trigger, Every) else [event]
    references = [trigger.name]
    totals: list[str] = []
    conjuncts: list[Conjunct] = []
    tests: list[Expression] = []
    for number in range(draw(st.sampled_from((2, 3, 3, 4, 4, 5)))):
        position = Position(f"X{number}", draw(st.sampled_from(QUERIES)), VARIABLES)
        reference = references[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(references))
        window = Within(draw(st.sampled_from((8, 5, 3, 2, 1))), reference, draw(st.integers(0, 3)) > 0)
        on = draw(_on(position, reference, positions, totals, keyed))
        selection, k = draw(st.sampled_from(WORDS))
        optional = selection is not Selection.EACH and k == 1 and draw(st.booleans())
        per = selection is Selection.EACH and draw(st.integers(0, 9)) == 0
        conjuncts.append(
            Choose(selection, position, window, on, k, optional=optional, per=("k",) if per else ())
        )
        positions.append(position)
        if per:
            continue
        if draw(st.integers(0, 3)) == 0:
            conjuncts.append(draw(_between(f"N{number}", reference, position.name, positions)))
        if draw(st.integers(0, 5)) == 0:
            few = Position(f"A{number}", draw(st.sampled_from(QUERIES)), VARIABLES)
            near = Within(draw(st.sampled_from((4, 2))), position.name, draw(st.booleans()))
            on = draw(_on(few, position.name, positions, [], keyed))
            conjuncts.append(Summarise("COUNT", None, False, f"a{number}", few, near, on))
            totals.append(f"a{number}")
        references.append(position.name)
        if draw(st.integers(0, 2)) == 0:
            tests.append(draw(_test(position, reference, positions, totals)))
    chosen = [c.position.name for c in conjuncts if isinstance(c, Choose) and not c.per]
    consuming = chosen[-1:] if draw(st.integers(0, 4)) == 0 else []
    where = tests[0] if tests else None
    for test in tests[1:]:
        where = call("&&", where, test)
    given = [attribute(f"{p.name}.{v}") for p in positions for v in VARIABLES] or [Const(A)]
    give = {"k": draw(st.sampled_from(given)), "v": draw(st.sampled_from([*given, Const(A), Const(A)]))}
    return rule(name, trigger, *conjuncts, where=where, give=give, consuming=consuming)


@st.composite
def _on(
    draw: st.DrawFn,
    own: Position,
    reference: str,
    positions: Sequence[Position],
    totals: Sequence[str],
    keyed: bool,
) -> Expression | None:
    near = [p for p in positions if p.name == reference] or list(positions)
    parts: list[Expression] = []
    if keyed and near:
        other = draw(st.sampled_from(near if draw(st.booleans()) else list(positions)))
        parts.append(call("=", f"{own.name}.k", f"{other.name}.k"))
    kind = draw(st.integers(0, 11))
    mine = attribute(f"{own.name}.v")
    if kind == 0:
        parts.append(call(">", mine, HOLES[0]))
    elif kind in (1, 2) and near:
        parts.append(call(draw(st.sampled_from(("<=", "!="))), mine, f"{near[0].name}.v"))
    elif kind == 3 and positions:
        parts.append(call("<=", mine, f"{draw(st.sampled_from(positions)).name}.v"))
    elif kind == 4 and positions:
        parts.append(call("=", mine, f"{draw(st.sampled_from(positions)).name}.v"))
    elif kind == 5 and totals:
        parts.append(call("=", mine, Var(draw(st.sampled_from(totals)))))
    whole = parts[0] if parts else None
    for part in parts[1:]:
        whole = call("&&", whole, part)
    return whole


@st.composite
def _between(draw: st.DrawFn, name: str, reference: str, own: str, positions: Sequence[Position]) -> Conjunct:
    position = Position(name, draw(st.sampled_from(QUERIES)), VARIABLES)
    window = (
        Between(own, reference) if draw(st.booleans()) else Within(draw(st.sampled_from((2, 1))), own, True)
    )
    seen = [p.name for p in positions if p.name in (own, reference)]
    on = draw(st.none() | st.sampled_from([call("=", f"{name}.k", f"{other}.k") for other in seen]))
    return Absent(position, window, on)


@st.composite
def _test(
    draw: st.DrawFn, own: Position, reference: str, positions: Sequence[Position], totals: Sequence[str]
) -> Expression:
    mine: Expression = attribute(f"{own.name}.v")
    kind = draw(st.integers(0, 5))
    if kind == 0 and totals:
        return call("<", Var(draw(st.sampled_from(totals))), 2)
    if kind == 1:
        other = draw(st.sampled_from(positions))
        return call("<=", mine, Attribute(other.name, "v"))
    if kind == 2:
        return call("<", call("-", TimeOf(reference), TimeOf(own.name)), 4)
    if kind == 3 and reference in {p.name for p in positions}:
        return call("!=", mine, Attribute(reference, "v"))
    return call(draw(st.sampled_from((">", "<"))), mine, HOLES[1])
