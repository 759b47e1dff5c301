"""Documents of plain statements read without a parser have the graphs that the parser gives them."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.decode.documents import STREAM_BASE, Format
from dotr.io.decode.json_lines import Lines, _graph_lines, raw_lines
from dotr.io.decode.plain import PlainGraphs
from dotr.io.decode.rdf import parse_triples
from dotr.rdf.terms import XSD

HEADS = [
    "",
    "PREFIX : <http://e.org/x#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ",
    "@prefix : <#> . @prefix xsd: <urn:x:> . ",
    "PREFIX : <http://e.org> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ",
    "PREFIX : <http://e.org:8> PREFIX xsd: <urn:> ",
    "PREFIX : <http://e.org/?x=> PREFIX xsd: <http://e.org/a/> ",
    "PREFIX : <http://e.org/x#> PREFIX xsd: <urn:x:a#b#> ",
    "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> PREFIX : <urn:a:b> ",
]
PLAIN = [
    "<http://e.org/room1> <http://e.org/temp> 9 .",
    "<urn:x:a> <urn:x:b> <urn:x:c> .\n<urn:x:a> <urn:x:b> 1 .\n<urn:x:a> <urn:x:b> <urn:x:c> .\n",
    '<urn:x:a> <urn:x:b> "0020"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    "<urn:x:a> a <urn:x:c> .",
    ":a :b 1.50 .",
    ':a :b "x y"^^xsd:date .',
    ":a :b +01 .",
    "xsd:a :b true .",
    ' <http://e.org:@> <http://e.org/?> "x" . ',
    "<http://e.org> <http://e.org/../a/./b> <http://e.org/a//b#c/d:e> .",
]
OTHER = [
    *(
        "<urn:x:a> <urn:x:b> 1 , , 2 .",
        "_:a. :b 1 .",
        ":a :b 1",
        ":a :b 'x' .",
        ":a :b 1e3 .",
        ":a:b :c :d .",
        "a a a .",
    ),
    *(
        ':a :b "x"@en--ltr .',
        ":a :b 1 . \x01 :a :b 2 .",
        "PREFIX : <urn:y:> :a :b 1 .",
        "<a> <urn:b:b> <urn:c:c> .",
        ".",
    ),
    *(
        ":a b:c 1 .",
        ':a :b "x"^^rdf:HTML .',
        ":a :b : .",
    ),
    *(
        ":a :b 1 .\x01",
        ":a :b .5 .",
        ":a\u00e9 :b 1 .",
        ":a :b 1. .",
        "<urn:x:a>:b:c.",
    ),
]
terms = st.sampled_from(
    [
        *(
            "<urn:x:a>",
            "<http://e.org/a/./b>",
            "<http://e.org:8/>",
            "<a>",
            ":a",
            "xsd:integer",
            ":-",
            ":a-",
            ":1",
            "a",
            "_:b",
        ),
        *(
            "1",
            "-01",
            "1.0",
            "+.5",
            "1.",
            "true",
            "false",
            '"x"',
            '"x"^^xsd:integer',
            '"01"^^<http://www.w3.org/2001/XMLSchema#integer>',
        ),
        *(
            ".",
            ",",
            ";",
            "\x01",
            "\n",
            '"',
            '"^^"',
            "<",
            ">",
            "rdf:type",
            '"x"^^rdf:langString',
            "<urn:x:a#b>",
            "<urn:x:a#b#c>",
        ),
    ]
)
documents = st.one_of(
    st.sampled_from(PLAIN),
    st.lists(terms, max_size=9).map(" ".join),
    st.lists(terms, min_size=3, max_size=3).map(lambda three: " ".join(three) + " ."),
)


nodes = st.sampled_from(
    ["<urn:x:a>", ":a", "xsd:b", "<http://e.org:80/a>", ":a-b", ":1", "xsd:a_b"] * 6
    + ["<http://e.org/(b)>", ":é"]
)
resembling = st.tuples(
    st.sampled_from(["7", "0.5", "2026-01-01T00:00:00Z"]),
    st.sampled_from(["integer", "decimal", "double", "dateTime"]),
    st.integers(0, len(XSD) - 1),
    st.sampled_from('#x "/<\\^.'),
).map(lambda d: f'"{d[0]}"^^<{XSD[: d[2]]}{d[3]}{XSD[d[2] + 1 :]}{d[1]}>')
"""Literals of a usual datatype with another character in its IRI."""
usual = st.sampled_from(
    ["<urn:x:a>", ":a", "1", "-007", "2.50", "true", '"x"', '"x . y"', '"1"@en', '"1"@de-DE', '"1"^^xsd:b']
    * 6
    + [
        f'"{lexical}"^^xsd:{kind}'
        for kind, some in {
            "double": ("19.0", "0.021526418786692758", "1e3", "x", "INF"),
            "dateTime": ("2014-08-01T08:00:00", "2014-08-01T08:00:00Z", "2014-02-30T08:00:00", "2014"),
            "string": ("x",),
            "langString": ("x",),
        }.items()
        for lexical in some
    ]
    * 2
    + [
        f'"{n}"^^<http://www.w3.org/2001/XMLSchema#{kind}>'
        for n in (-1, 0, "01")
        for kind in ("int", "integer", "date")
    ]
    * 3
    + [
        f'"2026-01-01T00:00:{s}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        for s in ("00Z", "0.5Z", "60Z", "00.50")
    ]
    + [
        "1.",
        ".5",
        "'x'",
        '"""x"""',
        '"é"',
        '"a\\"b"',
        '"1"@EN',
        '"1"@x-y',
        '"1"^^<http://www.w3.org/2001/XMLSchema#string>',
    ]
)
values = st.one_of(*[usual] * 7, resembling)
blanks = st.sampled_from(["", " ", "  ", "\n", "\t", "\r\n"] * 4 + ["\x0b", "\x1c", "\xa0", " # x\n"])


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Turtle, now and then with a part too many, or one that is missing."""
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        parts.append(draw(nodes))
        for more in range(draw(st.integers(1, 3))):
            parts += [";"] if more else []
            parts.append(draw(st.one_of(nodes, st.just("a"))))
            for another in range(draw(st.integers(1, 2))):
                parts += [","] if another else []
                parts.append(draw(values))
        parts.append(".")
    for _ in range(draw(st.sampled_from([0] * 9 + [1, 2]))):
        place = draw(st.integers(0, len(parts)))
        if draw(st.booleans()):
            parts.insert(place, draw(st.one_of(terms, values)))
        else:
            del parts[place : place + 1]
    usual = st.just(draw(blanks))
    spaces = draw(st.sampled_from([st.just(" "), st.just(" "), usual, st.one_of(usual, blanks)]))
    return "".join(part + draw(spaces) for part in parts)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """N-Triples, now and then damaged."""
    absolute = st.sampled_from(["<urn:x:a>", "<http://e.org/b>"] * 9 + ["_:b", "<a>"])
    rows = draw(
        st.lists(st.tuples(absolute, absolute, values.filter(lambda text: text[0] in '<"')), max_size=3)
    )
    between, end = (
        draw(st.sampled_from([" "] * 6 + ["\t", "  ", ""])),
        draw(st.sampled_from([" .\n"] * 9 + [".\n", " . ", " .\r\n", "\n", " . # x\n", " .\n\n"])),
    )
    text = "".join(between.join(row) + end for row in rows)
    place = draw(st.integers(0, 2_000))
    return (
        text
        if place > len(text)
        else text[:place] + draw(st.sampled_from(["", "\n", " ", ".", "<", '"', "\x01"])) + text[place + 1 :]
    )


