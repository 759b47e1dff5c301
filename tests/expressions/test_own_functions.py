"""Functions of one's own: what they get and give, by engine and literal reading, and what is refused."""

from __future__ import annotations

import datetime as d
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

import dotr
from dotr.expressions import own_functions as kept
from dotr.expressions.literal_functions import call_of_terms, called_literally
from dotr.expressions.own_functions import called
from dotr.program.own_functions import OWN, OwnFunction, _brought, register
from dotr.rdf.terms import Term, canonical
from dotr.rdf.values import decode, encode
from tests import own_functions
from tests.rdf import terms_strategies as t

SPACE = "http://example.org/test#"


def own(function: Callable[..., Any]) -> OwnFunction:
    return OwnFunction(f"<{SPACE}{id(function)}>", function, "", "", 0, 9)


def given_to(*terms: Term) -> list[Any]:
    """What a function gets for terms, by the engine and literally."""
    seen: list[Any] = []

    def see(*arguments: Any) -> bool:
        seen.append(arguments)
        return True

    called(own(see))(*map(decode, terms))
    call_of_terms(own(see), terms)
    return seen


def made_of(found: Any) -> Term | None:
    """The term of what a function returns, which both conversions must agree on."""
    value, literally = called(own(lambda: found))(), called_literally(own(lambda: found))()
    terms = [None if one is None else encode(one) for one in (value, literally)]
    assert terms[0] == terms[1]
    return terms[0]


@given(st.one_of(t.literals, t.datetimes, t.numbers, t.others, t.iris).map(canonical))
def test_engine_and_literal_reading_give_the_same_argument(term: Term) -> None:
    (one,), (other,) = given_to(term)
    assert type(one) is type(other)
    assert repr(one) == repr(other)


moments = st.datetimes(timezones=st.none() | st.timezones())
returned = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(max_size=20),
    moments,
    st.timedeltas(),
    st.none(),
    st.binary(max_size=3),
    st.dates(),
    st.text(max_size=5).map(rdflib.Literal),
)


@given(returned)
def test_engine_and_literal_reading_make_the_same_term_of_a_result(found: Any) -> None:
    made_of(found)


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("found", "term"),
    [
        (True, '"true"^^xsd:boolean'),
        (Level.HIGH, '"3"^^xsd:integer'),
        (10**4095, f'"1{"0" * 4095}"^^xsd:integer'),
        (10**4096, None),
        (-(10**4096), None),
        (Decimal("1.50"), '"1.5"^^xsd:decimal'),
        (Decimal("-0"), '"0"^^xsd:decimal'),
        (Decimal("0.9999999999999999999"), '"0.999999999999999999"^^xsd:decimal'),
        (Decimal("1E-999999"), '"0"^^xsd:decimal'),
        (Decimal("1E+999999"), None),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (float("nan"), '"NaN"^^xsd:double'),
        (float("-inf"), '"-INF"^^xsd:double'),
        (-0.0, '"-0"^^xsd:double'),
        ("", '""'),
        ("a" * (1 << 20), f'"{"a" * (1 << 20)}"'),
        ("a" * ((1 << 20) + 1), None),
        ('"\n', r'"\"\n"'),
        ("\udc80", None),
        (None, None),
        ([1], None),
        (b"a", None),
        (1j, None),
        (d.date(2026, 1, 1), None),
        (d.datetime(1, 1, 1), '"0001-01-01T00:00:00"^^xsd:dateTime'),  # without a zone
        (
            d.datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Brussels")),
            '"2026-07-01T00:00:00+02:00"^^xsd:dateTime',
        ),
        (
            d.datetime(1800, 1, 1, tzinfo=d.timezone(d.timedelta(minutes=19, seconds=32))),
            '"1799-12-31T23:40:28Z"^^xsd:dateTime',
        ),
        (d.timedelta(0), '"PT0S"^^xsd:dayTimeDuration'),
        (d.timedelta(days=-1), '"-P1D"^^xsd:dayTimeDuration'),
        (rdflib.URIRef("http://example.org/a"), "<http://example.org/a>"),
        (rdflib.URIRef("no iri"), None),
        (rdflib.BNode("new"), None),
        (rdflib.Variable("x"), None),
        (rdflib.Literal("chat", lang="fr"), '"chat"@fr'),
        (rdflib.Literal("\ud800"), None),
        (rdflib.Literal("01", datatype=rdflib.XSD.integer), '"1"^^xsd:integer'),
    ],
)
def test_what_a_function_returns(found: Any, term: Term | None) -> None:
    if term is not None and "^^xsd:" in term:
        term = term.replace("^^xsd:", "^^<http://www.w3.org/2001/XMLSchema#") + ">"
    assert made_of(found) == term


