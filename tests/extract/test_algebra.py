"""Conjunctions become one where that changes no variable's scope, and stay apart elsewhere."""

from __future__ import annotations

from dotr.extract.algebra import (
    MOST_BRANCHES,
    NOTHING,
    UNIT,
    BasicGraphPattern,
    Extend,
    Join,
    LeftJoin,
    Pattern,
    UnionOf,
    certain,
    conjuncts,
    extend,
    join,
    possible,
    select,
    union,
)
from dotr.program import Bind, Call, Const, Filter, Repeat, Var

P, A, B = "<urn:p>", "<urn:a>", "<urn:b>"
X, Y, Z = Var("x"), Var("y"), Var("z")
XY = BasicGraphPattern((Pattern(X, P, Y),))
YZ = BasicGraphPattern((Pattern(Y, P, Z),))


def fixed(name: str, term: str) -> BasicGraphPattern:
    return BasicGraphPattern((), (Bind(Const(term), Var(name)),))


def above(name: str) -> Call:
    return Call(">", (Var(name), Const('"1"')))


def test_a_join_of_conjunctions_is_a_conjunction_without_repetitions() -> None:
    assert join(XY, YZ) == BasicGraphPattern((*XY.patterns, *YZ.patterns))
    assert join(XY, XY) == XY
    assert join(UNIT, XY) == join(XY, UNIT) == XY


def test_inline_data_are_put_into_patterns_and_contradictions_leave_nothing() -> None:
    assert join(XY, fixed("x", A)) == BasicGraphPattern((Pattern(A, P, Y),), fixed("x", A).steps)
    assert join(fixed("x", A), fixed("x", B)) == NOTHING
    assert join(UnionOf((fixed("x", A), fixed("x", B))), fixed("x", B)) == fixed("x", B)


def test_a_filter_that_would_see_a_foreign_variable_is_not_moved() -> None:
    closed = BasicGraphPattern(XY.patterns, (Filter(above("z")),))
    assert join(closed, YZ) == Join(closed, YZ)
    known = BasicGraphPattern(XY.patterns, (Filter(above("y")),))
    assert join(known, YZ) == BasicGraphPattern((*XY.patterns, *YZ.patterns), known.steps)


def test_a_bind_of_a_variable_that_the_other_side_has_is_not_moved() -> None:
    bound = BasicGraphPattern(XY.patterns, (Bind(Call("STR", (Y,)), Z),))
    assert join(bound, YZ) == Join(bound, YZ)


def test_a_constant_is_not_put_into_a_path_of_length_zero() -> None:
    path = BasicGraphPattern((Pattern(X, Repeat(P, 0, unbounded=True), Y),))
    assert path.patterns[0].nullable
    assert join(path, fixed("x", A)) == Join(path, fixed("x", A))


def test_a_join_of_unions_is_expanded_up_to_the_limit_of_branches() -> None:
    def many(count: int) -> UnionOf:
        return UnionOf(tuple(BasicGraphPattern((Pattern(X, f"<urn:{i}>", Y),)) for i in range(count)))

    most = join(many(8), many(MOST_BRANCHES // 8))
    assert isinstance(most, UnionOf)
    assert len(most.branches) == MOST_BRANCHES
    assert isinstance(join(many(8), many(MOST_BRANCHES // 8 + 1)), Join)


def test_a_union_is_flat_and_a_single_branch_is_itself() -> None:
    assert union([UnionOf((XY, YZ)), XY]) == UnionOf((XY, YZ, XY))
    assert union([UnionOf(()), XY]) == XY
    assert union([]) == NOTHING


def test_a_filter_goes_into_every_branch_part_by_part() -> None:
    both = Call("&&", (above("x"), Call("&&", (above("y"), above("z")))))
    assert conjuncts(both) == [above("x"), above("y"), above("z")]
    found = select(UnionOf((XY, YZ)), both)
    assert isinstance(found, UnionOf)
    steps = tuple(map(Filter, conjuncts(both)))
    assert [b.steps for b in found.branches if isinstance(b, BasicGraphPattern)] == [steps, steps]


def test_a_bind_stays_outside_where_a_filter_has_already_asked_for_its_variable() -> None:
    asked = BasicGraphPattern(XY.patterns, (Filter(Call("BOUND", (Z,))),))
    assert extend(asked, "z", Const(A)) == Extend(asked, "z", Const(A))
    first = extend(BasicGraphPattern(XY.patterns, (Filter(above("y")),)), "z", Const(A))
    assert isinstance(first, BasicGraphPattern)
    assert first.steps[0] == Bind(Const(A), Z)


def test_what_some_and_what_every_solution_binds() -> None:
    optional = LeftJoin(XY, YZ)
    assert (possible(optional), certain(optional)) == (frozenset("xyz"), frozenset("xy"))
    either = UnionOf((XY, YZ))
    assert (possible(either), certain(either)) == (frozenset("xyz"), frozenset("y"))
    computed = BasicGraphPattern(XY.patterns, (Bind(Call("STR", (Y,)), Z),))
    assert certain(computed) == frozenset("xy")
    assert certain(join(XY, fixed("w", A))) == frozenset("wxy")
    assert certain(NOTHING) == frozenset()
