"""K(t) of the materialiser is the naive closure of background and instant; forgetting undoes the instant."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dotr.enrich.materialiser import Materialiser
from dotr.enrich.rules import check_rules
from dotr.errors import Severity
from dotr.joins.plan import atom_variables, holding
from dotr.program import AggregateAtom, Atom, BindAtom, BodyAtom, DatalogRule, FilterAtom, NotAtom, Var
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.reference.enrich import closure
from tests.enrich.programs import aggregate, call, term

_NODES = [term(word) for word in ("n1", "n2", "1")]
_LEVELS = [("p", "q", "A", "B"), ("r", "C"), ("s", "D")]
_PREDICATES = {"p", "q", "r", "s"}


def _triples(names: tuple[str, ...]) -> st.SearchStrategy[Triple]:
    subject, object_ = st.sampled_from(_NODES[:2]), st.sampled_from(_NODES)
    options = [
        st.tuples(subject, st.just(term(n)), object_)
        if n in _PREDICATES
        else st.tuples(subject, st.just(RDF_TYPE), st.just(term(n)))
        for n in names
    ]
    return st.one_of(options)


_ALL = tuple(name for level in _LEVELS for name in level)
_graphs = st.sets(_triples((*_LEVELS[0], *_ALL)), min_size=2, max_size=10)


@st.composite
def _atoms(draw: st.DrawFn, names: Sequence[str], variables: Sequence[str], loose: bool = False) -> Atom:
    """A pattern over one of the relations, with variables if there are some to be had."""
    name = draw(st.sampled_from(names))
    node = st.sampled_from([*map(Var, variables)] * 4 + _NODES[:2])
    subject, object_ = draw(node), draw(node)
    if loose and variables and draw(st.integers(0, 5)) == 0:
        return Atom(subject, Var(draw(st.sampled_from(variables))), object_)
    if loose and variables and draw(st.integers(0, 7)) == 0:
        return Atom(subject, RDF_TYPE, Var(draw(st.sampled_from(variables))))
    if name in _PREDICATES:
        return Atom(subject, term(name), object_)
    return Atom(subject, RDF_TYPE, term(name))


@st.composite
def _rules(draw: st.DrawFn, loose: bool) -> DatalogRule:
    """A safe rule: its atoms of the head's level or below, its NOT and AGGREGATE below."""
    level = draw(st.integers(0, 2))
    here = [n for names in _LEVELS[: level + 1] for n in names]
    below = [n for names in _LEVELS[:level] for n in names]
    body: list[BodyAtom] = list(draw(st.lists(_atoms(here, "xyz", loose), min_size=1, max_size=2)))
    bound = {v for item in body if isinstance(item, Atom) for v in atom_variables(item)}
    if below and draw(st.integers(0, 2)) == 0:
        body.append(draw(_aggregates(below)))
        bound |= {v.name for v in body[-1].group} | {"n"}  # type: ignore[union-attr]  # an aggregate
    names = sorted(bound)
    if below and draw(st.booleans()):
        body.append(NotAtom(draw(_atoms(below, [*names, "u"]))))
    if names and draw(st.integers(0, 3)) == 0:
        pair = [Var(draw(st.sampled_from(names))) for _ in range(2)]
        body.append(FilterAtom(call(draw(st.sampled_from(["=", "!="])), *pair)))
    if names and level and draw(st.integers(0, 4)) == 0:
        body.append(BindAtom(call("STR", Var(draw(st.sampled_from(names)))), Var("b")))
        names.append("b")
    heads = draw(st.lists(_atoms(_LEVELS[level], names, loose), min_size=1, max_size=2))
    return DatalogRule(tuple(heads), tuple(draw(st.permutations(body))))


@st.composite
def _aggregates(draw: st.DrawFn, below: Sequence[str]) -> AggregateAtom:
    inner: list[BodyAtom] = [draw(_atoms(below, "xg")), Atom(Var("g"), term("q"), Var("m"))]
    if draw(st.booleans()):
        inner.append(NotAtom(draw(_atoms(below[:4], "gmu"))))
    function = draw(st.sampled_from(["COUNT", "SUM", "MAX"]))
    argument = draw(st.sampled_from(["g", "m", None])) if function == "COUNT" else draw(st.sampled_from("gm"))
    return aggregate(draw(st.sampled_from(["g", "", "m", "g m"])), function, argument, "n", *inner)


@st.composite
def _programs(draw: st.DrawFn) -> list[DatalogRule]:
    """Rules that pass the checks; about one in four programs has variable predicates and classes."""
    loose = draw(st.integers(0, 3)) == 0
    rules: list[DatalogRule] = []
    for rule in draw(st.lists(_rules(loose), min_size=1, max_size=6)):
        if not any(d.severity is Severity.ERROR for d in check_rules([*rules, rule])):
            rules.append(rule)
    return rules


def _shown(rules: list[DatalogRule]) -> str:
    return "\n".join(map(str, rules))


@given(_programs(), _graphs, st.lists(_graphs, min_size=1, max_size=3))
def test_every_instant_is_the_closure_of_background_and_graph(
    rules: list[DatalogRule], background: set[Triple], instants: list[set[Triple]]
) -> None:
    materialiser = Materialiser(rules, sorted(background))
    closed = closure(rules, background)
    assert set(materialiser.background) == closed, _shown(rules)
    for graph in instants:
        materialiser.instant(sorted(graph))
        state = list(materialiser.state())
        assert len(state) == len(set(state))
        expected = closure(rules, background | graph)
        assert set(state) == expected, (
            f"{_shown(rules)}\nmissing {expected - set(state)}\nextra {set(state) - expected}"
        )
        materialiser.forget()
        assert set(materialiser.state()) == closed


@given(_programs(), _graphs, _graphs, st.sets(st.sampled_from(_ALL), max_size=2))
def test_pruned_to_some_relations_these_are_the_same(
    rules: list[DatalogRule], background: set[Triple], graph: set[Triple], names: set[str]
) -> None:
    needed = {term(n) if n in _PREDICATES else "a " + term(n) for n in names}
    materialiser = Materialiser(rules, sorted(background), needed=needed)
    materialiser.instant(sorted(graph))
    expected = {t for t in closure(rules, background | graph) if needed.intersection(holding(t))}
    assert {t for t in materialiser.state() if needed.intersection(holding(t))} == expected, _shown(rules)
