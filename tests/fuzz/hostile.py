"""Hostile inputs in subprocesses under limits of memory and time: a documented exit code, or it is a bug.

    python -m tests.fuzz.hostile --seconds 60 --seed 1

Place:   started by hand, and by CI for a minute; what long runs found is in ../soak/LOG.md.
Method:  the classes of input that once killed, stalled or confused dotr, each in its plain form first, then
         random neighbours of them: other depths, lengths, formats, budgets, verbs. Every process may have
         4 GiB of addresses and two minutes of CPU. It must end with a code of the manual, without a signal, a
         traceback or D4999.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

GIB = 1 << 30
CODES = frozenset({0, 1, 2, 3, 4, 5})
RULES = """PREFIX : <urn:x:>
RULE Hot DEFINE { dotr_h a :Hot ; :v ?v } FROM H := { SELECT ?v { ?o :val ?v } } WITH ?v := H.?v
RULE Quiet DEFINE { dotr_q :n ?n } FROM EVERY 1 s AS Tick
AND COUNT(*) AS ?n OVER C := { SELECT ?o { ?o :val ?v } } WITHIN 9 s FROM Tick WHERE ?n > 0 WITH ?n := ?n
"""


@dataclass
class Case:
    """Files to write, and the command to run over them."""

    name: str
    command: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    closed: bool = False
    """Whether standard output is closed."""


Maker = Callable[[random.Random], Case]


def stream(*graphs: tuple[int | str, str]) -> bytes:
    return "".join(json.dumps({"time": t, "graph": g}) + "\n" for t, g in graphs).encode()


def run(name: str, source: str, content: bytes, *more: str, rules: str = RULES) -> Case:
    """A source behind a stream that is in order."""
    fine = stream((1, "<urn:x:o> <urn:x:val> 5 ."))
    command = ["run", "r.dotr", "a.jsonl", source, *more]
    return Case(name, command, {"r.dotr": rules.encode(), "a.jsonl": fine, source: content})


def nested_json(noise: random.Random) -> Case:
    depth = noise.choice([10, 200, 5_000, 60_000])
    pairs = [('{"@id":"urn:a","urn:p":', "}"), ("[", "]"), ('{"@graph":[', "]}"), ('{"@list":[', "]}")]
    head, tail = noise.choice(pairs)
    return run("deep JSON-LD", "2.jsonld", (head * depth + "1" + tail * depth).encode(), *policy(noise))


def nested_turtle(noise: random.Random) -> Case:
    depth = noise.choice([50, 3_000, 100_000])
    head, tail = noise.choice([("[ <urn:p> ", " ]"), ("( ", " )"), ("<< <urn:a> <urn:p> ", " >>")])
    text = "<urn:a> <urn:p> " + head * depth + "1" + tail * depth + " ."
    return run("deep Turtle", noise.choice(["2.ttl", "2.trig", "2.n3"]), text.encode(), *policy(noise))


def nested_xml(noise: random.Random) -> Case:
    depth = noise.choice([50, 3_000, 60_000])
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    text = f'<rdf:RDF xmlns:rdf="{rdf}" xmlns:x="urn:x:">'
    text += "<rdf:Description><x:p>" * depth + "</x:p></rdf:Description>" * depth + "</rdf:RDF>"
    if noise.random() < 0.3:
        entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
        text = f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]><rdf:RDF xmlns:rdf="{rdf}">&e9;</rdf:RDF>'
    return run("deep RDF/XML", "2.rdf", text.encode(), *policy(noise))


def huge_literal(noise: random.Random) -> Case:
    size = noise.choice([1 << 20, 1 << 24, (1 << 24) + 1, 1 << 25])
    graph = f'<urn:a> <urn:x:val> "{"x" * size}" .'
    name = noise.choice(["2.ttl", "2.nt", "2.jsonl", "2.nq"])
    content = stream((2, graph)) if name == "2.jsonl" else graph.encode()
    return run("huge literal", name, content, *policy(noise))


def bombs(noise: random.Random) -> Case:
    unit = noise.choice([b"\n", b"# a comment\n", b" ", b"\t\n", b"\r\n", b"#", b"\0"])
    flood = unit * (noise.choice([1 << 16, 1 << 25, 1 << 27]) // len(unit))
    name = noise.choice(["2.nt", "2.nq", "2.ttl", "2.jsonl", "2.trig"])
    if noise.random() < 0.5:
        return run("bomb", f"{name}.gz", gzip.compress(flood, 1), "--max-document", "64m", *policy(noise))
    return run("flood", name, flood, "--max-document", "64m", *policy(noise))


def far_times(noise: random.Random) -> Case:
    stamps = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "-9999-01-01T00:00:00Z", "2026-02-30T00:00:00Z"]
    numbers = [2**62, -(2**62), 2**63, 10**30, -1]
    far: int | str = noise.choice([*stamps, *numbers])
    near: int | str = "2026-01-01T00:00:00Z" if isinstance(far, str) else 1
    graph = "<urn:x:o> <urn:x:val> 5 ."
    case = run("far times", "a.jsonl", stream((near, graph), (far, graph), (near, graph)), *policy(noise))
    jump = [] if noise.random() < 0.5 else ["--max-jump", "1d"]
    case.command = ["run", "r.dotr", "a.jsonl", "--late", "drop", *case.command[4:], *jump]
    return case


def paths(noise: random.Random) -> Case:
    bad = noise.choice(["missing", "dangling", "loop", "a\udcff", "x" * 300, ".", "/dev/null", "-", ""])
    files = {"r.dotr": RULES.encode(), "in/1.ttl": b"<urn:x:o> <urn:x:val> 5 ."}
    links = {"in/dangling.ttl": "nowhere", "in/loop.ttl": "loop.ttl", "dangling": "nowhere", "loop": "loop"}
    verb = noise.choice([["run", "r.dotr"], ["run"], ["query", "r.dotr"], ["check"], ["plan"], ["convert"]])
    return Case("odd paths", [*verb, bad, "in", *policy(noise)[: 2 * (verb[0] == "run")]], files, links)


def closed_output(noise: random.Random) -> Case:
    case = run("closed output", "2.ttl", b"<urn:x:o> <urn:x:val> 6 .", *policy(noise))
    case.closed = True
    verb = noise.choice([case.command, ["check", "r.dotr"], ["plan", "r.dotr"], ["help"], ["fmt", "r.dotr"]])
    case.command = verb
    return case


def deep_rules(noise: random.Random) -> Case:
    depth = noise.choice([20, 300, 5_000, 50_000])
    opened = noise.choice(["(", "!(", "-(", "IF(true, 1, ", "{ ", "COALESCE("])
    closed = {"{ ": " }"}.get(opened, ")") * depth
    if opened == "{ ":
        query = opened * depth + "?o :val ?v" + closed
    else:
        query = "?o :val ?v FILTER(" + opened * depth + "?v" + closed + " > 1)"
    text = RULES.replace("?o :val ?v }", query + " }", 1)
    name = noise.choice(["r.dotr", "d.dlog", "q.rq"])
    if name == "d.dlog":
        text = f"PREFIX : <urn:x:>\n[?x, :a, ?v] :- [?x, :val, ?v], FILTER({opened * depth}?v{closed} > 1) ."
    if name == "q.rq":
        asked = f"PREFIX : <urn:x:> SELECT ?v {{ {query} }}"
        files = {"r.dotr": RULES.encode(), "q.rq": asked.encode()}
        return Case("deep query", ["query", "r.dotr", "q.rq"], files)
    return Case("deep rules", ["check", name], {name: text.encode()})


def explosions(noise: random.Random) -> Case:
    width = noise.choice([20, 300, 2_000])
    graph = "".join(
        f"<urn:x:n{i}> <urn:x:val> {i} ; <urn:x:e> <urn:x:n{i * 7 % width}> ." for i in range(width)
    )
    query = noise.choice(
        [
            "?x :val ?v. ?y :val ?w. ?z :val ?u FILTER(?v + ?w + ?u < 0)",
            "?x :val ?v FILTER NOT EXISTS { ?y :val ?w. ?z :val ?u FILTER(?v + ?w + ?u < 0) }",
            "?x (((:e*)*)*)* ?v",
            "?x (:e|^:e)+ ?y . ?y (:e/:e)* ?v",
            "?x :val ?v { SELECT ?x { ?x (!(:f))+ ?y OPTIONAL { ?z :val ?q FILTER(?q < ?nothing) } } }",
            "VALUES ?v { "
            + "1 " * 3_000
            + "} VALUES ?w { "
            + "2 " * 3_000
            + "} VALUES ?u { "
            + "3 " * 3_000
            + "}",
            "?x :val ?v BIND(REPLACE(STR(?v), '', '"
            + "y" * 9_999
            + "') AS ?s) MINUS { ?a :e ?b . ?c :e ?d }",
        ]
    )
    rules = RULES.replace("?o :val ?v }", query + " }", 1)
    case = run("explosion", "2.jsonl", stream((2, graph), (3, graph)), *policy(noise), rules=rules)
    case.command += ["--budget", noise.choice(["1", "10k", "1m", "10m"])]
    return case


def rule_explosions(noise: random.Random) -> Case:
    one = "AND EACH A_ := { SELECT ?v { ?o :val ?v } } WITHIN 1 h FROM H\n"
    each = "".join(one.replace("_", str(i)) for i in range(noise.randint(1, 6)))
    rules = RULES.replace("WITH ?v", each + "WHERE H.?v < 0\nWITH ?v", 1)
    graphs = [(t, f"<urn:x:o{t}> <urn:x:val> {t}, {t + 1} .") for t in range(noise.choice([5, 60, 400]))]
    budget = ["--budget", noise.choice(["100", "1m"])]
    return run("rule explosion", "a.jsonl", stream(*graphs), *budget, *policy(noise), rules=rules)


def closure(noise: random.Random) -> Case:
    length = noise.choice([10, 400, 3_000])
    dlog = "PREFIX : <urn:x:>\n[?x, :e, ?z] :- [?x, :e, ?y], [?y, :e, ?z] ."
    chain = "".join(f"<urn:x:n{i}> <urn:x:e> <urn:x:n{i + 1}> ." for i in range(length))
    rules = RULES.replace("RULE Hot", "RULES <d.dlog>\nRULE Hot", 1).replace("?o :val ?v }", "?o :e ?v }", 1)
    case = run("closure", "2.jsonl", stream((2, chain)), *policy(noise), rules=rules)
    case.files["d.dlog"] = dlog.encode()
    return case


def garbage(noise: random.Random) -> Case:
    """Something that is right, with some bytes that are not."""
    content = bytearray(noise.choice([RULES.encode(), stream((1, "<urn:a> <urn:x:val> 1 ."))]))
    for _ in range(noise.randint(1, 20)):
        content[noise.randrange(len(content))] = noise.randrange(256)
    name = noise.choice(["2.jsonl", "2.ttl", "2.jsonld", "2.nq", "2.parquet", "2.ttl.gz", "r.dotr"])
    case = run("garbage", name, bytes(content), *policy(noise))
    if name == "r.dotr":
        case.command = ["run", "r.dotr", "a.jsonl"]
    return case


def policy(noise: random.Random) -> list[str]:
    return noise.choice([[], ["--on-error", "skip"], ["--on-error", "file=dead.jsonl"]])


MAKERS: tuple[Maker, ...] = (
    nested_json,
    nested_turtle,
    nested_xml,
    huge_literal,
    bombs,
    far_times,
    paths,
    closed_output,
    deep_rules,
    explosions,
    rule_explosions,
    closure,
    garbage,
)


def cases(seed: int) -> Iterator[Case]:
    """One of each class in turn, without end."""
    noise = random.Random(seed)
    while True:
        for make in MAKERS:
            yield make(noise)


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 * GIB, 4 * GIB))
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))


def verdict(case: Case, folder: Path) -> str:
    """Run a case in an empty folder; what is wrong with how it ended, or nothing."""
    for name, content in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    for name, target in case.links.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(target)
    command = [os.fsencode(part) for part in (sys.executable, "-m", "dotr", *case.command)]
    if case.closed:
        command = [b"sh", b"-c", b'exec "$@" >&-', b"sh", *command]
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
        preexec_fn=limited,  # no threads here
    )
    told = ran.stderr.decode(errors="replace")
    if ran.returncode not in CODES:
        return f"exit status {ran.returncode}: {told[-300:]}"
    for sign in ("Traceback (most recent call last)", "D4999"):
        if sign in told:
            return f"{sign}: {told[-600:]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1_000_000)
    given = parser.parse_args()
    begun, wrong = time.monotonic(), 0
    ran: dict[str, int] = {}
    for case in islice(cases(given.seed), given.cases):
        if time.monotonic() - begun > given.seconds:
            break
        with tempfile.TemporaryDirectory() as name:
            found = verdict(case, Path(name))
        ran[case.name] = ran.get(case.name, 0) + 1
        if found:
            wrong += 1
            print(f"{case.name} {case.command}: {found}", flush=True)
    counted = ", ".join(f"{name} {count}" for name, count in sorted(ran.items()))
    print(f"{sum(ran.values())} inputs, {wrong} wrong, seed {given.seed} ({counted})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
