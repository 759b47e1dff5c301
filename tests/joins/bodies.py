"""Random bodies and stores for differential tests of the kernel."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from dotr.joins.plan import (
    ALL,
    AbsentPattern,
    Assign,
    BodyPattern,
    Item,
    RowFilter,
    Sizes,
    View,
    bound_by,
    is_class,
    triple_pattern,
)
from dotr.joins.store import TripleIndex
from dotr.program import Call, Const, Node, Var
from dotr.rdf.index import Background
from dotr.rdf.terms import RDF_TYPE, Term, Triple

TERMS = [f"<http://example.org/{name}>" for name in "abc"]
PREDICATES = [f"<http://example.org/{name}>" for name in "pq"]
CLASSES = [f"<http://example.org/{name}>" for name in "CD"]
VARIABLES = [Var(name) for name in "xyz"]

triples = st.one_of(
    st.tuples(st.sampled_from(TERMS), st.sampled_from(PREDICATES), st.sampled_from(TERMS)),
    st.tuples(st.sampled_from(TERMS), st.just(RDF_TYPE), st.sampled_from(CLASSES)),
)
_nodes = st.one_of(st.sampled_from(VARIABLES), st.sampled_from(VARIABLES), st.sampled_from(TERMS))
patterns = st.one_of(
    st.builds(triple_pattern, _nodes, st.sampled_from(PREDICATES), _nodes),
    st.builds(triple_pattern, _nodes, st.just(RDF_TYPE), st.sampled_from([*CLASSES, Var("c")])),
    st.builds(triple_pattern, _nodes, st.sampled_from([Var("p"), Var("x")]), _nodes),
)
_views = st.sampled_from([View.OLD, View.KEPT, View.ADDED, View.NEW])


@st.composite
def bodies(draw: st.DrawFn) -> list[Item]:
    """One to four patterns, perhaps a guard, an assignment, an absence."""
    items: list[Item] = list(draw(st.lists(patterns, min_size=1, max_size=4)))
    bound = sorted(bound_by(items))
    if bound and draw(st.booleans()):
        pair = (Var(draw(st.sampled_from(bound))), Var(draw(st.sampled_from(bound))))
        items.append(RowFilter(Call(draw(st.sampled_from(["=", "!="])), pair)))
    if bound and draw(st.booleans()):
        copied = Var(draw(st.sampled_from(bound)))
        items.append(Assign(Call("COALESCE", (copied, Const(TERMS[0]))), "w"))
    if draw(st.booleans()):
        items.append(AbsentPattern(draw(patterns)))
    return draw(st.permutations(items))


@st.composite
def stores(draw: st.DrawFn) -> TripleIndex:
    """A background with some triples withdrawn, and an overlay of others, unions included."""
    background = sorted(set(draw(st.lists(triples, max_size=12))))
    added = sorted(set(draw(st.lists(triples, max_size=6))) - set(background))
    removed = draw(st.lists(st.sampled_from(background), unique=True)) if background else []
    relations = {r for t in removed for r in relations_of(t)}
    store = TripleIndex(Background(background), volatile=relations)
    for triple in added:
        for relation, row in rows_of(triple).items():
            store.overlay.add(relation, row)
    for triple in removed:
        for relation, row in rows_of(triple).items():
            store.overlay.remove(relation, row)
    return store


def relations_of(triple: Triple) -> list[str]:
    return list(rows_of(triple))


def rows_of(triple: Triple) -> dict[str, tuple[Term, ...]]:
    subject, predicate, object_ = triple
    rows: dict[str, tuple[Term, ...]] = {ALL: triple, predicate: (subject, object_)}
    if predicate == RDF_TYPE:
        rows["a " + object_] = (subject,)
    return rows


def holds(store: TripleIndex, relation: str, row: tuple[Term, ...], view: View) -> bool:
    """Whether a row is in a view: membership by definition."""
    if relation == ALL:
        triple: Triple = row  # type: ignore[assignment]  # three columns
    elif is_class(relation):
        triple = (row[0], RDF_TYPE, relation[2:])
    else:
        triple = (row[0], relation, row[1])
    changes = store.changes(relation)
    key = row[0] if len(row) == 1 else row
    old = triple in store.background
    gone, new = key in changes.removed, key in changes.added
    match view:
        case View.OLD:
            return old
        case View.KEPT:
            return old and not gone
        case View.ADDED:
            return new
        case View.REMOVED:
            return gone
        case View.NEW:
            return new or (old and not gone)


def brute_force(
    items: list[Item], views: dict[int, View], absent: View, outputs: list[Node], store: TripleIndex
) -> list[tuple[Term, ...]]:
    """Every assignment of the pattern variables is tried."""
    names = sorted({name for item in items if isinstance(item, BodyPattern) for name in item.variables})
    terms = [*TERMS, *PREDICATES, *CLASSES, RDF_TYPE]
    found = []
    for values in product(terms, repeat=len(names)):
        row = dict(zip(names, values, strict=True))
        for item in items:
            if isinstance(item, Assign):
                argument = item.expression.arguments[0]  # type: ignore[union-attr]  # COALESCE(?v, constant)
                row["w"] = row[argument.name]
        if all(
            _true(item, views.get(i, View.NEW), absent, row, terms, store) for i, item in enumerate(items)
        ):
            found.append(tuple(row[n.name] if isinstance(n, Var) else n for n in outputs))
    return found


def _true(
    item: Item, view: View, absent: View, row: dict[str, Term], terms: list[Term], store: TripleIndex
) -> bool:
    if isinstance(item, BodyPattern):
        columns = tuple(row[n.name] if isinstance(n, Var) else n for n in item.columns)
        return holds(store, item.relation, columns, view)
    if isinstance(item, AbsentPattern):
        free = [name for name in item.pattern.variables if name not in row]
        for values in product(terms, repeat=len(free)):
            extended = {**row, **dict(zip(free, values, strict=True))}
            if _true(item.pattern, absent, absent, extended, terms, store):
                return False
        return True
    if isinstance(item, RowFilter):
        first, second = (row[a.name] for a in item.condition.arguments)  # type: ignore[union-attr]  # two variables
        return (first == second) == (item.condition.function == "=")  # type: ignore[union-attr]  # a call
    return True


def views_for(draw: st.DrawFn, items: list[Item]) -> dict[int, View]:
    return {i: draw(_views) for i, item in enumerate(items) if isinstance(item, BodyPattern)}


class NoSizes:
    """Nothing is known of the background: another order of the same joins."""

    def rows(self, relation: str) -> int:
        return 0

    def values(self, relation: str, column: int) -> int:
        return 0


UNKNOWN: Sizes = NoSizes()
