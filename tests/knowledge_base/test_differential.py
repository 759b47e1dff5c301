"""Whatever happens to a knowledge base, it holds the closure of what is stated; what it says changed, did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr import DataError, KnowledgeBase, ProgramError
from dotr.enrich import maintenance
from dotr.enrich.owl import list_rules
from dotr.knowledge_base import model
from dotr.knowledge_base.model import form, shipped_rules
from dotr.lang import parse_datalog
from dotr.lang.printer import datalog_rule_text
from dotr.program import DatalogRule
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.reference.enrich import closure, contradictions
from tests.enrich.programs import term
from tests.enrich.test_materialiser import _graphs, _programs

E = "http://example.org/"
QUERIES = (
    f"SELECT ?x ?y {{ ?x <{E}p> ?y }}",
    f"SELECT DISTINCT ?x {{ ?x <{E}r> ?y . ?y a ?c }}",
    "SELECT ?c (COUNT(?x) AS ?n) { ?x a ?c } GROUP BY ?c",
    f"SELECT ?x {{ ?x a <{E}A> FILTER NOT EXISTS {{ ?x <{E}q> ?y }} }}",
    f"SELECT ?x ?z {{ ?x <{E}p>+ ?y OPTIONAL {{ ?y <{E}s> ?z }} }}",
    "SELECT ?s ?o { ?s ?p ?o } ORDER BY ?o LIMIT 3",
    f"ASK {{ ?x a <{E}D> }}",
)


@dataclass
class Twin:
    """A knowledge base, and beside it what is stated, as sets, and which rules hold."""

    kb: KnowledgeBase
    entailment: str = "none"
    rules: dict[str, DatalogRule] = field(default_factory=dict)
    stated: dict[Triple, int | None] = field(default_factory=dict)
    now: int = 0

    def __post_init__(self) -> None:
        self.watches = [self.kb.watch(query) for query in QUERIES]
        self.before = set(self.kb)
        self.answers = [Counter(watch.answers.rows) for watch in self.watches]

    def all_rules(self, stated: Sequence[Triple]) -> list[DatalogRule]:
        lists = list_rules(stated) if self.entailment == "owl2rl" else ()
        return [*self.rules.values(), *shipped_rules(self.entailment), *lists]

    def update(
        self,
        insert: set[Triple],
        delete: set[Triple],
        add: Sequence[DatalogRule],
        remove: Sequence[DatalogRule],
        until: int | None,
    ) -> None:
        rules = {key: rule for key, rule in self.rules.items() if key not in set(map(form, remove))}
        for rule in add:
            rules.setdefault(form(rule), rule)
        stated = {triple: end for triple, end in self.stated.items() if triple not in delete}
        for triple in insert:
            end = stated.get(triple, until)
            stated[triple] = None if end is None or until is None else max(end, until)
        held, self.rules = self.rules, rules
        text = "\n".join(datalog_rule_text(rule, {}) for rule in add)
        gone = "\n".join(datalog_rule_text(rule, {}) for rule in remove)
        try:
            change = self.kb.update(
                sorted(insert), sorted(delete), add_rules=text, remove_rules=gone, until=until
            )
        except (ProgramError, DataError):
            assert self._refusable(list(stated)), "it was refused for no reason"
            self.rules = held
            self.check_unchanged()
            return
        assert change.useless_deletes == len(delete - self.stated.keys())
        self.stated = stated
        self.check(change)

    def _refusable(self, stated: Sequence[Triple]) -> bool:
        try:
            rules = self.all_rules(stated)
            return bool(contradictions(rules, closure(rules, stated)))
        except (ProgramError, DataError):
            return True

    def advance(self, step: int) -> None:
        self.now += step
        left = {triple: end for triple, end in self.stated.items() if end is None or end > self.now}
        try:
            change = self.kb.advance(self.now)
        except DataError:
            assert self._refusable(list(left))
            self.now -= step
            self.check_unchanged()
            return
        self.stated = left
        self.check(change)

    def check_unchanged(self) -> None:
        assert set(self.kb) == self.before
        assert set(self.kb.triples(which="stated")) == self.stated.keys()

    def check(self, change: object) -> None:
        rules = self.all_rules(list(self.stated))
        expected = closure(rules, list(self.stated))
        state = set(self.kb)
        assert state == expected, f"missing {expected - state}\nextra {state - expected}\n{self.rules.keys()}"
        assert len(self.kb) == len(expected)
        assert set(change.added) == expected - self.before
        assert set(change.removed) == self.before - expected
        assert list(change.added) == sorted(change.added)
        assert set(self.kb.triples(which="stated")) == self.stated.keys()
        fresh = KnowledgeBase(sorted(expected), terms="canonical", contradictions="keep")
        for number, watch in enumerate(self.watches):
            answers = Counter(self.kb.query(QUERIES[number]).rows if watch.variables else watch.answers.rows)
            wanted = (
                fresh.query(QUERIES[number]).rows if watch.variables else [()] * fresh.ask(QUERIES[number])
            )
            assert answers == Counter(wanted), QUERIES[number]
            moved: Counter[tuple[str, ...]] = Counter()
            for row, count in change.of(watch):
                assert count, "a change that changes nothing"
                moved[tuple(row)] += count
            answers.subtract(self.answers[number])
            assert {row: n for row, n in answers.items() if n} == dict(moved), QUERIES[number]
            self.answers[number] = Counter(watch.answers.rows)
        self.before = expected

    def reopen(self) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder, "saved.kb")
            with mock.patch("dotr.rdf.index.LARGE", len(self.kb) % 2 * 1_000):  # in half of all, mapped
                self.kb.save(path)
            self.kb = KnowledgeBase.open(path, terms="canonical")
        self.watches = [self.kb.watch(query) for query in QUERIES]
        self.check_unchanged()


_steps = st.one_of(
    st.tuples(st.just("update"), _graphs, _graphs, st.none() | st.integers(1, 4)),
    st.tuples(st.just("insert"), _graphs, st.none() | st.integers(1, 4)),
    st.tuples(st.just("rules"), _programs(), st.sets(st.integers(0, 5), max_size=2)),
    st.tuples(st.just("no rules")),
    st.tuples(st.just("advance"), st.integers(0, 3)),
    st.tuples(st.just("reopen")),
)


def _run(twin: Twin, steps: Sequence[tuple[object, ...]]) -> None:
    for step in steps:
        match step:
            case ("update", insert, delete, ahead):
                twin.update(insert, delete, (), (), None if ahead is None else twin.now + ahead)  # type: ignore[operator]
            case ("insert", insert, ahead):
                twin.update(insert, set(), (), (), None if ahead is None else twin.now + ahead)  # type: ignore[operator]
            case ("rules", rules, places):
                known = list(twin.rules.values())
                gone = [known[place] for place in sorted(places) if place < len(known)]  # type: ignore[operator]
                twin.update(set(), set(), rules, gone, None)  # type: ignore[arg-type]
            case ("no rules",):
                twin.update(set(), set(), (), list(twin.rules.values()), None)
            case ("advance", steps_):
                twin.advance(steps_)  # type: ignore[arg-type]
            case ("reopen",):
                twin.reopen()


@pytest.fixture(scope="module", params=["maintained", "as it is worth"])
def small(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether changes of rules and schema are maintained where recomputation is cheap, too."""
    maintained = request.param == "maintained"
    with (
        patch.object(model, "_WORTH", 0 if maintained else model._WORTH),
        patch.object(maintenance, "_FEW", maintenance._FEW if maintained else -1),  # the end of most, too
        patch.object(maintenance, "_OF_A_RULE", 0),
    ):
        yield


