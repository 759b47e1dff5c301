"""Parts of a survey alone: tables of rows, what they decide, pieces of queries, the times of a sample."""

from __future__ import annotations

from collections import Counter

import pytest

from dotr.core.deployment import Deployment
from dotr.errors import Diagnostics
from dotr.events import Clock
from dotr.lang import parse_program, parse_query
from dotr.lang.checks.lasting import Vocabulary
from dotr.program import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.rdf.terms import RDF_TYPE, XSD, Term, integer, literal
from dotr.survey.conditions import (
    ENOUGH,
    SolutionTable,
    Truth,
    asks_a_graph,
    family,
    judge,
    kind_of,
    kinds_of,
    leaves,
    listed,
    mixed,
    probe_rule,
    truth,
)
from dotr.survey.queries import KEPT, Observed, Probes, Sample, check_terms
from dotr.survey.report import (
    PieceCounts,
    QueryPiece,
    check_times,
    filters,
    probe_pieces,
    survey,
    unfiltered,
    why_silent,
)

V, W = Var("v"), Var("w")
SECOND = 1_000_000


def table(*rows: tuple[Term | None, ...], total: int | None = None, partial: bool = False) -> SolutionTable:
    columns = {"?v": 0, "?w": 1}
    given = [(0, (*row, *[None] * (2 - len(row)))) for row in rows]
    return SolutionTable(Clock(), columns, given, len(rows) if total is None else total, partial=partial)


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments)


def said(rows: SolutionTable, condition: Expression, chosen: bool = True) -> list[tuple[str, str]]:
    found = Diagnostics()
    judge(rows, [condition], "query `Q`", found, chosen=chosen)
    return [(one.code, str(one.severity)) for one in found.found]


def numbers(*values: int) -> list[tuple[Term | None, ...]]:
    return [(integer(value),) for value in values]


# -- rows ----------------------------------------------------------------------------------------------


def test_how_many_rows_a_claim_is_about() -> None:
    rows = numbers(1, 2)
    assert table(*rows).counted("all ") == "all 2 rows"
    assert table(*rows, total=1_000).counted("all ") == "the first 2 of 1,000 rows"
    assert table(*rows, partial=True).counted("all ") == "the first 2 rows"


def test_a_condition_is_true_false_or_an_error_row_by_row() -> None:
    rows = table(*numbers(1, 5), (literal("a"),), (None,))
    assert truth(rows, call(">", V, Const(integer(3)))) == Truth(1, 1, 2)
    assert rows.knows(call("=", V, W))
    assert not rows.knows(call("=", V, Attribute("A", "v")))
    assert list(leaves(call("=", call("STR", W), TimeOf("A")))) == [W, TimeOf("A")]
    exists = parse_query("SELECT ?s { ?s ?p ?o FILTER(! EXISTS { ?s ?q 1 }) }").where.elements[1]
    assert asks_a_graph(exists.condition)
    assert not asks_a_graph(call("=", V, W))


# -- kinds ---------------------------------------------------------------------------------------------


def test_kinds_and_families_of_terms() -> None:
    decimal = literal("1.5", XSD + "decimal")
    assert [
        kind_of(t) for t in (None, "<urn:a>", "_:b", literal("a"), literal("a", language="en"), decimal)
    ] == [
        *("without a value", "an IRI", "a blank node", "a string", "a string with a language", "xsd:decimal")
    ]
    assert family(decimal) == family(integer(1)) != family(literal("x", XSD + "integer"))
    kinds = Counter({"c": 2, "b": 2, "a": 1, "d": 9, "e": 1})
    assert listed(kinds, "rows") == "d in 9, b in 2, c in 2 and 2 other kinds of 15 rows"
    assert not mixed(kinds_of([integer(1), decimal, None]))
    assert mixed(kinds_of([integer(1), literal("1")]))


# -- what rows decide ----------------------------------------------------------------------------------


def test_a_condition_that_is_never_true_is_a_warning_once_there_are_enough_rows() -> None:
    never = call(">", V, Const(integer(9)))
    assert said(table(*numbers(1, 2)), never) == [("D2512", "info")]
    assert said(table(*numbers(*range(3)), total=ENOUGH), never) == [("D2512", "warning")]
    assert said(table(*numbers(1, 10)), never) == []
    assert said(table(), never) == []
    assert said(table(*numbers(1)), never, chosen=False) == []
    assert said(table((literal("a"),)), call("ABS", V)) == [("D2512", "warning")]


def test_a_condition_that_is_always_true_is_said_of_enough_rows_only() -> None:
    always = call(">", V, Const(integer(-1)))
    assert said(table(*numbers(*range(ENOUGH))), always) == [("D2513", "info")]
    assert said(table(*numbers(*range(ENOUGH - 1))), always) == []
    assert said(table(*numbers(*range(ENOUGH))), always, chosen=False) == []
    assert said(table(*numbers(1)), call("<", Const(integer(2)), Const(integer(1)))) == []


