"""What the page `owl2rl` of the manual says of each rule of the W3C's tables is what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pyoxigraph
import pytest

import dotr
from dotr import KnowledgeBase
from dotr.enrich.owl import instantiable, list_rules
from dotr.io.python_values import triples_of
from dotr.knowledge_base import ContradictionError
from dotr.knowledge_base.model import shipped_rules
from tests.knowledge_base.owl2rl_cases import CASES

PREFIXES = {
    "": "http://e/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
PAGE = Path(dotr.__file__).parent / "docs" / "owl2rl.md"
ROW = re.compile(r"^\| ([a-z]+-[a-z0-9-]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)
SAID = {
    name: (here.strip(), how.strip()) for name, here, how in ROW.findall(PAGE.read_text(encoding="utf-8"))
}
ALL = [(name, *case) for table in CASES.values() for name, case in table.items()]
WORDS = ("yes", "run time", "option", "left out")


def test_the_page_has_every_rule_of_the_tables_in_their_order() -> None:
    assert list(SAID) == [name for name, _, _ in ALL]
    assert len(SAID) == 78
    assert {here for here, _ in SAID.values()} == set(WORDS)
    assert all(how for here, how in SAID.values() if here == "left out"), "a rule is left out for a reason"


def follows(premises: str, conclusion: str, rule: str, datatypes: bool) -> bool:
    """Whether the premises have the conclusion, or contradict themselves by that rule."""
    kb = KnowledgeBase(entailment="owl2rl", datatypes=datatypes, prefixes=PREFIXES, terms="canonical")
    try:
        kb.insert(premises)
    except ContradictionError as error:
        assert not conclusion
        reported = "eq-diff2" if rule == "eq-diff3" else rule  # one rule for both
        return reported in [one.rule for one in error.contradictions]
    if not conclusion or conclusion[0] in '1"':  # a literal is not a subject in RDF
        return False
    return conclusion in kb


@pytest.mark.parametrize(("rule", "premises", "conclusion"), ALL, ids=[name for name, _, _ in ALL])
def test_a_rule_is_there_as_the_page_says(rule: str, premises: str, conclusion: str) -> None:
    here = SAID[rule][0]
    assert follows(premises, conclusion, rule, False) is (here in ("yes", "run time"))
    assert follows(premises, conclusion, rule, True) is (here != "left out")


@pytest.mark.parametrize(("rule", "premises", "conclusion"), ALL, ids=[name for name, _, _ in ALL])
def test_a_rule_is_there_for_anonymous_properties_too(rule: str, premises: str, conclusion: str) -> None:
    """Each property of a case is named as the inverse of an anonymous inverse, its facts as they were."""
    if SAID[rule][0] not in ("yes", "run time"):
        pytest.skip("it is not there")
    kb = KnowledgeBase(entailment="owl2rl", contradictions="keep", prefixes=PREFIXES, terms="canonical")
    inverses = "".join(f"_:{p} owl:inverseOf [ owl:inverseOf :{p} ] . " for p in "pqr")
    kb.insert(inverses + _without_names(premises, "_:"))
    if not conclusion:
        reported = "eq-diff2" if rule == "eq-diff3" else rule  # one rule for both
        assert reported in [one.rule for one in kb.contradictions()]
        return
    which = "".join(f"?{p} owl:inverseOf/owl:inverseOf :{p} FILTER(isBlank(?{p})) " for p in "pqr")
    assert kb.ask(f"ASK {{ {which} {_without_names(conclusion + ' .', '?')} }}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("owl:someValuesFrom owl:Thing", "owl:someValuesFrom owl:Thing"),
        ("owl:allValuesFrom owl:Thing", "owl:allValuesFrom owl:Thing"),
        ("owl:allValuesFrom owl:Nothing", "owl:allValuesFrom owl:Nothing"),
        ("owl:allValuesFrom owl:Nothing", "owl:allValuesFrom owl:Thing"),
    ],
)
def test_restrictions_to_everything_and_to_nothing_are_compared(one: str, other: str) -> None:
    """owl:Thing is a part of itself (cls-thing, scm-cls), and so on, though no such triple is derived."""
    text = f":C rdfs:subClassOf [ owl:onProperty :p ; {one} ] . :D owl:onProperty :p ; {other} ."
    kb = KnowledgeBase(entailment="owl2rl", prefixes=PREFIXES, terms="canonical")
    kb.insert(text + " :a a :C .")
    assert ":a a :D" in kb


def _without_names(text: str, prefix: str) -> str:
    """Triples, :p, :q and :r written as `prefix` says where they are no predicates."""
    turtle = "".join(f"@prefix {name}: <{space}> . " for name, space in PREFIXES.items()) + text
    return "".join(
        f"{_named(str(one.subject), prefix)} {one.predicate} {_named(str(one.object), prefix)} . "
        for one in pyoxigraph.parse(turtle, format=pyoxigraph.RdfFormat.TURTLE)
    )


def _named(term: str, prefix: str) -> str:
    return prefix + term[-2] if re.fullmatch(r"<http://e/[pqr]>", term) else term


@pytest.mark.parametrize(("rule", "premises"), [(name, premises) for name, premises, _ in ALL])
def test_run_time_are_the_rules_that_no_schema_is_written_into(rule: str, premises: str) -> None:
    """The others are instantiated, or written out for a list, before facts come."""
    named = RULES_BY_NAME.get(rule, [])
    if SAID[rule][0] == "run time":
        assert named
        assert not any(map(instantiable, named))
    elif SAID[rule][0] == "yes" and not named:
        assert list_rules(triples_of("".join(f"PREFIX {n}: <{i}>\n" for n, i in PREFIXES.items()) + premises))


def _by_name() -> dict[str, list[dotr.program.DatalogRule]]:  # type: ignore[name-defined]  # a module of the package
    """The rules of rules/owl2rl.dlog by the names in their comments, or of their clashes."""
    found: dict[str, list[dotr.program.DatalogRule]] = {}  # type: ignore[name-defined]
    for rule in shipped_rules("owl2rl"):
        assert rule.span is not None
        text = rule.span.source.text
        line = text[rule.span.end : text.find("\n", rule.span.end)]
        clash = re.search(r"clash:([a-z0-9-]+)", text[rule.span.start : rule.span.end])
        names = [clash[1]] if clash else re.findall(r"[a-z]+-[a-z0-9-]+", line.partition("#")[2])
        for name in names:
            found.setdefault(name, []).append(rule)
    return found


RULES_BY_NAME = _by_name()