def test_a_blank_node_comes_back_and_none_is_made() -> None:
    assert call_of_terms(own(lambda x: x), ["_:b"]) == "_:b"
    value = called(own(lambda x: x))(decode("_:b"))
    assert value is not None
    assert encode(value) == "_:b"


@pytest.mark.parametrize("error", [ValueError, RecursionError, SystemExit, StopIteration, dotr.UsageError])
def test_what_a_function_raises_is_an_error_of_the_expression(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error(())

    assert called(own(fail))() is None
    assert call_of_terms(own(fail), []) is None


def test_an_interrupt_passes() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        called(own(interrupt))()
    with pytest.raises(KeyboardInterrupt):
        call_of_terms(own(interrupt), [])


def test_a_function_is_called_once_for_each_tuple_of_arguments() -> None:
    calls: list[Any] = []
    call = called(own(lambda x: calls.append(x) or len(calls)))
    zeros = [1, True, 1.0, Decimal(1), "1", 0.0, -0.0]
    assert [call(x) for x in zeros] == [call(x) for x in zeros] == [1, 2, 3, 4, 5, 6, 7]
    assert call(Decimal("1.0")) == 4  # the same term as Decimal(1)


RULES = """
PREFIX : <urn:>
PREFIX f: <http://example.org/test#>
RULE Found
DEFINE { dotr_e :is ?y }
FROM Value := { SELECT ?v WHERE { ?o :v ?v } }
WITH ?y := f:%s(Value.?v)
"""


def values(name: str, function: Any, *given: str, verify: bool = True) -> list[str]:
    engine = dotr.Engine.from_text(RULES % name, functions={SPACE + name: function}, verify=verify)
    events = [
        event for at, one in enumerate(given) for event in engine.push(f"<urn:o> <urn:v> {one} .", at=at)
    ]
    return [str(event["y"]) for event in [*events, *engine.finish()]]


def test_an_engine_calls_functions_in_rules() -> None:
    assert values("twice", lambda x: 2 * x, "1", "2.5", '"a"', "<urn:i>") == ["2", "5", "aa", "urn:iurn:i"]


def test_a_function_may_use_an_engine_itself() -> None:
    def inner(value: int) -> str:
        return " ".join(values("innermost", lambda x: x + 1, str(value)))

    assert values("outer", inner, "1", "5") == ["2", "6"]


def test_two_functions_of_one_name_are_refused_and_one_defined_twice_is_one() -> None:
    def make(factor: int) -> Callable[[int], int]:
        return lambda x: factor * x

    name = f"{SPACE}scaled"
    register({name: make(2)})
    register({name: make(2)})
    with pytest.raises(dotr.UsageError, match="D4155"):
        register({name: make(3), f"{SPACE}never": make(1)})
    assert f"<{SPACE}never>" not in OWN


async def _later() -> int:
    return 1


def _yields() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("twice", len, "is not the name of a function"),
        ("http://a b", len, "is not the name of a function"),
        (7, len, "is not the name of a function"),
        ("http://www.w3.org/2001/XMLSchema#integer", len, "a name of dotr's own"),
        ("http://www.w3.org/2005/xpath-functions/math#sqrt", len, "a name of dotr's own"),
        ("http://www.opengis.net/def/function/geosparql/distance", len, "a name of dotr's own"),
        ("urn:dotr:owl:dataValue", len, "a name of dotr's own"),
        ("urn:x:f", 7, "is no function"),
        ("urn:x:f", _later, "gives its value later"),
        ("urn:x:f", _yields, "gives its value later"),
        ("urn:x:f", lambda *, unit: unit, "needs an argument `unit` by keyword"),
    ],
)
def test_what_cannot_be_registered(name: Any, function: Any, message: str) -> None:
    with pytest.raises(dotr.UsageError, match=message) as raised:
        register({name: function})
    assert raised.value.diagnostics[0].code == "D4155"
    assert raised.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("function", "arguments", "wrong"),
    [
        (lambda: 1, 1, "takes 0 arguments, not 1"),
        (lambda a: a, 2, "takes 1 argument, not 2"),
        (lambda a, b=1: a, 0, "takes 1 to 2 arguments, not 0"),
        (lambda a, *more: a, 0, "takes 1 or more arguments, not 0"),
        (partial(max, 1), 3, None),
        (max, 7, None),
    ],
)
def test_numbers_of_arguments(function: Any, arguments: int, wrong: str | None) -> None:
    name = f"{SPACE}arity{arguments}{wrong}".replace(" ", "_")
    register({name: function})
    found = OWN[f"<{name}>"].wrong(arguments)
    assert found is None if wrong is None else wrong in (found or "")