def test_sides_of_kinds_that_never_go_together_are_the_reason_and_the_hint_mends_them() -> None:
    found = Diagnostics()
    judge(table(*numbers(1, 2)), [call(">", V, Const(literal("5")))], "query `Q`", found)
    [one] = found.found
    assert (one.code, one.hint) == ("D2511", "write `5`, without quotation marks")
    found = Diagnostics()
    judge(table((literal("5"),)), [call(">", V, Const(integer(1)))], "query `Q`", found)
    assert found.found[0].hint.startswith("the data have strings: xsd:decimal(")
    assert said(table((integer(1),), (literal("a"),)), call(">", V, Const(integer(9)))) == [("D2512", "info")]
    assert said(table(*numbers(1)), call("!=", V, Const(literal("5")))) == []


# -- pieces of queries ---------------------------------------------------------------------------------


def test_a_query_without_its_filters_keeps_those_that_ask_the_graph() -> None:
    select = parse_query(
        "SELECT ?s { ?s <urn:v> ?v FILTER(?v > 1 && ?v < 5) FILTER EXISTS { ?s <urn:w> 1 } } VALUES ?x { 1 }"
    )
    assert len(filters(select)) == 2
    bare = unfiltered(select)
    assert bare.variables == ("s", "v", "x")
    assert len(bare.where.elements) == 2


def test_pieces_stand_by_what_they_share_a_variable_with() -> None:
    program = parse_program("")
    select = parse_query(
        "SELECT * { ?a <urn:p> ?b . ?c <urn:q> ?d . ?b <urn:r> ?c OPTIONAL { ?a <urn:o> 1 } }"
    )
    pieces = probe_pieces(Probes(program), select).pieces
    assert [piece.text.split()[0] for piece in pieces] == ["<urn:p>", "<urn:r>", "<urn:q>"]


def test_the_first_piece_without_a_row_is_the_one_unless_that_is_not_known() -> None:
    pieces = [QueryPiece(name, None, ()) for name in "abc"]

    def stop(*seen: Observed) -> tuple[str, int] | None:
        found = PieceCounts(pieces, seen).stop
        return None if found is None else (found[0].text, found[1])

    assert stop(Observed(5), Observed(2), Observed(0)) == ("c", 2)
    assert stop(Observed(0), Observed(0), Observed(0)) == ("a", 0)
    assert stop(Observed(5), Observed(0, partial=True), Observed(0)) is None
    assert stop(Observed(5), Observed(2), Observed(1)) is None


# -- probes --------------------------------------------------------------------------------------------

RULES = """PREFIX : <urn:>
QUERY Hot := { SELECT ?s ?v WHERE { ?s :v ?v } }
QUERY Smoke := { SELECT ?s WHERE { ?s :smoke ?o } }
RULE Fire DEFINE { dotr_x a :Fire } FROM Smoke
AND LAST Hot WITHIN 5 s FROM Smoke ON Hot.?s = Smoke.?s && Hot.?v > 50
"""


def sample_of(*graphs: tuple[int, str, int]) -> Sample:
    sample = Sample()
    for time, predicate, value in graphs:
        sample.add(time * SECOND, [("<urn:s>", f"<urn:{predicate}>", integer(value))])
    return sample


def test_all_matches_are_counted_and_the_first_are_kept() -> None:
    seen = Observed()
    for _ in range(KEPT + 1):
        seen.add((), ())
    assert (seen.count, len(seen.matches)) == (KEPT + 1, KEPT)


def test_a_rule_is_followed_conjunct_by_conjunct_and_paired_before_its_condition() -> None:
    program = parse_program(RULES)
    probes = Probes(program)
    probe = probe_rule(probes, program.rules[0], {})
    sample = sample_of((1, "v", 45), (4, "v", 30), (6, "smoke", 1))
    for time in (1 * SECOND - 1, 6 * SECOND + 1):  # just outside of the window
        sample.add(time, [("<urn:s>", "<urn:v>", integer(90))])
    sample.graphs.sort(key=lambda graph: graph[0])
    assert probes.run([], sample) is None
    assert [seen.count for seen in probe.prefixes] == [1, 0]
    pairs = probe.pairs(0, sample.clock)
    place = pairs.columns["Hot.?v"]
    assert [row[1][place] for row in pairs.rows] == [integer(45), integer(30)]
    assert probe.nearest(0) == 2 * SECOND


@pytest.mark.parametrize(
    ("graphs", "codes"),
    [
        ([(1, "v", 40), (2, "smoke", 1)], ["D2512"]),
        ([(1, "v", 60), (20, "smoke", 1)], ["D2518"]),
        ([(1, "v", 60)], ["D2517"]),
        ([(1, "v", 60), (2, "smoke", 1)], []),
        ([], []),
    ],
)
def test_a_survey_says_what_stood_in_the_way(graphs: list[tuple[int, str, int]], codes: list[str]) -> None:
    found = survey(parse_program(RULES), [], sample_of(*graphs))
    assert found.error is None
    assert [one.code for one in found.found.found] == codes


