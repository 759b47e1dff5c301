"""One rule of the paper's default scenario, by Flink SQL and by dotr: an A after the last B of its room.

Place:   called by peers.py; peer_flink.py, where the queries are, is the other half.
Method:  the readings of workloads.default. Flink has no RDF, so it gets facts (kind, room, value, second) as
         CSV and writes CSV. dotr does the work twice: `detection` on the same facts in memory, as
         tests.bench.detect does, the threshold in ON; and `Turtle to N-Quads`, parsing, Datalog, SPARQL and
         event names included. Matches (room, second, value of A, second and value of B) must be equal.
         Two rules, since LAST is not what MATCH_RECOGNIZE has:
         `last`  every A with the last B of its room, at most five minutes before: dotr's own rule. Flink:
                 the query `last` (reports a match only when the next B of that room comes, for one match
                 that has all A of a B is the only way to lose none) and the query `over` (at once, no CEP).
         `next`  only the first A after a B, what (B A) means in Flink: dotr adds NOT an A BETWEEN them.
         With 5 readings of that kind a minute the window hardly bites, so matches are compared once more
         with a threshold that few pass. Flink's time is what it says itself for a job in a warm machine, and
         the slope to a stream ten times longer, which has no start of a job in it. dotr is one thread and
         measured in processor time; Flink has many, so there is the slope of the processor time of its Java
         machine too, the only figure that a busy machine does not spoil.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyoxigraph as ox

from dotr.detect.detector import TeslaDetector
from dotr.events import Clock, Fact
from dotr.lang import parse_program
from dotr.program import Program
from dotr.rdf.terms import integer

from . import detect, floor_default, harness, runners, workloads
from .peers_environment import Environment, Result

Found: TypeAlias = tuple[str, int, int, int, int]
"""Room, second and value of A, second and value of B."""
Streams: TypeAlias = Mapping[int, Sequence[tuple[str, str, int, int]]]
"""Facts by their number: few, many."""

THRESHOLD, RARE = 40, 95
MORE = 10
"""How many times longer the second stream is."""
RULES = ("last", "next")
QUERIES = {"read": "", "last": "last", "over": "last", "next": "next"}
"""Flink's query → the rule of dotr's that says the same; `read` looks for nothing."""
READING = re.compile(r"#(sensor\d+)> <\S+#read_val([AB])> (\d+) ")
DEFINE = "DEFINE { dotr_x a :After ; :room ?room ; :val ?val ; :since ?since ; :peak ?peak }"
WITH = "WITH ?room := A.?room, ?val := A.?val, ?since := B.time, ?peak := B.?val"


SIMPLE = """\
QUERY A := { SELECT ?room ?val WHERE { ?room :a ?val } }
QUERY B := { SELECT ?room ?val WHERE { ?room :b ?val } }
"""


def rule(name: str, threshold: int) -> str:
    """From RDF: the threshold is the queries'."""
    a, b = (workloads.reading(kind, f"val{kind}", str(threshold)).text for kind in "AB")
    nothing = "AND NOT Other := A BETWEEN B AND A ON Other.?room = A.?room\n" if name == "next" else ""
    return (
        f"PREFIX : <{workloads.NAMESPACE}>\nRULE After {DEFINE}\nFROM A := {{ {a} }}\n"
        f"AND LAST B := {{ {b} }} WITHIN 300 s FROM A ON B.?room = A.?room\n{nothing}{WITH}\n"
    )


def program(name: str, threshold: int) -> Program:
    """From facts: the threshold is the rule's."""
    nothing = (
        f"AND NOT Other := A BETWEEN B AND A ON Other.?room = A.?room && Other.?val > {threshold}\n"
        if name == "next"
        else ""
    )
    return parse_program(
        f"PREFIX : <{workloads.NAMESPACE}>\n{SIMPLE}"
        f"RULE After {DEFINE}\nFROM A\nAND LAST B WITHIN 300 s FROM A\n"
        f"ON B.?room = A.?room && B.?val > {threshold} && A.?val > {threshold}\n{nothing}{WITH}\n"
    )


