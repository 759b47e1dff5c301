"""W3C SPARQL manifests: the tests they list, the answers they expect, and whether two answers are the same.

Reads manifests, data and results with pyoxigraph alone; nothing of dotr but the form of its terms is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pyoxigraph as ox

from dotr.rdf.terms import canonical

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SD = "http://www.w3.org/ns/sparql-service-description#"

Solution = frozenset[tuple[str, str]]
"""(variable, canonical term) pairs of the variables that are bound."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a query should give: a truth value, or solutions (in order where `ordered`)."""

    boolean: bool | None = None
    solutions: tuple[Solution, ...] = ()
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One test. `folder` and `name` identify it ("sparql11/aggregates/agg01"); paths are absolute."""

    id: str
    kind: str
    query: Path
    data: Path | None
    named_graphs: bool
    entailment: bool
    result: Path | None

    @property
    def base(self) -> str:
        return self.query.as_uri()


def cases(root: Path) -> Iterator[Case]:
    """Every test of every manifest below `root`, in the order of paths and of manifests."""
    for manifest in sorted(root.rglob("manifest*.ttl")):
        yield from _of_manifest(root, manifest)


def _of_manifest(root: Path, manifest: Path) -> Iterator[Case]:
    graph = _graph(manifest)

    def one(
        subject: ox.NamedNode | ox.BlankNode, predicate: str
    ) -> ox.NamedNode | ox.BlankNode | ox.Literal | None:
        found = list(graph.quads_for_pattern(subject, ox.NamedNode(predicate), None, None))
        return found[0].object if found else None

    for quad in graph.quads_for_pattern(None, ox.NamedNode(MF + "entries"), None, None):
        node = quad.object
        while node is not None and node != ox.NamedNode(RDF + "nil"):
            entry = one(node, RDF + "first")
            node = one(node, RDF + "rest")
            kind = one(entry, RDF + "type")
            action = one(entry, MF + "action")
            if kind is None or action is None:
                continue
            query = one(action, QT + "query") if isinstance(action, ox.BlankNode) else action
            if not isinstance(query, ox.NamedNode):
                continue
            data = one(action, QT + "data")
            result = one(entry, MF + "result")
            yield Case(
                f"{manifest.parent.relative_to(root)}/{entry.value.rpartition('#')[2]}",
                kind.value.removeprefix(MF),
                _path(query),
                None if data is None else _path(data),
                one(action, QT + "graphData") is not None,
                any(
                    q.predicate.value.startswith(SD)
                    for q in graph.quads_for_pattern(action, None, None, None)
                ),
                _path(result) if isinstance(result, ox.NamedNode) else None,
            )


def _path(iri: ox.NamedNode) -> Path:
    return Path(iri.value.removeprefix("file://"))


def _format(path: Path) -> ox.RdfFormat:
    return {".rdf": ox.RdfFormat.RDF_XML, ".nt": ox.RdfFormat.N_TRIPLES}.get(path.suffix, ox.RdfFormat.TURTLE)


def _graph(path: Path) -> ox.Store:
    store = ox.Store()
    store.load(path=str(path), format=_format(path), base_iri=path.as_uri())
    return store


def triples(path: Path | None) -> list[tuple[str, str, str]]:
    """The triples of a data file as canonical terms."""
    if path is None:
        return []
    quads = ox.parse(path=str(path), format=_format(path), base_iri=path.as_uri())
    return [(canonical(str(q.subject)), str(q.predicate), canonical(str(q.object))) for q in quads]


def expected(case: Case) -> Answers:
    """The result file of a case."""
    assert case.result is not None
    suffix = case.result.suffix
    if suffix in (".ttl", ".rdf"):
        return _result_graph(_graph(case.result))
    kind = {".srx": ox.QueryResultsFormat.XML, ".srj": ox.QueryResultsFormat.JSON}.get(
        suffix, ox.QueryResultsFormat.TSV
    )
    found = ox.parse_query_results(path=str(case.result), format=kind)
    if isinstance(found, ox.QueryBoolean):
        return Answers(bool(found))
    names = [v.value for v in found.variables]
    return Answers(solutions=tuple(solution(names, tuple(row)) for row in found))


def solution(names: Sequence[str], row: Sequence[object]) -> Solution:
    """A row as a set of bindings; terms of pyoxigraph or of ours, made canonical."""
    return frozenset((n, canonical(str(t))) for n, t in zip(names, row, strict=True) if t is not None)


def _result_graph(graph: ox.Store) -> Answers:
    def objects(subject: object, name: str) -> list[ox.NamedNode | ox.BlankNode | ox.Literal]:
        return [q.object for q in graph.quads_for_pattern(subject, ox.NamedNode(RS + name), None, None)]

    for quad in graph.quads_for_pattern(None, ox.NamedNode(RS + "boolean"), None, None):
        return Answers(quad.object.value == "true")
    rows: list[tuple[int, Solution]] = []
    indexed = False
    for quad in graph.quads_for_pattern(None, ox.NamedNode(RS + "solution"), None, None):
        bindings = [
            (objects(b, "variable")[0].value, canonical(str(objects(b, "value")[0])))
            for b in objects(quad.object, "binding")
        ]
        index = objects(quad.object, "index")
        indexed |= bool(index)
        rows.append((int(index[0].value) if index else 0, frozenset(bindings)))
    rows.sort(key=lambda pair: pair[0])
    return Answers(solutions=tuple(row for _, row in rows), ordered=indexed)


def same_solutions(found: Sequence[Solution], wanted: Sequence[Solution]) -> bool:
    """Equal as multisets, up to the names of blank nodes."""
    if len(found) != len(wanted):
        return False
    ours, theirs = _blanks(found), _blanks(wanted)
    if len(ours) != len(theirs):
        return False
    target = Counter(wanted)
    if not ours:
        return Counter(found) == target
    candidates = [[b for b in theirs if _uses(wanted, b) == _uses(found, a)] for a in ours]
    return any(
        Counter(_renamed(row, names) for row in found) == target for names in _bijections(ours, candidates)
    )


def _bijections(ours: list[str], candidates: list[list[str]]) -> Iterator[dict[str, str]]:
    if len(ours) > 8:  # all alike: any permutation does or none
        yield from (dict(zip(ours, p, strict=True)) for p in [tuple(c[0] for c in candidates)])
        return
    everything = sorted({b for row in candidates for b in row})
    for chosen in permutations(everything, len(ours)):
        if all(b in allowed for b, allowed in zip(chosen, candidates, strict=True)):
            yield dict(zip(ours, chosen, strict=True))


def _blanks(rows: Sequence[Solution]) -> list[str]:
    return sorted({term for row in rows for _, term in row if term.startswith("_:")})


def _uses(rows: Sequence[Solution], blank: str) -> Counter[frozenset[tuple[str, str]]]:
    """How a blank node is used: its rows, itself marked, every other blank node made one."""
    return Counter(
        frozenset((n, "@" if t == blank else "_" if t.startswith("_:") else t) for n, t in row)
        for row in rows
        if any(t == blank for _, t in row)
    )


def _renamed(row: Solution, names: dict[str, str]) -> Solution:
    return frozenset((n, names.get(t, t)) for n, t in row)
