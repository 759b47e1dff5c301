"""What matches no pattern of the queries is not indexed, and its changes cost a look."""

from __future__ import annotations

from dotr.events import FOREVER, Clock
from dotr.lang import parse_datalog, parse_query
from dotr.lasting.instants import watching
from dotr.lasting.model import MaintainedModel, lasting_model
from dotr.program import Program
from dotr.rdf.terms import Triple

_WROTE = "<urn:wrote>"


def _model(query: str, rules: str = "") -> MaintainedModel:
    program = watching(Program(datalog=parse_datalog(rules)), parse_query(query))
    return lasting_model(program, [], Clock(), materialize_all=False)


def _messages() -> list[Triple]:
    return [(f"<urn:p{a}>", _WROTE, f"<urn:p{b}>") for a in range(20) for b in range(20) if a != b]


def test_a_ground_query_keeps_no_more_than_its_patterns() -> None:
    model = _model("ASK { <urn:p1> <urn:wrote> <urn:p2> . <urn:p2> <urn:wrote> <urn:p3> }")
    model.change(dict.fromkeys(_messages(), FOREVER), [], 0)
    assert len(model.kept) == 2


def test_a_star_keeps_what_matches_one_of_its_rays() -> None:
    model = _model("SELECT ?x WHERE { ?x <urn:wrote> <urn:p1> . ?x <urn:wrote> <urn:p2> }")
    model.change(dict.fromkeys(_messages(), FOREVER), [], 0)
    assert len(model.kept) == 2 * 19


def test_what_goes_and_comes_back_is_counted_once() -> None:
    model = _model("SELECT ?x WHERE { ?x <urn:wrote> <urn:p1> }")
    all_of_them = dict.fromkeys(_messages(), FOREVER)
    model.change(all_of_them, [], 0)
    settled = model.change({}, list(all_of_them), 1)
    assert len(model.kept) == 0
    settled.undo()
    assert len(model.kept) == 19


def test_relations_that_rules_read_are_kept_whole() -> None:
    rules = "[?x, <urn:knows>, ?y] :- [?x, <urn:wrote>, ?y], [?y, <urn:wrote>, ?x] ."
    model = _model("SELECT ?x WHERE { ?x <urn:knows> <urn:p1> . <urn:p2> <urn:wrote> ?x }", rules)
    model.change(dict.fromkeys(_messages(), FOREVER), [], 0)
    assert sum(predicate == _WROTE for _, predicate, _ in model.kept) == len(_messages())
