"""The knowledge base over LUBM: one fact that comes or goes, closing, saving and opening, memory.

Place:   the scenario `kb` of __main__.py; reads LUBM from the folder that DOTR_DATA names. What peers take
         for the same closure: python -m tests.bench.peers owlrl, and reasonable.
Method:  Universities are University 0 several times, each copy with the name of another one in its IRIs:
         13 are the 1.3 million triples of LUBM-10. Single facts are drawn from the individuals, deleted and
         inserted again, one transaction each; processor time of the whole call from Python, triples as
         canonical terms. Rules and schema come and go at the same size. Memory is the growth of the resident
         set of a process of its own while it loads, by triple given.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import owlrl
import pyoxigraph as ox
import rdflib

from dotr import KnowledgeBase
from dotr.knowledge_base import Change
from dotr.rdf.terms import RDFS, Triple
from tests.enrich.entailment import graph_of

from .peers_closure import lubm

HERE = "tests.bench.kb"
UNIVERSITY = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
LIBRARIES = ("dotr", "dotr, owl2rl", "rdflib", "pyoxigraph")


def universities(copies: int, department: str = "") -> list[Triple]:
    """The ontology and so many universities."""
    ontology, individuals = lubm(department)
    found = dict.fromkeys(ontology)
    for number in range(copies):
        name = f"University{number}.edu" if number == 0 else f"University{1000 + number}.edu"
        for subject, predicate, object_ in individuals:
            subject, object_ = (term.replace("University0.edu", name) for term in (subject, object_))
            found[subject, predicate, object_] = None
    return list(found)


def single_facts(kb: KnowledgeBase, facts: Sequence[Triple]) -> dict[str, Any]:
    """Microseconds of one deletion and of one insertion."""
    took: dict[str, list[float]] = {"delete": [], "insert": []}
    gc.collect()
    for fact in facts:
        for what, call in (("delete", kb.delete), ("insert", kb.insert)):
            start = process_time()
            call([fact])
            took[what].append((process_time() - start) * 1e6)
    return {
        f"{what} {name} µs": sorted(all_)[min(int(len(all_) * part), len(all_) - 1)]
        for what, all_ in took.items()
        for name, part in (("median", 0.5), ("p99", 0.99))
    }


def timed(what: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    start = process_time()
    found = what()
    return process_time() - start, found


def updates(copies: int, department: str, count: int) -> dict[str, Any]:
    """LUBM-n closed under OWL 2 RL, and single facts over it."""
    given = universities(copies, department)
    seconds, kb = timed(lambda: KnowledgeBase(given, entailment="owl2rl", terms="canonical"))
    chosen = random.Random(copies)
    individuals = [triple for triple in given if triple[0].startswith("<http://www.")]
    facts = chosen.sample(individuals, count)
    single_facts(kb, chosen.sample(individuals, count // 10))  # plans are made when they are first needed
    took = single_facts(kb, facts)
    what = f"LUBM-{1 if copies == 1 else 10}" if not department else f"{copies} departments"
    took |= other_rules(kb)
    return {"what": what, "given": len(given), "closed": len(kb), "closing s": seconds, **took}


def other_rules(kb: KnowledgeBase) -> dict[str, float]:
    """Milliseconds of one rule, and of one triple of schema, that comes and goes; the median of five."""
    rule = f"[?x, <urn:peer>, ?y] :- [?x, <{UNIVERSITY}headOf>, ?d], [?y, <{UNIVERSITY}worksFor>, ?d] ."
    axiom = [(f"<{UNIVERSITY}Chair>", f"<{RDFS}subClassOf>", "<urn:Busy>")]
    calls: dict[str, Callable[[], Change]] = {
        "rule + ms": partial(kb.add_rules, rule),
        "rule - ms": partial(kb.remove_rules, rule),
        "schema + ms": partial(kb.insert, axiom),
        "schema - ms": partial(kb.delete, axiom),
    }
    took: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(5):
        for name, call in calls.items():
            seconds, change = timed(call)
            assert change.added or change.removed, name
            took[name].append(seconds * 1e3)
    return {name: sorted(all_)[len(all_) // 2] for name, all_ in took.items()}


def saving(copies: int, department: str) -> dict[str, Any]:
    """Loaded, closed under RDFS, saved, opened."""
    given = universities(copies, department)
    closing, kb = timed(partial(KnowledgeBase, given, entailment="rdfs", terms="canonical"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "saved.kb")
        save, _ = timed(partial(kb.save, path))
        size, count = path.stat().st_size, len(kb)
        del kb
        opening, again = timed(partial(KnowledgeBase.open, path, terms="canonical"))
        assert len(again) == count
        first, _ = timed(partial(again.insert, [("<urn:s>", "<urn:p>", "<urn:o>")]))
    return {
        "given": len(given),
        "closed": count,
        "closing s": closing,
        "saving s": save,
        "MB": size / 1e6,
        "bytes a triple": size / count,
        "opening s": opening,
        "closing / opening": closing / opening,
        "first transaction s": first,
    }


def beside_owlrl(department: str) -> dict[str, Any]:
    """The closure by owlrl and by a knowledge base."""
    given = universities(1, department)
    seconds, kb = timed(lambda: KnowledgeBase(given, entailment="owl2rl", terms="canonical"))
    graph = graph_of(given)
    closing = owlrl.DeductiveClosure(
        owlrl.OWLRL_Semantics, rdfs_closure=False, axiomatic_triples=False, datatype_axioms=False
    )
    theirs, _ = timed(lambda: closing.expand(graph))
    ratio = theirs / seconds
    return {"given": len(given), "closed": len(kb), "dotr s": seconds, "owlrl s": theirs, "ratio": ratio}


def memory(library: str, copies: int, department: str) -> dict[str, float]:
    """Bytes a given triple, in a process of its own."""
    line = [sys.executable, "-m", HERE, library, str(copies), department]
    return dict(json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout))


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _load(library: str, copies: int, department: str) -> None:
    given = universities(copies, department)
    with tempfile.NamedTemporaryFile("w", suffix=".nt", encoding="utf-8") as file:
        file.writelines(f"{s} {p} {o} .\n" for s, p, o in given)
        file.flush()
        count = len(given)
        del given
        gc.collect()
        before = _resident()
        start = process_time()
        kept: Any
        if library.startswith("dotr"):
            kind = "owl2rl" if "owl2rl" in library else "none"
            kept = KnowledgeBase(file.name, entailment=kind, terms="canonical")
        elif library == "rdflib":
            kept = rdflib.Graph().parse(file.name, format="nt")
        else:
            kept = ox.Store()
            kept.bulk_load(path=file.name, format=ox.RdfFormat.N_TRIPLES)
        seconds = process_time() - start
        gc.collect()
        grown = _resident() - before
    print(json.dumps({"bytes": grown / count, "seconds": seconds, "triples": len(kept)}))


def run(quick: bool) -> dict[str, Any]:
    """Everything: rows by part, and what must hold."""
    if "DOTR_DATA" not in os.environ:
        raise SystemExit("LUBM is read from the folder that DOTR_DATA names; it is not set")
    department = "Department0." if quick else ""
    small, large = (1, 3) if quick else (1, 13)
    count = 300 if quick else 3_000
    rows = [updates(copies, department, count) for copies in (small, large)]
    saved = saving(large, department)
    peer = beside_owlrl(department)
    held = {library: memory(library, small, department) for library in LIBRARIES}
    limits = {"median µs": 200, "p99 µs": 5_000}
    checks = {
        f"{row['what']}: {what} {name} below {most}": row[f"{what} {name}"] < most
        for row in rows
        for what in ("delete", "insert")
        for name, most in limits.items()
    }
    small_, large_ = rows
    for what in ("delete", "insert"):
        name = f"{what} median µs"
        checks[f"{what}: at most twice as long over the larger"] = large_[name] < 2 * small_[name]
    checks["opened at least 10 times quicker than closed"] = saved["closing / opening"] >= 10
    checks["closed at least 50 times quicker than by owlrl"] = peer["ratio"] >= 50
    return {"rows": rows, "saved": saved, "owlrl": peer, "memory": held, "checks": checks}


if __name__ == "__main__":
    _load(sys.argv[1], int(sys.argv[2]), sys.argv[3])