def _parsed(text: str, format_: Format = Format.TURTLE) -> list[tuple[str, str, str]] | None:
    try:
        return parse_triples(text, format_)
    except DataError:
        return None


@pytest.mark.parametrize("text", PLAIN)
def test_plain_statements_are_known(text: str) -> None:
    head = HEADS[1] if ":a" in text else ""
    if "?" in text:
        return
    found = PlainGraphs(STREAM_BASE).parse([text, text], head)
    assert found == [_parsed(head + text)] * 2


@pytest.mark.parametrize("text", OTHER)
def test_all_else_is_left_to_the_parser(text: str) -> None:
    for head in HEADS:
        assert PlainGraphs(STREAM_BASE).parse([PLAIN[0], text, PLAIN[0]], head) is None
        assert PlainGraphs(STREAM_BASE).parse([text, PLAIN[0]], head) is None


@given(st.data())
def test_documents_of_one_form_have_no_triple_twice(data: st.DataObject) -> None:
    form = data.draw(
        st.lists(st.lists(st.sampled_from("pqr"), min_size=1, max_size=3), min_size=1, max_size=3)
    )
    subjects = data.draw(st.sampled_from(["a", "ab", "abc"]))

    def document() -> str:
        said = []
        for predicates in form:
            values = [f"urn:x:{data.draw(st.sampled_from('yz'))}" for _ in predicates]
            rest = [f"<urn:x:{p}> <{value}>" for p, value in zip(predicates, values, strict=True)]
            said.append(f"<urn:x:{data.draw(st.sampled_from(subjects))}> {' ; '.join(rest)} .")
        return " ".join(said)

    reader = PlainGraphs(STREAM_BASE)
    for _ in range(3):  # the form of the first ones is expected of those behind
        texts = [document() for _ in range(data.draw(st.integers(1, 4)))]
        found = reader.parse(texts, "")
        assert found == [_parsed(text) for text in texts]


