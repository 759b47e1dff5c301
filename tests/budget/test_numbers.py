"""Numbers have a limit of digits: a longer literal is refused, a longer result is an error, nothing hangs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dotr import KnowledgeBase
from dotr.errors import DataError, ProgramError
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures

NINES = "9" * 100
LONG = "7" * 1_000_000
XSD = "http://www.w3.org/2001/XMLSchema#"
READ = """PREFIX : <urn:x:>
RULE Read DEFINE { dotr_l a :Read ; :is ?n } FROM L := { SELECT ?v { ?x :v ?v } } WITH ?n := %s
"""
TIMES = "*".join(["?v"] * 60)


def stream(*values: str) -> str:
    return "\n".join(
        json.dumps({"time": t, "graph": f"<urn:x:a> <urn:x:v> {v} ."}) for t, v in enumerate(values)
    )


def events(out: str) -> list[tuple[str, int]]:
    return [(event["rule"], event["time"]) for event in map(json.loads, out.splitlines())]


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_a_literal_of_a_million_digits_is_refused_alone(dotr: Dotr, jobs: tuple[str, ...]) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(READ % "L.?v")
    Path("s.jsonl").write_text(stream("1", LONG, f'"+00{LONG}.5"^^<{XSD}decimal>', f"-00{'6' * 4096}", "4"))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "file=dead", *jobs)
    assert ran.code == 0, ran.err
    assert [at for _, at in events(ran.out)] == [0, 3, 4]
    assert [json.loads(line)["code"] for line in Path("dead").read_text().splitlines()] == ["D2409", "D2409"]
    failed = dotr("run", "r.dotr", "s.jsonl", *jobs)
    assert failed.code == 3
    assert "error[D2409]: a number has more than 4,096 digits\n--> s.jsonl:2" in failed.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.nq", f'<urn:x:a> <urn:x:v> "{LONG}"^^<{XSD}nonNegativeInteger> <urn:x:g> .\n'),
        ("s.nt", f'<urn:x:a> <urn:x:v> "{LONG}"^^<{XSD}integer> .\n'),
        ("s.trig", f"<urn:x:g> {{ <urn:x:a> <urn:x:v> {LONG} }}"),
        ("s.ttl", f"<urn:x:a> <urn:x:v> -{LONG}.0 ."),
        ("s.jsonld", f'{{"@id": "urn:x:a", "urn:x:v": {{"@value": "{LONG}", "@type": "{XSD}integer"}}}}'),
    ],
)
def test_no_format_has_a_number_of_a_million_digits(dotr: Dotr, name: str, text: str) -> None:  # noqa: F811  # fixture
    Path(name).write_text(text)
    Path("b.dotr").write_text(f"BACKGROUND <{name}>\n{READ % 'L.?v'}")
    if name not in ("s.nq", "s.trig"):
        read = dotr("check", "b.dotr")
        assert read.code == 1
        assert f"error[D2409]: a number has more than 4,096 digits\n--> {name}" in read.err + read.out
    at = f'<urn:x:g> <http://www.w3.org/ns/prov#generatedAtTime> "1"^^<{XSD}integer>'
    if name in ("s.nq", "s.trig"):
        Path(name).write_text(f"{text}{at} .\n")
        Path("r.dotr").write_text(READ % "L.?v")
        ran = dotr("run", "r.dotr", name)
        assert ran.code == 3
        assert "error[D2409]" in ran.err


@pytest.mark.parametrize("name", ["r.dotr", "r.dlog"])
def test_a_constant_of_too_many_digits_is_reported_where_it_stands(dotr: Dotr, name: str) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(READ % f"L.?v + {LONG}")
    Path("r.dlog").write_text(f"<urn:p>(?x, {LONG}) :- <urn:v>(?x, ?y) .")
    checked = dotr("check", name)
    assert checked.code == 1
    assert "D2409" in checked.err + checked.out
    assert f"{name}:" in checked.err + checked.out


def test_a_cell_of_too_many_digits_is_refused_alone(dotr: Dotr) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(READ % "L.?v")
    many = "7" * 5_000
    Path("s.csv").write_text(f"t,v\n1,18446744073709551615\n2,{many}\n3,{'8' * 4096}\n4,-{many}\n")
    for kind in ("integer", "decimal", "nonPositiveInteger"):
        Path("m.ttl").write_text(f"# time: {{t|epoch('s')}}\n<urn:x:a> <urn:x:v> {{v}}^^<{XSD}{kind}> .\n")
        ran = dotr("run", "r.dotr", "s.csv", "--map", "m.ttl", "--on-error", "file=dead")
        assert ran.code == 0, ran.err
        letters = [json.loads(line) for line in Path("dead").read_text().splitlines()]
        assert {letter["code"] for letter in letters} == {"D2404", "D2409"} if "non" in kind else {"D2409"}
        assert len(events(ran.out)) == 4 - len(letters) == (0 if "non" in kind else 2)
        Path("dead").unlink()


CHAIN = READ.replace("Read", "R0").replace(":is", ":n") % "L.?v"
CHAIN += "".join(
    f"RULE R{i} DEFINE {{ dotr_e a :R{i} ; :n ?n }} FROM R{i - 1} WITH ?n := R{i - 1}.?n * R{i - 1}.?n\n"
    for i in range(1, 31)
)


def test_repeated_squaring_in_a_chain_of_rules_ends_at_the_limit(dotr: Dotr) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(CHAIN)
    Path("s.jsonl").write_text(stream("1", NINES, "1"))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "skip", "--verify")
    assert ran.code == 0, ran.err
    found = events(ran.out)
    assert sum(at == 0 for _, at in found) == sum(at == 2 for _, at in found) == 31
    assert [rule for rule, at in found if at == 1] == [f"R{i}" for i in range(6)], "3,200 digits are the last"
    assert "rule `R6` makes a number of more than 4,096 digits for one fact of `R5`" in ran.err
    failed = dotr("run", "r.dotr", "s.jsonl")
    assert failed.code == 3
    assert "error[D4133]: rule `R6` makes a number" in failed.err


QUERY = (
    READ.replace("?x :v ?v", f"?x :v ?u BIND(?u AS ?v) BIND({TIMES} AS ?w)").replace("?v {", "?w {", 1)
    % "L.?w"
)
SUMMED = READ.replace("SELECT ?v {", "SELECT (SUM(?w * ?w) AS ?v) {").replace("?x :v ?v", "?x :v ?w") % "L.?v"
DATALOG = READ.replace("PREFIX", "RULES <r.dlog>\nPREFIX", 1).replace(":v ?v", ":w ?v") % "L.?v"
RULES = f"PREFIX : <urn:x:>\n[?x, :w, ?w] :- [?x, :v, ?v], BIND({TIMES} AS ?w) ."


@pytest.mark.parametrize("rules", [QUERY, SUMMED, DATALOG], ids=["query", "sum", "datalog"])
def test_an_instant_whose_numbers_are_too_long_is_in_error(dotr: Dotr, rules: str) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(rules)
    Path("r.dlog").write_text(RULES)
    Path("s.jsonl").write_text(stream("1", "9" * 3_000, "1"))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "file=dead", "--verify")
    assert ran.code == 0, ran.err
    assert [at for _, at in events(ran.out)] == [0, 2]
    assert [json.loads(line)["code"] for line in Path("dead").read_text().splitlines()] == ["D4133"]
    failed = dotr("run", "r.dotr", "s.jsonl")
    assert failed.code == 3
    assert "number of more than 4,096 digits" in failed.err


@pytest.mark.parametrize("on", ["M.?v * M.?v = L.?v", "M.?v * M.?v > 0"])
def test_a_key_or_condition_of_a_fact_alone_ends_the_run_with_a_word(dotr: Dotr, on: str) -> None:  # noqa: F811  # fixture
    rules = READ.replace("WITH", f"AND EACH M := L WITHIN 9 s FROM L ON {on}\nWITH") % "L.?v"
    Path("r.dotr").write_text(rules)
    Path("s.jsonl").write_text(stream("1", "9" * 3_000, "1"))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "skip")
    assert ran.code == 3
    assert "error[D4133]" in ran.err
    assert "makes a number of more than 4,096 digits" in ran.err


def test_a_condition_of_constants_that_is_too_long_is_no_bug(dotr: Dotr) -> None:  # noqa: F811  # fixture
    long = f"{'9' * 4000} * {'9' * 4000} > 5"
    Path("r.dotr").write_text(READ.replace("WITH", f"WHERE {long}\nWITH") % "L.?v")
    Path("r.dlog").write_text(f"PREFIX : <urn:x:>\n[?x, :w, ?v] :- [?x, :v, ?v], FILTER({long}) .")
    Path("d.dotr").write_text(DATALOG)
    Path("s.jsonl").write_text(stream("1"))
    for rules in ("r.dotr", "d.dotr"):
        assert dotr("check", rules).code in (0, 1)
        ran = dotr("run", rules, "s.jsonl")
        assert ran.code == 3
        assert "error[D4133]" in ran.err


def test_a_knowledge_base_says_so_too() -> None:
    kb = KnowledgeBase(terms="canonical")
    with pytest.raises(DataError, match="D2409"):
        kb.insert(f'<urn:a> <urn:b> "{LONG}"^^<{XSD}integer> .')
    kb.insert(f'<urn:a> <urn:b> "{"9" * 3_000}"^^<{XSD}integer> .')
    assert len(kb) == 1
    with pytest.raises(ProgramError, match="D4133"):
        list(kb.query("SELECT (?v * ?v AS ?w) { ?x <urn:b> ?v }"))
    read = f"SELECT (<{XSD}integer>(CONCAT(STR(?v), STR(?v))) AS ?w) {{ ?x <urn:b> ?v }}"
    with pytest.raises(ProgramError, match="D4133"):
        list(kb.query(read))


@pytest.mark.parametrize(
    "literal",
    [
        f'"P{"9" * 5_000}D"^^<{XSD}dayTimeDuration>',
        f'"PT{"9" * 5_000}S"^^<{XSD}duration>',
        f'"P{"9" * 5_000}Y"^^<{XSD}yearMonthDuration>',
        f'"{"9" * 5_000}-01-01T00:00:00Z"^^<{XSD}dateTime>',
        f'"-{"9" * 5_000}-01-01"^^<{XSD}date>',
    ],
)
def test_a_time_of_too_many_digits_is_no_time(dotr: Dotr, literal: str) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(READ % "L.?v")
    Path("s.jsonl").write_text(stream(literal, "1"))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "skip")
    assert ran.code == 0, ran.err
    assert [at for _, at in events(ran.out)][-1:] == [1]
    Path("c.dotr").write_text(READ % literal)
    assert dotr("run", "c.dotr", "s.jsonl", "--on-error", "skip").code in (0, 3)
    assert "D4999" not in ran.err


@pytest.mark.parametrize("written", ["ROUND(L.?v)", "CEIL(L.?v / 3)", "FLOOR(L.?v)"])
def test_large_decimals_are_rounded_by_both_readings(dotr: Dotr, written: str) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(READ % written)
    Path("s.jsonl").write_text(stream("9" * 400 + ".5", "1.5"))
    ran = dotr("run", "r.dotr", "s.jsonl")
    assert dotr("run", "r.dotr", "s.jsonl", "--verify").out == ran.out
    assert len(events(ran.out)) == 2
