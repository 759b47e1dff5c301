"""Pages of D2xxx, D4xxx and D5xxx: data, runs, state.

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
        "What is written in a file is told from the ending of its name.",
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
        "another copy up to 20 million terms.",
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
    _page(
        "D4001",
        "a rule that derives too much",
        "Every atom without a variable in common multiplies what a rule derives. The message names the\n"
        "relation. At an instant, `--on-error skip` and `file=` set its graphs aside.",
        ":near(?a, ?b) :- :Room(?a), :Room(?b) .",
        ":near(?a, ?b) :- :Room(?a), :floor(?a, ?f), :Room(?b), :floor(?b, ?f) .",
    ),
    _page(
        "D4002",
        "time runs backwards",
        "A detector is given instants in order.",
        "detector.at(12, …); detector.at(11, …)",
        "detector.at(11, …); detector.at(12, …)",
    ),
    _page(
        "D4090",
        "the engine and its literal reading differ",
        "`--verify` runs both. This is a mistake in dotr: please report it with the rule and the graphs.",
        "dotr run fire.dotr events/ --verify",
        "a report with the message, the rule and the graphs",
    ),
    _page(
        "D4101",
        "no duration",
        "A timedelta, `5 min` or `PT5M`.",
        'Engine("fire.dotr", lateness="5 m")',
        'Engine("fire.dotr", lateness="5 min")',
    ),
    _page(
        "D4102",
        "no unit of integer time",
        "s, ms or us.",
        'Engine("fire.dotr", time_unit="min")',
        'Engine("fire.dotr", time_unit="s")',
    ),
    _page(
        "D4103",
        "no way to materialize",
        "needed or all.",
        'Engine("fire.dotr", materialize="some")',
        'Engine("fire.dotr", materialize="all")',
    ),
    _page(
        "D4104",
        "no time",
        "An int, an aware datetime, or ISO 8601 text.",
        "engine.push(graph, at=12.5)",
        "engine.push(graph, at=12)",
    ),
    _page(
        "D4105",
        "no triple",
        "Turtle text, an rdflib.Graph, or pyoxigraph quads or triples; `push_all` takes (time, graph) pairs.",
        'engine.push([("s", "p", "o")], at=12)',
        'engine.push("<urn:s> <urn:p> <urn:o> .", at=12)',
    ),
    _page(
        "D4106",
        "no policy for late graphs",
        "drop or fail, or a function.",
        'Engine("fire.dotr", late="ignore")',
        'Engine("fire.dotr", late="drop")',
    ),
    _page(
        "D4107",
        "a base that is not an absolute IRI",
        "Relative IRIs of documents are resolved against it.",
        "Engine('fire.dotr', base='building')",
        "Engine('fire.dotr', base='http://example.org/building')",
    ),
    _page(
        "D4108",
        "a budget that is not a number of units",
        "How much work may be done is a positive number; what it counts: dotr check --explain D4132.",
        "Engine('fire.dotr', budget='1 s')",
        "Engine('fire.dotr', budget=1_000_000)",
    ),
    _page(
        "D4109",
        "no policy for errors",
        "fail, skip, or a function that is given what is wrong with a document or an instant.",
        'Engine("fire.dotr", on_error="ignore")',
        'Engine("fire.dotr", on_error="skip")',
    ),
    _page(
        "D4110",
        "SOURCE and --at go together",
        "Without them a query sees the background alone.",
        "dotr query fire.dotr events/ q.rq",
        "dotr query fire.dotr events/ --at 12 q.rq",
    ),
    _page(
        "D4111",
        "no time behind --at",
        "An integer or a dateTime with a zone, as the sources have it.",
        "dotr query fire.dotr events/ --at noon q.rq",
        "dotr query fire.dotr events/ --at 12 q.rq",
    ),
    _page(
        "D4112",
        "NOW() without an instant",
        "The background has no time.",
        "dotr query fire.dotr now.rq",
        "dotr query fire.dotr events/ --at 12 now.rq",
    ),
    _page(
        "D4113",
        "two outputs go to one file",
        "Each would write over the other.",
        "dotr run … -o events.jsonl --late file=events.jsonl",
        "dotr run … -o events.jsonl --late file=late.jsonl",
    ),
    _page(
        "D4114",
        "an argument that no file can be called by",
        "A text with a NUL, or with half a character of UTF-16, is not the name of anything.",
        'dotr.cli.main.run(["run", "fire.dotr", "a\\0b"])',
        'dotr.cli.main.run(["run", "fire.dotr", "events"])',
    ),
    _page(
        "D4120",
        "an empty slice",
        "A slice of time is longer than nothing.",
        "dotr batch fire.dotr --log log/ --out out/ --slice 0s",
        "dotr batch fire.dotr --log log/ --out out/ --slice 1h",
    ),
    _page(
        "D4121",
        "--master without Spark",
        "A master is for `--engine spark`.",
        "dotr batch fire.dotr --log log/ --out out/ --engine local --master spark://host:7077",
        "dotr batch fire.dotr --log log/ --out out/ --engine spark --master spark://host:7077",
    ),
    _page(
        "D4201",
        "an output cannot be written",
        "The disk is full, or the folder is not yours.",
        "dotr run fire.dotr events/ -o /nowhere/out.jsonl",
        "dotr run fire.dotr events/ -o out.jsonl",
    ),
    _page(
        "D4126",
        "detection in one task",
        "A consuming rule without a key can be cut neither by key nor by time.",
        "AND LAST A WITHIN 5 min FROM B … CONSUMING A",
        "AND LAST A WITHIN 5 min FROM B ON A.?room = B.?room … CONSUMING A",
    ),
    _page(
        "D4127",
        "a place that is not of this machine",
        "The local engine opens files; only Spark follows `hdfs://`, `s3a://` and the like.",
        "dotr batch fire.dotr --log hdfs:///log --out out/ --engine local",
        "dotr batch fire.dotr --log hdfs:///log --out out/ --engine spark",
    ),
    _page(
        "D4301",
        "no Java",
        "Spark needs one; the local engine does the same work without.",
        "dotr batch fire.dotr --log log/ --out out/ --engine spark",
        "dotr batch fire.dotr --log log/ --out out/ --engine local",
    ),
    _page(
        "D4302",
        "Spark does not start",
        "Its own words stand in the message.",
        "dotr batch … --master spark://nowhere:7077",
        "dotr batch … --master 'local[2]'",
    ),
    _page(
        "D4303",
        "a Spark job failed",
        "Its own words stand in the message, the whole story in Spark's log.",
        "dotr batch … --engine spark",
        "dotr batch … --engine local",
    ),
    _page(
        "D4304",
        "a process of the local engine died",
        "Most likely memory ran out and the system ended it.",
        "dotr batch … --engine local --slice 30d",
        "dotr batch … --engine local --slice 1d",
    ),
    _page(
        "D4305",
        "a place that Spark cannot read",
        "Spark must know its store: libraries and settings, say in $SPARK_CONF_DIR/spark-defaults.conf.",
        "dotr batch … --log s3a://bucket/log # without the library hadoop-aws",
        "spark.jars.packages org.apache.hadoop:hadoop-aws:3.4.2 # in spark-defaults.conf",
    ),
    _page(
        "D4306",
        "a remote folder over Spark Connect",
        "The driver names the files of an output, which Connect gives it no means to.",
        "dotr batch … --master sc://host --out hdfs:///out",
        "dotr.spark.detect(log, rules='fire.dotr').write.parquet('hdfs:///out')",
    ),
    _page(
        "D4999",
        "dotr itself failed",
        "Not your mistake. Please report it with what the message says.",
        "dotr run …",
        "a report with the command and its input",
    ),
    _page(
        "D5001",
        "an output exists",
        "Nothing is overwritten unless asked for.",
        "dotr run fire.dotr events/ -o out.jsonl",
        "dotr run fire.dotr events/ -o out.jsonl --overwrite",
    ),
    _page(
        "D5002",
        "an output that is also read",
        "Rules, background and sources are never written over, and what a run writes is not read by it: "
        "`--overwrite` is about outputs of before. Links to a file are that file.",
        "dotr run fire.dotr log.nq -o log.nq --overwrite",
        "dotr run fire.dotr log.nq -o found.nq --overwrite",
    ),
    _page(
        "D5010",
        "the state of another version",
        "A detector's state is read by the version that wrote it.",
        "Engine(…, snapshot=old)",
        "a replay from the start",
    ),
    _page(
        "D5101",
        "a snapshot or cache of another version",
        "It is read by the version that wrote it.",
        "Engine(…, snapshot=old)",
        "a replay from the start",
    ),
    _page(
        "D5102",
        "no snapshot",
        "Bytes that `Engine.snapshot()` returned, whole.",
        "Engine(…, snapshot=blob[:100])",
        "Engine(…, snapshot=blob)",
    ),
    _page(
        "D3101",
        "an inconsistent ontology",
        "An inconsistent ontology entails everything. What is derived leaves the contradiction out. At an\n"
        "instant, `--on-error skip` and `file=` set its graphs aside.",
        ":door a :Open, :Shut . # and owl:disjointWith between them",
        ":door a :Open .",
    ),
    _page(
        "D4122",
        "a log without its columns",
        "A log has the columns `time` (bigint or timestamp) and `graph` (string).",
        "detect(df.select('ts', 'graph'), rules='fire.dotr')",
        "detect(df.select(df.ts.alias('time'), 'graph'), rules='fire.dotr')",
    ),
    _page(
        "D4123",
        "no way to part a log",
        "By auto, key or time; a slice is longer than nothing.",
        "detect(df, rules='fire.dotr', by='room')",
        "detect(df, rules='fire.dotr', by='key')",
    ),
    _page(
        "D4124",
        "a data source without a path",
        "The Spark data source `dotr` reads and writes folders.",
        "spark.read.format('dotr').load()",
        "spark.read.format('dotr').load('log/')",
    ),
    _page(
        "D4125",
        "an option with a value it cannot have",
        "The message lists those it can.",
        "spark.read.format('dotr').option('onError', 'ignore')",
        "spark.read.format('dotr').option('onError', 'skip')",
    ),
    _page(
        "D4130",
        "a query with too many answers at one instant",
        "Patterns without a common variable multiply their answers; the message names query and time. Under\n"
        "`--on-error skip` and `file=` the graphs of the instant are set aside.",
        "SELECT ?a ?b WHERE { ?a :p ?x . ?b :q ?y }",
        "SELECT ?a ?b WHERE { ?a :p ?x . ?b :q ?x }",
    ),
    _page(
        "D4131",
        "--idle-advance without a source that may be silent",
        "Files end; only a followed source can be idle.",
        "dotr feed events/ --idle-advance 1min",
        "dotr feed events/ --follow --idle-advance 1min",
    ),
    _page(
        "D4202",
        "a file of the package is missing",
        "An installation has all its files.",
        "dotr demo   # from half a copy",
        "pip install --force-reinstall dotr",
    ),
    _page(
        "D4203",
        "a file or folder that the operating system keeps from us",
        "A name too long, links in a circle, no permission, too many files open: its words are the reason.",
        "dotr status --dir /root/.dotr",
        "dotr status --dir ~/.dotr",
    ),
    _page(
        "D4204",
        "memory ran out",
        "What a run remembers, `dotr plan` bounds; what it reads at once, `--max-document`. What was emitted "
        "before stays.",
        "dotr run all-year.dotr log.nq   # windows of a year",
        "dotr run all-day.dotr log.nq   # windows of a day",
    ),
    _page(
        "D4205",
        "an extra that is not installed",
        "Some commands need packages that most users do not; the message names the extra to install.",
        "pip install dotr; dotr lsp",
        "pip install 'dotr[lsp]'; dotr lsp",
    ),
    _page(
        "D5201",
        "no deployment",
        "`dotr deploy` makes one.",
        "dotr feed events/ --dir nowhere",
        "dotr deploy fire.dotr --dir site; dotr feed events/ --dir site",
    ),
    _page(
        "D5202",
        "a damaged deployment",
        "Nothing was changed. Put a copy back, or deploy anew and replay.",
        "dotr feed events/   # on a truncated deployment.db",
        "dotr deploy fire.dotr --dir anew; dotr feed events/ --dir anew",
    ),
    _page(
        "D5203",
        "a deployment of another format",
        "An older format is brought up to date by the first feed or deploy; a newer one is left alone.",
        "dotr feed events/   # with an older dotr than the one that deployed",
        "dotr feed events/   # with the dotr that deployed",
    ),
    _page(
        "D5204",
        "a deployment in use",
        "One process at a time feeds or changes a deployment.",
        "dotr feed a/ & dotr feed b/",
        "dotr feed a/ b/",
    ),
    _page(
        "D5206",
        "an output begun in another format",
        "A later feed goes on in the format of the file.",
        "dotr feed b/ -o out.jsonl --format nquads",
        "dotr feed b/ -o out.jsonl",
    ),
    _page(
        "D5207",
        "committed output is gone",
        "The file was cut or replaced behind the journal's back.",
        "rm out.jsonl; dotr feed b/ -o out.jsonl",
        "dotr feed b/ -o new.jsonl",
    ),
    _page(
        "D5208",
        "another unit of time",
        "A deployment counts integers in one unit.",
        "dotr feed events/ --time-unit ms",
        "dotr feed events/",
    ),
    _page(
        "D5209",
        "no such rule deployed",
        "`dotr status` lists them.",
        "dotr undeploy Fier",
        "dotr undeploy Fire",
    ),
    _page(
        "D5213",
        "an output with other bytes than were committed",
        "A feed goes on behind what it wrote: the end of the file must be what was committed last. This\n"
        "one was edited, or another file stands in its place.",
        "dotr feed s1.jsonl -o out.jsonl; sort -o out.jsonl out.jsonl; dotr feed s2.jsonl -o out.jsonl",
        "dotr feed s1.jsonl -o out.jsonl; sort out.jsonl > sorted.jsonl; dotr feed s2.jsonl -o out.jsonl",
    ),
    _page(
        "D5210",
        "a rule that others read",
        "Without its events they would silently stop.",
        "dotr undeploy Fire   # Evacuate reads it",
        "dotr undeploy Evacuate; dotr undeploy Fire",
    ),
    _page(
        "D3102",
        "a broken list in an OWL axiom",
        "owl:unionOf and its like hold an RDF list: every cell has one rdf:first and one rdf:rest.",
        ":Room owl:unionOf [ rdf:first :Lab ] .",
        ":Room owl:unionOf ( :Lab :Office ) .",
    ),
    _page(
        "D4140",
        "a target of unknown kind",
        "What to write is told from the ending of the name.",
        "dotr convert events/ -o events.out",
        "dotr convert events/ -o events.jsonl",
    ),
    _page(
        "D4135",
        "no such code",
        "Every message begins with a code, as D1310.",
        "dotr check --explain D131",
        "dotr check --explain D1310",
    ),
)
