"""A dump taken apart on disk is what its definition, in memory, says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.io.dumps import SubjectGraphs
from dotr.rdf.terms import RDF_TYPE, Triple
from tests.io.dumps.dumps import dump_of

OBSERVATION = "<urn:Observation>"


def literal_reading(triples: Sequence[Triple], wanted: str, shared: bool) -> list[tuple[str, list[Triple]]]:
    """The definition: from each root on, to nodes that are none; and what leads to its blank nodes."""
    own = list(dict.fromkeys(triples))
    graphs = []
    described = described_of(triples, wanted, shared)
    everywhere = {node for nodes in described.values() for node in nodes}
    for root, reached in described.items():
        led = leading(own, {root}, set(), set(described))
        led |= leading(own, reached - {root}, everywhere | set(described), set(described))
        graphs.append((root, [t for t in own if t[0] in reached or t in led]))
    return graphs


def described_of(triples: Sequence[Triple], wanted: str, shared: bool) -> dict[str, set[str]]:
    """Of each root the nodes whose triples are in its graph."""
    roots = list(dict.fromkeys(s for s, p, o in triples if p == wanted or (p, o) == (RDF_TYPE, wanted)))
    firsts = {root: next(n for n, t in enumerate(triples) if t[0] == root) for root in roots}
    described = {}
    for root in sorted(roots, key=lambda r: firsts[r]):
        reached, waiting = {root}, [root]
        while waiting:
            node = waiting.pop()
            for s, _p, o in triples:
                goes_on = o[0] == "_" or (shared and o[0] == "<")
                if s == node and goes_on and o not in roots and o not in reached:
                    reached.add(o)
                    waiting.append(o)
        described[root] = reached
    return described


def leading(own: list[Triple], nodes: set[str], but: set[str], roots: set[str]) -> set[Triple]:
    """The triples that lead to blank nodes from subjects that are not excepted, upwards to IRIs and roots."""
    found: set[Triple] = set()
    waiting = {node for node in nodes if node[0] == "_"}
    seen: set[str] = set()
    while waiting:
        seen |= waiting
        above = [t for t in own if t[2] in waiting and t[0] not in but]
        found.update(above)
        waiting = {s for s, _p, _o in above if s[0] == "_" and s not in roots} - seen
    return found


nodes = st.sampled_from(["<urn:a>", "<urn:b>", "<urn:a1>", "_:a", "_:b", "_:c", "_:d", "_:a1"])
objects = st.one_of(nodes, st.sampled_from(['"x"', '"\\t\\n"', '"é"@en', OBSERVATION]))
predicates = st.sampled_from(["<urn:p>", "<urn:q>", RDF_TYPE])
dumps = st.lists(st.tuples(nodes, predicates, objects), max_size=25)


@given(dumps, st.booleans(), st.sampled_from([OBSERVATION, "<urn:q>"]), st.sampled_from([4, 800, 1 << 20]))
def test_graphs_are_those_of_the_definition_however_little_memory_there_is(
    tmp_path_factory: pytest.TempPathFactory, triples: list[Triple], shared: bool, wanted: str, memory: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    parts = SubjectGraphs(str(folder), wanted, shared, memory)
    parts.add(triples)
    graphs = literal_reading(triples, wanted, shared)
    assert list(parts.graphs()) == graphs
    subjects = {s for s, _p, _o in triples}
    described = described_of(triples, wanted, shared)
    beside = subjects - {node for nodes in described.values() for node in nodes}
    graphs = [(r, [t for t in graph if t[0] in described[r]]) for r, graph in graphs]
    named = {o for _root, graph in graphs for _s, _p, o in graph if o[0] == "<"}
    assert (parts.beside, parts.beside_shared) == (len(beside), len(beside & named))


def test_a_full_disk_is_said_as_the_system_says_it(tmp_path: Path) -> None:
    parts = SubjectGraphs(str(tmp_path), OBSERVATION)
    parts._database.execute("PRAGMA max_page_count = 20")
    with pytest.raises(OSError, match="No space left"):
        parts.add(("_:a", "<urn:p>", f'"{number:100}"') for number in range(1000))


PROGRAM = """
import resource, sys
from dotr.io.dumps import SubjectGraphs
from dotr.io.decode.rdf import stream_runs
from dotr.io.decode.documents import Format
import dotr.io.sources
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + 48 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
parts = SubjectGraphs(sys.argv[2], "<http://www.w3.org/ns/sosa/Observation>", memory=4 * 2**20)
with open(sys.argv[1], "rb") as file:
    for _graph, triples in stream_runs(file, Format.TURTLE, "dump"):
        parts.add(triples)
print(sum(len(triples) == 5 for _root, triples in parts.graphs()))
"""


def test_a_dump_larger_than_memory_is_taken_apart(tmp_path: Path) -> None:
    """Lines of 90 MB are sorted in a process that may take 48 MB more than it has when it begins."""
    count = 80_000
    (tmp_path / "dump.ttl").write_text(dump_of(count))
    (tmp_path / "folder").mkdir()
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path / "dump.ttl"), str(tmp_path / "folder")]
    ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == str(count), ran.stderr[-2000:]
    assert sum(file.stat().st_size for file in (tmp_path / "folder").iterdir()) > 48 * 2**20


def test_a_dump_goes_on_in_another_thread(tmp_path: Path) -> None:
    parts = SubjectGraphs(str(tmp_path), OBSERVATION)
    parts.add((f"<urn:{n}>", RDF_TYPE, OBSERVATION) for n in range(3))
    graphs = parts.graphs()
    first = next(graphs)
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(list, graphs).result()
        pool.submit(parts.close).result()
    assert [root for root, _ in [first, *rest]] == ["<urn:0>", "<urn:1>", "<urn:2>"]
