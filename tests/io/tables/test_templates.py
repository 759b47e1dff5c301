"""A template makes exactly the triples it says, whatever stands in the cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.decode.rdf import parse_triples
from dotr.io.tables.cells import CellError
from dotr.io.tables.compiled import CompiledMapping, compile_mapping, may_repeat
from dotr.io.tables.mapping import parse_mapping
from dotr.rdf.terms import RDF_TYPE, XSD, Triple, canonical

PREFIXES = """PREFIX : <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
COLUMNS = ("a", "b", "time")
TEMPLATE = """# time: time
<http://example.org/{a}/x{b}?q={b}#{a}> :said {a}, {b}@en, "both {a} and {b} {{ }}" ;
    :of :{b} ; {IRI} [ :deep {a} ] ; :name \"\"\"long {b}\"\"\" .
""".replace("{IRI}", ":p{a}")


def compiled(text: str, columns: Sequence[str] = COLUMNS) -> CompiledMapping:
    """A mapping with the prefixes below its settings."""
    lines = text.split("\n")
    settings = [line for line in lines if re.match(r"# [a-z]+: ", line)]
    rest = [line for line in lines if line not in settings]
    whole = "\n".join([*settings, PREFIXES, *rest])
    return compile_mapping(parse_mapping(whole, "x.map"), columns, 1_000_000, "", "t.csv")


def graph(text: str, *cells: str | None, columns: Sequence[str] = COLUMNS) -> list[Triple]:
    found = compiled(text, columns).part(cells)
    assert isinstance(found, list)
    return found


HOSTILE = [
    '" . <urn:evil> <urn:evil> <urn:evil> . #',
    "> . <urn:evil> <urn:evil> <urn:evil> . #",
    '\\" . <urn:x> <urn:y> <urn:z> .',
    "\\",
    "\\u0022 . <urn:x> <urn:y> <urn:z> .",
    'a"""b',
    "line\nbreak\r\ttab",
    "\x00\x01\x7f\x85\u2028",
    "{a} {b|upper}",
    "cell0of0x",
    "%41%2F../..",
    "',;|`^{}<>",
    "é\U0001f525\ufffe\uffff\U0010fffd",
    "' ; DROP",
    "@prefix : <urn:evil> .",
    "_:b0",
    "]",
]
cells = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))


@given(cells, cells)
def test_cells_cannot_get_out_of_their_terms(a: str, b: str) -> None:
    """What is made, parsed again, is what an RDF library makes of the same values, triple by triple."""
    found = graph(TEMPLATE, a, b, "1")
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in found)
    parsed = [quad.triple for quad in ox.parse(text, ox.RdfFormat.N_TRIPLES)]
    encoded_a, encoded_b = iri_safe(a), iri_safe(b)
    subject = ox.NamedNode(f"http://example.org/{encoded_a}/x{encoded_b}?q={encoded_b}#{encoded_a}")
    deep = next(t.subject for t in parsed if isinstance(t.subject, ox.BlankNode))
    node = ox.NamedNode
    said = node("http://example.org/said")
    expected = {
        ox.Triple(subject, said, ox.Literal(a)),
        ox.Triple(subject, said, ox.Literal(b, language="en")),
        ox.Triple(subject, said, ox.Literal(f"both {a} and {b} {{ }}")),
        ox.Triple(subject, node("http://example.org/of"), node(f"http://example.org/{encoded_b}")),
        ox.Triple(subject, node(f"http://example.org/p{encoded_a}"), deep),
        ox.Triple(deep, node("http://example.org/deep"), ox.Literal(a)),
        ox.Triple(subject, node("http://example.org/name"), ox.Literal(f"long {b}")),
    }
    assert set(parsed) == expected
    assert len(found) == len(set(found)) == len(expected)


def iri_safe(text: str) -> str:
    """R2RML's IRI-safe version by the letter of RFC 3987: iunreserved stays."""
    return "".join(
        c if re.fullmatch(r"[A-Za-z0-9\-._~]", c) or unicode_char(ord(c)) else percent(c) for c in text
    )


def percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


def unicode_char(code: int) -> bool:
    low = 0xA0 <= code <= 0xD7FF or 0xF900 <= code <= 0xFDCF or 0xFDF0 <= code <= 0xFFEF
    plane = code >> 16
    return low or (1 <= plane <= 14 and code & 0xFFFF <= 0xFFFD and (plane < 14 or code >= 0xE1000))


