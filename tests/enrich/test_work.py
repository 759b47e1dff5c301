"""What an instant costs, counted in rows looked at: its own triples, whatever stands around them."""

from __future__ import annotations

import pytest

from dotr.enrich.materialiser import Materialiser
from dotr.joins.code import compile_plan
from dotr.joins.plan import delta_views, plan, triple_pattern
from dotr.program import DatalogRule, Var
from dotr.rdf.terms import RDF_TYPE, Triple
from tests.enrich.programs import aggregate, no, rule, term

_IN = rule("?a in ?b", "?a at ?c", "?c in ?b")
_HOT = rule("?o hot ?r", "?o reading ?s", "?s in ?r")


def house(sensors: int, padding: int) -> list[Triple]:
    """Sensors at objects in rooms, two objects a room, and triples about other things."""
    found: list[Triple] = []
    for n in range(sensors):
        found.append((term(f"sensor{n}"), term("at"), term(f"object{n % (sensors // 2 or 1)}")))
    for n in range(sensors // 2 or 1):
        found.append((term(f"object{n}"), term("in"), term(f"room{n // 2}")))
    found += [(term(f"x{n}"), term("pad"), term(f"y{n % 97}")) for n in range(padding)]
    found += [(term(f"x{n}"), term("in"), term(f"elsewhere{n % 97}")) for n in range(padding // 2)]
    return found


def visits(
    rules: list[DatalogRule], background: list[Triple], graphs: list[list[Triple]], **more: object
) -> int:
    """Rows looked at by rules and by a query for hot rooms, over all graphs."""
    materialiser = Materialiser(rules, background, counting=True, **more)  # type: ignore[arg-type]  # needed=
    store = materialiser.store
    items = [triple_pattern(Var("o"), term("hot"), Var("r")), triple_pattern(Var("s"), term("in"), Var("r"))]
    query = compile_plan(
        plan(items, [Var("o")], store, views=delta_views(items, 0), first=0, as_set=True), store
    )
    store.visits[0] = 0
    answers: list[tuple[str, ...]] = []
    for graph in graphs:
        materialiser.instant(graph)
        query(answers.append)
        materialiser.forget()
    assert len(answers) == len(graphs)
    return store.visits[0]


def _reading(sensor: int) -> list[list[Triple]]:
    return [[(term("o1"), term("reading"), term(f"sensor{sensor}"))]]


def test_one_triple_over_a_hundred_thousand_visits_a_handful_of_rows() -> None:
    assert visits([_IN, _HOT], house(20, 66_000), _reading(3)) < 20


@pytest.mark.parametrize("needed", [None, (term("hot"), term("in"))])
def test_work_does_not_grow_with_the_background(needed: tuple[str, ...] | None) -> None:
    small = visits([_IN, _HOT], house(10, 100), _reading(3), needed=needed)
    large = visits([_IN, _HOT], house(10, 20_000), _reading(3), needed=needed)
    assert large == small


@pytest.mark.parametrize("needed", [None, (term("hot"), term("in"))])
def test_work_does_not_grow_with_rules_that_nothing_wakes(needed: tuple[str, ...] | None) -> None:
    others = [rule(f"?a r{n} ?b", f"?a s{n} ?c", f"?c t{n} ?b") for n in range(2_000)]
    one = visits([_IN, _HOT], house(10, 100), _reading(3), needed=needed)
    assert visits([_IN, _HOT, *others], house(10, 100), _reading(3), needed=needed) == one


def test_instants_leave_nothing_behind() -> None:
    one = visits([_IN, _HOT], house(10, 100), _reading(3))
    assert visits([_IN, _HOT], house(10, 100), _reading(3) * 10) == 10 * one


def test_switching_off_a_conclusion_costs_its_own_rows_only() -> None:
    rules = [rule("?r a Quiet", "?r a Room", no("?r noise ?n"))]
    rooms = [(term(f"room{n}"), RDF_TYPE, term("Room")) for n in range(5_000)]
    materialiser = Materialiser(rules, rooms, counting=True)
    materialiser.store.visits[0] = 0
    materialiser.instant([(term("room7"), term("noise"), term("n"))])
    assert materialiser.store.visits[0] < 10
    assert len(list(materialiser.state())) == 2 * 5_000


def test_a_new_member_counts_its_own_group_again_and_no_other() -> None:
    rules = [rule("?r load ?n", aggregate("r", "COUNT", "p", "n", "?p in ?r"))]
    people = [(term(f"p{n}"), term("in"), term(f"room{n // 10}")) for n in range(5_000)]
    materialiser = Materialiser(rules, people, counting=True)
    materialiser.store.visits[0] = 0
    materialiser.instant([(term("guest"), term("in"), term("room7"))])
    assert materialiser.store.visits[0] < 30
    assert (term("room7"), term("load"), term("11")) in set(materialiser.state())
    assert (term("room7"), term("load"), term("10")) not in set(materialiser.state())
