"""Integers of any size, in every language and way of running: what comes out is what Python has."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from dotr import Engine, KnowledgeBase
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures
from tests.rdf.terms_strategies import EDGES, around

TYPES = ("integer", "integer", "nonNegativeInteger", "nonPositiveInteger", "unsignedLong", "long")
XSD = "http://www.w3.org/2001/XMLSchema#"
Stream = list[tuple[list[int], str]]
"""Of each instant: integers, and the type in which they are written if its range has them."""
Found = list[tuple[str, int, tuple[tuple[str, Any], ...]]]
"""(rule, time, bindings) of every event, sorted."""

RULES = """PREFIX : <urn:x:>
LARS <held.lars>
QUERY Q := { SELECT ?c ?v WHERE { ?c :v ?v } }
QUERY Mark := { SELECT ?m WHERE { ?m a :Mark } }
RULE Totals DEFINE { dotr_t a :Totals ; :sum ?s ; :max ?x ; :min ?i ; :mean ?a ; :last ?l }
FROM Mark
AND SUM(A.?v) AS ?s OVER A := Q WITHIN 1 h FROM Mark ON true
AND MAX(B.?v) AS ?x OVER B := Q WITHIN 1 h FROM Mark ON true
AND MIN(C.?v) AS ?i OVER C := Q WITHIN 1 h FROM Mark ON true
AND AVG(D.?v) AS ?a OVER D := Q WITHIN 1 h FROM Mark ON true
AND LAST L := Q WITHIN 1 h FROM Mark ON true
WITH ?s := ?s, ?x := ?x, ?i := ?i, ?a := ?a, ?l := L.?v
RULE Step DEFINE { dotr_s a :Step ; :d ?d ; :w ?w }
FROM Q AND LAST P := Q WITHIN 1 h BEFORE Q ON P.?v <= Q.?v
WITH ?d := Q.?v - P.?v, ?w := Q.?v * 3 - ABS(P.?v)
RULE Same DEFINE { dotr_e a :Same ; :n ?n }
FROM Mark AND COUNT(*) AS ?n OVER E := Q WITHIN 1 h FROM Mark ON E.?v + 1 = LIMIT + 1 WITH ?n := ?n
RULE Above DEFINE { dotr_a a :Above ; :n ?n }
FROM Mark AND COUNT(*) AS ?n OVER F := Q WITHIN 1 h FROM Mark ON F.?v > LIMIT WITH ?n := ?n
RULE Past DEFINE { dotr_o a :Past ; :n ?n }
FROM Mark AND COUNT(*) AS ?n OVER G := Q WITHIN 1 h FROM Mark ON G.?v > 9223372036854775808 WITH ?n := ?n
RULE Asked DEFINE { dotr_q a :Asked ; :top ?t ; :n ?n }
FROM Top := {
  SELECT ?v WHERE { ?c :v ?v FILTER(?v IN (?v, LIMIT) && ?v * 2 - ?v >= LIMIT) } ORDER BY DESC(?v) LIMIT 1
}
WITH ?t := Top.?v, ?n := Top.?v * 4
RULE Ruled DEFINE { dotr_r a :Ruled ; :w ?w ; :s ?s }
FROM Far := { SELECT ?w ?s WHERE { ?c :far ?w . ?c :all ?s } } WITH ?w := Far.?w, ?s := Far.?s
RULE Held DEFINE { dotr_h a :Held ; :s ?s ; :m ?m } FROM H := ISTREAM held WITH ?s := H.?s, ?m := H.?m
"""
DATALOG = """PREFIX : <urn:x:>
[?c, :far, ?w] :- [?c, :v, ?v], BIND(?v * ?v - 7 AS ?w),
    FILTER(?v - 1 > 9223372036854775807 || ?v < -9223372036854775808) .
[?c, :all, ?s] :- AGGREGATE([?c, :v, ?v] ON ?c BIND SUM(?v) AS ?s) .
"""
LARS = """held(?s, ?m) :- SUM(?v) AS ?s OVER Q(?c, ?v) WITHIN 0 s, MAX(?v) AS ?m OVER Q(?c, ?v) WITHIN 0 s,
    FILTER(?m > 18446744073709551615) .
