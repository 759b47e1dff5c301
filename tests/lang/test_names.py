"""Names of rules looked up: what each mistake is called, what is said once, in which order rules run."""

from __future__ import annotations

import pytest

from dotr import program
from dotr.errors import Diagnostics
from dotr.lang.checks.lars import order
from dotr.lang.checks.names import Resolver, Streams, selects
from dotr.lang.loading import Loader
from dotr.source import Source, Span

HEAD = "PREFIX : <urn:>\nQUERY Hot := { SELECT ?s ?v WHERE { ?s :v ?v } }\n"


def resolved(text: str) -> tuple[program.Program, list[str]]:
    """A program without a look at what is hardly meant, and the codes of what was found."""
    found = Diagnostics()
    loader = Loader(None, found)
    loader.paths([])
    loader.program(Source("a.dotr", HEAD + text))
    program = Resolver(loader.loaded, found).program()
    return program, [one.code for one in found.found]


def rule(body: str, name: str = "R", template: str = "dotr_x a :E") -> str:
    return f"RULE {name} DEFINE {{ {template} }} FROM {body}\n"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("Hot AND EACH A := Hot WITHIN 1 s FROM Hot ON A.?s = Hot.?s", []),
        ("Hot AND EACH Hot WITHIN 1 s FROM Hot", ["D1105"]),
        ("Hot AND EACH A := Hot WITHIN 1 s FROM A", ["D1302"]),
        ("Hot AND EACH A := Hot WITHIN 1 s FROM B AND EACH B := Hot WITHIN 1 s FROM Hot", ["D1302"]),
        ("Hot AND EACH A := Hot WITHIN 1 s FROM Cold", ["D1301"]),
        ("Hot AND NOT A := Hot WITHIN 1 s FROM Hot AND EACH B := Hot WITHIN 1 s FROM A", ["D1303"]),
        ("Hot AND NOT A := Hot WITHIN 1 s FROM Hot WHERE A.?v > 1", ["D1303"]),
        ("Hot AND NOT A := Hot WITHIN 1 s FROM Hot ON A.?v > 1", []),
        ("Hot AND NOT A := Hot BETWEEN Hot AND Hot", []),
        ("Hot AND NOT A := Hot BETWEEN Cold AND Hot", ["D1301"]),
        ("Hot WHERE Hot.?w > 1", ["D1310"]),
        ("Hot WHERE Hot.time > Cold.time", ["D1301"]),
        ("Hot WHERE ?n > 1 ", ["D1304"]),
        ("Hot AND COUNT(*) AS ?n OVER A := Hot WITHIN 1 s FROM Hot WHERE ?n > 1", []),
        (("Hot AND EACH B := Hot WITHIN 1 s FROM Hot ON ?n > B.?v "
         "AND COUNT(*) AS ?n OVER A := Hot WITHIN 1 s FROM Hot"), ["D1304"]),
        (("Hot AND COUNT(*) AS ?n OVER A := Hot WITHIN 1 s FROM Hot "
         "AND COUNT(*) AS ?n OVER B := Hot WITHIN 1 s FROM Hot"), ["D1309"]),
        ("EVERY 1 s AS Tick WHERE Tick.?v > 1", ["D1308"]),
        ("EVERY 1 s AS Tick AND EACH Hot WITHIN 1 s FROM Tick WHERE Tick.time > Hot.time", []),
        ("Hot AFTER 1 s AS Hot WHERE Hot.?v > 1", ["D1105"]),
        ("EVERY 1 s AS Hot", ["D1107"]),
        ("Hot AND EACH R := { SELECT ?v WHERE { ?s :v ?v } } WITHIN 1 s FROM Hot", ["D1107"]),
        ("Hot WITH ?a := Hot.?v, ?a := Hot.?s", ["D1108"]),
        ("Hot CONSUMING Hot", ["D1306"]),
        ("Hot CONSUMING Cold", ["D1306"]),
        ("Hot AND EACH A := Hot WITHIN 1 s FROM Hot CONSUMING A, A", ["D1306"]),
        ("Cold AND EACH A := Hot WITHIN 1 s FROM Cold WHERE Cold.?v > Warm.?v", ["D1106"]),
    ],
)  # fmt: skip
def test_a_name_that_is_not_known_at_its_place(body: str, codes: list[str]) -> None:
    program, found = resolved(rule(body))
    assert found == codes
    broken = [code for code in codes if code not in ("D1306", "D1309", "D1107")]
    assert len(program.rules) == (0 if broken or "CONSUMING Hot" in body or "CONSUMING Cold" in body
                                  or "D1107" in codes else 1)  # fmt: skip


