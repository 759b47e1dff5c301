"""Random whole programs with sequences, and every way of running them against the literal reading.

    python -m tests.whole_sequences --runs 20000

Place:   tests/test_whole_sequences.py runs some of them; the long run is started by hand, its line is in
         tests/soak/LOG.md. Sequences, rows and their conditions come from tests/sequences.py.
Method:  the sources of a sequence are queries, what Datalog rules derive, events of rules, changes of heads
         or what lasts; rules with every operator, .lars files and other sequences read it. What `--verify`
         finds is expected of a plain run, one cut by snapshots, in disorder within the lateness, fully
         materialised or of many graphs at once (two of these for each program); of local batch by key and in
         slices; of a deployment that is stopped and resumed.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from msgspec import Struct

import dotr
from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.work import Treatment
from dotr.core.deployment import Deployment
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from dotr.program import Program
from tests.batch.test_local import Serial, output, quiet
from tests.detect.sequences.test_detector import check
from tests.sequences import Instants, graph_of, instants, sequences
from tests.service.deployments import deploy, feed
from tests.service.test_feed import Stop

SECOND = 1_000_000
QUERIES = """PREFIX : <http://example.org/>
QUERY Qa := { SELECT ?k ?v WHERE { ?o :a ?v OPTIONAL { ?o :k ?k } } }
QUERY Qb := { SELECT ?k ?v WHERE { ?o :b ?v OPTIONAL { ?o :k ?k } } }
QUERY Qc := { SELECT ?k ?v WHERE { ?o :c ?v OPTIONAL { ?o :k ?k } } }
"""
RULE_EVENTS = """RULE Hot
DEFINE { dotr_h a :Hot }
FROM Qa
AND LAST Qb WITHIN 3 s FROM Qa
WHERE Qa.?v > 0
WITH ?k := Qa.?k, ?v := Qb.?v
"""
TICKS = """PRIVATE RULE Beat
DEFINE { dotr_t a :Beat }
FROM EVERY 3 s AS Now
AND LAST Qa WITHIN 4 s FROM Now
WITH ?k := Qa.?k, ?v := Qa.?v
"""
DERIVED = """[?o, <http://example.org/c>, ?v] :- [?o, <http://example.org/a>, ?v],
  [?o, <http://example.org/k>, ?k] .
[?o, <http://example.org/k>, <http://example.org/y>] :- [?o, <http://example.org/b>, ?v] .
"""
HEADS = """STEP 1 s
held(?k, ?v) :- Qa(?k, ?v) WITHIN 2 s .
both(?k, ?v) :- Qa(?k, ?v) WITHIN 4 s, Qb(?k, ?w) WITHIN 1 s .
"""
SOURCES = (
    "Qa",
    "Qa",
    "Qb",
    "Qc",
    "Hot",
    "Beat",
    "ISTREAM held",
    "DSTREAM held",
    "ISTREAM both",
    "{ SELECT ?k ?v WHERE { ?o :a|:b ?v ; :k ?k } }",
)
READERS = """RULE Pair DEFINE {{ dotr_x a :Pair }} FROM {s} AND EACH Earlier := {s} WITHIN 6 s BEFORE {s}
RULE Absent DEFINE {{ dotr_x a :None }} FROM Qa AND NOT {s} WITHIN 3 s FROM Qa
RULE Since DEFINE {{ dotr_x a :Btw }} FROM Qa AND LAST {s} WITHIN 9 s FROM Qa AND NOT Qb BETWEEN {s} AND Qa
RULE Many DEFINE {{ dotr_x :n ?n }} FROM Qb AND COUNT(*) AS ?n OVER {s} WITHIN 9 s FROM Qb WITH ?n := ?n
RULE Late DEFINE {{ dotr_x a :Late }} FROM {s} AFTER 2 s AS Due AND NOT Qa WITHIN 2 s FROM Due
RULE Tick DEFINE {{ dotr_x a :Tick }} FROM EVERY 4 s AS Now AND COUNT(*) AS ?n OVER {s} WITHIN 6 s FROM Now
RULE Once DEFINE {{ dotr_x a :Once }} FROM Qb AND FIRST {s} WITHIN 9 s FROM Qb CONSUMING {s}
RULE Perhaps DEFINE {{ dotr_x a :Perhaps }} FROM Qa AND OPTIONAL LAST {s} WITHIN 5 s FROM Qa
RULE Key DEFINE {{ dotr_x a :Key }} FROM {s} AND LAST Qb WITHIN 5 s BEFORE {s} ON Qb.?k = {s}.?k
""".splitlines()
OF_HEADS = (
    "RULE Begun\nDEFINE { dotr_x a :Begun }\nFROM ISTREAM recent\n",
    "RULE Ended\nDEFINE { dotr_x a :Ended }\nFROM DSTREAM recent\n",
    "RULE Is\nDEFINE { dotr_x a :Is }\nFROM Qa\nAND LAST recent WITHIN 2 s FROM Qa\n",
)


WAYS: tuple[dict[str, Any], ...] = (
    {"cut": True},
    {"disorder": True},
    {"materialize": "all"},
    {"ahead": True},
)


class World(Struct, frozen=True):
    """A program with its files, and a stream. `noise`: where it is cut, and in which order it comes."""

    rules: str
    heads: str
    datalog: str
    stream: Instants
    noise: int

    def __str__(self) -> str:
        stream = "\n".join(f"@{time} {graph_of(rows)}" for time, rows in self.stream)
        return (
            f"{self.rules}\n--- heads\n{self.heads}\n--- datalog\n{self.datalog}\n--- {self.noise}\n{stream}"
        )

    def program(self) -> Program:
        """As loaded. Raises ProgramError."""
        known = {"a.dotr": self.rules, "r.dlog": self.datalog, "h.lars": self.heads}
        return load_program(["a.dotr"], lambda path: known[path] if path in known else read_rules_text(path))


def attributes(sequence: str) -> list[str]:
    """The attributes of a sequence's facts."""
    if (line := re.search(r"^WITH (.*)$", sequence, re.M)) is not None:
        return re.findall(r"\?(\w+) :=", line[1])
    return ["k"] if " PER ?k" in sequence else []


@st.composite
def worlds(draw: st.DrawFn, *, lasting: bool = True) -> World:
    """A program of one sequence, or a second one over it, and a stream. `lasting`: with HOLD, sometimes."""
    chosen = draw(st.tuples(st.sampled_from(SOURCES), st.sampled_from(SOURCES)))
    first = draw(sequences(sources=f"A := {chosen[0]}, B := {chosen[1]}"))
    texts, streams = [first], {"Seq": attributes(first)}
    match draw(st.integers(0, 5)):
        case 0:
            texts.append(
                "SEQUENCE Runs := Seq+\nOF Seq\nWITHIN 5 s\nWITH ?m := COUNT(Seq), ?t := FIRST(Seq).time\n"
            )
            streams["Runs"] = ["m", "t"]
        case 1 if {"k", "v"} <= set(streams["Seq"]):
            texts.append(draw(sequences("Other", "A := Seq, B := Qb")))
            streams["Other"] = attributes(texts[-1])
    last = list(streams)[-1]
    texts.append(f"RULE Found\nDEFINE {{ dotr_x a :Found }}\nFROM {last}\n")
    heads = HEADS if any("STREAM" in source for source in chosen) else ""
    if draw(st.integers(0, 2)) == 0:
        of = draw(st.sampled_from(list(streams)))
        given = ", ".join(f"?{name}" for name in streams[of])
        window = draw(
            st.sampled_from(("WITHIN 3 s", "WITHIN 1 s", "WITHIN 2 FACTS", "AT LEAST 2 WITHIN 6 s"))
        )
        heads = (heads or "STEP 1 s\n") + f"recent({given}) :- {of}({given}) {window} .\n"
        texts += draw(st.lists(st.sampled_from(OF_HEADS), min_size=1, max_size=2, unique=True))
    for reader in draw(st.lists(st.sampled_from(READERS), max_size=2, unique=True)):
        of = draw(st.sampled_from(list(streams)))
        if "{s}.?k" not in reader or "k" in streams[of]:
            texts.append(reader.format(s=of))
    texts += [RULE_EVENTS] * ("Hot" in chosen) + [TICKS] * ("Beat" in chosen)
    draw(st.randoms(use_true_random=False)).shuffle(texts)
    header = QUERIES
    datalog = ""
    if draw(st.booleans()):
        datalog, header = DERIVED, f"{header}RULES <r.dlog>\n"
    if heads:
        header += "LARS <h.lars>\n"
    if lasting and draw(st.integers(0, 7)) == 0:
        header += "HOLD * FOR 2 s\n"
    return World(
        header + "\n" + "\n".join(texts),
        heads,
        datalog,
        draw(instants(14, 4, draw(st.integers(0, 1)))),
        draw(st.integers(0, 9_999)),
    )


def run(
    world: World,
    program: Program,
    *,
    cut: bool = False,
    disorder: bool = False,
    ahead: bool = False,
    **options: Any,
) -> list[str]:
    """The events of a run, as JSON lines."""
    noise = Random(world.noise)
    graphs = [(time, graph_of(rows)) for time, rows in world.stream]
    if disorder:
        noise.shuffle(graphs)
        options["lateness"] = "1 d"
    running = dotr.Engine(program, late="fail", **options)
    events: list[dotr.Event] = []
    if ahead:
        for found in running.push_all(graphs):
            events += found
        graphs = []
    for time, graph in graphs:
        events += running.push(graph, at=time)
        if cut and noise.random() < 0.4:
            state = running.snapshot()
            running = dotr.Engine(program, late="fail", **options)
            running.restore(state)
    events += running.finish()
    return [event.to_json() for event in events]


def of_batch(world: World, program: Program, folder: Path, **options: Any) -> list[str]:
    """The sorted events of a local batch, whose tasks run in this process."""
    log, out = folder / "log.jsonl", Path(tempfile.mkdtemp(dir=folder))
    log.write_text(lines_of(world), encoding="utf-8")
    request = Request(Deployment(program), open_log([str(log)], SourceOptions()), **options)
    return output(out, LocalRunner(2, Serial).run(request, str(out), quiet))


def lines_of(world: World) -> str:
    """The stream as JSON lines."""
    return "".join(json.dumps({"time": time, "graph": graph_of(rows)}) + "\n" for time, rows in world.stream)


def of_feed(world: World, folder: Path, stops: bool) -> str:
    """What a deployment writes; `stops`: it is stopped anywhere, and resumed from its last commit."""
    own, noise = Path(tempfile.mkdtemp(dir=folder)), Random(world.noise)
    for name, text in (("h.lars", world.heads), ("r.dlog", world.datalog), ("in.jsonl", lines_of(world))):
        (own / name).write_text(text, encoding="utf-8")
    state, out = deploy(own, world.rules), own / "out.nq"
    while True:
        stopping = Stop(noise.randrange(4, 12) if stops else 10**9)
        try:
            feed(
                state,
                [str(own / "in.jsonl")],
                [str(out)],
                every=noise.choice([1, 2, 5]) if stops else 10**9,
                stopping=stopping,
            )
        except KeyboardInterrupt:
            continue
        return out.read_text(encoding="utf-8")


def compare(world: World, folder: Path | None = None) -> int | None:
    """Run it every way, with a folder in batch and deployed, too. How many events; None: it is refused."""
    try:
        program = world.program()
    except dotr.ProgramError:
        return None
    expected = run(world, program, verify=True)
    assert run(world, program) == expected, "run"
    for way in Random(world.noise).sample(WAYS, 2):
        assert run(world, program, **way) == expected, way
    if folder is not None:
        key = sorted(expected)
        assert of_batch(world, program, folder) == key, "batch"
        assert of_batch(world, program, folder, slice_length=3 * SECOND) == key, "slices"
        assert of_batch(world, program, folder, treatment=Treatment(verify=True)) == key, "verified batch"
        assert of_feed(world, folder, stops=True) == of_feed(world, folder, stops=False), "stopped"
    return len(expected)


class Tally:
    """Counts of a long run."""

    def __init__(self) -> None:
        self.runs = self.refused = self.eventful = self.events = self.deployed = 0

    def add(self, events: int | None, deployed: bool) -> None:
        self.runs += 1
        self.refused += events is None
        self.eventful += bool(events)
        self.events += events or 0
        self.deployed += deployed

    def __str__(self) -> str:
        return (
            f"{self.runs:,} programs, {self.refused:,} refused, {self.eventful:,} with events "
            f"({self.events:,}), {self.deployed:,} also in batch and deployed"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--facts", type=int, default=0, help="and that many programs over facts alone")
    parser.add_argument("--every", type=int, default=20, help="every n-th also in batch and deployed")
    given_ = parser.parse_args(arguments)
    tally = Tally()
    matches = 0
    for number in range(1, given_.facts + 1):
        matches += check(given_.seed * 10**9 + number)
        if number % 1_000 == 0:
            print(f"{number:,} programs over facts, {matches:,} matches", flush=True)
    with tempfile.TemporaryDirectory() as folder:

        @seed(given_.seed)
        @settings(
            max_examples=given_.runs,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        @given(worlds())
        def each(world: World) -> None:
            deployed = tally.runs % given_.every == 0
            try:
                tally.add(compare(world, Path(folder) if deployed else None), deployed)
            except BaseException:
                print(world, flush=True)
                raise
            if tally.runs % 500 == 0:
                print(tally, flush=True)

        each()
    print(tally)


if __name__ == "__main__":
    main()
