"""Changes that go straight into the index: signed answers are the difference of all answers all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from unittest.mock import patch

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.budget import CHANGED, SLACK
from dotr.errors import ProgramError
from dotr.events import FOREVER, Clock
from dotr.extract.extractor import needed
from dotr.extract.full import FullQuery
from dotr.extract.printing import query_text
from dotr.extract.rewriting import visible
from dotr.joins.plan import relation_of
from dotr.lang import parse_datalog, parse_program, parse_query
from dotr.lasting.instants import watching
from dotr.lasting.model import MaintainedModel, lasting_model
from dotr.program import (
    Bind,
    Element,
    Filter,
    GroupPattern,
    Program,
    Projection,
    Select,
    TriplePattern,
    Triples,
    Var,
)
from dotr.rdf.terms import RDF_TYPE, Triple, to_oxigraph
from tests.extract.strategies import CLASSES, PREDICATES, expressions, graphs, nodes, selects

Steps = Sequence[tuple[list[Triple], list[Triple], bool]]

_steps = st.lists(st.tuples(graphs, graphs, st.booleans()), min_size=1, max_size=5)


@st.composite
def _patterns(draw: st.DrawFn) -> TriplePattern:
    if draw(st.integers(0, 4)) == 0:
        return TriplePattern(draw(nodes), RDF_TYPE, draw(st.sampled_from(CLASSES)))
    return TriplePattern(draw(nodes), draw(st.sampled_from(PREDICATES[:2])), draw(nodes))


@st.composite
def conjunctions(draw: st.DrawFn) -> Select:
    """Patterns that share relations and variables, perhaps a filter and a bind; DISTINCT, part of them."""
    elements: list[Element] = [Triples(tuple(draw(st.lists(_patterns(), min_size=1, max_size=4))))]
    if draw(st.integers(0, 2)) == 0:
        elements.append(Filter(draw(expressions())))
    if draw(st.integers(0, 3)) == 0:
        elements.append(Bind(draw(expressions()), Var("u")))
    where = GroupPattern(tuple(elements))
    scope = list(visible(where)) or ["x"]
    names = draw(st.one_of(st.just(scope), st.lists(st.sampled_from(scope), min_size=1, unique=True)))
    return Select(tuple(Projection(Var(name)) for name in names), where, draw(st.booleans()))


def _model(select: Select, start: list[Triple] = [], rules: str = "") -> MaintainedModel:  # noqa: B006  # is read only
    program = watching(Program(datalog=parse_datalog(rules)), select)
    return lasting_model(program, start, Clock(), materialize_all=False)


def _answers(select: Select, state: set[Triple]) -> Counter[tuple[str | None, ...]]:
    store = ox.Store()
    store.extend(ox.Quad(*map(to_oxigraph, triple)) for triple in sorted(state))
    return Counter(FullQuery(select).rows(store, '"0"'))


def _compare(select: Select, start: list[Triple], steps: Steps) -> None:
    """Every change, and some taken back, against asking pyoxigraph before and after."""
    model = _model(select, start)
    (asked,) = model.standing
    stated = set(start)
    before = _answers(asked, stated)
    for insert, delete, taken_back in steps:
        settled = model.change(dict.fromkeys(insert, FOREVER), delete, 0)
        now = (stated - set(delete)) | set(insert)
        after = _answers(asked, now)
        difference = Counter(after)
        difference.subtract(before)
        moved = dict(settled.differences.get(asked, ()))
        assert moved == {row: n for row, n in difference.items() if n}, query_text(select)
        if taken_back:
            settled.undo()
        else:
            stated, before = now, after
        assert model.answers(asked) == before


@given(conjunctions(), graphs, _steps)
def test_conjunctions_over_the_index_alone(select: Select, start: list[Triple], steps: Steps) -> None:
    read = needed({"Q": select})
    own = [
        ([t for t in insert if relation_of(*t) in read], [t for t in delete if relation_of(*t) in read], back)
        for insert, delete, back in steps
    ]
    wrong = AssertionError("it went through an overlay")
    with patch.object(MaintainedModel, "_through_overlay", side_effect=wrong):
        _compare(select, start, own)


@given(selects(), graphs, _steps)
def test_all_other_queries(select: Select, start: list[Triple], steps: Steps) -> None:
    _compare(select, start, steps)


WROTE = "<urn:wrote>"


def _people(*pairs: str) -> list[Triple]:
    return [(f"<urn:{a}>", WROTE, f"<urn:{b}>") for a, b in pairs]


MUTUAL = parse_query("SELECT DISTINCT ?x ?y WHERE { ?x <urn:wrote> ?y . ?y <urn:wrote> ?x }")


def test_an_answer_of_several_changed_rows_is_one() -> None:
    model = _model(MUTUAL)
    come = model.change(dict.fromkeys(_people("ab", "ba", "cc"), FOREVER), [], 0)
    (rows,) = come.differences.values()
    assert sorted(rows) == [(("<urn:a>", "<urn:b>"), 1), (("<urn:b>", "<urn:a>"), 1), (("<urn:c>",) * 2, 1)]
    gone = model.change({}, _people("ab", "ba"), 1)
    (rows,) = gone.differences.values()
    assert sorted(rows) == [(("<urn:a>", "<urn:b>"), -1), (("<urn:b>", "<urn:a>"), -1)]


@pytest.mark.parametrize(
    ("query", "rules", "through"),
    [
        ("?x <urn:wrote> ?y", "", 0),
        ("?x <urn:wrote> ?y . ?x <urn:knows> ?y", "[?x, <urn:knows>, ?y] :- [?x, <urn:met>, ?y] .", 0),
        ("?x <urn:wrote> ?y . ?x <urn:knows> ?y", "[?x, <urn:knows>, ?y] :- [?x, <urn:wrote>, ?y] .", 1),
        ("?x <urn:wrote> ?y", "[?x, <urn:wrote>, ?y] :- [?x, <urn:met>, ?y] .", 1),
        ("?x <urn:wrote> ?y", "[?x, <urn:wrote>, ?y] :- [?y, <urn:wrote>, ?x] .", 1),
        (
            "?x <urn:wrote> ?y . ?x a <urn:Mute>",
            "[?x, a, <urn:Mute>] :- [?x, <urn:met>, ?y], NOT [?x, <urn:wrote>, ?z] .",
            1,
        ),
        (
            "?x <urn:wrote> ?y . ?x <urn:times> ?n",
            "[?x, <urn:times>, ?n] :- AGGREGATE([?x, <urn:wrote>, ?y] ON ?x BIND COUNT(*) AS ?n) .",
            1,
        ),
        ("?x <urn:wrote> ?y . ?y ?p ?z", "", 1),
        ("?x <urn:wrote>+ ?y", "", 1),
        ("?x <urn:wrote> ?y . OPTIONAL { ?y <urn:wrote> ?z }", "", 1),
    ],
)
def test_what_rules_or_other_queries_make_of_a_row_goes_through_an_overlay(
    query: str, rules: str, through: int
) -> None:
    select = parse_query(f"SELECT * WHERE {{ {query} }}")
    model = _model(select, rules=rules)
    with patch.object(model, "_through_overlay", wraps=model._through_overlay) as move:
        model.change(dict.fromkeys(_people("ab"), FOREVER), [], 0)
    assert move.call_count == through


def test_what_is_asked_at_instants_goes_through_an_overlay() -> None:
    text = """HOLD <urn:wrote>
    QUERY Wrote := { SELECT ?x ?y WHERE { ?x <urn:wrote> ?y } }
    RULE Now DEFINE { dotr_n a <urn:Now> } FROM A := { SELECT ?x WHERE { ?x <urn:wrote> ?y } }
    RULE Came DEFINE { dotr_c a <urn:Came> } FROM B := ISTREAM Wrote
    """
    model = lasting_model(parse_program(text), [], Clock(), materialize_all=False)
    with patch.object(model, "_through_overlay", wraps=model._through_overlay) as move:
        model.change(dict.fromkeys(_people("ab"), FOREVER), [], 0)
    assert move.call_count == 1
    assert [len(facts) for facts in model.facts([], 1).values()] == [1]


def test_too_much_work_is_for_an_overlay_to_judge_and_changes_nothing() -> None:
    cross = "SELECT ?x WHERE { ?x <urn:wrote> ?a . ?y <urn:wrote> ?b . ?z <urn:wrote> ?c }"
    program = watching(Program(), parse_query(cross))
    pairs = [f"{a}{b}" for a in "abcdef" for b in "abc"]
    limit = (3 + CHANGED) * len(pairs) ** 3
    for budget, refused in ((limit // 8, True), (4 * limit, False), (4 * SLACK * limit, False)):
        model = lasting_model(program, [], Clock(), materialize_all=False, budget=budget)
        with patch.object(model, "_through_overlay", wraps=model._through_overlay) as move:
            if refused:
                with pytest.raises(ProgramError, match="D4132"):
                    model.change(dict.fromkeys(_people(*pairs), FOREVER), [], 0)
                assert len(model.kept) == 0
            else:
                (rows,) = model.change(dict.fromkeys(_people(*pairs), FOREVER), [], 0).differences.values()
                assert sum(n for _, n in rows) == len(pairs) ** 3
        assert move.call_count == (budget < SLACK * limit)
        (rows,) = model.change(dict.fromkeys(_people("zz"), FOREVER), [], 1).differences.values()
        assert sum(n for _, n in rows) == (1 if refused else (len(pairs) + 1) ** 3 - len(pairs) ** 3)
