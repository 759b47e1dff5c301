"""Hostile inputs in subprocesses under limits of memory and time: a documented exit code, or it is a bug.

    python -m tests.fuzz.hostile --seconds 60 --seed 1 --jobs 2

Place:   started by hand, and by CI for a minute; what long runs found is in ../soak/LOG.md.
Method:  the classes of input that once killed, stalled or confused dotr and random neighbours of them: other
         depths, lengths, formats, budgets, verbs; most are small, so that many run in a minute. Every process
         may have 4 GiB of addresses and two minutes of CPU. It must end with a code that its class allows,
         within the seconds of CPU that its budget and size account for, without a signal, a traceback or
         D4999. A case depends on the seed and its number alone: `--first N --cases 1` runs it again.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from tests.fuzz import damaged

GIB = 1 << 30
SECONDS = 15.0
"""Of CPU that a case may take that has no work of its own; a start alone is one, on a busy machine two."""
READ, USAGE, INPUT, ENVIRONMENT, REFUSED = 0, 2, 3, 4, 5
BUDGETS = (("1", SECONDS), ("10k", SECONDS), ("1m", SECONDS + 10), ("10m", SECONDS + 60))
"""Budgets, and the CPU that two instants may take then: a unit is 0.2 to 1 µs, some work is done twice."""
BOUNDED = 20.0
"""Of CPU, whatever comes in less than a megabyte, at the default budget."""
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
    codes: frozenset[int] = frozenset()
    """Exit codes that make sense; empty: 0, and 3 where no policy takes errors."""
    seconds: float = SECONDS
    """Of CPU, at most."""

    right: bytes | None = None
    """What standard output has where the case ends well; None: anything."""
    script: bool = False
    """Whether the command is a Python file of the case instead of dotr's arguments."""

    def allowed(self) -> frozenset[int]:
        taken = "--on-error" in self.command
        return self.codes or (frozenset({READ}) if taken else frozenset({READ, INPUT}))


Maker = Callable[[random.Random], Case]


def sized(noise: random.Random, *sizes: int) -> int:
    """One of the sizes: the last and largest one time in fifteen."""
    return sizes[-1] if noise.random() < 1 / 15 else noise.choice(sizes[:-1])


def stream(*graphs: tuple[int | str, str]) -> bytes:
    return "".join(json.dumps({"time": t, "graph": g}) + "\n" for t, g in graphs).encode()


def run(name: str, source: str, content: bytes, *more: str, rules: str = RULES) -> Case:
    """A source behind a stream that is in order."""
    fine = stream((1, "<urn:x:o> <urn:x:val> 5 ."))
    command = ["run", "r.dotr", "a.jsonl", source, *more]
    return Case(name, command, {"r.dotr": rules.encode(), "a.jsonl": fine, source: content})


def nested_json(noise: random.Random) -> Case:
    depth = sized(noise, 10, 60, 70, 200, 5_000, 60_000)
    pairs = [('{"@id":"urn:a","urn:p":', "}"), ("[", "]"), ('{"@graph":[', "]}"), ('{"@list":[', "]}")]
    head, tail = noise.choice(pairs)
    return run("deep JSON-LD", "2.jsonld", (head * depth + "1" + tail * depth).encode(), *policy(noise))


def nested_turtle(noise: random.Random) -> Case:
    depth = sized(noise, 50, 60, 70, 3_000, 100_000)
    head, tail = noise.choice([("[ <urn:p> ", " ]"), ("( ", " )"), ("<< <urn:a> <urn:p> ", " >>")])
    text = "<urn:a> <urn:p> " + head * depth + "1" + tail * depth + " ."
    return run("deep Turtle", noise.choice(["2.ttl", "2.trig", "2.n3"]), text.encode(), *policy(noise))


def nested_xml(noise: random.Random) -> Case:
    depth = sized(noise, 50, 60, 70, 3_000, 60_000)
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    text = f'<rdf:RDF xmlns:rdf="{rdf}" xmlns:x="urn:x:">'
    text += "<rdf:Description><x:p>" * depth + "</x:p></rdf:Description>" * depth + "</rdf:RDF>"
    if noise.random() < 0.3:
        entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
        text = f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]><rdf:RDF xmlns:rdf="{rdf}">&e9;</rdf:RDF>'
    return run("deep RDF/XML", "2.rdf", text.encode(), *policy(noise))


