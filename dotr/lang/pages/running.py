"""Pages of D3xxx and D4xxx: runs and their options.

Place:   read by explain.py. These codes come from other layers; their pages stand here with the rest.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D3101",
        "an inconsistent ontology",
        "An inconsistent ontology entails everything. What is derived leaves the contradiction out. At an\n"
        "instant, `--on-error skip` and `file=` set its graphs aside.",
        ":door a :Open, :Shut . # and owl:disjointWith between them",
        ":door a :Open .",
    ),
    _page(
        "D3102",
        "a broken list in an OWL axiom",
        "owl:unionOf and its like hold an RDF list: every cell has one rdf:first and one rdf:rest.",
        ":Room owl:unionOf [ rdf:first :Lab ] .",
        ":Room owl:unionOf ( :Lab :Office ) .",
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
        "D4091",
        "a query that takes more work to check than to answer",
        "`--verify` asks every query a second time, of an engine that cannot be interrupted. Where that may\n"
        "take long the query is interpreted instead, up to twice the budget.",
        "dotr run paths.dotr a-year/ --verify",
        "dotr run paths.dotr an-hour/ --verify",
    ),
    _page(
        "D4101",
        "not a duration",
        "A timedelta, `5 min` or `PT5M`.",
        'Engine("fire.dotr", lateness="5 m")',
        'Engine("fire.dotr", lateness="5 min")',
    ),
    _page(
        "D4102",
        "not a unit of integer time",
        "s, ms or us.",
        'Engine("fire.dotr", time_unit="min")',
        'Engine("fire.dotr", time_unit="s")',
    ),
    _page(
        "D4103",
        "not a way to materialize",
        "needed or all.",
        'Engine("fire.dotr", materialize="some")',
        'Engine("fire.dotr", materialize="all")',
    ),
    _page(
        "D4104",
        "not a time",
        "An int, an aware datetime, or ISO 8601 text.",
        "engine.push(graph, at=12.5)",
        "engine.push(graph, at=12)",
    ),
    _page(
        "D4105",
        "not a triple",
        "Turtle text, an rdflib.Graph, or pyoxigraph quads or triples; `push_all` takes (time, graph) pairs.",
        'engine.push([("s", "p", "o")], at=12)',
        'engine.push("<urn:s> <urn:p> <urn:o> .", at=12)',
    ),
    _page(
        "D4106",
        "not a policy for late graphs",
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
        "not a policy for errors",
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
        "--at is not a time",
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
        "an argument that cannot be the name of a file",
        "A text with a NUL, or with half a character of UTF-16, is not the name of anything.",
        'dotr.cli.main.run(["run", "fire.dotr", "a\\0b"])',
        'dotr.cli.main.run(["run", "fire.dotr", "events"])',
    ),
    _page(
        "D4120",
        "an empty slice",
        "A slice of time is longer than zero.",
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
        "D4122",
        "a log without its columns",
        "A log has the columns `time` (bigint or timestamp) and `graph` (string).",
        "detect(df.select('ts', 'graph'), rules='fire.dotr')",
        "detect(df.select(df.ts.alias('time'), 'graph'), rules='fire.dotr')",
    ),
    _page(
        "D4123",
        "not a way to cut a log",
        "By auto, key or time; a slice is longer than zero.",
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
        "D4126",
        "detection in one task",
        "A consuming rule without a key can be cut neither by key nor by time. Without EVERY it is cut\n"
        "where the log has a gap longer than its horizon, which the notes name.",
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
        "D4135",
        "no such code",
        "Every message begins with a code, as D1310.",
        "dotr check --explain D131",
        "dotr check --explain D1310",
    ),
    _page(
        "D4140",
        "a target of unknown kind",
        "What to write is inferred from the ending of the name.",
        "dotr convert events/ -o events.out",
        "dotr convert events/ -o events.jsonl",
    ),
    _page(
        "D4201",
        "an output cannot be written",
        "The disk is full, or the folder is not yours.",
        "dotr run fire.dotr events/ -o /nowhere/out.jsonl",
        "dotr run fire.dotr events/ -o out.jsonl",
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
        "D4314",
        "a process that parses ended early",
        "A run with `--jobs` has processes that parse ahead of the rules. One was killed, most likely\n"
        "because memory ran out. What was emitted before stays in the output's `.part`.",
        "dotr run rules.dotr log.jsonl --jobs 8",
        "dotr run rules.dotr log.jsonl --jobs 2",
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
)
