"""Runs in a throw-away environment that has PyFlink: MATCH_RECOGNIZE over CSV files, and how long it takes.

    python peer_sequences.py JOBS.json

Place:   started by peers_sequences.py and tests/detect/sequences/test_flink.py; imports nothing of dotr. One
         line of JSON on standard output.
Method:  a job is a query with `{facts}` for its table, the columns of that table and of its result; facts are
         the lines of a CSV file, with their second last. All jobs run one after another in one Java machine.
         `cpu_s` is the processor time of that machine (from /proc), `first_cpu_s` that up to the end of the
         first job, the start of the machine included.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from pyflink.table import (  # type: ignore[import-not-found]  # installed where this runs
    EnvironmentSettings,
    TableEnvironment,
)


def cpu_seconds() -> float:
    """Processor time of all processes below this one; 0 where there is no /proc."""
    import peer_flink  # noqa: PLC0415  # beside this file

    return float(peer_flink.cpu_seconds())


def run(tables: Any, number: int, job: dict[str, Any]) -> dict[str, float]:
    tables.execute_sql(f"""
        CREATE TEMPORARY TABLE facts{number} ({job["columns"]}, ms BIGINT,
          ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND)
        WITH ('connector' = 'filesystem', 'path' = '{job["facts"]}', 'format' = 'csv')""")
    tables.execute_sql(f"""
        CREATE TEMPORARY TABLE matches{number} ({job["result"]})
        WITH ('connector' = 'filesystem', 'path' = '{job["out"]}', 'format' = 'csv')""")
    query = job["query"].replace("{facts}", f"facts{number}")
    cpu, start = cpu_seconds(), monotonic()
    tables.execute_sql(f"INSERT INTO matches{number} {query}").wait()
    return {"wall_s": monotonic() - start, "cpu_s": cpu_seconds() - cpu}


def main(jobs: str) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    runs, first = [], 0.0
    for number, job in enumerate(json.loads(Path(jobs).read_text())):
        runs.append(run(tables, number, job))
        first = first or cpu_seconds()
    print(json.dumps({"version": version("apache-flink"), "first_cpu_s": first, "runs": runs}))


if __name__ == "__main__":
    main(*sys.argv[1:])