"""
TOTALS = """SELECT (MIN(?v) AS ?l) (MAX(?v) AS ?h) (SUM(?v) AS ?s) (COUNT(DISTINCT ?v) AS ?n) {
    ?c <urn:x:v> ?v
}"""


def rules(limit: int) -> str:
    return re.sub(r"\bLIMIT(?! 1\n)", str(limit), RULES)


def typed(value: int, datatype: str) -> str:
    """A literal of a type whose range has the value, in a form that is not the canonical one."""
    fits = {
        "integer": True,
        "nonNegativeInteger": value >= 0,
        "nonPositiveInteger": value <= 0,
        "unsignedLong": 0 <= value < 2**64,
        "long": -(2**63) <= value < 2**63,
    }[datatype]
    sign = "-" if value < 0 else "+" if value else ""
    return f'"{sign}00{abs(value)}"^^<{XSD}{datatype if fits else "integer"}>'


def graph(numbers: list[int], datatype: str) -> str:
    objects = ", ".join(typed(number, datatype) for number in numbers)
    return f"<urn:x:c> <urn:x:v> {objects} . <urn:x:m> a <urn:x:Mark> ."


def expected(stream: Stream, limit: int) -> Found:
    """What the rules say, of Python's integers. The values of one instant are a set of triples."""
    found: list[tuple[str, int, dict[str, Any]]] = []
    seen: list[tuple[int, int]] = []
    holds: tuple[int, int] | None = None
    for time, (brought, _) in enumerate(stream):
        now = sorted(set(brought))
        for v in now:
            before = [p for p in seen if p[1] <= v]
            if before:
                p = max(before)[1]
                found.append(("Step", time, {"d": v - p, "w": v * 3 - abs(p)}))
        seen += [(time, v) for v in now]
        every = [v for _, v in seen]
        total = sum(every)
        mean = Fraction(abs(total) * 10**18 // len(every) * (1 if total >= 0 else -1), 10**18)
        found += [
            ("Totals", time, {"s": total, "x": max(every), "i": min(every), "a": mean, "l": max(seen)[1]}),
            ("Same", time, {"n": every.count(limit)}),
            ("Above", time, {"n": sum(v > limit for v in every)}),
            ("Past", time, {"n": sum(v > 2**63 for v in every)}),
        ]
        if max(now) >= limit:
            found.append(("Asked", time, {"t": max(now), "n": max(now) * 4}))
        for w in {v * v - 7 for v in now if not -(2**63) <= v <= 2**63}:
            found.append(("Ruled", time, {"w": w, "s": sum(now)}))
        was, holds = holds, (sum(now), max(now)) if max(now) >= 2**64 else None
        if holds not in (was, None):
            found.append(("Held", time, dict(zip("sm", holds, strict=True))))
    return sorted((rule, time, tuple(sorted(bound.items()))) for rule, time, bound in found)


def of_json(lines: str) -> Found:
    events = [json.loads(line) for line in lines.splitlines()]
    return sorted(
        (e["rule"], e["time"], tuple(sorted((n, Fraction(v["value"])) for n, v in e["bindings"].items())))
        for e in events
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("integers")
    (path / "held.lars").write_text(LARS)
    (path / "r.dlog").write_text(DATALOG)
    return path


near = around | st.integers(-3, 3) | st.sampled_from([edge + 1 for edge in EDGES])
streams = st.lists(
    st.tuples(st.lists(near, min_size=1, max_size=3), st.sampled_from(TYPES)), min_size=1, max_size=5
)


@given(streams, around)
def test_all_languages_have_pythons_integers(place: Path, stream: Stream, limit: int) -> None:
    text, name = rules(limit), str(place / "r.dotr")
    for verify in (False, True):
        engine = Engine.from_text(text, datalog=DATALOG, name=name, verify=verify)
        events: list[Any] = []
        for time, one in enumerate(stream):
            if time == 2:
                blob = engine.snapshot()
                engine = Engine.from_text(text, datalog=DATALOG, name=name, verify=verify, snapshot=blob)
            events += engine.push(graph(*one), at=time)
        events += engine.finish()
        found = [
            (e.rule, e.time, tuple(sorted((n, Fraction(str(v))) for n, v in e.bindings.items())))
            for e in events
        ]
        assert sorted(found) == expected(stream, limit)


LIMIT = 2**63
STREAM: Stream = [
    ([2**63 - 1], "long"),
    ([2**63, 5], "integer"),
    ([2**64 - 1, 10**30], "unsignedLong"),
    ([2**63 + 1], "integer"),
]


def written() -> None:
    Path("r.dotr").write_text(rules(LIMIT).replace("LARS", "RULES <r.dlog>\nLARS", 1))
    Path("r.dlog").write_text(DATALOG)
    Path("held.lars").write_text(LARS)
    lines = [{"time": time, "graph": graph(*one)} for time, one in enumerate(STREAM)]
    Path("s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_batch_has_them_too(dotr: Dotr, engine: str) -> None:  # noqa: F811  # fixture
    written()
    ran = dotr("batch", "r.dotr", "s.jsonl", "--out", "out", "--engine", engine)
    assert ran.code == 0, ran.err
    lines = "".join(path.read_text() for path in sorted(Path("out").glob("*.jsonl")))
    assert of_json(lines) == expected(STREAM, LIMIT)


MAP = "# time: t\n<urn:x:c> <urn:x:v> {v}^^<%s> . <urn:x:m> a <urn:x:Mark> .\n"


@pytest.mark.parametrize("kind", ["uint64", "decimal128", "csv", "json"])
def test_tables_have_them(dotr: Dotr, kind: str) -> None:  # noqa: F811  # fixture
    written()
    numbers = [2**63 - 1, 2**63, 2**64 - 1, 2**63 + 1, 12]
    if kind != "uint64":
        numbers += [10**37, -(10**37)]
    Path("m.ttl").write_text(MAP % (XSD + ("unsignedLong" if kind == "uint64" else "integer")))
    times = pa.array(range(len(numbers)))
    if kind == "csv":
        Path("t.csv").write_text("t,v\n" + "".join(f"{t},{n}\n" for t, n in enumerate(numbers)))
    elif kind == "json":
        rows = [{"t": t, "v": n} for t, n in enumerate(numbers)]
        Path("t.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "uint64":
        pq.write_table(pa.table({"t": times, "v": pa.array(numbers, pa.uint64())}), "t.parquet")
    else:
        column = pa.array(list(map(Decimal, numbers)), pa.decimal128(38, 0))
        pq.write_table(pa.table({"t": times, "v": column}), "t.parquet")
    (path,) = Path().glob("t.*")
    ran = dotr("run", "r.dotr", str(path), "--map", "m.ttl", "--verify")
    assert ran.code == 0, ran.err
    assert of_json(ran.out) == expected([([number], "integer") for number in numbers], LIMIT)


@given(st.lists(around, min_size=1, max_size=6, unique=True))
def test_a_knowledge_base_and_a_store_have_them(place: Path, numbers: list[int]) -> None:
    c, v = rdflib.URIRef("urn:x:c"), rdflib.URIRef("urn:x:v")
    kb = KnowledgeBase(rules=place / "r.dlog")
    kb.insert([(c, v, rdflib.Literal(number)) for number in numbers])
    kb.save(place / "numbers.kb")
    store = rdflib.Graph(store="dotr")
    for number in numbers:
        store.add((c, v, rdflib.Literal(number)))
    least = numbers[0]
    asked = f"SELECT ?v (?v * 4 AS ?w) {{ ?c <urn:x:v> ?v FILTER(?v >= {least}) }} ORDER BY DESC(?v)"
    right = [(number, number * 4) for number in sorted(numbers, reverse=True) if number >= least]
    for base in (kb, KnowledgeBase.open(place / "numbers.kb"), store):
        assert [tuple(int(str(term)) for term in row) for row in base.query(asked)] == right
        ((low, high, summed, count),) = base.query(TOTALS)
        found = [int(str(term)) for term in (low, high, summed, count)]
        assert found == [min(numbers), max(numbers), sum(numbers), len(numbers)]
        assert len(list(base.query(f"SELECT ?c {{ ?c <urn:x:v> {least} }}"))) == 1
    far = [int(str(row[0])) for row in kb.query("SELECT ?w { ?c <urn:x:far> ?w } ORDER BY ?w")]
    assert far == sorted({number**2 - 7 for number in numbers if not -(2**63) <= number <= 2**63})


def test_rules_with_thresholds_around_one_double_are_told_apart() -> None:
    limits = [2**63 - 1, 2**63, 2**63 + 1, 2**63 + 2, 10**400, 10**400 + 1]
    text = "PREFIX : <urn:x:>\n" + "".join(
        f"RULE R{i} DEFINE {{ dotr_a a :R{i} ; :v ?v }}\n"
        f"FROM Q{i} := {{ SELECT ?v WHERE {{ ?c :v ?v FILTER(?v > {limit}) }} }} WITH ?v := Q{i}.?v\n"
        for i, limit in enumerate(limits)
    )
    engine = Engine.from_text(text, verify=True)
    brought = [*limits, 10**400 + 2]
    engine.push(f"<urn:x:c> <urn:x:v> {', '.join(map(str, brought))} .", at=1)
    found = sorted((event.rule, int(str(event["v"]))) for event in engine.finish())
    assert found == sorted((f"R{i}", v) for i, limit in enumerate(limits) for v in brought if v > limit)