def test_a_silent_rule_has_its_likely_cause_and_one_with_events_has_none() -> None:
    deployment = Deployment(parse_program(RULES), [])
    sample = sample_of((1, "v", 60), (20, "smoke", 1))
    assert [one.code for one in why_silent(deployment, {}, sample)] == ["D2518"]
    assert why_silent(deployment, {"Fire": 1}, sample) == []
    assert why_silent(deployment, {}, Sample()) == []


# -- terms and times -----------------------------------------------------------------------------------


def test_terms_that_are_nowhere_are_reported_once_a_place() -> None:
    program = parse_program(
        "PREFIX : <urn:x#>\nRULE R DEFINE { dotr_x a :E } FROM Q := { SELECT ?s ?o WHERE { ?s :at :roomm } } "
        "WHERE Q.?o IN (:room, :dooor) && Q.?s != <http://www.w3.org/2002/07/owl#Thing>\n"
    )
    vocabulary = Vocabulary()
    vocabulary.add([("<urn:x#a>", "<urn:x#at>", "<urn:x#room>"), ("<urn:x#a>", RDF_TYPE, "<urn:x#door>")])
    found = Diagnostics()
    check_terms(program, vocabulary, found)
    assert [(one.code, one.hint) for one in found.found] == [
        ("D2501", "did you mean :room?"),
        ("D2501", "did you mean :door?"),
    ]


@pytest.mark.parametrize(
    ("time", "unit", "hint"),
    [
        (1_700_000_000, SECOND, ""),
        (1_700_000_000_000, SECOND, "--time-unit ms"),
        (1_700_000_000_000_000, SECOND, "--time-unit us"),
        (1_700_000_000_000, 1_000, ""),
        (1_700_000_000_000_000, 1_000, "--time-unit us"),
        (1_700_000_000_000_000_000, 1, ""),
    ],
)
def test_integer_times_beyond_the_year_5000_are_of_another_unit(time: int, unit: int, hint: str) -> None:
    sample = Sample(Clock(True, unit), graphs=[(time * unit, [])])
    found = Diagnostics()
    check_times(sample, {}, {}, found)
    assert [one.hint.partition(":")[0] for one in found.found] == ([hint] if hint else [])


def test_other_properties_that_look_like_times_the_commonest_first() -> None:
    stamp = literal("2026-01-01T00:00:00Z", XSD + "dateTime")
    sample = Sample()
    sample.add(
        0,
        [
            ("<urn:s>", "<urn:made>", stamp),
            ("<urn:s>", "<urn:at>", stamp),
            ("<urn:s>", "<urn:n>", integer(5)),
        ],
    )
    sample.add(1, [("<urn:s>", "<urn:text>", literal("2026-01-01 08:00")), ("<urn:s>", "<urn:at>", stamp)])
    sample.add(2, [("<urn:s>", "<urn:ms>", integer(1_700_000_000_000)), ("<urn:s>", "<urn:at>", stamp)])
    found = Diagnostics()
    check_times(sample, {"urn:made": 3}, {}, found)
    assert [one.message.split()[0] for one in found.found] == ["<urn:at>", "<urn:ms>", "<urn:text>"]


def test_a_sample_is_full_at_its_limit() -> None:
    sample = Sample(limit=2)
    sample.add(0, [])
    assert not sample.full
    sample.add(1, [])
    assert sample.full


def test_a_fact_is_no_neighbour_of_its_own() -> None:
    program = parse_program(
        "QUERY Msg := { SELECT ?v { ?m <urn:v> ?v } } RULE Again DEFINE { dotr_e <urn:v> ?v } FROM Msg "
        "AND LAST Old := Msg WITHIN 1 s BEFORE Msg ON Old.?v = Msg.?v WITH ?v := Msg.?v"
    )
    probes = Probes(program)
    probe = probe_rule(probes, program.rules[0], {})
    assert probes.run([], sample_of((1, "v", 45), (8, "v", 30))) is None
    assert probe.nearest(0) == 7 * SECOND


def test_a_number_of_another_datatype_has_a_hint_that_works() -> None:
    text = "RULE R DEFINE {{ dotr_r a <urn:R> }} FROM Q := {{ SELECT ?s WHERE {{ ?s <urn:v> {} }} }}"
    sample = sample_of((1, "v", 60))
    found = survey(parse_program(text.format("60.0")), [], sample).found.found
    (hint,) = [one.hint for one in found if one.code == "D2517"]
    assert hint is not None
    assert "`?n FILTER(?n = 60.0)`" in hint
    assert survey(parse_program(text.format("?n FILTER(?n = 60.0)")), [], sample).found.found == []