@given(st.sampled_from(HEADS), st.lists(documents, min_size=1, max_size=4))
def test_what_is_known_is_what_the_parser_says(head: str, texts: list[str]) -> None:
    found = PlainGraphs(STREAM_BASE).parse(texts, head)
    if found is not None:
        assert found == [_parsed(head + text) for text in texts]


@given(st.sampled_from(HEADS[1:]), st.lists(statements(), min_size=1, max_size=4))
def test_statements_that_are_known_are_what_the_parser_says(head: str, texts: list[str]) -> None:
    found = PlainGraphs(STREAM_BASE).parse(texts, head)
    if found is not None:
        assert found == [_parsed(head + text) for text in texts]


@given(st.lists(lines(), min_size=1, max_size=4))
def test_lines_that_are_known_are_what_the_parser_says(texts: list[str]) -> None:
    found = PlainGraphs(lines=True).parse(texts)
    if found is not None:
        assert found == [_parsed(text, Format.NTRIPLES) for text in texts]


@st.composite
def alike(draw: st.DrawFn) -> list[str]:
    """Documents of one form, or nearly; what stands at a place often is the same in all of them."""
    places = draw(st.lists(st.sampled_from([nodes, values]), min_size=1, max_size=2))
    columns = [st.just(draw(of)) if draw(st.booleans()) else of for p in places for of in (nodes, nodes, p)]
    end = draw(st.sampled_from([" .", " .", ".", " ;."]))
    texts = []
    for _ in range(draw(st.integers(1, 3))):
        own = [draw(column) for column in columns]
        texts.append(" ".join(" ".join(own[at : at + 3]) + end for at in range(0, len(own), 3)))
    return texts


@given(st.lists(st.tuples(st.sampled_from([*HEADS[1:2] * 5, *HEADS]), alike()), max_size=6), st.booleans())
def test_documents_behind_others_of_their_form_are_what_the_parser_says(
    batches: list[tuple[str, list[str]]], repeated: bool
) -> None:
    graphs = PlainGraphs(STREAM_BASE)
    for head, texts in [one for batch in batches for one in [batch] * (1 + repeated)]:
        found = graphs.parse(texts, head)
        if found is not None:
            assert found == [_parsed(head + text) for text in texts]


names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,4}", fullmatch=True)


@given(st.sampled_from(HEADS[1:]), st.lists(names, min_size=2, max_size=12), st.data())
def test_names_are_plain_or_not_whichever_came_before(
    head: str, locals_: list[str], data: st.DataObject
) -> None:
    prefixes = st.sampled_from([":", "xsd:"])
    texts = [f"{data.draw(prefixes)}{local} <urn:x:b> 1 ." for local in locals_]
    graphs = PlainGraphs(STREAM_BASE)
    for text in texts:
        found = graphs.parse([text], head)
        if found is not None:
            assert found == [_parsed(head + text)]
            assert PlainGraphs(STREAM_BASE).parse([text], head) == found


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("double", ("19.0", "0.5", "-1.25", "7", "0.1000000000000000055511151231257827")),
        ("dateTime", ("2014-08-01T08:00:00", "2014-08-01T08:00:00Z", "2014-08-01T08:00:00.50+00:00")),
        ("integer", ("1", "007", "+5", "none")),
    ],
)
def test_literals_whose_datatype_is_a_name_are_canonical(kind: str, texts: tuple[str, ...]) -> None:
    found = PlainGraphs(STREAM_BASE).parse([f':a :b "{text}"^^xsd:{kind} .' for text in texts], HEADS[1])
    assert found == [_parsed(f'{HEADS[1]}:a :b "{text}"^^xsd:{kind} .') for text in texts]


def test_a_head_that_is_wrong_is_left_to_the_parser_though_nothing_uses_it() -> None:
    """Two documents at once were read, one by itself was refused."""
    head = "PREFIX : <urn:x:a#b#> "
    assert _parsed(head + PLAIN[0]) is None
    graphs = PlainGraphs(STREAM_BASE)
    assert graphs.parse([PLAIN[0]] * 2, head) is None
    assert graphs.parse([PLAIN[0]] * 2, head) is None
    assert graphs.parse([PLAIN[0]] * 2) == [_parsed(PLAIN[0])] * 2


@given(st.lists(resembling, min_size=1, max_size=3))
@example(['"7"^^<http://www.w3#org/2001/XMLSchema#integer>'])
def test_a_datatype_that_resembles_a_usual_one_is_not_taken_for_it(literals: list[str]) -> None:
    texts = [f"<urn:x:a> <urn:x:b> {literal} ." for literal in literals]
    found = PlainGraphs().parse(texts)
    if found is not None:
        assert found == [_parsed(text) for text in texts]


