"""Every shipped rule over every stream of its test file: each event has a proof that the
checker accepts, and each silence of a rule a reason that is so, literally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from dotr.events import Message
from dotr.explain import verify
from dotr.explain.proofs import Blocked, EventProof
from dotr.explain.record import Graph, History
from dotr.lang import parse_query
from dotr.program import Every, Program
from dotr.rdf.terms import RDF_TYPE
from dotr.source import Source
from dotr.testing.cases import Bench, CaseReader, Given
from dotr.testing.suite import read_suite
from tests.explain.proving import checker_of, explainer_of
from tests.explain.test_why_not import fails, nothing_there

ROOT = Path(__file__).resolve().parents[2]
SUITES = sorted([*ROOT.glob("patterns/*.test.yaml"), *ROOT.glob("examples/*/*.test.yaml")])
SHIPPED = sorted([*ROOT.glob("patterns/*.dotr"), *ROOT.glob("examples/*/*.dotr")])


def check_all(history: History) -> Counter[str]:
    """Explain every event, and every silence at every instant; how much there was of each."""
    explainer = explainer_of(history)
    checker = checker_of(history, explainer)
    found: Counter[str] = Counter()
    for event in history.events:
        checker.event(explainer.event(event))
        found["events"] += 1
    assert checker.found == []
    times = history.times()
    for rule in history.program.rules:
        asked = times
        if isinstance(rule.trigger, Every) and times:
            every = rule.trigger.duration
            asked = sorted({*times, *range(-(-times[0] // every) * every, times[-1] + 1, every)})
        for time in asked:
            for one in explainer.why_not(rule.name, time, {}):
                if isinstance(one, Blocked):
                    assert fails(checker, one), one
                elif not isinstance(one, EventProof):
                    assert nothing_there(checker, one), one
                found[type(one).__name__] += 1
    return found


def stated(program: Program, given: Given) -> Program:
    """The program with queries that find the facts which a case gives without any graph."""
    names = {name for facts in given.facts.values() for name in facts}
    queries = dict(program.queries)
    for name in names:
        variables = program.queries[name].variables
        parts = "".join(f" OPTIONAL {{ ?fact <urn:{v}> ?{v} }}" for v in variables)
        chosen = " ".join(f"?{v}" for v in variables)
        queries[name] = parse_query(
            f"SELECT {chosen} WHERE {{ ?fact a <urn:fact:{name}>{parts} }}", prefixes={}
        )
    return replace(program, queries=queries)


def graphs_of(given: Given, program: Program) -> Iterator[Graph]:
    """The messages of a case; facts as triples of a graph of their time."""
    number = 0
    for one in given.stream:
        facts = given.facts.get(one.time)
        if facts is None or isinstance(one.part, Message):
            yield Graph(one.time, one.part, one.place)
            continue
        triples = list(one.part)
        for name, found in facts.items():
            for _, values, _, _ in found:
                number += 1
                fact = f"<urn:fact:{number}>"
                triples.append((fact, RDF_TYPE, f"<urn:fact:{name}>"))
                pairs = zip(program.queries[name].variables, values, strict=True)
                triples += [(fact, f"<urn:{v}>", term) for v, term in pairs if term is not None]
        yield Graph(one.time, triples, one.place)


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name.removesuffix(".test.yaml"))
def test_the_cases_of_a_shipped_rule_are_explained(suite: Path) -> None:
    if suite.parent.name == "citybench":
        pytest.skip("its cases are of the data, in tests/citybench")
    bench = Bench(read_suite(Source(str(suite), suite.read_text(encoding="utf-8"))))
    total: Counter[str] = Counter()
    for case in bench.suite.cases:
        given = CaseReader(bench, case).given()
        history = History(stated(bench.program, given), bench.background)
        history.reach = verify.EVERYTHING
        history.run(graphs_of(given, bench.program), partial(getattr, given, "clock"))
        total += check_all(history)
    assert total["events"] > 0
    assert total["Blocked"] + total["NoTrigger"] > 0


def test_every_shipped_rule_has_cases() -> None:
    tested = {path.name.removesuffix(".test.yaml") for path in SUITES}
    assert {path.stem for path in SHIPPED} - tested == {"libraries"}  # by test_why_not and test_proofs