@pytest.mark.parametrize("cell", ["http://example.org/x", "A:", "urn:a:b"])
def test_a_whole_iri_in_angle_brackets_is_not_relative_to_the_base(cell: str) -> None:
    found = graph("<{a|iri}> :at {a|iri} ; :in <{a|iri}#{b}> .", cell, "1", "1")
    assert found == [
        (f"<{cell}>", "<http://example.org/at>", f"<{cell}>"),
        (f"<{cell}>", "<http://example.org/in>", f"<{cell}#1>"),
    ]


@given(cells)
def test_an_iri_is_taken_as_it_is_or_refused(cell: str) -> None:
    text = ":s :at {a|iri} ; :in <{a|iri}> ."
    try:
        ox.NamedNode(cell)
        valid = True
    except ValueError:
        valid = False
    try:
        found = graph(text, cell, "", "1")
    except CellError:
        assert not valid or not cell.isprintable()
        return
    assert [o for _s, _p, o in found] == [f"<{cell}>", f"<{cell}>"]
    assert len(list(ox.parse("".join(f"{s} {p} {o} .\n" for s, p, o in found), ox.RdfFormat.N_TRIPLES))) == 2


def test_typed_cells_are_canonical_as_those_of_documents_are() -> None:
    text = "<urn:s> <urn:p> {a}^^xsd:decimal, {a}^^xsd:double, {a|plus(0)}, {b}^^xsd:dateTime ."
    cells = "021.50", "2026-01-01T00:00:00.500Z"
    values = [f'"{cells[0]}"^^xsd:decimal', f'"{cells[0]}"^^xsd:double', '"21.5"^^xsd:double']
    document = PREFIXES + f'<urn:s> <urn:p> {", ".join(values)}, "{cells[1]}"^^xsd:dateTime .'
    assert list(dict.fromkeys(graph(text, *cells, "1"))) == parse_triples(document)


def test_half_a_character_is_an_error_of_its_row() -> None:
    for text in (":s :p {a} .", "<http://example.org/{a}> :p 1 .", ":s :p {a|iri} ."):
        with pytest.raises(CellError):
            graph(text, "\ud800", "", "1")


def test_a_missing_value_drops_its_triples_and_no_others() -> None:
    text = '[] a :Reading ; :a {a} ; :b {b} ; :both "{a}-{b}" ; :in [ :of <http://example.org/{a}> ] .'
    predicates = [p for _s, p, _o in graph(text, None, "x", "1")]
    assert predicates == [RDF_TYPE, "<http://example.org/b>", "<http://example.org/in>"]
    assert len(graph(text, "y", "x", "1")) == 6
    assert len(graph(text, "", "", "1")) == 2


def test_words_for_missing_values_are_the_mappings() -> None:
    text = '# missing: NA, -9999\n:s :a {a} ; :b {b|default("none")} .'
    assert [o for _, _, o in graph(text, "NA", "-9999", "1")] == ['"none"']
    assert [o for _, _, o in graph(":s :a {a} .", "NA", "", "1")] == ['"NA"']


@pytest.mark.parametrize(
    ("datatype", "good", "bad"),
    [
        ("decimal", ["1", "-1.50", ".5", "+3."], ["1e3", "1,5", "", " 1", "NaN", "١"]),
        ("integer", ["0", "-12", "+012"], ["1.0", "x", "1_000", "١"]),
        ("double", ["1", "1e3", "INF", "-INF", "NaN"], ["inf", "1e", "0x1"]),
        ("boolean", ["true", "0"], ["TRUE", "yes"]),
        ("byte", ["127", "-128"], ["128"]),
        ("nonNegativeInteger", ["0"], ["-1"]),
        ("date", ["2026-01-01", "2026-01-01Z"], ["01/01/2026", "2026-13-01"]),
        ("dateTime", ["2026-01-01T00:00:00", "2026-01-01T24:00:00Z"], ["2026-01-01 00:00:00", "2026-01-01"]),
        ("duration", ["PT5M", "P1Y2M3DT4H5M6.7S"], ["5 min", "P", "PT"]),
    ],
)
def test_a_typed_cell_is_in_its_datatype(datatype: str, good: list[str], bad: list[str]) -> None:
    text = f":s :p {{a}}^^xsd:{datatype} ."
    for cell in good:
        assert graph(text, cell, "", "1") == [
            ("<http://example.org/s>", "<http://example.org/p>", canonical(f'"{cell}"^^<{XSD}{datatype}>'))
        ]
    for cell in filter(None, bad):
        with pytest.raises(CellError) as error:
            graph(text, cell, "", "1")
        assert (error.value.code, error.value.column) == ("D2404", "a")