def test_consuming_twice_is_a_warning_and_means_once() -> None:
    program, codes = resolved(rule("Hot AND EACH A := Hot WITHIN 1 s FROM Hot CONSUMING A, A"))
    assert codes == ["D1306"]
    assert program.rules[0].consuming == ("A",)


def test_a_template_variable_that_with_does_not_bind() -> None:
    assert resolved(rule("Hot", template="dotr_x :v ?v, ?v"))[1] == ["D1305"]
    assert resolved(rule("Hot WITH ?v := Hot.?v", template="dotr_x :v ?v"))[1] == []


def test_a_name_that_many_rules_get_wrong_is_reported_once_with_its_places() -> None:
    found = Diagnostics()
    loader = Loader(None, found)
    streams = Streams(loader.loaded, [], found)
    source = Source("a", "Cold " * 5)
    places = [(Span(source, 5 * n, 5 * n + 4), "") for n in range(5)]
    streams.unknown = {"Cold": places, "Warm": places[:3]}
    streams.report_unknown()
    one, other = found.found
    assert other.notes == one.notes[:2]
    assert one.notes == ("also at a:1:6", "also at a:1:11", "and 2 more")
    assert (selects(("a", "b")), selects(())) == ("it selects ?a ?b", "it selects nothing")


def test_a_name_is_defined_once_in_a_deployment() -> None:
    program, codes = resolved("QUERY Hot := { SELECT ?s WHERE { ?s :w ?v } }\n" + rule("Hot"))
    assert codes == ["D1104"]
    assert program.queries["Hot"].variables == ("s", "v")


def test_changes_are_of_queries_only_and_of_answers_that_stay() -> None:
    assert resolved("QUERY Up := ISTREAM Hot\n" + rule("Up"))[1] == []
    assert resolved(rule("Hot") + "QUERY Up := ISTREAM R\n")[1] == ["D1506"]
    assert resolved("QUERY Up := ISTREAM Hot\nQUERY Down := DSTREAM Up\n")[1] == ["D1506"]
    assert resolved("QUERY Up := ISTREAM Cold\n")[1] == ["D1106"]
    now = "QUERY N := { SELECT ?s WHERE { ?s :v ?v FILTER(?v < NOW()) } }\n"
    assert resolved(now + rule("ISTREAM N") + rule("Hot", "S"))[1] == ["D1507"]


def test_what_nobody_uses_is_said_where_there_are_rules_that_could() -> None:
    assert resolved("")[1] == []
    assert resolved(rule("A := { SELECT ?s WHERE { ?s :w ?v } }"))[1] == ["D1117"]
    assert resolved("PRIVATE " + rule("Hot"))[1] == ["D1312"]
    assert resolved("PRIVATE " + rule("Hot") + rule("R", "S"))[1] == []


def test_rules_run_behind_those_they_read_and_else_as_written() -> None:
    strict = "Hot AND EACH {} WITHIN 1 s BEFORE Hot"
    program, codes = resolved(rule("B", "A") + rule("C", "B") + rule("Hot", "C") + rule("Hot", "D"))
    assert (program.dependencies, codes) == ((2, 1, 0, 3), [])
    program, codes = resolved(rule(strict.format("B"), "A") + rule(strict.format("A"), "B"))
    assert (program.dependencies, codes) == ((0, 1), [])


def test_rules_that_wait_for_each_other_are_reported_once_a_circle() -> None:
    program, codes = resolved(
        rule("B", "A") + rule("A", "B") + rule("A", "C") + rule("D", "D") + rule("Hot", "E")
    )
    assert codes == ["D1307", "D1307"]
    found = Diagnostics()
    assert order(program.rules, found) == (4,)
    assert [one.notes for one in found.found] == [
        ("`A` refers to `B` refers to `A`",),
        ("`D` refers to `D`",),
    ]


def test_a_node_that_inherits_is_equal_by_all_of_its_fields() -> None:
    class Narrow(program.TimeWindow, frozen=True):
        per: tuple[int, ...] = ()

    assert Narrow(1, per=(0,)) == Narrow(1, per=(0,))
    assert Narrow(1, per=(0,)) != Narrow(2, per=(0,))
    assert Narrow(1, per=(0,)) != Narrow(1, per=(1,))
