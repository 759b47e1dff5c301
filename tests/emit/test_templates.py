"""Templates: fresh names, triples that become one, and one writer for rules that differ in constants."""

from __future__ import annotations

import pytest

from dotr.emit.templates import Row, RuleTemplate, share_writers
from dotr.program import Fresh, Rule, TemplateVar
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, RDF_TYPE, integer
from tests.detect.building import A, B, at, rule

X, Y, V, W = Fresh("dotr_x"), Fresh("dotr_y"), TemplateVar("v"), TemplateVar("w")
P, Q = "<urn:x:p>", "<urn:x:q>"
GIVE = {"v": "S.k", "w": "S.v"}
STAMP = integer(7)


def of(*triples: object, name: str = "R") -> Rule:
    return rule(name, at("S"), give=GIVE, template=triples)  # type: ignore[arg-type]  # tests


def test_the_first_fresh_name_is_the_event_and_others_are_named_after_it() -> None:
    made = RuleTemplate(of((Y, P, X), (X, Q, V), (W, P, Y)))
    id_ = "urn:dotr:R:abc"
    assert made.graph(id_, (A, B)) == (
        (f"<{id_}>", P, f"<{id_}-x>"),
        (f"<{id_}-x>", Q, A),
        (B, P, f"<{id_}>"),
    )
    assert made.positions == (("S", ("k", "v")),)


def test_triples_that_become_one_are_one_also_as_text() -> None:
    made = RuleTemplate(of((X, P, V), (X, P, W)))
    share_writers([made])
    assert made.repeats
    assert len(made.graph("urn:dotr:R:1", (A, A))) == 1
    assert made.quads("urn:dotr:R:1", (A, A), STAMP).count("\n") == 2
    assert made.quads("urn:dotr:R:1", (A, B), STAMP).count("\n") == 3


@pytest.mark.parametrize(
    ("triples", "repeats"),
    [
        ([(X, P, V), (X, Q, V)], False),
        ([(X, P, V), (X, P, A)], True),
        ([(X, P, B), (X, P, A)], False),
        ([(X, V, A), (X, P, A)], True),
        ([(X, P, Y), (X, P, X)], False),
        ([(X, P, integer(n)) for n in range(64)], False),
        ([(X, P, integer(n)) for n in range(65)], True),
    ],
)
def test_whether_triples_may_become_one(triples: list[object], repeats: bool) -> None:
    assert RuleTemplate(of(*triples)).repeats is repeats


FORMS = [
    [of((X, RDF_TYPE, A)), of((X, RDF_TYPE, B), name="Q")],
    [of((X, P, V), (V, Q, Y), (Y, P, W), name=f"N{n}") for n in range(3)],
    [of((X, P, V), (X, Q, W), name=f"N{n}") for n in range(12)],
    [of((V, P, W), (X, Q, integer(n)), name=f"N{n}") for n in range(4)],
    [of((X, P, V)), of((X, Q, V), name="Q"), of((X, P, V), (X, Q, V), name="L"), of((V, P, V), name="M")],
]


@pytest.mark.parametrize("rules", FORMS)
def test_shared_writers_write_what_each_rule_would_alone(rules: list[Rule]) -> None:
    made = [RuleTemplate(one) for one in rules]
    share_writers(made)
    rows: list[Row] = [("h1", STAMP, (), (A, integer(1))), ("h2", integer(8), (), (B, B))]
    for one in made:
        together = [other for other in made if other.write is one.write]
        expected = []
        for name, stamp, _, bindings in rows:
            for other in together:
                id_ = f"urn:dotr:{other.rule}:{name}"
                lines = [f"{s} {p} {o} <{id_}> .\n" for s, p, o in other.graph(id_, bindings)]
                expected.append(f"<{id_}> {PROV_GENERATED_AT_TIME} {stamp} .\n" + "".join(lines))
        assert one.write([other.constants for other in together], rows) == expected
        assert one.quads(f"urn:dotr:{one.rule}:h1", rows[0][3], STAMP) in expected


def test_rules_of_one_form_have_one_writer() -> None:
    for rules, writers in zip(FORMS, (1, 1, 1, 1, 3), strict=True):
        made = [RuleTemplate(one) for one in rules]
        share_writers(made)
        assert len({id(one.write) for one in made}) == writers