def huge_literal(noise: random.Random) -> Case:
    size = noise.choice([1 << 16, 1 << 20, (1 << 24) - 99, 1 << 24, (1 << 24) + 1, 1 << 25])
    graph = f'<urn:a> <urn:x:val> "{"x" * size}" .'
    name = noise.choice(["2.ttl", "2.nt", "2.jsonl", "2.nq"])
    content = stream((2, graph)) if name == "2.jsonl" else graph.encode()
    return run("huge literal", name, content, *policy(noise))


def bombs(noise: random.Random) -> Case:
    unit = noise.choice([b"\n", b"# a comment\n", b" ", b"\t\n", b"\r\n", b"#", b"\0"])
    flood = unit * (sized(noise, 1 << 16, 1 << 20, 1 << 22, 1 << 25, 1 << 27) // len(unit))
    name = noise.choice(["2.nt", "2.nq", "2.ttl", "2.jsonl", "2.trig"])
    if name == "2.jsonl" and unit == b"# a comment\n":
        flood = flood[: 1 << 22]  # each line is a refused document: some 30 µs, however many there are
    if noise.random() < 0.5:
        return run("bomb", f"{name}.gz", gzip.compress(flood, 1), "--max-document", "64m", *policy(noise))
    return run("flood", name, flood, "--max-document", "64m", *policy(noise))


def far_times(noise: random.Random) -> Case:
    stamps = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "-9999-01-01T00:00:00Z", "2026-02-30T00:00:00Z"]
    numbers = [2**62, -(2**62), 2**63, 10**30, -1]
    all_of_them: list[int | str] = [*stamps, *numbers]
    far = noise.choice(all_of_them)
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
    command = [*verb, bad, "in", *policy(noise)[: 2 * (verb[0] == "run")]]
    return Case("odd paths", command, files, links, codes=frozenset({READ, 1, USAGE, INPUT, ENVIRONMENT}))


def closed_output(noise: random.Random) -> Case:
    case = run("closed output", "2.ttl", b"<urn:x:o> <urn:x:val> 6 .", *policy(noise))
    case.closed = True
    case.codes = frozenset({ENVIRONMENT, READ})
    verb = noise.choice([case.command, ["check", "r.dotr"], ["plan", "r.dotr"], ["help"], ["fmt", "r.dotr"]])
    case.command = verb
    return case


def deep_rules(noise: random.Random) -> Case:
    depth = sized(noise, 20, 100, 300, 5_000, 50_000)
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
        return Case("deep query", ["query", "r.dotr", "q.rq"], files, codes=frozenset({READ, INPUT}))
    return Case("deep rules", ["check", name], {name: text.encode()}, codes=frozenset({READ, 1}))


def explosions(noise: random.Random) -> Case:
    width = sized(noise, 5, 20, 60, 300, 2_000)
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
    budget, case.seconds = noise.choice(BUDGETS)
    case.command += ["--budget", budget]
    case.codes = frozenset(
        {READ, INPUT}
    )  # what the background and VALUES alone cost is charged at deployment
    return case


def rule_explosions(noise: random.Random) -> Case:
    one = "AND EACH A_ := { SELECT ?v { ?o :val ?v } } WITHIN 1 h FROM H\n"
    each = "".join(one.replace("_", str(i)) for i in range(noise.randint(1, 6)))
    rules = RULES.replace("WITH ?v", each + "WHERE H.?v < 0\nWITH ?v", 1)
    graphs = [
        (t, f"<urn:x:o{t}> <urn:x:val> {t}, {t + 1} .") for t in range(sized(noise, 5, 10, 20, 60, 400))
    ]
    budget, _ = noise.choice(BUDGETS[:3])
    limits = ["--budget", budget]
    case = run("rule explosion", "a.jsonl", stream(*graphs), *limits, *policy(noise), rules=rules)
    case.seconds = 100.0  # a budget is of one trigger fact, and there are 800
    return case


def closure(noise: random.Random) -> Case:
    length = sized(noise, 10, 40, 100, 400, 3_000)
    dlog = "PREFIX : <urn:x:>\n[?x, :e, ?z] :- [?x, :e, ?y], [?y, :e, ?z] ."
    chain = "".join(f"<urn:x:n{i}> <urn:x:e> <urn:x:n{i + 1}> ." for i in range(length))
    rules = RULES.replace("RULE Hot", "RULES <d.dlog>\nRULE Hot", 1).replace("?o :val ?v }", "?o :e ?v }", 1)
    case = run("closure", "2.jsonl", stream((2, chain)), *policy(noise), rules=rules)
    case.files["d.dlog"] = dlog.encode()
    budget, case.seconds = noise.choice(BUDGETS)
    case.command += ["--budget", budget]
    return case


