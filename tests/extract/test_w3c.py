"""The W3C query evaluation tests, with the data as background and as one stream graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pyoxigraph as ox
import pytest

from dotr.budget import Meter
from dotr.enrich.materialiser import Materialiser
from dotr.errors import ProgramError, Severity
from dotr.events import Values
from dotr.extract.algebra import Uncompiled, reached, relations_of, translate
from dotr.extract.full import FullQuery, base_of
from dotr.extract.interpreter import InterpretedQuery
from dotr.extract.printing import query_text
from dotr.extract.query import Query
from dotr.lang import parse_query
from dotr.program import Select
from dotr.rdf.terms import to_oxigraph
from dotr.reference.enrich import LiteralEnricher
from tests.extract.exclusions import EXCLUDED, RULED_OUT
from tests.extract.manifests import Answers, Case, cases, expected, same_solutions, solution, triples

NOW = '"2026-01-01T08:00:12Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


@cache
def evaluation_cases(root: Path) -> tuple[Case, ...]:
    """SELECT and ASK over one default graph, by what the manifests say."""
    return tuple(
        case
        for case in cases(root / "w3c" / "sparql")
        if case.kind == "QueryEvaluationTest" and not case.named_graphs and not case.entailment
    )


def parsed(case: Case) -> Select | None:
    """The query, or None if the contract rules it out. Fails if it is refused for any other reason."""
    try:
        return parse_query(case.query.read_text(encoding="utf-8"), case.id, base=case.base)
    except ProgramError as refusal:
        codes = {d.code for d in refusal.diagnostics if d.severity is Severity.ERROR}
        if not codes <= set(RULED_OUT):
            raise
        return None


def full_answers(case: Case, select: Select, where: str) -> Answers:
    """By the full engine over K(t)."""
    data = triples(case.data)
    enricher = LiteralEnricher((), data if where == "background" else ())
    store = enricher.open(data if where == "stream" else ())
    full = FullQuery(select)
    if select.ask:
        return Answers(full.ask(store, NOW))
    return found(select, full.solutions(store, NOW))


def compiled_answers(case: Case, select: Select, where: str) -> Answers | None:
    """By the compiled engine; None if it does not run the query."""
    translated = translate(select)
    if isinstance(translated.core, Uncompiled):
        return None
    data = triples(case.data)
    materialiser = Materialiser((), data if where == "background" else (), needed=reached(select))
    store = materialiser.store
    store.moment.now = NOW
    query = Query(translated, store)
    materialiser.instant(data if where == "stream" else ())
    rows = query.solutions()
    return Answers(bool(rows)) if select.ask else found(select, rows)


def interpreted_answers(case: Case, select: Select, where: str) -> Answers:
    """With nothing compiled."""
    data = triples(case.data)
    materialiser = Materialiser((), data if where == "background" else (), needed=relations_of(select))
    store = materialiser.store
    store.moment.now = NOW
    query = InterpretedQuery(select, store, Meter())
    materialiser.instant(data if where == "stream" else ())
    rows = query.solutions()
    return Answers(bool(rows)) if select.ask else found(select, rows)


def found(select: Select, rows: Sequence[Values]) -> Answers:
    return Answers(solutions=tuple(solution(select.variables, row) for row in rows))


def passes(found: Answers, wanted: Answers) -> bool:
    if wanted.boolean is not None:
        return found.boolean is wanted.boolean
    if not same_solutions(found.solutions, wanted.solutions):
        return False
    return not wanted.ordered or _unlabelled(found.solutions) == _unlabelled(wanted.solutions)


def _unlabelled(rows: Sequence[frozenset[tuple[str, str]]]) -> list[frozenset[tuple[str, str]]]:
    return [frozenset((n, "_" if t.startswith("_:") else t) for n, t in row) for row in rows]


def baseline(case: Case) -> bool:
    """Whether pyoxigraph alone passes, asked the test's own text."""
    store = ox.Store()
    store.extend(ox.Quad(*map(to_oxigraph, triple)) for triple in triples(case.data))
    found = store.query(case.query.read_text(encoding="utf-8"), base_iri=case.base)
    if isinstance(found, ox.QueryBoolean):
        return passes(Answers(bool(found)), expected(case))
    names = [v.value for v in found.variables]
    return passes(Answers(solutions=tuple(solution(names, tuple(row)) for row in found)), expected(case))


@pytest.mark.parametrize("where", ["background", "stream"])
@pytest.mark.parametrize(
    ("engine", "least"), [(full_answers, 400), (compiled_answers, 300), (interpreted_answers, 400)]
)
def test_w3c_queries_have_the_answers_of_the_standard(
    data: Path, engine: Callable[[Case, Select, str], Answers | None], least: int, where: str
) -> None:
    failed, ran = [], 0
    for case in evaluation_cases(data):
        select = parsed(case)
        if select is None or case.id in EXCLUDED:
            continue
        answers = engine(case, select, where)
        if answers is None:
            continue
        ran += 1
        if not passes(answers, expected(case)):
            failed.append(case.id)
    assert failed == []
    assert ran > least


def test_no_exclusion_is_passed_by_the_full_engine_alone(data: Path) -> None:
    by_id = {case.id: case for case in evaluation_cases(data)}
    assert set(EXCLUDED) <= set(by_id)
    assert [name for name in EXCLUDED if baseline(by_id[name])] == []


def test_printing_and_parsing_again_gives_the_same_tree(data: Path) -> None:
    prefixes = {"": "http://example.org/", "xsd": "http://www.w3.org/2001/XMLSchema#"}
    for case in evaluation_cases(data):
        select = parsed(case)
        if select is not None:
            base = base_of(select)
            base = None if base is None else base[1:-1]
            assert parse_query(query_text(select), base=base) == select, case.id
            assert parse_query(query_text(select, prefixes), prefixes=prefixes, base=base) == select, case.id