def facts_of(workload: workloads.Workload) -> list[tuple[str, str, int, int]]:
    """(kind, room, value, second) of each reading."""
    room_of = {
        sensor.partition("#")[2]: room for sensor, room in floor_default.rooms(workload.background).items()
    }
    found = []
    for second, text in workload.documents:
        reading = READING.search(text)
        assert reading is not None
        found.append((reading[2], room_of[reading[1]], int(reading[3]), second))
    return found


def instants(facts: Sequence[tuple[str, str, int, int]]) -> detect.Instants:
    """As the detector takes them."""
    made: list[tuple[int, Mapping[str, Sequence[Fact]]]] = []
    for kind, room, value, second in facts:
        time = second * detect.SECOND
        made.append((time, {kind: [(time, (room, integer(value)), 0, "")]}))
    return made


def number(term: str | None) -> int:
    assert term is not None
    return int(term.split('"')[1])


def detected(name: str, threshold: int, stream: detect.Instants) -> list[Found]:
    """What the detector alone finds."""
    detector = TeslaDetector(program(name, threshold), Clock())
    found = []
    for time, facts in stream:
        for _, _, (a, b), _ in detector.detect(time, facts):
            at, since = a[0] // detect.SECOND, b[0] // detect.SECOND
            found.append((str(a[1][0]), at, number(a[1][1]), since, number(b[1][1])))
    return found


def written(nquads: str) -> list[Found]:
    """What events in N-Quads say."""
    events: dict[str, dict[str, str]] = {}
    for quad in ox.parse(nquads, format=ox.RdfFormat.N_QUADS):
        said = events.setdefault(str(quad.subject), {})
        said[quad.predicate.value.rpartition("#")[2]] = str(quad.object)
    return [
        (
            said["room"],
            number(said["generatedAtTime"]),
            number(said["val"]),
            number(said["since"]),
            number(said["peak"]),
        )
        for said in events.values()
    ]


def reported(folder: Path) -> list[Found]:
    """What Flink wrote: a row a match, or a row for all A of one B."""
    found = []
    for part in sorted(folder.iterdir()):
        with part.open(encoding="utf-8", newline="") as lines:
            for room, *rest, since, peak in csv.reader(lines):
                if len(rest) == 2:
                    found.append((room, int(rest[0]), int(rest[1]), int(since), int(peak)))
                    continue
                for a in rest[0].split(","):
                    second, _, value = a.partition("=")
                    found.append((room, int(second), int(value), int(since), int(peak)))
    return found


def detection(environment: Environment, count: int, repeats: int) -> Result:
    streams = {size: facts_of(workloads.default(size)) for size in (count, MORE * count)}
    files = {size: environment.folder / f"facts{size}.csv" for size in streams}
    for size, facts in streams.items():
        rooms = dict.fromkeys(room for _, room, _, _ in facts)
        ends = [("B", room, 100, 2 * size + place) for place, room in enumerate(rooms)]
        with files[size].open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([*facts, *ends])
    jobs: list[dict[str, Any]] = []

    def job(query: str, parallelism: int, size: int, threshold: int = THRESHOLD) -> None:
        what = {"query": query, "parallelism": parallelism, "size": size, "threshold": threshold}
        jobs.append({**what, "facts": str(files[size]), "out": str(environment.folder / f"out{len(jobs)}")})

    for query in QUERIES:
        job(query, 1, count, RARE)  # warms the code of this query up as well
        for parallelism in (1, 2):
            job(query, parallelism, count)
            for _ in range(repeats):
                job(query, parallelism, count)
                job(query, parallelism, MORE * count)
    listed = environment.folder / "jobs.json"
    listed.write_text(json.dumps(jobs), encoding="utf-8")
    peer = environment.run(str(listed))

    result = Result(figures={"facts": count, "flink": peer["version"], "flink_first_job_s": peer["first_s"]})
    by_dotr(streams, repeats, result)
    agreement(jobs, streams, result)
    by_flink(jobs, peer["runs"], count, result)
    result.notes.append(
        f"flink: the first job is answered {peer['first_s']:.1f} s after the start of its script; `µs a "
        f"fact` is of {count:,} facts and has the start of a job in it, `slope µs`, up to {MORE} times as "
        "many, has not; `read` is CSV alone, in and out"
    )
    return result