FAR = (300, 100_000, 40_000_000, 10**9)
"""Seconds until the next graph."""
LARS_RULES = """PREFIX : <urn:x:>
LARS <l.lars>
QUERY seen := {{ SELECT ?o {{ ?o :val ?v }} }}
RULE Held DEFINE {{ dotr_h a :Held }} FROM {trigger}
RULE Came DEFINE {{ dotr_c a :Came }} FROM seen
"""


def silence(name: str, noise: random.Random, lars: str, trigger: str, *more: str) -> Case:
    """Graphs with far silences between them, over LARS rules; what is refused there ends the run."""
    times = [1]
    for _ in range(sized(noise, 1, 1, 2, 3, 60)):
        times.append(times[-1] + noise.choice(FAR))
    graphs = stream(*((time, f"<urn:x:o{time % 3}> <urn:x:val> 5 .") for time in times))
    rules = LARS_RULES.format(trigger=trigger).encode()
    files = {
        "r.dotr": rules,
        "l.lars": f"STEP {noise.choice([1, 1, 10])} s\n{lars}".encode(),
        "a.jsonl": graphs,
    }
    command = ["run", "r.dotr", "a.jsonl", *policy(noise), *more]
    return Case(name, command, files, codes=frozenset({READ, INPUT}), seconds=BOUNDED)


def lars_ahead(noise: random.Random) -> Case:
    step, back = noise.choice([10, 20, 100]), noise.choice([0, 0, 10, 100])
    lars = "h() AT ?t :- seen(?o) AT ?t WITHIN 0 s .\n"
    if noise.random() < 0.5:
        lars += f"h() AT ?t + {step} s :- h() AT ?t WITHIN {back} s .\n"
    else:
        lars += f"h() AT ?t + {step} s :- k() AT ?t WITHIN {back} s .\n"
        lars += "k() AT ?t + 10 s :- h() AT ?t WITHIN 0 s .\n"
    read = noise.choice(["h()", "h() WITHIN 700 s", "NOT h() WITHIN 20 s", "seen(?o)"])
    lars += f"g() :- {read}.\n"
    return silence("LARS ahead", noise, lars, noise.choice(["ISTREAM g", "g", "DSTREAM g", "ISTREAM h", "h"]))


def two_at(noise: random.Random) -> Case:
    held, first, second = (noise.choice([1, 30, 3_650]) for _ in range(3))
    other = noise.choice(["held() AT ?u", "seen(?o) AT ?u", "held() AT ?u", "held() AT ?t"])
    lars = f"held() :- seen(?o) WITHIN {held} d .\n"
    lars += f"h() :- held() AT ?t WITHIN {first} d, {other} WITHIN {second} d .\n"
    if noise.random() < 0.3:
        lars += f"h() :- COUNT(*) AS ?n OVER held() WITHIN {first} d, FILTER(?n > {second}) .\n"
    return silence("two AT over silence", noise, lars, noise.choice(["ISTREAM h", "DSTREAM h", "h"]))


def bare_trigger(noise: random.Random) -> Case:
    lars = noise.choice(["h() :- NOT seen(?o) WITHIN 10 s .\n", "h() :- seen(?o) WITHIN 3650 d .\n"])
    each = noise.choice(
        [
            "h",
            "h AND NOT N := seen WITHIN 9 s FROM h",
            "h AND EACH E := h WITHIN 1 d BEFORE h",
            "h AND EACH E := seen WITHIN 3650 d FROM h AND EACH F := h WITHIN 9 h BEFORE h",
        ]
    )
    return silence("bare trigger over silence", noise, lars, each)


def verified_silence(noise: random.Random) -> Case:
    case = noise.choice([lars_ahead, two_at, bare_trigger])(noise)
    if noise.random() < 0.4:
        case.files["l.lars"] = b"STEP 1 s\nh() :- seen(?o) WITHIN 60 s .\ng() :- h() ALWAYS WITHIN 10 s .\n"
        case.files["r.dotr"] = LARS_RULES.format(trigger="ISTREAM g").encode()
    case.name = "verify over silence"
    case.command.append("--verify")
    return case


