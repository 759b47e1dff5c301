"""One rule by plain PySpark and by dotr on Spark: the same events from the same log, and from the same table.

Place:   called by peers.py; peer_spark.py is the other half; table, log, mapping and rule are columns.py's.
Method:  an alarm, and the last reading of its room above 30 within 60 min. JSON lines with N-Triples in them,
         and a Parquet table; local[2], the same settings of the session for all, each a process of its own.
         dotr: `dotr.spark.detect` with `times="distinct"` (each row has a time of its own) and `dotr batch
         --engine spark`, with `dotr run`, which has no Spark, beside them. CPU is that of all processes
         (processes.py), over all facts and over 1,000 of the log, so that a start can be taken off. Events
         are rows (time, room, value) in Parquet and are compared row by row. The peer's environment is this
         Python, which has PySpark.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyspark

from dotr.batch.spark.session import find_java, settings_for

from .columns import Bench
from .peers_environment import Environment, PeerError, Result
from .processes import watched

FEW = 1_000
MASTER = "local[2]"
PLAIN = "plain PySpark"
SOURCES = {"log": "one.jsonl", "table": "table.parquet"}
DETECT = """
import sys
import dotr.spark
form, source, out = sys.argv[1:]
spark = dotr.spark.session("local[2]")
if form == "log":
    log = spark.read.schema("time timestamp, graph string").json(source)
else:
    log = dotr.spark.graphs(spark.read.parquet(source), mapping="one.map")
events = dotr.spark.detect(log, "one1.dotr", types={"v": "double", "room": "iri"}, times="distinct")
events.rule("Alarm0").selectExpr("time", "room", "v AS value").write.parquet(out)
"""


def commands(plain: list[str], form: str) -> dict[str, list[str]]:
    """By way: a command that writes the folder or file `out`, in a folder of columns.py's."""
    source = SOURCES[form]
    python, settings = [sys.executable], {**settings_for(MASTER), "spark.master": MASTER}
    mapped = [] if form == "log" else ["--map", "one.map"]
    typed = ["--schema", "typed", "-q"]
    batch = ["--engine", "spark", "--master", MASTER, "--format", "parquet", "--out", "out"]
    return {
        PLAIN: [*plain, form, source, "out", json.dumps(settings)],
        "detect": [*python, "-c", DETECT, form, source, "out"],
        "dotr batch": [*python, "-m", "dotr", "batch", "one1.dotr", source, *mapped, *batch, *typed],
        "dotr run": [*python, "-m", "dotr", "run", "one1.dotr", source, *mapped, "-o", "out.parquet", *typed],
    }


def rows_of(folder: Path) -> pa.Table:
    """(time, room, value) in order, whoever wrote them; what was written is removed."""
    out = next(path for path in (folder / "out", folder / "out.parquet") if path.exists())
    parts = sorted(out.rglob("*.parquet")) if out.is_dir() else [out]
    table = ds.dataset([str(part) for part in parts], format="parquet").to_table()
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    names = table.column_names
    if "bindings" in names:
        for place, field in enumerate(table.schema.field("bindings").type):
            table = table.append_column(field.name, pc.struct_field(table.column("bindings"), [place]))
    room, value = (
        pc.struct_field(column, "value") if pa.types.is_struct(column.type) else column
        for column in (table.column("room"), table.column("value" if "value" in names else "v"))
    )
    room = pc.replace_substring(room.cast(pa.string()), "http://example.org/room/", "")
    time = table.column("time").cast(pa.timestamp("us", tz="UTC"))
    found = pa.table({"time": time, "room": room, "value": value.cast(pa.float64())})
    return found.sort_by([("time", "ascending"), ("room", "ascending")])


def rules_on_spark(environment: Environment, facts: int, repeats: int) -> Result:
    result = Result(figures={"facts": facts, "pyspark": pyspark.__version__, "load": os.getloadavg()[0]})
    java = {**os.environ, "JAVA_HOME": find_java().home}
    best: dict[tuple[str, str, int], float] = {}
    events: dict[tuple[str, str, int], pa.Table] = {}
    for count in (FEW, facts):
        place = environment.folder / str(count)
        place.mkdir()
        Bench(place, count)
        for _ in range(repeats):
            for form in SOURCES if count == facts else ("log",):
                for way, command in commands(environment.command, form).items():
                    try:
                        cpu = watched(command, place, java).cpu
                    except subprocess.CalledProcessError as error:
                        raise PeerError(f"{way}: ends with {error.returncode}\n{error.stderr}") from None
                    best[form, way, count] = min(cpu, best.get((form, way, count), cpu))
                    events[form, way, count] = rows_of(place)
        shutil.rmtree(place)
    for form in SOURCES:
        ways = list(commands([], form))
        over = {way: best[form, way, facts] - best["log", way, FEW] for way in ways}
        for way in ways:
            row: dict[str, Any] = {"from": form, "way": way, "events": events[form, way, facts].num_rows}
            row |= {"CPU s": best[form, way, facts], f"{FEW:,} facts": best["log", way, FEW]}
            if way != PLAIN:
                row["plain / dotr"] = best[form, PLAIN, facts] / best[form, way, facts]
                row["without starts"] = over[PLAIN] / over[way]
            result.rows.append(row)
        same = all(found.equals(events[of, PLAIN, n]) for (of, _, n), found in events.items() if of == form)
        result.checks[f"{form}: the same events, row by row"] = same and row["events"] > 0
    result.notes.append("ratios: plain PySpark's CPU to dotr's, more than 1 where dotr takes less")
    return result