@pytest.mark.parametrize(
    ("cell", "value", "expected"),
    [
        ('{a|replace(",", ".")}^^xsd:decimal', "21,5", '"21.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ("{a|strip|lower}", " AbC ", '"abc"'),
        ("{a|minus(32)|divide(2)}", "33", '"0.5"^^<http://www.w3.org/2001/XMLSchema#double>'),
        ("{a|times(10)|plus(1)}^^xsd:double", "2", '"21"^^<http://www.w3.org/2001/XMLSchema#double>'),
        ("{a|epoch(ms)}", "1500", '"1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
        (
            '{a|datetime("%d.%m.%Y %H:%M", "Europe/Berlin")}',
            "1.7.2026 12:00",
            '"2026-07-01T10:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        ),
        (
            "{a|datetime('iso', '+01:00')}",
            "2026-07-01 12:00:00.25",
            '"2026-07-01T11:00:00.25Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        ),
    ],
)
def test_filters(cell: str, value: str, expected: str) -> None:
    assert [o for _s, _p, o in graph(f":s :p {cell} .", value, "", "1")] == [expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (":s :p {a .", "is not a cell"),
        (":s :p {a|nope} .", "there is no filter `nope`"),
        (":s :p {a|uper} .", "there is no filter `uper`"),
        (':s :p "a { b" .', "a brace in a string"),
        ("_:{a} :p 1 .", "in the blank node"),
        (':s :p "x"^^<http://example.org/{a}> .', "a cell in a datatype"),
        (':s :p {a|replace(",")} .', "has 1 arguments"),
        (":s :p {a|times(x)} .", "is not a number"),
        (":s :p {a|epoch(h)} .", "is not a unit of epochs"),
        (':s :p {a|datetime("%d/%m/%Y")} .', "have no zone"),
        (':s :p {a|datetime("%d/%m/%Y", "Berlin")} .', "is not a time zone"),
        (':s :p {a|datetime("%q", "UTC")} .', "`%q` is not known"),
        (":s :p {a|iri|lower} .", "`iri` is not the last filter"),
        (':s :p {a|datetime("iso", "UTC")|lower} .', "`datetime` is not the last filter"),
        (":s :p ex:{a} .", "has not been declared"),
        ("# tiem: a\n:s :p {a} .", "`# tiem:` is not a setting of mappings"),
        ("# time: a\n# time: b\n:s :p {a} .", "`time` is given twice"),
        ("# format: xls\n:s :p {a} .", "is not a format of tables"),
        ("# encoding: utf-16\n:s :p {a} .", "are not read"),
        ("# delimiter: ab\n:s :p {a} .", "is not a delimiter"),
        ("# time: a\n", "no template"),
        ("# delete:\n[] :p {a} .", "a deletion with a blank node"),
    ],
)
def test_wrong_mappings_are_reported(text: str, words: str) -> None:
    with pytest.raises(DataError) as error:
        compiled(text)
    first = error.value.diagnostics[0]
    assert first.code == "D2401"
    assert words in str(error.value)
    assert first.place.startswith("x.map")


def test_prefixes_that_everybody_knows_need_no_declaration() -> None:
    mapping = parse_mapping("<urn:s> sosa:hasSimpleResult {a}^^xsd:integer .")
    (found,) = compile_mapping(mapping, ("a",), 1, "", "t.csv").part(("1",))
    assert found == ("<urn:s>", "<http://www.w3.org/ns/sosa/hasSimpleResult>", f'"1"^^<{XSD}integer>')
    own = parse_mapping("PREFIX sosa: <urn:mine:>\n<urn:s> sosa:x {a} .")
    assert own.graph is not None
    assert own.graph[0][1] == "<urn:mine:x>"
    with pytest.raises(DataError) as error:
        parse_mapping("\n\n<urn:s> <urn:p> {a} . oops", "x.map")
    assert error.value.diagnostics[0].place.startswith("x.map:3")


def test_a_near_column_is_suggested() -> None:
    with pytest.raises(DataError) as error:
        compile_mapping(parse_mapping("<urn:s> <urn:p> {tmie} ."), ["time", "x"], 1, "", "t.csv")
    assert error.value.diagnostics[0].code == "D2402"
    assert error.value.diagnostics[0].hint == "did you mean `time`?"


def test_another_delimiter_is_suggested() -> None:
    with pytest.raises(DataError) as error:
        compile_mapping(parse_mapping("<urn:s> <urn:p> {a} ."), ["a;b"], 1, "", "t.csv")
    assert "# delimiter: ;" in error.value.diagnostics[0].hint


def test_parts_of_a_message() -> None:
    text = "# time: time\n# insert:\n:{a} :state {b} .\n# delete:\n:{a} :state :old .\n"
    found = compiled(text).part(["x", "on", "1"])
    x, state = "<http://example.org/x>", "<http://example.org/state>"
    assert found == (None, [(x, state, '"on"')], [(x, state, "<http://example.org/old>")])


def test_times_of_a_row() -> None:
    made = compiled("# time: time\n:s :p 1 .")
    assert made.times["12"] == (12_000_000, True)
    assert made.times["1970-01-01T00:00:01Z"] == (1_000_000, False)
    for cell, code in ((None, "D2406"), ("", "D2406"), ("noon", "D2105"), ("2026-01-01T00:00:00", "D2103")):
        with pytest.raises(CellError) as error:
            made.times[cell]
        assert error.value.code == code


def test_the_labels_of_blank_nodes_are_the_same_in_every_process() -> None:
    first = parse_mapping("[] <urn:p> [ <urn:q> {a} ] .", "one")
    second = parse_mapping("[] <urn:p> [ <urn:q> {a} ] .", "two")
    assert first.graph == second.graph


@pytest.mark.parametrize(
    "body",
    [
        "[] :p " + "[ :p " * 5_000 + "{a}" + " ]" * 5_000,
        "[] :p " + "( " * 5_000 + "{a}" + " )" * 5_000,
        "[] :p " + ", ".join(["{a}"] * 5_000),
        '[] :p "' + "{a}" * 5_000 + '"',
        "[] :p {a" + "|strip" * 5_000 + "}",
        " . ".join(f"[] :p{n} {{a}}" for n in range(5_000)),
    ],
    ids=["blank nodes", "lists", "objects", "parts", "filters", "triples"],
)
def test_a_template_may_be_as_deep_and_long_as_turtle_may(body: str) -> None:
    mapping = compiled(f"# time: time\n{body} .")
    assert len(list(mapping.parts([("x", "y", "1"), (None, "y", "1")]))) == 2


def test_a_template_of_many_columns_takes_work_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    work = [0, 0]
    for size, count in enumerate((500, 1_000)):

        class Counted(str):
            __slots__ = ()

            def __eq__(self, other: object) -> bool:
                work[size] += 1  # noqa: B023  # called before the next size
                return str.__eq__(self, other)

            __hash__ = str.__hash__

        columns = [Counted(f"c{n}") for n in range(count)]
        text = "# time: c0\n" + "".join(f"[] :p{n} {{c{n}}} .\n" for n in range(count))
        compiled(text, columns)
    assert work[1] < 3 * work[0]


@pytest.mark.parametrize(
    ("template", "repeats"),
    [
        (":a :p {a} . :a :p {b}", True),
        (":a :p {a} . :b :p {b}", False),
        (":a :p {a} . :a :q {b}", False),
        (":a :p {a} . :a :p :c", False),
        (":a :p {a|iri} . :a :p :c", True),
        (":{a} :p :c . :b :p :c", True),
        (":{a} :p :c . :b :p :d", False),
        (":{a} :p {b} . :b :p {a}@en", True),
        ("[] :p {a} . [] :p {a}", False),
        (":{a} :p :b . :c :p{b} :b . :d :q :b", True),
    ],
)
def test_whether_two_triples_can_be_the_same_in_a_row(template: str, repeats: bool) -> None:
    whole = f"# time: time\n{PREFIXES}{template} ."
    graph_ = parse_mapping(whole, "x.map").graph
    assert graph_ is not None
    assert may_repeat(graph_) is repeats


@pytest.mark.parametrize("filler", [" ", '"', "|a", "(", ","])
def test_what_is_no_cell_is_refused_in_linear_time(filler: str) -> None:
    with pytest.raises(DataError, match="D2401"):
        parse_mapping(f'# time: t\n[] <urn:p> {{a|replace("x"{filler * 40_000} .', "x.map")