def held_case(name: str, noise: random.Random, query: str, dlog: str = "") -> Case:
    """A chain of triples that are held, a graph for each; by rules, or watched."""
    length = sized(noise, 60, 200, 380, 380, 1_000)
    hold = noise.choice([":p", ":p", ":p FOR 900 s", "*"])
    graphs = [
        (t, f"<urn:x:n{t}> <urn:x:p> <urn:x:n{t + 1 if noise.random() < 0.95 else 0}> .")
        for t in range(length)
    ]
    files = {"a.jsonl": stream(*graphs), "d.dlog": f"PREFIX : <urn:x:>\n{dlog}\n".encode()}
    if noise.random() < 0.3:
        files["r.dotr"] = f"PREFIX : <urn:x:>\nRULES <d.dlog>\nHOLD {hold}\n".encode()
        files["q.rq"] = f"PREFIX : <urn:x:> {query}".encode()
        command = ["watch", "q.rq", "a.jsonl", "--rules", "r.dotr"]
    else:
        read = noise.choice(["ISTREAM Q", "ISTREAM Q", "DSTREAM Q", "Q"])
        files["r.dotr"] = (
            f"PREFIX : <urn:x:>\nRULES <d.dlog>\nHOLD {hold}\nQUERY Q := {{ {query} }}\n"
            f"RULE R DEFINE {{ dotr_r :x ?x ; :y ?y }} FROM B := {read} WITH ?x := B.?x, ?y := B.?y\n"
        ).encode()
        command = ["run", "r.dotr", "a.jsonl"]
    return Case(name, [*command, *policy(noise)], files, codes=frozenset({READ, INPUT}), seconds=BOUNDED)


def held_products(noise: random.Random) -> Case:
    third = noise.choice(["", " . ?c :p ?d", " . ?c :p ?d", " . ?c :p ?d . ?e :p ?f"])
    if noise.random() < 0.4:
        atoms = ", ".join(f":p(?{a}, ?{b})" for a, b in ["xa", "by", "cd", "ef"][: noise.randint(2, 4)])
        test = noise.choice(["", ", FILTER(STRLEN(STR(?a)) + STRLEN(STR(?y)) < 0)"])
        return held_case(
            "held products", noise, "SELECT ?x ?y { ?x :q ?y }", f":q(?x, ?y) :- {atoms}{test} ."
        )
    distinct = noise.choice(["", "DISTINCT "])
    test = noise.choice(["", " FILTER(STRLEN(STR(?a)) + STRLEN(STR(?y)) < 0)", " OPTIONAL { ?y :p ?z }"])
    return held_case("held products", noise, f"SELECT {distinct}?x ?y {{ ?x :p ?a . ?b :p ?y{third}{test} }}")


def held_paths(noise: random.Random) -> Case:
    path = noise.choice([":p+", ":p*", "(:p/:p)+", "(:p|^:p)+", ":p+/:p+", "!:none"])
    if noise.random() < 0.3:
        dlog = ":q(?x, ?y) :- :p(?x, ?y) . :q(?x, ?z) :- :q(?x, ?y), :q(?y, ?z) ."
        return held_case("held paths", noise, "SELECT ?x ?y { ?x :q ?y }", dlog)
    return held_case("held paths", noise, f"SELECT ?x ?y {{ ?x {path} ?y }}")


def damaged_bases(noise: random.Random) -> Case:
    made = damaged.base(noise)
    codes = frozenset({READ, ENVIRONMENT})
    return Case(
        "damaged knowledge bases", ["asked.py"], made.files, codes=codes, right=made.right, script=True
    )


def damaged_deployments(noise: random.Random) -> Case:
    made = damaged.deployment(noise)
    command = ["feed", "rest.jsonl", "--dir", "site", "-q", "--format", "jsonl"]
    codes = frozenset({READ, ENVIRONMENT})
    if made.right is None:
        codes |= {INPUT, REFUSED}  # rules that are none
        if noise.random() < 0.4:
            command = noise.choice(
                [["status", "--dir", "site"], ["explain", "--dir", "site", "--why-not", "In", "--at", "7"]]
            )
            codes |= {1}
    return Case("damaged deployments", command, made.files, codes=codes, right=made.right)


def garbage(noise: random.Random) -> Case:
    """Something that is right, with some bytes that are not."""
    content = bytearray(noise.choice([RULES.encode(), stream((1, "<urn:a> <urn:x:val> 1 ."))]))
    for _ in range(noise.randint(1, 20)):
        content[noise.randrange(len(content))] = noise.randrange(256)
    name = noise.choice(["2.jsonl", "2.ttl", "2.jsonld", "2.nq", "2.parquet", "2.ttl.gz", "r.dotr"])
    case = run("garbage", name, bytes(content), *policy(noise))
    if name == "r.dotr":
        case.command = ["run", "r.dotr", "a.jsonl"]
        case.codes = frozenset({READ, INPUT})
    return case


