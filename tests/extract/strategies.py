"""Random graphs and queries, small and rich in coincidences, over every kind of term.

Trees are built directly, so that a generated query owes nothing to the parser.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from dotr.extract.rewriting import visible
from dotr.program import (
    Aggregate,
    Alternative,
    Bind,
    Call,
    Const,
    Element,
    Exists,
    Expression,
    Filter,
    GroupKey,
    GroupPattern,
    Inverse,
    Minus,
    NegatedSet,
    OptionalGroup,
    OrderKey,
    Projection,
    Repeat,
    Select,
    Sequence,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
)
from dotr.rdf.terms import RDF_TYPE, XSD, Term, Triple, canonical, literal

EX = "http://example.org/"


def ex(name: str) -> Term:
    return f"<{EX}{name}>"


PREDICATES = [ex("p"), ex("q"), ex("r")]
RESOURCES = [ex("a"), ex("b"), ex("c")]
CLASSES = [ex("C"), ex("D")]
LITERALS = [
    canonical(literal(lexical, XSD + datatype))
    for datatype, lexicals in {
        "integer": ["0", "1", "2", "-3", "9223372036854775807", "9223372036854775808", "9223372036854775809"],
        "unsignedLong": ["18446744073709551615"],
        "negativeInteger": ["-1000000000000000000000000000000"],
        "decimal": ["1.0", "2.5", "0.1"],
        "double": ["1", "2.5", "NaN", "INF", "1e300"],
        "float": ["1", "0.1", "2.5"],
        "boolean": ["true", "false"],
        "string": ["", "1", "a", "b"],
        "dateTime": ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00"],
        "date": ["2026-01-01", "2026-01-02Z"],
        "dayTimeDuration": ["PT1H", "PT60M"],
    }.items()
    for lexical in lexicals
]
LITERALS += ['"a"@en', '"a"@de', f'"x"^^<{XSD}integer>', f'"x"^^{ex("unit")}']
SUBJECTS = [*RESOURCES, "_:x"]

_LINKS = [(s, p, o) for s in SUBJECTS for p in PREDICATES for o in SUBJECTS]
_TYPES = [(s, RDF_TYPE, c) for s in SUBJECTS for c in CLASSES]
_FEW = [(s, p, o) for s in SUBJECTS for p in PREDICATES for o in LITERALS[:3]]
_VALUES = [(s, p, o) for s in SUBJECTS for p in PREDICATES for o in LITERALS]
triples = st.sampled_from([*_LINKS * 2, *_TYPES * 2, *_FEW * 3, *_VALUES])
graphs = st.one_of(
    st.lists(triples, max_size=4, unique=True), st.lists(triples, min_size=8, max_size=20, unique=True)
)

NAMES = ["x", "y", "z"]
variables = st.sampled_from(NAMES).map(Var)
constants = st.sampled_from([*RESOURCES, *LITERALS])
nodes = st.sampled_from([*map(Var, NAMES * 4), RESOURCES[0]])


_excluded = st.lists(st.sampled_from([*PREDICATES, RDF_TYPE]), max_size=2, unique=True).map(tuple)


@st.composite
def paths(draw: st.DrawFn, depth: int = 3) -> object:
    """Any property path but a bare IRI at the top."""
    step = st.one_of(st.sampled_from(PREDICATES), paths(depth - 1)) if depth else st.sampled_from(PREDICATES)
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return Inverse(draw(step))
    if kind == 1:
        ahead = draw(_excluded)
        return NegatedSet(ahead, draw(_excluded) if ahead else (RDF_TYPE,))
    if kind <= 3:
        many = tuple(draw(st.lists(step, min_size=2, max_size=2)))
        return Sequence(many) if kind == 2 else Alternative(many)
    minimum, unbounded = draw(st.sampled_from([(0, True), (1, True), (0, False)]))
    return Repeat(draw(step), minimum, unbounded)


@st.composite
def patterns(draw: st.DrawFn, with_paths: bool = True) -> TriplePattern:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return TriplePattern(draw(nodes), draw(variables), draw(nodes))
    if kind == 1:
        return TriplePattern(draw(nodes), RDF_TYPE, draw(st.one_of(variables, st.sampled_from(CLASSES))))
    if kind == 2 and with_paths:
        return TriplePattern(draw(nodes), draw(paths()), draw(nodes))
    object_ = draw(st.sampled_from([*map(Var, NAMES * 4), RESOURCES[0], *LITERALS[:2]]))
    return TriplePattern(draw(nodes), draw(st.sampled_from(PREDICATES)), object_)


@st.composite
def blocks(draw: st.DrawFn, most: int = 3) -> Triples:
    count = min(most, draw(st.sampled_from([1, 1, 1, 2, 2, 3])))
    return Triples(tuple(draw(patterns()) for _ in range(count)))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2, exists: bool = False) -> Expression:
    """Any expression over the variables; conditions and values alike."""
    leaf = st.one_of(variables, variables, constants.map(Const))
    kind = draw(st.integers(0, 11 if depth else 1))
    deeper = expressions(depth - 1)
    if kind <= 1:
        return draw(leaf)
    if kind == 2:
        return Call("!=", (draw(variables), draw(constants.map(Const))))
    if kind <= 4:
        operator = draw(st.sampled_from(["=", "!=", "<", ">", "<=", ">="]))
        return Call(operator, (draw(leaf), draw(leaf)))
    if kind == 5:
        return Call(draw(st.sampled_from(["||", "&&"])), (draw(deeper), draw(deeper)))
    if kind == 6:
        return Call(draw(st.sampled_from(["!", "u-"])), (draw(deeper),))
    if kind == 7:
        return Call(draw(st.sampled_from(["+", "-", "*", "/"])), (draw(leaf), draw(leaf)))
    if kind == 8:
        return Call(draw(st.sampled_from(["IN", "NOT-IN"])), (draw(leaf), draw(leaf), draw(leaf)))
    if kind == 9:
        one = st.sampled_from(
            ["STR", "DATATYPE", "LANG", "ISIRI", "ISLITERAL", "ISBLANK", "ISNUMERIC", "ABS"]
        )
        return Call(draw(one), (draw(deeper),))
    if kind == 10:
        return draw(
            st.one_of(
                st.builds(lambda v: Call("BOUND", (v,)), variables),
                st.builds(lambda a, b: Call("COALESCE", (a, b)), deeper, leaf),
                st.builds(lambda a, b, c: Call("IF", (a, b, c)), deeper, leaf, leaf),
                st.builds(lambda a, b: Call("SAMETERM", (a, b)), leaf, leaf),
            )
        )
    if exists:
        return Exists(GroupPattern((draw(blocks(2)),)), draw(st.booleans()))
    return Call("STR", (draw(leaf),))


@st.composite
def inline(draw: st.DrawFn) -> Values:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    cell = st.one_of(st.none(), st.sampled_from([*RESOURCES, *LITERALS[:6]]))
    rows = draw(st.lists(st.tuples(*[cell] * len(names)), max_size=3))
    return Values(tuple(map(Var, names)), tuple(rows))


@st.composite
def groups(draw: st.DrawFn, depth: int = 2, monotone: bool = False) -> GroupPattern:
    """A group: triples first, mostly, then anything."""
    elements: list[object] = [draw(blocks())] if draw(st.integers(0, 5)) else []
    for _ in range(draw(st.integers(0, 3 if depth else 1))):
        kind = draw(st.integers(1, 9))
        if kind <= 2:
            elements.append(Filter(draw(expressions(exists=not monotone and depth > 0))))
        elif kind == 3:
            taken = {name for e in elements for name in visible(GroupPattern((e,)))}
            free = [name for name in ("u", "v") if name not in taken]
            if free:
                elements.append(Bind(draw(expressions()), Var(draw(st.sampled_from(free)))))
        elif kind == 4:
            elements.append(draw(inline()))
        elif depth and kind == 5:
            inner = groups(depth - 1, monotone)
            elements.append(Union((draw(inner), draw(inner))))
        elif depth and kind in (6, 7) and not monotone:
            elements.append(OptionalGroup(draw(groups(depth - 1))))
        elif depth and kind == 8 and not monotone:
            elements.append(Minus(draw(groups(depth - 1))))
        elif depth:
            elements.append(draw(st.one_of(groups(depth - 1, monotone), blocks(1))))
    return GroupPattern(tuple(elements))


@st.composite
def selects(draw: st.DrawFn, monotone: bool = False) -> Select:
    """A whole query: plain, with SELECT expressions, or grouped; DISTINCT, ORDER BY, LIMIT."""
    where = draw(groups(monotone=monotone))
    scope = list(visible(where))
    distinct = draw(st.booleans()) if draw(st.booleans()) else False
    if draw(st.integers(0, 3)) == 0 and not monotone:
        return draw(_grouped(where, scope, distinct))
    names = draw(st.lists(st.sampled_from(scope or NAMES), min_size=1, max_size=3, unique=True))
    projection = [Projection(Var(name)) for name in names]
    if draw(st.integers(0, 3)) == 0:
        projection.append(Projection(Var("e"), draw(expressions())))
    order: list[OrderKey] = []
    if draw(st.integers(0, 3)) == 0:
        order = draw(st.lists(st.builds(OrderKey, expressions(1), st.booleans()), min_size=1, max_size=2))
    limit = draw(st.one_of(st.none(), st.integers(0, 4))) if order else None
    offset = draw(st.integers(0, 2)) if order else 0
    return Select(tuple(projection), where, distinct, order_by=tuple(order), limit=limit, offset=offset)


AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VAR_POP", "MEDIAN", "PERCENTILE 0.3")


@st.composite
def _grouped(draw: st.DrawFn, where: GroupPattern, scope: list[str], distinct: bool) -> Select:
    names = draw(st.lists(st.sampled_from(scope), max_size=2, unique=True)) if scope else []
    projection = [Projection(Var(name)) for name in names]
    having: list[Expression] = []
    for i in range(draw(st.integers(1, 2))):
        function = draw(
            st.sampled_from(
                ["COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VAR_POP", "MEDIAN", "PERCENTILE 0.3"]
            )
        )
        star = function == "COUNT" and draw(st.booleans())
        total = Aggregate(function, None if star else draw(expressions(1)), draw(st.booleans()))
        projection.append(Projection(Var(f"t{i}"), total))
        if draw(st.integers(0, 4)) == 0:
            having.append(Call(">", (total, Const(LITERALS[1]))))
    order: list[OrderKey] = []
    if draw(st.integers(0, 3)) == 0:
        order = [OrderKey(Var("t0"), draw(st.booleans()))]
    keys = tuple(GroupKey(Var(name)) for name in names)
    limit = draw(st.integers(0, 3)) if order else None
    return Select(
        tuple(projection),
        where,
        distinct,
        group_by=keys,
        having=tuple(having),
        order_by=tuple(order),
        limit=limit,
    )


class World(NamedTuple):
    """A query, a background, and instants: a graph's triples, and how many of the background's are lost."""

    select: Select
    background: list[Triple]
    instants: list[tuple[list[Triple], int]]


instants = st.lists(st.tuples(graphs, st.integers(0, 3)), min_size=1, max_size=3)


@st.composite
def retractions(draw: st.DrawFn) -> World:
    """A pattern of the background, what the stream takes from it, and a join with the stream.

    The background alone has no answer, and yet an instant's changes take rows back that they add: solutions
    of the first pattern that meet the join and that MINUS, OPTIONAL or NOT EXISTS has withdrawn.
    """
    first, second, third = draw(st.permutations(PREDICATES))
    kept = draw(st.sampled_from([first, RDF_TYPE]))
    elements: list[Element] = [Triples((draw(_pattern_of(kept)),))]
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        elements.append(draw(_withdrawing(second, third)))
    if draw(st.booleans()):
        elements = [GroupPattern(tuple(elements))]
    elements += [Triples((draw(_pattern_of(third)),)) for _ in range(draw(st.sampled_from([1, 1, 2])))]
    if draw(st.integers(0, 5)) == 0:
        elements.append(Filter(draw(expressions())))
    if draw(st.integers(0, 7)) == 0:
        elements = elements[1:] + elements[:1]
    where = GroupPattern(tuple(elements))
    scope = list(visible(where))
    select = draw(_grouped(where, scope, False)) if draw(st.integers(0, 5)) else _plain(where, scope)
    background = draw(st.lists(_triple_of(kept), min_size=1, max_size=6, unique=True))
    stream = st.lists(_triple_of(kept, second, second, third, third), max_size=8, unique=True)
    steps = draw(st.lists(st.tuples(stream, st.sampled_from([0, 0, 1, 2])), min_size=1, max_size=3))
    return World(select, background, steps)


worlds = st.one_of(st.builds(World, selects(), graphs, instants), retractions())
"""Anything over anything, or, half the time, what takes rows back within an instant."""


def _plain(where: GroupPattern, scope: list[str]) -> Select:
    return Select(tuple(Projection(Var(name)) for name in scope or NAMES), where)


def _pattern_of(predicate: Term) -> st.SearchStrategy[TriplePattern]:
    if predicate == RDF_TYPE:
        return st.builds(TriplePattern, variables, st.just(RDF_TYPE), st.just(CLASSES[0]))
    objects = st.sampled_from([*map(Var, NAMES * 3), RESOURCES[0], LITERALS[1]])
    return st.builds(TriplePattern, variables, st.just(predicate), objects)


@st.composite
def _withdrawing(draw: st.DrawFn, *predicates: Term) -> Element:
    """MINUS, OPTIONAL or NOT EXISTS over a pattern or two that the stream brings."""
    inner = [Triples((draw(_pattern_of(draw(st.sampled_from(predicates)))),))]
    if draw(st.integers(0, 3)) == 0:
        inner.append(Triples((draw(_pattern_of(predicates[0])),)))
    group = GroupPattern(tuple(inner))
    match draw(st.integers(0, 3)):
        case 0 | 1:
            return Minus(group)
        case 2:
            return OptionalGroup(group)
        case _:
            return Filter(Exists(group, draw(st.sampled_from([True, True, False]))))


def _triple_of(*predicates: Term) -> st.SearchStrategy[Triple]:
    objects = st.sampled_from([*RESOURCES, *LITERALS[:3]])
    return st.one_of(
        [
            st.tuples(st.sampled_from(RESOURCES), st.just(p), st.just(CLASSES[0]))
            if p == RDF_TYPE
            else st.tuples(st.sampled_from(RESOURCES), st.just(p), objects)
            for p in predicates
        ]
    )
