"""Pages of D2xxx: documents, times and graphs of a stream.

Place:   read by explain.py. These codes come from other layers; their pages stand here with the rest.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D2001",
        "a document cannot be read",
        "The parser's words stand in the message, with line and column. Under `--on-error skip` and `file=`\n"
        "the rest of a TriG file is refused with it.",
        "<urn:s> <urn:p> .",
        "<urn:s> <urn:p> 1 .",
    ),
    _page(
        "D2002",
        "a file is not UTF-8",
        "RDF and rules are UTF-8 text.",
        "dotr run fire.dotr latin1.ttl",
        "iconv -f latin1 -t utf-8 latin1.ttl > utf8.ttl; dotr run fire.dotr utf8.ttl",
    ),
    _page(
        "D2003",
        "a file cannot be opened",
        "It is not there, or may not be read.",
        "dotr run fire.dotr evnets/",
        "dotr run fire.dotr events/",
    ),
    _page(
        "D2004",
        "RDF 1.2 terms",
        "Triple terms and directional language strings have no place in SPARQL 1.1 and in these rules.",
        "<urn:s> <urn:p> <<( <urn:a> <urn:b> <urn:c> )>> .",
        "<urn:s> <urn:p> <urn:statement1> .",
    ),
    _page(
        "D2005",
        "a context that would come from the network",
        "dotr never reads from the network. A JSON-LD document carries its context with it.",
        '{"@context": "https://example.org/context.jsonld", "name": "lab"}',
        '{"@context": {"name": "http://example.org/name"}, "name": "lab"}',
    ),
    _page(
        "D2006",
        "a document is too large",
        "A bound against decompression bombs and against running out of memory: of one document, one line,\n"
        "and of what is decompressed without a graph coming of it. Raise it knowingly.",
        "dotr run fire.dotr huge.trig",
        "dotr run fire.dotr huge.trig --max-document 4GB",
    ),
    _page(
        "D2007",
        "a document is damaged, or expands without measure",
        "Compressed data that end or break early; XML entities that multiply, or that are declared twice; a\n"
        "short text whose long prefixes make it hundreds of times as large.",
        "dotr run fire.dotr half-copied.ttl.gz",
        "dotr run fire.dotr whole.ttl.gz",
    ),
    _page(
        "D2008",
        "a file of unknown kind",
        "What is written in a file is inferred from the ending of its name.",
        "dotr run fire.dotr events.txt",
        "dotr run fire.dotr events.ttl",
    ),
    _page(
        "D2009",
        "nothing to read",
        "A folder without RDF files, or a pattern that no file matches.",
        "dotr run fire.dotr 'events/*.tll'",
        "dotr run fire.dotr 'events/*.ttl'",
    ),
    _page(
        "D2010",
        "this is not a background",
        "Background is triples that hold always; named graphs and streams are not.",
        "BACKGROUND <events.trig>",
        "BACKGROUND <building.ttl>",
    ),
    _page(
        "D2012",
        "quads of no graph",
        "In TriG and N-Quads every named graph is one time-annotated graph.",
        "<urn:s> <urn:p> 1 .",
        "<urn:g> { <urn:s> <urn:p> 1 } <urn:g> prov:generatedAtTime 12 .",
    ),
    _page(
        "D2013",
        "a graph in pieces",
        "The quads of one graph stand together.",
        "<urn:g1> { … } <urn:g2> { … } <urn:g1> { … }",
        "<urn:g1> { … } <urn:g2> { … }",
    ),
    _page(
        "D2014",
        "a JSON line that is not a graph",
        'A line is {"time": 12, "graph": "<Turtle>"}.',
        '{"at": 12, "graph": "…"}',
        '{"time": 12, "graph": "…"}',
    ),
    _page(
        "D2015",
        "a message ends inside a graph",
        "In an RDF Message Log a delimiter stands between statements.",
        "<urn:g> { <urn:s> <urn:p> 1 .\nMESSAGE",
        "<urn:g> { <urn:s> <urn:p> 1 . }\nMESSAGE",
    ),
    _page(
        "D2016",
        "an unsorted file that is too large to sort",
        "Instants are closed by later timestamps, so graphs come in time order.",
        "dotr run fire.dotr unsorted.nq",
        "dotr run fire.dotr unsorted.nq --lateness 10min",
    ),
    _page(
        "D2017",
        "a Parquet file of another kind",
        "dotr reads the Parquet files that `dotr convert` writes: time and graph.",
        "dotr run fire.dotr sales.parquet",
        "dotr convert events/ -o events.parquet; dotr run fire.dotr events.parquet",
    ),
    _page(
        "D2018",
        "a damaged Parquet file",
        "A column that should be there is not, or a row has no graph.",
        "dotr run fire.dotr half-written.parquet",
        "dotr run fire.dotr events.parquet",
    ),
    _page(
        "D2019",
        "a graph beside an unreadable line",
        "In N-Quads a line that cannot be read may have belonged to the graph before or after it, so neither "
        "is taken as whole.",
        "<urn:s> <urn:p> <urn:o> <urn:g> .\n<urn:s> <urn:p> <urn:o",
        "<urn:s> <urn:p> <urn:o> <urn:g> .\n<urn:s> <urn:p> <urn:q> <urn:g> .",
    ),
    _page(
        "D2020",
        "a document that nests too deep",
        "Parsers go down with a document, and their stack ends: arrays and objects of JSON-LD, elements\n"
        "of RDF/XML and triple terms nest up to 200 levels; collections and blank nodes of Turtle do not\n"
        "end.\n"
        "An element of RDF/XML has up to 1,000 attributes, and contexts of JSON-LD that are added to one\n"
        "another copy up to 20 million terms. Messages of a log, and transactions of an\n"
        "RDF Patch, leave up to 65,536 characters of prefixes to those behind them.",
        '{"a": {"a": {"a": … 300 times …}}}',
        '[{"@id": "_:n1", "a": {"@id": "_:n2"}}, {"@id": "_:n2", "a": …}]',
    ),
    _page(
        "D2021",
        "a term that is too long",
        "A literal, an IRI or a comment has less than 16 MiB. `--max-document` bounds whole documents, and\n"
        "does not move this limit.",
        '<urn:s> <urn:video> "AAAAIGZ0eXBp… (20 MB)"^^xsd:base64Binary .',
        "<urn:s> <urn:video> <file:///videos/1.mp4> .",
    ),
    _page(
        "D2022",
        "memory ran out while a document was read",
        "The document is refused as a whole, as any that cannot be read.",
        "dotr run fire.dotr all-in-one-graph.ttl",
        "dotr run fire.dotr one-file-a-graph/",
    ),
    _page(
        "D2023",
        "a source goes on and says nothing",
        "Blank lines and comments in a row, without a statement, a row or a message: more\n"
        "bytes of them than --max-document. What came before counts; the rest is not read.",
        "yes '' | dotr run fire.dotr -",
        "dotr run fire.dotr sparse.nq --max-document 4GB",
    ),
    _page(
        "D2101",
        "a graph without a time",
        "The time is looked for in the order that the message lists. `--time-path IRI` names a property "
        "of your own.",
        "dotr run fire.dotr readings.ttl   # times are in :stamp",
        "dotr run fire.dotr readings.ttl --time-path http://example.org/stamp",
    ),
    _page(
        "D2102",
        "two kinds of time in one run",
        "Times are integers or dateTimes, one kind in one run.",
        '{"time": 12, "graph": "…"}\n{"time": "2026-01-01T08:00:13Z", "graph": "…"}',
        '{"time": "2026-01-01T08:00:12Z", "graph": "…"}\n{"time": "2026-01-01T08:00:13Z", "graph": "…"}',
    ),
    _page(
        "D2103",
        "a dateTime without a time zone",
        "Nobody knows which instant it is.",
        '<urn:o> sosa:resultTime "2026-01-01T08:00:12"^^xsd:dateTime .',
        '<urn:o> sosa:resultTime "2026-01-01T08:00:12Z"^^xsd:dateTime .',
    ),
    _page(
        "D2104",
        "a graph with several times",
        "A graph holds at one instant. Split it, or say which property is its time.",
        '<urn:a> sosa:resultTime "…12Z" . <urn:b> sosa:resultTime "…13Z" .',
        "two graphs, one for each time",
    ),
    _page(
        "D2105",
        "no timestamp",
        "A time is a dateTime with a zone or an integer, from the year 1 to 9999, no finer than a "
        "microsecond.",
        '{"time": "noon", "graph": "…"}',
        '{"time": "2026-01-01T12:00:00Z", "graph": "…"}',
    ),
    _page(
        "D2106",
        "a graph too far ahead",
        "Its time is further ahead of the last graph that was taken than `--max-jump` (in Python `max_jump`) "
        "allows. It is refused before it closes any instant, so that one wrong clock does not make everybody "
        "else late. Where silence may be longer than that, allow for it, or let time go on by "
        "`--idle-advance`.",
        'dotr feed sensors.jsonl --max-jump 1d   # {"time": "9999-12-31T23:59:59Z", "graph": "…"}',
        "dotr feed sensors.jsonl --max-jump 1d --on-error file=dead.jsonl",
    ),
    _page(
        "D2107",
        "a million ticks between two graphs",
        "In the time between this graph and the one before it an EVERY ticks more than a million times, and "
        "at each tick a rule can match without any graph: it has nothing but NOT, aggregates and what the "
        "background answers alone, or its windows are that long. (Others are skipped.) Mostly a clock is "
        "wrong.",
        "FROM EVERY 1 s AS Tick AND NOT Beat WITHIN 10 min FROM Tick   # and a graph for the year 9999",
        "FROM EVERY 1 min AS Tick AND NOT Beat WITHIN 10 min FROM Tick   # a million minutes are two years",
    ),
    _page(
        "D2301",
        "a graph that comes too late",
        "Its instant is closed: events of later instants may have left already.",
        "dotr run fire.dotr unsorted.jsonl",
        "dotr run fire.dotr unsorted.jsonl --lateness 5min",
    ),
    _page(
        "D2601",
        "schema triples in the stream",
        "Rules with variable predicates were unfolded over the schema of the background. A stream may not\n"
        "bring schema, nor make a class or a property `owl:sameAs` something. Under `--on-error skip` and\n"
        "`file=` the graphs of the instant are set aside.",
        '{"time": 1, "graph": ":Smoke rdfs:subClassOf :Alarm ."}',
        "BACKGROUND <schema.ttl>",
    ),
    _page(
        "D2602",
        "an equality of the stream leaves the schema as it is",
        "For one instant two individuals are the same: each has the triples of the other. But what the\n"
        "schema says about the one (`owl:hasValue :a`, say) is not said about the other. Instances follow\n"
        "all the same: what has the one as a value has the other. Reported once for each pair.",
        '{"time": 1, "graph": ":a owl:sameAs :b ."}   # where the schema has  :r owl:hasValue :a',
        ":a owl:sameAs :b .   # in the background: applied to the schema as well",
    ),
)