def test_documents_of_the_form_of_those_before_are_read_by_columns() -> None:
    graphs = PlainGraphs(STREAM_BASE)
    by_columns = []
    for first in range(0, 12, 3):
        end = "; <urn:x:q> 1 ." if first == 6 else "."
        texts = [f"<urn:x:{n}> <urn:x:{'pq'[n % 2]}> {n} {end}" for n in range(first, first + 3)]
        by_columns.append(graphs._words.read(graphs._joined(texts))[1] is not None)
        assert graphs.parse(texts) == [_parsed(text) for text in texts]
    assert by_columns == [False, True, False, False]


def test_what_was_learned_stays_right_when_the_tables_are_full() -> None:
    rows = PlainGraphs(lines=True)
    for first in range(0, 60_000, 1_000):
        texts = [
            f'<urn:x:{n}> <urn:x:b> "{n}" .\n<urn:x:a> <urn:x:b> <urn:x:{n}> .\n'
            for n in range(first, first + 1_000)
        ]
        found = rows.parse(texts)
        assert found is not None
        assert found[7] == _parsed(texts[7], Format.NTRIPLES)


def test_a_long_prefix_is_left_to_the_parser() -> None:
    """Its names written out in full may be more than memory holds."""
    head = f"PREFIX : <urn:x:{'y' * 5_000}> "
    assert PlainGraphs().parse([":a :b :c ."], head) is None


def test_names_mean_what_the_last_head_says() -> None:
    rows = PlainGraphs(STREAM_BASE)
    plain = [*HEADS[1:3], HEADS[-1]]
    for head in (*plain, HEADS[0], *plain):
        for count in (1, 2, 3):
            found = rows.parse([":a :b :c ."] * count, head)
            assert found is None or found == [_parsed(head + ":a :b :c .")] * count
    assert found is not None


pieces = st.sampled_from(
    [
        "{}",
        "[",
        "]",
        "{",
        "}",
        '"a"',
        ":",
        ",",
        "1",
        "-Infinity",
        "NaN",
        "null",
        '"',
        "\\",
        " ",
        "-1e999",
        '{"a":1}',
        "x",
    ]
)


json_texts = st.lists(pieces, min_size=1, max_size=5).map("".join)


@given(
    st.lists(
        st.one_of(
            json_texts,
            json_texts.map(lambda text: f'{{"graph":"a","x":{text}}}'),
            json_texts.map(lambda text: f'{{"time":{text},"graph":"é"}}'),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_lines_loaded_at_once_say_what_each_says(lines: list[str]) -> None:
    found = _graph_lines([line.encode() for line in lines])
    if found is not None:
        values = [json.loads(line) for line in lines]
        said = [(value["graph"], value.get("time")) for value in values]
        assert [(one.graph, one.time) for one in found] == said


def test_keys_and_values_may_be_escaped() -> None:
    found = _graph_lines(
        [b'{"gr\\u0061ph":"\\u00e9\\n","ti\\u006de":"t","x":["\xc3\xa9"]}', b'{"graph":"","graph":"b"}']
    )
    assert found is not None
    assert [(one.graph, one.time) for one in found] == [("é\n", "t"), ("b", None)]


@pytest.mark.parametrize(
    "line",
    [
        b'"}',
        b"[1]",
        b'{"graph":""} {}',
        b'\xef\xbb\xbf{"graph":""}',
        b'{"graph":"","insert":null}',
        b'{"graph":"","d\\u0065lete":""}',
        b'{"graph":"","time":true}',
        b'{"graph":"","time":1.0}',
        b'{"graph":null}',
        b'{"graph":"","x":"\xff"}',
        b'{"graph":"","\xff":1}',
        b'{"graph":"","x":' + b"7" * 5_000 + b"}",
        b'{"graph":"","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
)
def test_a_line_that_is_no_graph_or_may_be_refused_is_not_loaded_at_once(line: bytes) -> None:
    assert _graph_lines([b'{"graph":""}', line]) is None


def _line(graph: object, **more: object) -> str:
    return json.dumps({"time": 1, "graph": graph, **more})


lines_of_graphs = st.lists(
    st.one_of(
        documents.map(_line),
        st.sampled_from(
            ["", "  ", "{", "[1]", _line(1), _line("", insert=""), '{"time":1}', _line(PLAIN[0], time="x")]
        ),
    ),
    max_size=5,
)


@given(lines_of_graphs, st.sampled_from(["", "\n", "\r\n"]))
def test_lines_at_once_have_the_graphs_that_they_have_one_by_one(lines: list[str], end: str) -> None:
    class File:
        content = "\n".join(lines).encode() + end.encode()

        def read(self, _size: int = -1) -> bytes:
            given, self.content = self.content, b""
            return given

    for batch in raw_lines(File(), "x"):
        found = Lines("x").graphs([line.content for line in batch])
        if found is not None:
            assert list(zip(*found, strict=True)) == [Lines("x").parse([line])[0] for line in batch]