def policy(noise: random.Random) -> list[str]:
    return noise.choice([[], ["--on-error", "skip"], ["--on-error", "file=dead.jsonl"]])


FLOODS = {
    "2.nt": (b"# a comment\n", b"\n", b" ", b"#"),
    "2.nq": (b"# a comment\n", b"\t\n", b"\r\n"),
    "2.ttl": (b"# a comment\n", b"\n", b"  ", b"@prefix a: <urn:x:> .\n"),
    "2.trig": (b"# a comment\n", b"{}\n", b" ", b"PREFIX : <urn:x>\n", b"<urn:g> {}\n"),
    "2.rdfp": (b"# a comment\n", b"\n", b"\t\n"),  # a transaction is a graph, though an empty one
    "2.rdf": (b"<!-- -->", b" ", b"\n"),
    "2.jsonld": (b"[],", b"{},", b" "),
    "2.jsonl": (b"\n", b"{}\n", b" "),
    "2.csv": (b",\n", b"\n", b" \n"),
    "2.jelly": (b"\0", b"\2\x0a\0"),
}
"""What says nothing, in the formats of sources: Jelly's are empty frames and empty rows."""


def packed_floods(noise: random.Random) -> Case:
    """A small file that unpacks to very much of nothing, whole or in many members."""
    name = noise.choice(sorted(FLOODS))
    unit = noise.choice(FLOODS[name])
    size = sized(noise, 1 << 20, 1 << 23, 1 << 26, 1 << 28)
    members = noise.choice([1, 1, 2, 1_000])
    part = unit * max(1, size // members // len(unit))
    ending, codec = noise.choice([(".gz", "gzip"), (".zst", "zstd")])
    content = pa.Codec(codec).compress(part, asbytes=True) * members
    case = run("packed flood", f"{name}{ending}", content[: 1 << 20], *policy(noise))
    if name == "2.csv":
        case.files["m.map"] = b"# time: time\n<urn:x:o> <urn:x:val> {val} .\n"
        case.command += ["--map", "m.map"]
    case.seconds = 20.0
    return case


def table() -> pa.Table:
    count = 300
    return pa.table(
        {
            "time": pa.array(range(count), pa.int64()),
            "id": pa.array([f"s{i % 7}" for i in range(count)]).dictionary_encode(),
            "val": pa.array([i / 3 for i in range(count)]),
            "note": pa.array([{"x": i, "y": f"é{i}"} for i in range(count)]),
        }
    )


def damaged_tables(noise: random.Random) -> Case:
    """Parquet and Arrow files, damaged, read through a mapping."""
    file = io.BytesIO()
    if noise.random() < 0.6:
        name, checked = "2.parquet", noise.random() < 0.5
        packing = noise.choice(["snappy", "zstd", "none"])
        pq.write_table(table(), file, compression=packing, row_group_size=100, write_page_checksum=checked)
    else:
        name = "2.arrow"
        feather.write_feather(table(), file, compression=noise.choice(["uncompressed", "lz4", "zstd"]))
    content = bytearray(file.getvalue())
    for _ in range(noise.choice([1, 1, 3, 10])):
        last = min(1_500, len(content))
        at = noise.randrange(len(content)) if noise.random() < 0.6 else len(content) - noise.randint(1, last)
        how = noise.randrange(3)
        if how == 0:
            content[at] ^= 1 << noise.randrange(8)
        elif how == 1:
            content[at : at + 20] = noise.randbytes(20)
        else:
            del content[at : at + noise.randint(1, 100)]
        content = content or bytearray(b"P")
    case = run("damaged table", name, bytes(content), "--map", "m.map", *policy(noise))
    case.files["m.map"] = (
        b"# time: time\n<urn:x:o> <urn:x:val> {val} ; <urn:x:id> {id} ; <urn:x:y> {note.y} .\n"
    )
    case.seconds = 20.0
    return case


def odd_mappings(noise: random.Random) -> Case:
    """Mappings whose formats and nesting nobody means."""
    depth = sized(noise, 10, 60, 500, 3_000, 20_000)
    formats = [
        "%d/%d",
        "%",
        "%Y%",
        "%Q",
        "%Y-%Y",
        "%(",
        "%-d",
        "%Y-%m-%d %z %Z",
        "(%Y",
        "%Y\0",
        "é%Y",
        "%" * 300,
    ]
    cell = f'{{val|datetime("{noise.choice(formats)}")}}'
    text = noise.choice(
        [
            f"<urn:x:o> <urn:x:val> {cell} .",
            "<urn:x:o> <urn:x:p> " + "[ <urn:x:p> " * depth + "{val}" + " ]" * depth + " .",
            "<urn:x:o> <urn:x:p> " + "( " * depth + "{val}" + " )" * depth + " .",
            "<urn:x:o> <urn:x:val> {" + "val." * depth + "val} .",
            "<urn:x:o> <urn:x:val> {val[" + "a=" * depth + "]} .",
        ]
    )
    head = noise.choice(["# time: time\n", f'# time: {{time|datetime("{noise.choice(formats)}")}}\n'])
    rows = noise.choice(["", "# rows: $" + ".a[*]" * depth + "\n", "# rows: $[*]\n", "# rows: $[\n"])
    name = noise.choice(["2.csv", "2.jsonl", "2.json"])
    content = {
        "2.csv": b"time,val\n1,5\n",
        "2.jsonl": b'{"time":1,"val":5}\n',
        "2.json": b'[{"time":1,"val":5}]',
    }
    case = run("odd mapping", name, content[name], "--map", "m.map", *policy(noise))
    case.files["m.map"] = f"{head}{rows}{text}\n".encode()
    case.codes = frozenset({READ, USAGE, INPUT})
    case.seconds = 20.0
    return case


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
    lars_ahead,
    two_at,
    bare_trigger,
    verified_silence,
    held_products,
    held_paths,
    damaged_bases,
    damaged_deployments,
    packed_floods,
    damaged_tables,
    odd_mappings,
)


