"""Pages of Spark's sessions, workers and streams.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D4128",
        "a setting that Spark does not have",
        "Spark's settings begin with `spark.`; spark-submit passes over others without a word.",
        "dotr batch … --conf executor.memory=4g",
        "dotr batch … --conf spark.executor.memory=4g",
    ),
    _page(
        "D4129",
        "a stream where a table is wanted, or the other way round",
        "`detect` looks at all of a log together; a stream never is complete. `stream` wants one.",
        "dotr.spark.detect(spark.readStream…, 'fire.dotr')",
        "dotr.spark.stream(spark.readStream…, 'fire.dotr', out='fires', checkpoint='fires.state')",
    ),
    _page(
        "D4136",
        "a key that has most of the facts",
        "What is parted by key is as quick as its heaviest key: one task has it, and the others wait.",
        "FROM Alarm ON Smoke.?building = Alarm.?building # and most of it is one building",
        "FROM Alarm ON Smoke.?building = Alarm.?building and Smoke.?floor = Alarm.?floor",
    ),
    _page(
        "D4309",
        "what cannot be done over Spark Connect",
        "The engine of an ordered stream lives in the driver, which Connect keeps on the server.",
        "dotr.spark.stream(spark.readStream…, …) # with a remote session",
        "spark-submit … dotr-submit.py stream fire.dotr …",
    ),
    _page(
        "D4310",
        "a rule that joins data with data",
        "`materialize` closes pieces of a table apart from each other, over the schema: right where a rule\n"
        "needs one triple of the data at most, as those of RDFS do. Rules whose atoms all share a variable\n"
        "are followed by repeated passes, which must be asked for; NOT and AGGREGATE are not.",
        'dotr.spark.materialize(triples, text=":above(?x, ?z) :- :on(?x, ?y), :on(?y, ?z) .")',
        'dotr.spark.materialize(triples, text="…", passes=10)',
    ),
    _page(
        "D4313",
        "a table that takes more passes",
        "Each pass of `materialize` joins once what meets at a node, so a chain of n steps takes about\n"
        "log2(n) passes under a transitive rule, and n under one that goes step by step.",
        "dotr.spark.materialize(triples, rules, passes=2)",
        "dotr.spark.materialize(triples, rules, passes=20)",
    ),
    _page(
        "D4311",
        "a stream that cannot be distributed",
        "By part on all workers run programs without HOLD, ISTREAM, DSTREAM and .lars files, where late\n"
        "graphs and dead letters are not kept. Everything else is run in order, by one engine.",
        "dotr stream fire.dotr … --mode distributed --late keep",
        "dotr stream fire.dotr … --late keep # ordered, and says why",
    ),
    _page(
        "D4312",
        "a topic that events cannot go to",
        "`--out kafka:SERVERS/TOPIC` names the brokers and the topic; events go there as JSON lines.",
        "dotr stream fire.dotr … --out kafka:alarms",
        "dotr stream fire.dotr … --out kafka:host:9092/alarms",
    ),
    _page(
        "D5220",
        "the checkpoint of another stream",
        "What a stream remembers belongs to its rules, its background, its lateness and the form of its\n"
        "output. Layout, comments and prefixes of rules may change.",
        "dotr stream new.dotr … --checkpoint fires.state # which was started with fire.dotr",
        "dotr stream new.dotr … --checkpoint new.state --out new/",
    ),
    _page(
        "D5221",
        "the state of a stream that cannot be read",
        "It was damaged, removed, or written by another version. Nothing is guessed: events would be lost.",
        "rm fires.state/dotr/*.state",
        "dotr stream fire.dotr … --checkpoint again.state --out again/",
    ),
    _page(
        "D4307",
        "a Spark worker without this dotr",
        "Workers run the driver's release of dotr, with its dependencies, under a Python of the same\n"
        "release. Every task looks before it does anything.",
        "spark-submit --master yarn dotr-submit.py batch … # where workers have no dotr",
        "spark-submit --master yarn --archives env.tar.gz#environment --conf "
        "spark.pyspark.python=./environment/bin/python dotr-submit.py batch …",
    ),
    _page(
        "D4308",
        "an option that comes too late",
        "Spark fetches packages and sends files when it starts; under spark-submit, or with a session that\n"
        "runs, it has.",
        "spark-submit dotr-submit.py batch … --packages org.apache.hadoop:hadoop-aws:3.4.2",
        "spark-submit --packages org.apache.hadoop:hadoop-aws:3.4.2 dotr-submit.py batch …",
    ),
)
