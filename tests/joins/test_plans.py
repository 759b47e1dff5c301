"""Generated code, the walk over the plan, and trying every assignment agree."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dotr.codegen import Names, source_of
from dotr.explain.derivations import walk
from dotr.joins.code import AnySolution, compile_plan
from dotr.joins.plan import (
    BodyPattern,
    View,
    bound_by,
    delta_views,
    describe,
    plan,
    triple_pattern,
    withdrawn_views,
)
from dotr.joins.store import TripleIndex
from dotr.program import Var
from dotr.rdf.index import Background
from tests.joins import bodies as b


def run(the_plan, store, values=()):  # type: ignore[no-untyped-def]  # a helper of this file
    rows: list[tuple[str, ...]] = []
    compile_plan(the_plan, store)(rows.append, *values)
    return rows


@given(st.data())
def test_generated_code_and_walk_give_what_trying_everything_gives(data: st.DataObject) -> None:
    items, store = data.draw(b.bodies()), data.draw(b.stores())
    views = b.views_for(data.draw, items)
    absent = data.draw(st.sampled_from([View.OLD, View.NEW]))
    outputs = [Var(name) for name in sorted(bound_by(items))]
    expected = Counter(b.brute_force(items, views, absent, outputs, store))
    for sizes in (store, b.UNKNOWN):
        the_plan = plan(items, outputs, sizes, views=views, absent_view=absent)
        assert Counter(walk(the_plan, store)) == expected, describe(the_plan)
        assert Counter(run(the_plan, store)) == expected, describe(the_plan)
        assert compile_plan(the_plan, store, AnySolution())() == bool(expected)


@given(st.data())
def test_as_a_set_every_solution_is_found_at_least_once(data: st.DataObject) -> None:
    items, store = data.draw(b.bodies()), data.draw(b.stores())
    bound = sorted(bound_by(items))
    outputs = [
        Var(name)
        for name in data.draw(st.lists(st.sampled_from(bound), unique=True) if bound else st.just([]))
    ]
    expected = set(b.brute_force(items, {}, View.NEW, outputs, store))
    the_plan = plan(items, outputs, store, as_set=True)
    assert set(run(the_plan, store)) == expected, describe(the_plan)
    assert set(walk(the_plan, store)) == expected, describe(the_plan)


@given(st.data())
def test_old_all_split_finds_every_new_solution_once(data: st.DataObject) -> None:
    """Answers now = answers of the background − withdrawn + new ones, as multisets."""
    store = data.draw(b.stores())
    items = data.draw(st.lists(b.patterns, min_size=1, max_size=3))
    outputs = [Var(name) for name in sorted(bound_by(items))]
    old = Counter(run(plan(items, outputs, store, view=View.OLD), store))
    now = Counter(run(plan(items, outputs, store, view=View.NEW), store))
    gained: Counter[tuple[str, ...]] = Counter()
    lost: Counter[tuple[str, ...]] = Counter()
    for place in range(len(items)):
        gained.update(run(plan(items, outputs, store, views=delta_views(items, place), first=place), store))
        lost.update(run(plan(items, outputs, store, views=withdrawn_views(items, place), first=place), store))
    assert not lost - old
    assert old - lost + gained == now
    assert not set(old - lost) & set(gained)


@given(st.data())
def test_triggered_by_a_row_or_given_values(data: st.DataObject) -> None:
    items, store = data.draw(b.bodies()), data.draw(b.stores())
    places = [i for i, item in enumerate(items) if isinstance(item, BodyPattern)]
    place = data.draw(st.sampled_from(places))
    trigger = items[place]
    assert isinstance(trigger, BodyPattern)
    rest = items[:place] + items[place + 1 :]
    outputs = [Var(name) for name in sorted(bound_by(items))]
    triggered = plan(rest, outputs, store, trigger=trigger)
    found: Counter[tuple[str, ...]] = Counter()
    for row in store.find(trigger.relation, [None] * len(trigger.columns), View.NEW):
        rows = run(triggered, store, row)
        assert Counter(rows) == Counter(walk(triggered, store, row))
        found.update(rows)
    expected = Counter(b.brute_force(items, {}, View.NEW, outputs, store))
    assert found == expected
    names = sorted(bound_by(items))
    bound = plan(items, outputs, store, given=names)
    for values in expected:
        assert run(bound, store, values) == [values] == walk(bound, store, values)


def test_long_plans_go_on_in_a_second_function() -> None:
    nodes = [f"<{n}>" for n in range(3)]
    background = Background((a, "<p>", c) for a in nodes for c in nodes[:2])
    store = TripleIndex(background)
    chain = [triple_pattern(Var(f"x{i}"), "<p>", Var(f"x{i + 1}")) for i in range(11)]
    branches = [triple_pattern(Var("x0"), "<p>", Var(f"y{i}")) for i in range(12)]
    the_plan = plan([*chain, *branches[:1]], [Var("x11")], store)
    assert len(run(the_plan, store)) == 3 * 2**12
    wide = plan([*chain, *branches], [Var("x11")], store)
    function = compile_plan(wide, store, AnySolution())
    assert "REST" in source_of(function)
    assert function()


def test_no_constant_of_a_user_is_part_of_the_source() -> None:
    evil = "<http://example.org/');import_os(' \n>"
    store = TripleIndex(Background([(evil, evil, evil)]))
    the_plan = plan([triple_pattern(evil, evil, Var("x"))], [Var("x"), evil], store)
    assert "import_os" not in source_of(compile_plan(the_plan, store))
    assert run(the_plan, store) == [(evil, evil)]


def test_functions_of_one_shape_share_their_code() -> None:
    store = TripleIndex(Background([("<a>", "<p>", "<b>"), ("<a>", "<q>", "<c>")]))
    first, second = (
        compile_plan(plan([triple_pattern("<a>", p, Var("x"))], [Var("x")], store), store)
        for p in ("<p>", "<q>")
    )
    assert first.__code__ is second.__code__


def test_plan_prints_itself() -> None:
    store = TripleIndex(Background([("<a>", "<in>", "<b>")]))
    body = [triple_pattern(Var("c"), "<in>", Var("b"))]
    trigger = triple_pattern(Var("a"), "<at>", Var("c"))
    assert isinstance(trigger, BodyPattern)
    assert describe(plan(body, [Var("a"), Var("b")], store, trigger=trigger)) == (
        "when ?a <at> ?c\n  find ?c <in> ?b   [by subject, now]\n  → ?a ?b"
    )


def test_planner_looks_up_the_rarest_bound_pattern_first() -> None:
    rooms = [(f"<d{n}>", "<in>", "<room>") for n in range(100)]
    kinds = [(f"<d{n}>", "<kind>", f"<k{n}>") for n in range(100)]
    store = TripleIndex(Background(rooms + kinds))
    room, kind = triple_pattern(Var("d"), "<in>", Var("r")), triple_pattern(Var("d"), "<kind>", Var("k"))
    assert plan([room, kind], [Var("d")], store, given=["r", "k"]).steps[0].pattern is kind  # type: ignore[union-attr]  # a probe


def test_a_name_given_to_another_object_is_not_found_again_for_a_new_one_at_the_same_place() -> None:
    names = Names()
    stand_in = object()
    for _ in range(100):
        made = [object()]
        name = names.bind(made, "F")
        assert names.namespace[name] is made
        names.namespace[name] = stand_in
