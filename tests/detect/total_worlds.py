"""Random programs of rules with aggregates that differ in thresholds, for engine against oracle.

Beside worlds.py, whose streams these are: small, and rich in ties, errors and unbound values.
"""

from __future__ import annotations

from hypothesis import strategies as st

from dotr.detect.thresholds import is_threshold
from dotr.program import (
    Choose,
    Conjunct,
    Const,
    Expression,
    Position,
    Rule,
    Selection,
    Summarise,
    Var,
    Within,
)
from tests.detect.building import A, attribute, between, both, call, program, rule
from tests.detect.worlds import (
    HOLES,
    LIMITS,
    OPERATORS,
    QUERIES,
    VARIABLES,
    Compared,
    World,
    filled,
    instants,
)

FUNCTIONS = (
    "COUNT",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "STDDEV",
    "VAR_POP",
    "MEDIAN",
    "PERCENTILE 0.3",
    "FIRST",
    "LAST",
)
START = Position("Start", "P", VARIABLES)


@st.composite
def totals(draw: st.DrawFn) -> World:
    """Rules that differ in constants only, each with an aggregate above a threshold, at least."""
    pattern = draw(_pattern())
    shapes = {name: draw(st.tuples(st.integers(0, 2), st.sampled_from(OPERATORS))) for name in QUERIES}
    rules: list[Rule] = []
    compared: dict[str, Compared] = {}
    for number in range(draw(st.sampled_from((2, 3, 5, 8)))):
        limits = [draw(st.sampled_from(LIMITS)) for _ in range(2)]
        streams: dict[str, str] = {}
        for name, (shared, operator) in shapes.items():
            constant = draw(st.sampled_from(LIMITS))
            if not shared and is_threshold(operator, constant):
                streams[name] = f"{name}{number}"
                compared[streams[name]] = Compared(name, 1, operator, constant)
        rules.append(filled(pattern, f"T{number}", limits, streams))
    return World(program(*rules), draw(instants(draw(st.booleans()), floats=True)), compared)


@st.composite
def _pattern(draw: st.DrawFn) -> Rule:
    conjuncts: list[Conjunct] = []
    chosen = Position("Chosen", draw(st.sampled_from(QUERIES)), VARIABLES)
    before = draw(st.integers(0, 2)) == 0
    if before:
        conjuncts.append(draw(_choice(chosen)))
    variables: list[str] = []
    for number in range(draw(st.sampled_from((1, 1, 2)))):
        conjuncts.append(draw(_total(number, before, variables)))
        variables.append(f"a{number}")
    if not before and draw(st.integers(0, 2)) == 0:
        conjuncts.append(draw(_choice(chosen)))
    known = [START, chosen] if any(isinstance(c, Choose) for c in conjuncts) else [START]
    value: Expression = Var(draw(st.sampled_from(variables)))
    where = None
    if draw(st.integers(0, 2)) == 0:
        where = call(draw(st.sampled_from((">", "!="))), value, draw(st.integers(0, 2)))
    give = {
        "v": call("COALESCE", value, Const(A)),
        "k": draw(st.sampled_from([attribute(f"{p.name}.v") for p in known] + [call("COALESCE", value, 7)])),
    }
    return rule("R", START, *conjuncts, where=where, give=give)


@st.composite
def _choice(draw: st.DrawFn, chosen: Position) -> Choose:
    selection = draw(st.sampled_from((Selection.EACH, Selection.LAST, Selection.FIRST)))
    on = call("=", "Chosen.k", "Start.k") if draw(st.booleans()) else None
    if draw(st.booleans()):
        test = call(draw(st.sampled_from((">", "<="))), "Chosen.v", HOLES[1])
        on = test if on is None else both(on, test)
    return Choose(selection, chosen, Within(draw(st.sampled_from((5, 3, 0))), "Start", False), on, 1)


@st.composite
def _total(draw: st.DrawFn, number: int, choice: bool, variables: list[str]) -> Summarise:
    """`choice`: `Chosen` is known."""
    name = f"X{number}"
    position = Position(name, draw(st.sampled_from(QUERIES)), VARIABLES)
    parts: list[Expression] = []
    if draw(st.integers(0, 3)):
        parts.append(call("=", f"{name}.k", "Start.k"))
    measured, hole = draw(st.sampled_from(("v", "v", "v", "k"))), HOLES[draw(st.sampled_from((0, 0, 0, 1)))]
    parts.append(call(draw(st.sampled_from(OPERATORS)), f"{name}.{measured}", hole))
    rests = [
        call("!=", f"{name}.v", "Start.v"),
        call("<", call("-", f"{name}.v", "Start.v"), 2),
        call(">", call("-", "Start.time", f"{name}.time"), 1),
        call("<", call("-", "Start.time", f"{name}.time"), 3),
        call("<", f"{name}.time", "Start.time"),
        call("BOUND", f"{name}.k"),
        call("=", call("STR", f"{name}.k"), call("STR", "Start.k")),
        *(call(">=", f"{name}.v", Var(variable)) for variable in variables),
    ]
    parts += draw(st.lists(st.sampled_from(rests), max_size=2))
    window = Within(draw(st.sampled_from((8, 5, 3, 0))), "Start", draw(st.integers(0, 2)) == 0)
    if choice and draw(st.booleans()):
        window = Within(5, "Chosen", draw(st.booleans()))
    function = draw(st.sampled_from(FUNCTIONS))
    mine = attribute(f"{name}.v")
    arguments = (mine, mine, attribute(f"{name}.k"), call("+", mine, 1), call("-", mine, "Start.v"))
    star = function == "COUNT" and draw(st.booleans())
    argument = None if star else draw(st.sampled_from(arguments))
    distinct = not star and draw(st.booleans())
    over = between("Chosen", "Start") if choice and draw(st.integers(0, 3)) == 0 else window
    return Summarise(function, argument, distinct, f"a{number}", position, over, both(*parts))
