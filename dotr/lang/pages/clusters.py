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