@pytest.mark.usefixtures("small")
@given(_programs(), st.lists(_steps, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_after_every_transaction_holds_the_closure_of_what_is_stated(
    rules: list[DatalogRule], steps: list[tuple[object, ...]]
) -> None:
    kb = KnowledgeBase(terms="canonical")
    twin = Twin(kb)
    twin.update(set(), set(), rules, (), None)
    _run(twin, steps)


_WORDS = ["Room", "Place", "Cold", "Hot"]
_THINGS = [term(name) for name in ("a", "b", "c")]
_vocabulary = st.one_of(
    st.tuples(st.sampled_from(_THINGS), st.just(RDF_TYPE), st.sampled_from(_WORDS).map(term)),
    st.tuples(st.sampled_from(_THINGS), st.sampled_from(["in", "near", "sameAs"]).map(term),
              st.sampled_from(_THINGS)),
    st.tuples(st.sampled_from(_THINGS), st.sampled_from(["in", "near"]).map(term), st.sampled_from(_THINGS)),
    st.tuples(st.sampled_from(_WORDS).map(term), st.sampled_from(["sco", "equivalent"]).map(term),
              st.sampled_from(_WORDS).map(term)),
    st.tuples(st.sampled_from(["in", "near"]).map(term), st.sampled_from(["domain", "range"]).map(term),
              st.sampled_from(_WORDS).map(term)),
    st.tuples(st.sampled_from(["in", "near"]).map(term), st.just(RDF_TYPE),
              st.sampled_from(["Transitive", "Functional"]).map(term)),
    st.just((term("Cold"), "<http://www.w3.org/2002/07/owl#disjointWith>", term("Hot"))),
    st.just((term("in"), term("spo"), term("near"))),
)  # fmt: skip
_worlds = st.sets(_vocabulary, max_size=7)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("entailment", ["rdfs", "owl2rl"])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_under_an_entailment_facts_and_schema_come_and_go(entailment: str, data: st.DataObject) -> None:
    twin = Twin(KnowledgeBase(entailment=entailment, terms="canonical"), entailment)
    for number in range(data.draw(st.integers(1, 5))):
        delete = (
            data.draw(st.sets(st.sampled_from(sorted(twin.stated)), max_size=3)) if twin.stated else set()
        )
        until = data.draw(st.none() | st.integers(twin.now + 1, twin.now + 3))
        rules = data.draw(st.sampled_from(_RULES))
        twin.update(data.draw(_worlds), delete, *rules, until)
        if number == 1:
            twin.reopen()
        if data.draw(st.booleans()):
            twin.advance(1)


_ALONE = parse_datalog(f"[?x, a, <{E}Alone>] :- [?x, a, <{E}Place>], NOT [?x, <{E}near>, ?x] .")
_BACK = parse_datalog(f"[?y, <{E}near>, ?x] :- [?x, <{E}near>, ?y] .")
_RULES = [((), ()), (_ALONE, ()), ((), _ALONE), (_BACK, ()), (_BACK, _ALONE), ((), _BACK)]