def test_a_wrong_number_of_arguments_is_an_error_of_the_program() -> None:
    with pytest.raises(dotr.ProgramError, match="D1215"):
        dotr.Engine.from_text(RULES % "two", functions={f"{SPACE}two": lambda a, b: a})


def test_a_function_that_is_missing_is_an_error_with_the_option() -> None:
    with pytest.raises(dotr.ProgramError, match="--functions MODULE") as raised:
        dotr.Engine.from_text(RULES % "absent")
    assert raised.value.diagnostics[0].code == "D1216"
    assert raised.value.diagnostics[0].span is not None
    register({f"{SPACE}presence": abs})
    with pytest.raises(dotr.ProgramError, match=f"did you mean <{SPACE}presence>?"):
        dotr.Engine.from_text(RULES % "presense")


def test_another_process_imports_what_a_program_calls(tmp_path: Path) -> None:
    text = RULES.replace(SPACE, own_functions.SPACE) % "half"
    program = dotr.Engine.from_text(text).program
    assert [one.term for one in program.functions] == [f"<{own_functions.SPACE}half>"]
    (tmp_path / "program").write_bytes(pickle.dumps(program))
    code = (
        "import pickle, dotr\n"
        f"program = pickle.load(open({str(tmp_path / 'program')!r}, 'rb'))\n"
        "engine = dotr.Engine(program)\n"
        "engine.push('<urn:o> <urn:v> 3 .', at=1)\n"
        "print(engine.finish()[0]['y'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1.5"


def test_packages_offer_functions_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose module fails is named where a function is missing."""
    about = tmp_path / "offering-3.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 3.0\n")
    entries = "[dotr.functions]\nall = offering_functions\nbroken = offering_broken:TABLE\n"
    (about / "entry_points.txt").write_text(entries)
    (tmp_path / "offering_broken.py").write_text("raise OSError('no table')")
    name = f"{own_functions.SPACE}offered"
    (tmp_path / "offering_functions.py").write_text(f"FUNCTIONS = {{{name!r}: lambda x: x + 1}}")
    text = RULES.replace(SPACE, own_functions.SPACE)
    code = (
        "import pickle, dotr\n"
        f"program = dotr.Engine.from_text({text % 'offered'!r}).program\n"
        "(one,) = program.functions\n"
        "print(one.version, one.origin)\n"
        "try:\n"
        f"    dotr.Engine.from_text({text % 'absent'!r})\n"
        "except dotr.ProgramError as error:\n"
        "    print(error)\n"
        "open('program', 'wb').write(pickle.dumps(program))\n"
    )
    again = "import pickle; print(pickle.load(open('program', 'rb')).functions)"
    paths = os.pathsep.join([str(tmp_path), str(Path(dotr.__file__).parents[1])])
    found = ""
    for part in (code, again):
        done = subprocess.run(
            [sys.executable, "-c", part],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths},
        )
        assert done.returncode == 0, done.stderr
        found += done.stdout
    assert "3.0 entry point offering_functions\n" in found
    assert "the entry point broken = offering_broken:TABLE failed: OSError: no table" in found
    assert f"OwnFunction(term='<{name}>', version='3.0')" in found


def test_a_lambda_does_not_go_to_another_process() -> None:
    program = dotr.Engine.from_text(RULES % "local", functions={f"{SPACE}local": lambda x: x}).program
    with pytest.raises(dotr.UsageError, match="D4156"):
        pickle.dumps(program)


def test_another_version_is_another_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    from dotr.detect.digest import rule_digests  # noqa: PLC0415  # for this test alone

    text = RULES.replace(SPACE, own_functions.SPACE) % "half"
    before = dotr.Engine.from_text(text).program
    name = f"<{own_functions.SPACE}half>"
    old = OWN[name]
    monkeypatch.setitem(OWN, name, OwnFunction(name, old.function, "2", old.origin, old.least, old.most))
    after = dotr.Engine.from_text(text).program
    assert rule_digests(before) != rule_digests(after)
    assert before.fingerprint != after.fingerprint
    with pytest.raises(dotr.UsageError, match="D4156"):
        pickle.loads(pickle.dumps(before))  # noqa: S301  # our own bytes


@pytest.mark.parametrize("origin", ["math:no_such_function", "entry point math:no_such_table"])
def test_a_function_that_another_process_lacks_is_a_diagnostic(origin: str) -> None:
    with pytest.raises(dotr.DotrError, match="D4156"):
        _brought("<https://example.org/nowhere#f>", "1", origin)


CALLS = """
PREFIX : <urn:>
PREFIX f: <http://example.org/test#>
RULE Found
DEFINE { dotr_e :is ?y }
FROM Value := { SELECT ?v WHERE { ?o :v ?v FILTER(f:%(name)s(?v, 1) > 0) } }
AND EACH Other := { SELECT ?w WHERE { ?o :w ?w } } WITHIN 10 s BEFORE Value ON f:%(name)s(Other.?w, 2) > 0
WITH ?y := f:%(name)s(Value.?v, 3)
"""


def test_rules_and_queries_call_in_canonical_order_and_once_for_each_tuple() -> None:
    calls: list[tuple[int, int]] = []
    engine = dotr.Engine.from_text(
        CALLS % {"name": "noted"}, functions={f"{SPACE}noted": lambda v, n: calls.append((v, n)) or v}
    )
    for at in (1, 2):
        engine.push(" ".join(f"<urn:o{n}> <urn:v> {n} ; <urn:w> {n} ." for n in (3, 1, 2, 1)), at=at)
    engine.finish()
    asked = {number: [v for v, n in calls if n == number] for number in (1, 2, 3)}
    assert asked == {1: [1, 2, 3], 2: [1, 2, 3], 3: [1, 2, 3]}


ORDERED = {
    "filter": "SELECT ?v WHERE { ?o :v ?v FILTER(f:n(?v) > 0) }",
    "bind": "SELECT ?v WHERE { ?o :v ?w BIND(f:n(?w) AS ?v) }",
    "select": "SELECT (f:n(?w) AS ?v) WHERE { ?o :v ?w }",
    "nested": "SELECT (f:n(f:n(?w) + 10) AS ?v) WHERE { ?o :v ?w }",
    "after a bind": "SELECT ?v WHERE { ?o :v ?w BIND(f:n(?w) AS ?x) ?o :v ?v FILTER(f:n(?x + 10) > 0) }",
    "group": "SELECT ?v WHERE { ?o :v ?w } GROUP BY (f:n(?w) AS ?v)",
    "aggregate": "SELECT (SUM(f:n(?w)) AS ?v) WHERE { ?o :v ?w }",
    "with the time": "SELECT ?v WHERE { ?o :v ?w BIND(f:n(?w + NOW()) AS ?v) }",
    "optional": "SELECT (?x AS ?v) WHERE { ?o :v ?w OPTIONAL { ?o :v ?x FILTER(f:n(?x) > 3) } }",
    "optional, joined": "SELECT ?v WHERE { ?o :v ?w OPTIONAL { ?p :v ?v FILTER(f:n(?v * ?w) > 3) } }",
    "optional, interpreted": """SELECT ?v WHERE { { SELECT ?o WHERE { ?o :v ?w } }
        OPTIONAL { ?o :v ?v FILTER(f:n(?v + 0) > 3) } }""",
    "exists": "SELECT ?v WHERE { ?o :v ?v FILTER EXISTS { ?o :v ?x FILTER(f:n(?x) > 3) } }",
    "exists, joined": "SELECT ?v WHERE { ?o :v ?v FILTER EXISTS { ?p :v ?x . FILTER(f:n(?x * ?v) > 30) } }",
    "exists, two": """SELECT ?v WHERE { ?o :v ?v
        FILTER EXISTS { ?p :v ?x . FILTER(f:n(?x) > 3) FILTER(f:n(?x + 100) > 103) } }""",
    "not exists": "SELECT ?v WHERE { ?o :v ?v FILTER NOT EXISTS { ?o :v ?x FILTER(f:n(?x) > 3) } }",
    "exists, a union": """SELECT ?v WHERE { ?o :v ?v
        FILTER EXISTS { { ?o :v ?x FILTER(f:n(?x) > 3) } UNION { ?o :v ?x FILTER(f:n(?x + 100) > 3) } } }""",
    "exists, interpreted": """SELECT ?v WHERE { ?o :v ?v
        FILTER EXISTS { ?o :v ?x BIND(f:n(?x) AS ?y) FILTER(?y > 3) } }""",
    "interpreted": "SELECT ?v WHERE { { SELECT ?w WHERE { ?o :v ?w } } BIND(f:n(?w) AS ?v) }",
}


@pytest.mark.parametrize("query", ORDERED.values(), ids=ORDERED)
@pytest.mark.parametrize("lasting", [False, True])
def test_operators_of_queries_call_in_canonical_order(query: str, lasting: bool) -> None:
    calls: list[int] = []
    space = f"{SPACE}{len(OWN)}/"
    rules = f"""PREFIX : <urn:> PREFIX f: <{space}>
{"HOLD :v FOR 1 h" if lasting else ""}
RULE A DEFINE {{ dotr_a a :A }} FROM V := {{ {query} }} WITH ?v := V.?v"""
    engine = dotr.Engine.from_text(rules, functions={f"{space}n": lambda v: calls.append(v) or v})
    for at, numbers in enumerate(((9, 2, 30, 4, 2), (8, 1, 2))):
        triples = "".join(f"<urn:o{at}{n}> <urn:v> {v} . " for n, v in enumerate(numbers))
        before = len(calls)
        engine.push(triples, at=at)
        engine.advance(at)
        came = calls[before:]
        falls = [b for a, b in pairwise(came) if b < a]
        rounds = query.count("f:n(f") + query.count("?x + 10") + query.count("f:n(?v)")
        assert len(falls) <= rounds, came
    engine.finish()
    assert len(calls) == len(set(calls))


LATER = {
    "a bind, then a pattern": "?o :v ?w BIND(f:n(?w) AS ?v) ?p :u ?v",
    "a bind of the background": "?o :known ?w BIND(f:n(?w) AS ?v) ?p :u ?w",
    "a bind, optional": "?o :known ?w BIND(f:n(?w) AS ?v) OPTIONAL { ?p :u ?w }",
    "a bind, minus": "?o :v ?w BIND(f:n(?w) AS ?v) MINUS { ?p :u ?v }",
    "a bind, exists": "?o :v ?w BIND(f:n(?w) AS ?v) FILTER EXISTS { ?p :u ?v }",
    "two": "?o :v ?w BIND(f:n(?w) AS ?x) ?p :u ?x BIND(f:n(?x + 100) AS ?v) ?q :u ?w",
    "in a group": "?p :u ?w { ?o :v ?w BIND(f:n(?w) AS ?v) }",
    "in a group, of the background": "?p :u ?w { ?o :known ?w BIND(f:n(?w) AS ?v) }",
    "a filter in a group": "?p :u ?w { ?o :known ?w, ?v FILTER(f:n(?w) > 0) }",
    "in an optional": "?p :u ?w OPTIONAL { ?o :known ?w BIND(f:n(?w) AS ?v) }",
    "in two optionals": "?p :u ?w OPTIONAL { ?o :v ?w OPTIONAL { ?q :known ?w BIND(f:n(?w) AS ?v) } }",
    "in a minus": "?p :u ?w, ?v MINUS { ?o :v ?w BIND(f:n(?w) AS ?x) FILTER(?x > 5) }",
    "in a union": "?p :u ?w { { ?o :v ?w BIND(f:n(?w) AS ?v) } UNION { ?o :v ?w BIND(f:n(-?w) AS ?v) } }",
    "in a query": "?p :u ?w { SELECT ?w (f:n(?w) AS ?v) WHERE { ?o :known ?w } }",
    "in groups of a query": "?p :u ?w { SELECT ?w (SUM(f:n(?w)) AS ?v) WHERE { ?o :known ?w } GROUP BY ?w }",
}
DERIVED = {
    "alone": "[?o, :v, ?v], [?o, :u, ?u], BIND(f:n(?v) AS ?y)",
    "absent": "[?o, :v, ?v], [?o, :u, ?u], BIND(f:n(?v) AS ?y), NOT [?o, :u, ?y]",
    "plain": "[?o, :known, ?v], [?p, :u, ?v], BIND(f:n(?v) AS ?y), BIND(?y + 1 AS ?z), FILTER(?z > 4)",
    "chain": "[?o, :v, ?v], [?o, :u, ?u], BIND(f:n(?v) AS ?z), BIND(f:n(?z + 100) AS ?a), NOT [?o, :u, ?z]",
    "tests": "[?o, :v, ?v], [?o, :u, ?u], FILTER(f:n(?v) > 3), FILTER(f:n(?u + 100) > 103)",
}
ASKED = """
RULE A DEFINE { dotr_a a :A } FROM V := { SELECT ?v WHERE { %s } } WITH ?v := V.?v
RULE B DEFINE { dotr_b a :B } FROM W := { SELECT ?v WHERE { ?o :ok ?v } } WITH ?v := W.?v"""
MOMENTS = ((9, 2, 30, 4), (2, 30, 11, 7)), ((8, 1, 2), (8, 3, 9, 4, 1)), ((), (9, 2)), ((5, 7), ())
KNOWN = 7, 3, 11, 2, 30, 9


def _calls(query: str, rules: str, hold: bool, shuffle: Callable[[list[str]], None]) -> list[list[int]]:
    """What is called when the program is loaded, and at every moment; `shuffle` orders triples and atoms."""
    calls = list[int]()
    space = f"{SPACE}{len(OWN)}/"
    body = re.split(", (?=[A-Z[])", rules)
    known = [f"<urn:b{n}> <urn:known> {n} ." for n in KNOWN]
    shuffle(body)
    shuffle(known)
    with TemporaryDirectory() as folder:
        (Path(folder) / "known.ttl").write_text("\n".join(known))
        head = f"PREFIX : <urn:> PREFIX f: <{space}>\n"
        (Path(folder) / "rules.dlog").write_text(f"{head}[?o, :ok, ?v] :- {', '.join(body)} .\n")
        lasting = "HOLD :v FOR 2 s HOLD :u FOR 3 s" if hold else ""
        text = f"{head}BACKGROUND <known.ttl> RULES <rules.dlog> {lasting}" + ASKED % query
        (Path(folder) / "rules.dotr").write_text(text)
        engine = dotr.Engine(Path(folder) / "rules.dotr", functions={f"{space}n": partial(_note, calls)})
        found = [calls[:]]
        for at, (ours, others) in enumerate(MOMENTS):
            triples = [f"<urn:o{n}> <urn:v> {n} ." for n in ours] + [
                f"<urn:o{n}> <urn:u> {n} ." for n in others
            ]
            shuffle(triples)
            before = len(calls)
            engine.push(" ".join(triples), at=at)
            engine.advance(at)
            found.append(calls[before:])
        engine.finish()
        assert len(calls) == len(set(calls))
        return found


@pytest.mark.parametrize("query", LATER.values(), ids=LATER)
@pytest.mark.parametrize("hold", [False, True])
def test_what_later_patterns_need_is_called_in_canonical_order(query: str, hold: bool) -> None:
    """A BIND waits for all rows before it, however these are joined and looked up."""
    found = _calls(query, "[?o, :none, ?v]", hold, lambda triples: None)
    assert any(found)
    for calls in found:
        assert [n for n in calls if n < 100] == sorted(n for n in calls if n < 100)
        assert [n for n in calls if n >= 100] == sorted(n for n in calls if n >= 100)


@given(st.sampled_from([*LATER.values()]), st.sampled_from([*DERIVED.values()]), st.booleans(), st.randoms())
def test_no_order_of_triples_or_atoms_decides_what_is_called(
    query: str, rules: str, hold: bool, random: Random
) -> None:
    assert _calls(query, rules, hold, random.shuffle) == _calls(query, rules, hold, lambda order: None)


def test_nested_parts_with_calls_are_not_evaluated_twice_for_each_level() -> None:
    """Thirteen levels took more than a minute."""
    text, levels = "", 13
    for level in reversed(range(levels)):
        inner = f"OPTIONAL {{ {text} FILTER(<{SPACE}same>(?v{level}) <= ?w{level}) }}" if text else ""
        text = f"?o <urn:v{level}> ?v{level} BIND(<{SPACE}same>(?v{level}) AS ?w{level}) {inner}"
    query = f"Q := {{ SELECT ?w0 WHERE {{ {text} }} }}"
    rules = f"RULE R DEFINE {{ dotr_e <urn:r> ?x }} FROM {query} WITH ?x := Q.?w0"
    engine = dotr.Engine.from_text(rules, functions={f"{SPACE}same": lambda value: value})
    begun = time.process_time()
    graph = " ".join(f"<urn:o{n}> <urn:v{level}> {n} ." for n in range(4) for level in range(levels))
    found = [*engine.push(graph, at=1), *engine.finish()]
    assert len(found) == 4
    assert time.process_time() - begun < 15


def test_no_order_of_hashes_decides_what_is_called() -> None:
    code = (
        "from tests.expressions import test_own_functions as t\n"
        "rules = [*t.DERIVED.values()]\n"
        "for n, query in enumerate(t.LATER.values()):\n"
        "    print(t._calls(query, rules[n % len(rules)], n % 2 == 0, lambda order: None))\n"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(dotr.__file__).parents[1])},
        ).stdout
        for seed in "12"
    ]
    assert found[0] == found[1]
    assert found[0].count("[") > 2 * len(LATER)


def test_a_call_of_a_rule_waits_for_all_patterns() -> None:
    """Only what other patterns match is called with, though a later NOT needs the result."""
    found = _calls("?o :none ?v", DERIVED["absent"], False, lambda order: None)
    assert found == [[], [2, 30], [1, 8], [], []]


BODIES = {
    "filter": "[?o, :v, ?v], FILTER(f:n(?v) > 0)",
    "bind": "[?o, :w, ?v], BIND(f:n(?v) AS ?y), FILTER(?y > 0)",
    "join": "[?o, :v, ?v], [?o, :w, ?w], FILTER(f:n(?v * ?w) > 5)",
    "other join": "[?o, :w, ?w], [?p, :v, ?v], [?o, :v, ?v], FILTER(f:n(?v * ?w) > 5)",
    "both": "[?o, :v, ?v], [?p, :w, ?w], FILTER(f:n(?v + ?w) > 5), FILTER(?v > ?w)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("hold", ["", "HOLD :v FOR 2 s\nHOLD :w FOR 3 s"])
@pytest.mark.parametrize("background", [False, True])
def test_datalog_calls_in_canonical_order(body: str, hold: str, background: bool, tmp_path: Path) -> None:
    """Whatever the order in which triples come, in which patterns are written, and what lasts."""
    seen: list[list[list[int]]] = []
    for number in range(4):
        calls = list[int]()
        space = f"{SPACE}{len(OWN)}/"
        first, *others = body.split("], ")
        turned = "], ".join([*others[:-1][::-1], first, others[-1]]) if number % 2 and others[1:] else body
        rules, known = tmp_path / f"{number}.dlog", tmp_path / f"{number}.ttl"
        rules.write_text(f"PREFIX : <urn:> PREFIX f: <{space}>\n[?o, :ok, ?v] :- {turned} .\n")
        known.write_text("".join(f"<urn:b{n}> <urn:v> {n} ; <urn:w> {30 - n} ." for n in (7, 3, 11)))
        program = tmp_path / f"{number}.dotr"
        given = f"BACKGROUND <{known.name}>" if background else ""
        program.write_text(f"""PREFIX : <urn:> RULES <{rules.name}> {given}
{hold}
RULE A DEFINE {{ dotr_a a :A }} FROM V := {{ SELECT ?o ?v WHERE {{ ?o :ok ?v }} }} WITH ?v := V.?v""")
        engine = dotr.Engine(program, functions={f"{space}n": partial(_note, calls)})
        rounds = []
        for at, numbers in enumerate(((9, 2, 30, 4), (8, 1, 2), (), (5,))):
            before = len(calls)
            triples = [f"<urn:o{n}> <urn:v> {n} . " for n in numbers]
            triples += [f"<urn:o{n}> <urn:w> {n + 1} . " for n in numbers]
            engine.push("".join(triples[:: 1 if number < 2 else -1]), at=at)
            engine.advance(at)
            rounds.append(calls[before:] if at else calls[:])
        engine.finish()
        assert all(round_ == sorted(round_) for round_ in rounds) or (background and rounds[0]), rounds
        assert len(calls) == len(set(calls))
        assert calls
        seen.append(rounds)
    assert seen.count(seen[0]) == len(seen)


def test_calls_of_a_recursive_rule_follow_one_another(tmp_path: Path) -> None:
    """A call of what another one made comes after it; those that are known together are in order."""
    calls: list[int] = []
    space = f"{SPACE}{len(OWN)}/"
    rules = tmp_path / "a.dlog"
    rules.write_text(f"""PREFIX : <urn:> PREFIX f: <{space}>
[?x, :to, ?z] :- [?x, :to, ?y], [?y, :next, ?z], [?z, :v, ?v], FILTER(f:n(?v) > 0) .
[?x, :free, ?v] :- [?x, :v, ?v], NOT [:s, :to, ?x], FILTER(f:n(?v + 100) > 0) .
""")
    text = f"""PREFIX : <urn:> RULES <{rules}>
RULE A DEFINE {{ dotr_a a :A }} FROM V := {{ SELECT ?x ?v WHERE {{ ?x :free ?v }} }} WITH ?v := V.?v"""
    engine = dotr.Engine.from_text(text, functions={f"{space}n": lambda v: calls.append(v) or v})
    chain = "".join(f"<urn:{a}> <urn:next> <urn:{b}> . " for a, b in ("bc", "ad", "ab", "ae", "cf"))
    engine.push(
        "<urn:s> <urn:to> <urn:a> . "
        + chain
        + "".join(f"<urn:{x}> <urn:v> {n} . " for n, x in enumerate("fbcdeag")),
        at=1,
    )
    events = engine.finish()
    assert calls == [1, 3, 4, 2, 0, 100, 106]
    assert len(events) == 2  # f is 0 and not reached, as g


def _note(calls: list[int], value: int) -> int:
    calls.append(value)
    return value


def test_what_was_asked_for_lately_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT", 3)
    calls: list[int] = []
    call = called(own(lambda x: calls.append(x) or x))
    for x in (1, 2, 3, 1, 4, 1, 5, 6, 1, 2):
        assert call(x) == x
    assert calls == [1, 2, 3, 4, 5, 6, 2]


def test_a_call_costs_ten_units_in_rules_and_queries_whether_it_is_kept_or_not() -> None:
    """D4010 and D4132 come at the same number of calls."""

    def work(calls: int, budget: int, where: str) -> str:
        sum_ = " + ".join("f:one(B.?v, A.?o)" if where else "f:one(?v)" for _ in range(calls))
        text = (
            "PREFIX : <urn:>\nPREFIX f: <http://example.org/test#>\nRULE Found DEFINE { dotr_e a :E }\n"
            "FROM A := { SELECT ?o WHERE { ?o :a 1 } }\n"
            "AND EACH B := { SELECT ?v WHERE { ?o :v ?v %s } } WITHIN 10 s FROM A ON %s"
        )
        test = f"{sum_} > 0"
        text %= ("", test) if where else (f"FILTER({test})", "B.?v != A.?o")
        engine = dotr.Engine.from_text(text, functions={f"{SPACE}one": _one}, budget=budget)
        engine.push(" ".join(f"<urn:o{n}> <urn:v> {n} ." for n in range(40)) + " <urn:o> <urn:a> 1 .", at=1)
        try:
            engine.finish()
        except dotr.DotrError as error:
            return error.diagnostics[0].code
        return ""

    for where, code in (("B", "D4010"), ("", "D4132")):
        for calls in (1, 5, 20):
            least = 40 * 10 * calls
            assert work(calls, least, where) == code
            assert work(calls, least + 40 * 40 + 200, where) == ""


def _one(*_values: Any) -> int:
    return 1


def test_without_a_version_it_is_a_hash_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for number, body in enumerate(("1", "1", "2")):
        module = f"unversioned{number}"
        (tmp_path / f"{module}.py").write_text(f"def f():\n    return {body}\n")
        name = f"{SPACE}{module}"
        register({name: __import__(module).f})
        found.append(OWN[f"<{name}>"].version)
    assert found[0] == found[1] != found[2]
    assert all(version.startswith("source ") for version in found)


def test_a_knowledge_base_calls_functions_and_is_not_opened_with_other_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, file, name = tmp_path / "rules.dlog", tmp_path / "saved.kb", f"{SPACE}doubled"
    rules.write_text(f"[?x, <urn:twice>, ?y] :- [?x, <urn:v>, ?v], BIND(<{name}>(?v) AS ?y) .\n")
    functions = {name: lambda v: 2 * v}
    base = dotr.KnowledgeBase(rules=rules, functions=functions, terms="canonical")
    base.insert("<urn:o> <urn:v> 4 .")
    ((_, _, twice),) = base.triples(which="derived")
    assert twice.startswith('"8"')
    base.save(file)
    assert len(dotr.KnowledgeBase.open(file, functions=functions)) == len(base)
    old = OWN[f"<{name}>"]
    other = OwnFunction(old.term, old.function, "2", old.origin, old.least, old.most)
    monkeypatch.setitem(OWN, old.term, other)
    with pytest.raises(dotr.UsageError, match="when it was saved it had the version"):
        dotr.KnowledgeBase.open(file)
    monkeypatch.delitem(OWN, old.term)
    with pytest.raises(dotr.UsageError, match="D4156"):
        dotr.KnowledgeBase.open(file)
