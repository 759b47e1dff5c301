"""Runs in a throw-away environment that has PyFlink: detect patterns with Flink SQL, report how long it took.

    python peer_flink.py JOBS.json

Place:   started by peers.py; imports nothing of dotr. One line of JSON on standard output.
Method:  facts are the lines of a CSV file, event time is one of their columns, a job writes its matches as
         CSV; all jobs run one after another in one Java machine, so that only the first pays for its start.
         `net_s` is what Flink itself says a job took (from its start to its end, without planning), `wall_s`
         has planning and submission in it, `cpu_s` is the processor time of the Java machine (from /proc).
         `next` is MATCH_RECOGNIZE as its manual shows it. A match starts at a row, and of the matches that
         start at one row there is only one: (B A*? A) would lose all but the first A after a B. So `last`
         takes all A after a B as one match, which the next row that goes on differently (N) ends, and
         LISTAGG them. WITHIN would reach from B to N, and is open (300 s after B is out), hence the time is
         compared in DEFINE. A greedy A+ may not stand last in a pattern, hence N; the facts end with a B for
         each room. `over` is not a pattern but what SQL has for "the last": an aggregate over a window that
         ends at the row. `read` looks for nothing: what reading and writing CSV costs.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from pyflink.table import (  # type: ignore[import-not-found]  # installed where this runs
    EnvironmentSettings,
    TableEnvironment,
)

MATCH = "room STRING, sec BIGINT, val INT, since BIGINT, peak INT"
RUN = "room STRING, runs STRING, since BIGINT, peak INT"
COLUMNS = {"read": MATCH, "next": MATCH, "last": RUN, "over": MATCH}
QUERIES = {
    "read": """
        SELECT room, sec, val, sec, val FROM {facts} WHERE val > {threshold} AND kind = 'A'""",
    "next": """
        SELECT room, sec, val, since, peak FROM (SELECT * FROM {facts} WHERE val > {threshold})
        MATCH_RECOGNIZE (
          PARTITION BY room ORDER BY ts
          MEASURES A.sec AS sec, A.val AS val, B.sec AS since, B.val AS peak
          ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
          PATTERN (B A)
          DEFINE B AS B.kind = 'B', A AS A.kind = 'A' AND A.sec <= B.sec + 300)""",
    "last": """
        SELECT room, runs, since, peak FROM (SELECT * FROM {facts} WHERE val > {threshold})
        MATCH_RECOGNIZE (
          PARTITION BY room ORDER BY ts
          MEASURES LISTAGG(CAST(A.sec AS STRING) || '=' || CAST(A.val AS STRING)) AS runs,
                   B.sec AS since, B.val AS peak
          ONE ROW PER MATCH AFTER MATCH SKIP TO LAST N
          PATTERN (B A+ N)
          DEFINE B AS B.kind = 'B', A AS A.kind = 'A' AND A.sec <= B.sec + 300,
                 N AS N.kind = 'B' OR N.sec > B.sec + 300)""",
    "over": """
        SELECT room, sec, val, since, peak FROM (
          SELECT kind, room, sec, val,
                 LAST_VALUE(CASE WHEN kind = 'B' THEN sec END) OVER w AS since,
                 LAST_VALUE(CASE WHEN kind = 'B' THEN val END) OVER w AS peak
          FROM {facts} WHERE val > {threshold}
          WINDOW w AS (PARTITION BY room ORDER BY ts
                       RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND CURRENT ROW))
        WHERE kind = 'A' AND since IS NOT NULL""",
}


def cpu_seconds() -> float:
    """Processor time of all processes below this one; 0 where there is no /proc."""
    parents: dict[int, tuple[int, float]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            fields = text[text.rindex(")") + 2 :].split()
            parents[int(entry)] = int(fields[1]), sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    total, todo = 0.0, [os.getpid()]
    while todo:
        above = todo.pop()
        for process, (parent, seconds) in parents.items():
            if parent == above:
                total += seconds
                todo.append(process)
    return total


def run(tables: TableEnvironment, number: int, job: dict[str, Any]) -> dict[str, Any]:
    tables.get_config().set("parallelism.default", str(job["parallelism"]))
    tables.execute_sql(f"""
        CREATE TEMPORARY TABLE facts{number} (
          kind STRING, room STRING, val INT, sec BIGINT,
          ts AS TO_TIMESTAMP_LTZ(sec * 1000, 3), WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND)
        WITH ('connector' = 'filesystem', 'path' = '{job["facts"]}', 'format' = 'csv')""")
    tables.execute_sql(f"""
        CREATE TEMPORARY TABLE matches{number} ({COLUMNS[job["query"]]})
        WITH ('connector' = 'filesystem', 'path' = '{job["out"]}', 'format' = 'csv')""")
    query = QUERIES[job["query"]].format(facts=f"facts{number}", threshold=job["threshold"])
    cpu, start = cpu_seconds(), monotonic()
    client = tables.execute_sql(f"INSERT INTO matches{number} {query}").get_job_client()
    result = client.get_job_execution_result().result()
    return {
        "net_s": result.get_net_runtime() / 1000,
        "wall_s": monotonic() - start,
        "cpu_s": cpu_seconds() - cpu,
    }


def main(jobs: str) -> None:
    start = monotonic()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    runs, ready = [], 0.0
    for number, job in enumerate(json.loads(Path(jobs).read_text())):
        runs.append(run(tables, number, job))
        ready = ready or monotonic() - start
    print(json.dumps({"version": version("apache-flink"), "first_s": ready, "runs": runs}))


if __name__ == "__main__":
    main(*sys.argv[1:])
