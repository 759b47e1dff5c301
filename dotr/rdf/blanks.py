"""Labels of blank nodes that depend on content, not on a parser's counter.

Place:   core/pipeline.py labels the graphs of an instant, io/ the background; all rooms above join by text.
Method:  colour refinement: nodes start in cells by their triples with named terms, and a cell is split by how
         often its nodes point, over each predicate and direction, into another cell, until nothing splits.
         Cells are processed and numbered in an order determined by the graph's structure alone, and the
         largest part of a split cell is not processed again (Hopcroft 1971; Cardon and Crochemore 1982),
         which makes it O(m log n) for m triples and n blank nodes. The graph's content hash, its time and its
         ordinal among equal graphs make the labels: runs agree, and two graphs never join. In a background,
         which is edited as text, blank nodes that no triple connects are labelled as separate graphs.
Why not: full canonicalisation (RDFC-1.0) is exponential in the worst case. Nodes that refinement cannot
         distinguish are numbered in document order instead: they are nearly always interchangeable. Rounds of
         re-hashing every node: a list of n cells takes n rounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import blake2b

from dotr.rdf.terms import Term, Triple


def label_stream(graphs: Sequence[Sequence[Triple]], time: int, kind: str = "") -> list[list[Triple]]:
    """The graphs of one instant with their blank nodes labelled; order and repeats of triples stay.

    `graphs` are all graphs stamped `time` (µs), with canonical terms; each is a separate scope. A label
    depends on the graph's set of triples up to renaming, on `time`, and on how many equal graphs came before
    it; never on labels or (except for nodes that refinement cannot distinguish) on the order of triples.
    `kind` separates messages with the same triples that are not graphs.
    """
    seen: dict[str, int] = {}
    return [_label(graph, f"{kind}{time}", seen) for graph in graphs]


def label_background(triples: Sequence[Triple], seen: dict[str, int]) -> list[Triple]:
    """The triples of one document with its blank nodes labelled; order and repeats stay.

    Connected blank nodes are labelled together, by the triples that mention one of them, up to renaming:
    other triples of the document do not change their labels. `seen`: how often equal triples occurred before,
    in this document and earlier ones; two documents never join.
    """
    parts = _joined_by_blank_nodes(triples)
    names: dict[Term, Term] = {}
    for part in parts:
        blank = _blank_nodes(part)
        order, content = _ordered(part, blank)
        ordinal = seen.get(content, 0)
        seen[content] = ordinal + 1
        names |= _numbered(order, f"_:g{_digest(f'{ordinal} {content}')}_")
    return _renamed(triples, names)


def _joined_by_blank_nodes(triples: Sequence[Triple]) -> list[list[Triple]]:
    """The triples with blank nodes, grouped by shared ones, in order of appearance."""
    leader: dict[Term, Term] = {}

    def find(name: Term) -> Term:
        while (above := leader.setdefault(name, name)) != name:
            leader[name] = leader[above]
            name = above
        return name

    found = [triple for triple in triples if triple[0][0] == "_" or triple[2][0] == "_"]
    for subject, _, object_ in found:
        if subject[0] == "_" == object_[0]:
            leader[find(object_)] = find(subject)
    parts: dict[Term, list[Triple]] = {}
    for triple in found:
        name = triple[0] if triple[0][0] == "_" else triple[2]
        parts.setdefault(find(name), []).append(triple)
    return list(parts.values())


def _label(graph: Sequence[Triple], time: str, seen: dict[str, int]) -> list[Triple]:
    for s, _, o in graph:
        if s[0] == "_" or o[0] == "_":
            break
    else:
        return list(graph)
    names = _blank_nodes(graph)
    order, content = _ordered(graph, names)
    ordinal = seen.get(content, 0)
    seen[content] = ordinal + 1
    return _renamed(graph, _numbered(order, f"_:s{_digest(f'{time} {ordinal} {content}')}_"))


def _ordered(graph: Sequence[Triple], names: list[Term]) -> tuple[list[Term], str]:
    """The blank nodes of a graph in an order given by its structure, and its content up to renaming."""
    order = _refined_order(list(dict.fromkeys(graph)), names) if len(names) > 1 else names
    texts = {" ".join(triple) for triple in _renamed(graph, _numbered(order, "_:"))}
    return order, "\n".join(sorted(texts))


def _blank_nodes(triples: Sequence[Triple]) -> list[Term]:
    """The blank nodes in order of appearance."""
    found: dict[Term, None] = {}
    for s, _, o in triples:
        if s[0] == "_":
            found[s] = None
        if o[0] == "_":
            found[o] = None
    return list(found)


def _numbered(names: list[Term], prefix: str) -> dict[Term, Term]:
    return {name: f"{prefix}{number}" for number, name in enumerate(names)}


def _renamed(triples: Sequence[Triple], names: dict[Term, Term]) -> list[Triple]:
    if not names:
        return list(triples)
    rename = names.get
    return [(rename(s, s), p, rename(o, o)) for s, p, o in triples]


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=15).hexdigest()


def _refined_order(triples: Sequence[Triple], names: list[Term]) -> list[Term]:
    """The blank nodes by cell of the coarsest stable partition, within a cell in document order."""
    number = {name: i for i, name in enumerate(names)}
    predicates = {p: i for i, p in enumerate(sorted({p for _, p, _ in triples}))}
    signatures: list[list[str]] = [[] for _ in names]
    edges: list[list[tuple[int, int]]] = [[] for _ in names]  # (2 · predicate + direction, neighbour)
    for s, p, o in triples:
        subject, object_ = number.get(s), number.get(o)
        if subject is None:
            if object_ is not None:
                signatures[object_].append(f"{s} {p} _:")
        elif object_ is None:
            signatures[subject].append(f"_: {p} {o}")
        elif subject == object_:
            signatures[subject].append(f"_: {p} _:")
        else:
            edges[subject].append((2 * predicates[p], object_))
            edges[object_].append((2 * predicates[p] + 1, subject))
    groups: dict[str, list[int]] = {}
    for node, signature in enumerate(signatures):
        groups.setdefault("\n".join(sorted(signature)), []).append(node)
    cells = _refine([dict.fromkeys(groups[key]) for key in sorted(groups)], edges)
    return [names[node] for cell in cells for node in sorted(cell)]


def _refine(cells: list[dict[int, None]], edges: list[list[tuple[int, int]]]) -> list[dict[int, None]]:
    """Split `cells` (in place, more are appended) until all nodes of each see every cell equally often."""
    cell_of = [0] * len(edges)
    for index, cell in enumerate(cells):
        for node in cell:
            cell_of[node] = index
    waiting = deque(range(len(cells)))
    while waiting and len(cells) < len(edges):
        splitter = waiting.popleft()
        seen_by: dict[int, list[int]] = {}
        for node in cells[splitter]:
            for label, neighbour in edges[node]:
                seen_by.setdefault(neighbour, []).append(label)
        touched: dict[int, list[int]] = {}
        for node in seen_by:
            touched.setdefault(cell_of[node], []).append(node)
        for index in sorted(touched):
            waiting.extend(_split(index, touched[index], seen_by, cells, cell_of))
    return cells


def _split(
    index: int,
    touched: list[int],
    seen_by: dict[int, list[int]],
    cells: list[dict[int, None]],
    cell_of: list[int],
) -> range:
    """Split a cell by how its nodes are reached; the largest part keeps its number. Returns new ones."""
    first = len(cells)
    cell = cells[index]
    if len(cell) == 1:
        return range(0)
    parts: dict[tuple[int, ...], list[int]] = {}
    for node in touched:
        parts.setdefault(tuple(sorted(seen_by[node])), []).append(node)
    rest = len(cell) - len(touched)
    if rest == 0 and len(parts) == 1:
        return range(0)
    keys = sorted(parts)
    largest = max(keys, key=lambda key: len(parts[key]))
    if rest < len(parts[largest]):
        untouched = [node for node in cell if node not in seen_by] if rest else []
        moved = [untouched] if rest else []
        moved += [parts[key] for key in keys if key != largest]
    else:
        moved = [parts[key] for key in keys]
    for part in moved:
        for node in part:
            del cell[node]
            cell_of[node] = len(cells)
        cells.append(dict.fromkeys(part))
    return range(first, len(cells))
