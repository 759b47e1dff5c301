"""A dump taken apart: one graph for each subject of a class, or with a property.

Place:   files/dump_reader.py gives it the triples of a document and finds the times of what comes out.
Method:  a dump is in no order and its blank nodes lie anywhere, so everything is sorted on disk. Triples
         are sorted by subject; the subjects wanted are the roots. Then the closure is grown in rounds: a
         round joins what was reached, sorted by node, with the triples, and what their objects reach is the
         next round's, less what was reached before. There are as many rounds as blank nodes are nested, and
         each reads the triples once. A root belongs to no other graph. A blank node that was reached also
         has the triples that say what it is of (`:room :temperature _:b`), joined by object, and upwards
         from one blank node to the next until there is an IRI; of such a subject nothing else. What no round
         reached is counted, by one more pass. Memory: what SortedLines may hold, and the triples of one node
         and of one graph.
Why not: an index of the dump in memory: it is larger than the dump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from dotr.io.dumps.external_sort import SortedLines
from dotr.io.graphs import MEMORY
from dotr.rdf.terms import RDF_TYPE, Term, Triple

_CLASSES = 100


@dataclass(slots=True)
class SubjectGraphs:
    """Owns one dump on its way into `folder`. `wanted`: a class or property. `shared`: descriptions that
    several graphs refer to by IRI go into each of them.
    """

    folder: str
    wanted: Term
    shared: bool = False
    memory: int = MEMORY
    classes: dict[Term, int] = field(default_factory=dict)
    """Subjects of the classes that were seen, of some of them."""
    beside: int = 0
    """Subjects in no graph, once these were given."""
    beside_shared: int = 0
    """Those of them that graphs refer to: with `shared` they would be in these."""
    _count: int = 0
    _triples: SortedLines = field(init=False)
    _blank: SortedLines = field(init=False)
    _into: SortedLines = field(init=False)
    """Triples whose object is a blank node, by that."""
    _made: int = 0

    def __post_init__(self) -> None:
        self._triples = self._sorted("triples")
        self._blank = self._sorted("blank")
        self._into = self._sorted("into")

    def _sorted(self, name: str) -> SortedLines:
        self._made += 1
        return SortedLines(self.folder, f"{name}{self._made}", self.memory // 4)

    def add(self, triples: Iterable[Triple]) -> None:
        """More triples of the dump, in its order."""
        for subject, predicate, object_ in triples:
            self._count += 1
            line = f"{subject}\t{self._count:015}\t{predicate}\t{object_}"
            self._triples.add(line)
            if subject[0] == "_":
                self._blank.add(line)
            if object_[0] == "_":
                self._into.add(f"{object_}\t{self._count:015}\t{subject}\t{predicate}")
            if predicate == RDF_TYPE and (object_ in self.classes or len(self.classes) < _CLASSES):
                self.classes[object_] = self.classes.get(object_, 0) + 1

    def graphs(self) -> Iterator[tuple[Term, list[Triple]]]:
        """(root, triples of its graph in the dump's order), the roots in the dump's order."""
        roots = self._sorted("roots")
        roots.update(self._roots())
        found = self._sorted("found")
        reached, before = self._sorted("reached"), self._sorted("before")
        reached.update(roots)
        referred = self._sorted("referred")
        sources = self._triples
        first = True
        while reached:
            following = self._sorted("reached")
            for owner, line, object_ in _joined(reached, sources, () if first else roots):
                found.add(f"{owner}\t{line}")
                if object_[0] == "_" or (self.shared and object_[0] == "<"):
                    following.add(f"{object_}\t{owner}")
                elif object_[0] == "<":
                    referred.add(f"{object_}\t")
            before.update(reached)
            reached = self._sorted("reached")
            reached.update(_less(following, before))
            sources = self._triples if self.shared else self._blank
            first = False
        self._add_incoming(roots, before, found)
        self.beside = sum(1 for _ in _others(map(_first, self._triples), map(_first, before)))
        if self.beside:
            left = _others(map(_first, referred), map(_first, before))
            self.beside_shared = sum(1 for _ in _common(left, map(_first, self._triples)))
        yield from _graphs(found)

    def _add_incoming(self, roots: SortedLines, before: SortedLines, found: SortedLines) -> None:
        """Add the triples that lead to the blank nodes of the graphs; `before`: `node, owner` of all nodes.

        To a root, and to what is above it, they lead from anywhere; to other nodes not from a root or from a
        node of some graph: what these say is theirs, or is there already.
        """
        up = self._sorted("up")
        blank = (line for line in before if line[0] == "_")
        for line, number in _numbered(blank, roots):
            own = line == f"{_first(line)}\t{number}"
            if own or not number:  # other roots have graphs of their own
                up.add(f"{line}\t{int(own)}")
        seen = self._sorted("seen")
        while up:
            edges = self._sorted("edges")
            edges.update(_leading(up, self._into))
            seen.update(up)
            following = self._sorted("following")
            with_roots = _marked(edges, map(_first, roots), _first)
            known = self._sorted("known")
            known.update(f"{line}\t{int(is_root)}" for line, is_root in with_roots)
            for line, taken in _marked(known, map(_first, before), _first):
                subject, owner, way, position, predicate, node, root = line.split("\t")
                if way == "0" and taken:
                    continue
                found.add(f"{owner}\t{position}\t{subject}\t{predicate}\t{node}")
                if subject[0] == "_" and root == "0":
                    following.add(f"{subject}\t{owner}\t{way}")
            up = self._sorted("up")
            up.update(_less(following, seen))

    def _roots(self) -> Iterator[str]:
        """`node, its number`: that of the root's first triple."""
        for node, lines in groupby(self._triples, key=_first):
            wanted, number = False, ""
            for line in lines:
                _, position, predicate, object_ = line.split("\t")
                number = number or position
                wanted = wanted or predicate == self.wanted
                wanted = wanted or (predicate == RDF_TYPE and object_ == self.wanted)
            if wanted:
                yield f"{node}\t{number}"


def _first(line: str) -> str:
    return line[: line.index("\t")]


def _joined(
    reached: Iterable[str], triples: Iterable[str], roots: Iterable[str]
) -> Iterator[tuple[str, str, Term]]:
    """(owner, `position, subject, predicate, object`, object) of every triple of a node for every owner that
    reached it; nodes that are roots are passed over. All are sorted by node.
    """
    groups = groupby(triples, key=_first)
    node, lines = next(groups, ("", None))
    left = iter(roots)
    root = next(left, "")
    for wanted, owners in groupby(reached, key=_first):
        while lines is not None and node < wanted:
            node, lines = next(groups, ("", None))
        if lines is None:
            return
        while root and _first(root) < wanted:
            root = next(left, "")
        if node != wanted or (root and _first(root) == wanted):
            continue
        own = [line.split("\t") for line in lines]
        for owner_line in owners:
            owner = owner_line[len(wanted) + 1 :]
            for subject, position, predicate, object_ in own:
                yield owner, f"{position}\t{subject}\t{predicate}\t{object_}", object_


def _leading(nodes: Iterable[str], into: Iterable[str]) -> Iterator[str]:
    """`subject, owner, own, position, predicate, node` of every triple whose object is a node, for every
    owner that reached it; both are sorted by node.
    """
    groups = groupby(into, key=_first)
    node, lines = next(groups, ("", None))
    for wanted, owners in groupby(nodes, key=_first):
        while lines is not None and node < wanted:
            node, lines = next(groups, ("", None))
        if lines is None:
            return
        if node != wanted:
            continue
        edges = [line.split("\t") for line in lines]
        for line in owners:
            _, owner, own = line.split("\t")
            for _, position, subject, predicate in edges:
                yield f"{subject}\t{owner}\t{own}\t{position}\t{predicate}\t{wanted}"


def _marked(
    lines: Iterable[str], others: Iterable[str], key: Callable[[str], str]
) -> Iterator[tuple[str, bool]]:
    """Each line, and whether its key is among others; both sorted by that."""
    left = iter(others)
    other = next(left, None)
    for line in lines:
        while other is not None and other < key(line):
            other = next(left, None)
        yield line, other == key(line)


def _numbered(lines: Iterable[str], roots: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line, and the number of its node as a root, "" for other nodes; both sorted by node."""
    left = (root.split("\t") for root in roots)
    node, number = next(left, ("", ""))
    for line in lines:
        while node and node < _first(line):
            node, number = next(left, ("", ""))
        yield line, number if node == _first(line) else ""


def _less(lines: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """The lines that are not among others; both sorted."""
    left = iter(others)
    other = next(left, None)
    for line in lines:
        while other is not None and other < line:
            other = next(left, None)
        if other != line:
            yield line


def _others(nodes: Iterable[str], taken: Iterable[str]) -> Iterator[str]:
    """The nodes that are not taken, each once; both sorted, with repeats."""
    return _less((node for node, _ in groupby(nodes)), taken)


def _common(nodes: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """The nodes that are among others, each once; both sorted, the others with repeats."""
    left = iter(others)
    other = next(left, None)
    for node in nodes:
        while other is not None and other < node:
            other = next(left, None)
        if other == node:
            yield node


def _graphs(found: Iterable[str]) -> Iterator[tuple[Term, list[Triple]]]:
    for owner, lines in groupby(found, key=_first):
        triples: dict[Triple, None] = {}
        root = ""
        for line in lines:
            _, position, subject, predicate, object_ = line.split("\t")
            root = subject if position == owner else root
            triples[subject, predicate, object_] = None
        yield root, list(triples)