def by_dotr(streams: Streams, repeats: int, result: Result) -> None:
    """dotr's rows; the same matches must come out of facts and of Turtle."""
    count, long = streams
    default = workloads.default(count)
    for name in RULES:
        detector = detect.engine(program(name, THRESHOLD))
        alone, _ = detect.measure(detector, instants(streams[long]), repeats + 1)
        workload = replace(default, rules=rule(name, THRESHOLD))
        prepare = partial(runners.prepare_dotr, workload)
        rdf = harness.compare({"dotr": prepare}, default.documents, repeats + 1)["dotr"].best
        matches = sorted(detected(name, THRESHOLD, instants(streams[count])))
        found = sorted(written("".join(prepare()(default.documents))))
        result.checks[f"dotr finds the same `{name}` in Turtle as in facts"] = found == matches
        result.figures[f"dotr_detection_us_{name}"], result.figures[f"dotr_rdf_us_{name}"] = alone, rdf
        for what, figure in (("detection", alone), ("Turtle to N-Quads", rdf)):
            row = {"what": f"dotr, {what}", "rule": name, "matches": len(matches), "µs a fact": figure}
            result.rows.append({**row, "slope µs": figure, "slope CPU µs": figure})


def agreement(jobs: Sequence[Mapping[str, Any]], streams: Streams, result: Result) -> None:
    """Every job of Flink must have found what dotr's detector finds."""
    expected: dict[tuple[str, int, int], list[Found]] = {}
    agree: dict[str, list[bool]] = {query: [] for query, name in QUERIES.items() if name}
    for job in jobs:
        name, size, threshold = key = QUERIES[job["query"]], job["size"], job["threshold"]
        if name and key not in expected:
            expected[key] = sorted(detected(name, threshold, instants(streams[size])))
        if name:
            agree[job["query"]].append(sorted(reported(Path(job["out"]))) == expected[key])
    for query, same in agree.items():
        claim = f"flink's `{query}` finds what dotr's `{QUERIES[query]}` finds, in {len(same)} jobs"
        result.checks[claim] = all(same)


def by_flink(
    jobs: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, float]], count: int, result: Result
) -> None:
    """Flink's rows: the best of the repeats, and how many times dotr's time that is."""
    best: dict[tuple[str, int, int], dict[str, float]] = {}
    for job, run in zip(jobs, runs, strict=True):
        if job["threshold"] == THRESHOLD:
            known = best.setdefault((job["query"], job["parallelism"], job["size"]), dict(run))
            known |= {what: min(figure, known[what]) for what, figure in run.items()}
    long, more = MORE * count, (MORE - 1) * count
    place: dict[int, int] = {}
    for query, name in QUERIES.items():
        for parallelism in (1, 2):
            few, many = best[query, parallelism, count], best[query, parallelism, long]
            job_us = few["net_s"] / count * 1e6
            slope, cpu = ((many[what] - few[what]) / more * 1e6 for what in ("net_s", "cpu_s"))
            row = {
                "what": f"flink `{query}`, parallelism {parallelism}",
                "rule": name,
                "matches": None,
                "µs a fact": job_us,
                "slope µs": slope,
                "slope CPU µs": cpu,
            }
            if name:
                alone, rdf = (result.figures[f"dotr_{what}_us_{name}"] for what in ("detection", "rdf"))
                csv_alone = result.rows[place[parallelism]]["slope CPU µs"]
                row |= {"job/detection": job_us / alone, "CPU/detection": cpu / alone}
                row |= {"CPU less CSV/detection": (cpu - csv_alone) / alone}
                row |= {"job/RDF": job_us / rdf, "slope/RDF": slope / rdf, "CPU/RDF": cpu / rdf}
            else:
                place[parallelism] = len(result.rows)
            result.rows.append(row)