def case_of(seed: int, number: int) -> Case:
    """The case of a number: the classes in turn."""
    return MAKERS[number % len(MAKERS)](random.Random(f"{seed} {number}"))


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 * GIB, 4 * GIB))
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))


def verdict(case: Case, folder: Path) -> tuple[str, float]:
    """Run a case in an empty folder: what is wrong with how it ended, or nothing, and its seconds of CPU."""
    for name, content in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    for name, target in case.links.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(target)
    command = [
        os.fsencode(part)
        for part in (sys.executable, *([] if case.script else ["-m", "dotr"]), *case.command)
    ]
    if case.closed:
        command = [b"sh", b"-c", b'exec "$@" >&-', b"sh", *command]
    ran, used = measured(command, folder)
    reported = ran.stderr.decode(errors="replace")
    for sign in ("Traceback (most recent call last)", "D4999"):
        if sign in reported:
            return f"{sign}: {reported[-600:]}", used
    if ran.returncode not in case.allowed():
        return f"exit status {ran.returncode}, not of {sorted(case.allowed())}: {reported[-300:]}", used
    if ran.returncode == READ and case.right is not None and ran.stdout != case.right:
        return f"a wrong answer: {ran.stdout[-300:]!r}, not {case.right[-300:]!r}", used
    if used > case.seconds:
        return f"{used:.0f} s of CPU, more than {case.seconds:.0f}: {reported[-300:]}", used
    return "", used


def measured(command: list[bytes], folder: Path) -> tuple[subprocess.CompletedProcess[bytes], float]:
    """How a process ended, and the CPU that it and its children used. Nothing else is started meanwhile."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=limited,  # no threads here
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ran, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judged(work: tuple[int, int, float]) -> tuple[int, str, str, float] | None:
    """(number, class, what is wrong or nothing, seconds of CPU) of one case; None when the time is over."""
    seed, number, until = work
    if time.monotonic() > until:
        return None
    case = case_of(seed, number)
    with tempfile.TemporaryDirectory() as name:
        found, used = verdict(case, Path(name))
    return number, case.name, found and f"{found}\n    {case.command}", used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    numbers = range(given.first, given.first + given.cases)
    ran: Counter[str] = Counter()
    most: dict[str, float] = {}
    wrong = 0
    with Pool(given.jobs) as pool:
        for done in pool.imap(judged, ((given.seed, number, until) for number in numbers)):
            if done is None:
                break
            number, name, found, used = done
            ran[name] += 1
            most[name] = max(most.get(name, 0), used)
            if found:
                wrong += 1
                print(f"case {number}, {name}: {found}", flush=True)
    counted = ", ".join(f"{name} {ran[name]} ({most[name]:.0f} s)" for name in sorted(ran))
    print(f"{sum(ran.values())} inputs, {wrong} wrong, seed {given.seed} (most CPU of a case: {counted})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
