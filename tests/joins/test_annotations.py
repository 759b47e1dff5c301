"""The seam for annotations: a program over expiring rows (IMaRS: min over a body, max over derivations)."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dotr.codegen import source_of
from dotr.joins.code import Annotation, compile_plan
from dotr.joins.plan import BodyPattern, Item, plan, triple_pattern
from dotr.joins.store import TripleIndex
from dotr.program import Var
from dotr.rdf.index import Background
from dotr.rdf.terms import Term

FOREVER = 1_000
EXPIRATION = Annotation(one=FOREVER, join=min, merge=max)
P, Q = "<http://example.org/p>", "<http://example.org/q>"
_STEP = [triple_pattern(Var("x"), P, Var("y")), triple_pattern(Var("y"), P, Var("z"))]
_RULES: list[tuple[BodyPattern, list[Item]]] = [
    (triple_pattern(Var("x"), P, Var("z")), [*_STEP]),
    (triple_pattern(Var("y"), P, Var("x")), [triple_pattern(Var("x"), Q, Var("y"))]),
]

Row = tuple[Term, ...]
Facts = dict[tuple[str, Row], int]


def expire(background: Sequence[Row], stream: Facts) -> Facts:
    """The rows of a window with their expirations, by triggered plans until nothing lives longer."""
    store = TripleIndex(Background((s, Q, o) for s, o in background))
    triggered = []
    for head, items in _RULES:
        for i, item in enumerate(items):
            assert isinstance(item, BodyPattern)
            found = plan(items[:i] + items[i + 1 :], head.columns, store, trigger=item)
            triggered.append(
                (item.relation, head.relation, compile_plan(found, store, annotation=EXPIRATION))
            )
    work = list(stream.items())

    def report(relation: str, row: Row, until: int) -> None:
        changes = store.changes(relation)
        known = changes.added.get(row)
        if known is None:
            store.overlay.add(relation, row, until)
        elif EXPIRATION.merge(known, until) == known:
            return
        else:
            changes.added[row] = until
        for body, target, run in triggered:
            if body == relation:
                rows: list[tuple[Term, Term, int]] = []
                run(rows.append, *row, until)
                work.extend(((target, (s, o)), e) for s, o, e in rows)

    for s, o in background:
        work.append(((P, (o, s)), FOREVER))
    for (relation, row), until in work:
        report(relation, row, until)
    return {(relation, row): e for relation in (P, Q) for row, e in store.changes(relation).added.items()}


def oracle(background: Sequence[Row], stream: Facts) -> Facts:
    """At every moment, what follows from the rows that still live; a row expires when it last follows."""
    found: Facts = {}
    for now in sorted({*stream.values(), FOREVER}):
        p = {row for (relation, row), e in stream.items() if relation == P and e >= now}
        q = {row for (relation, row), e in stream.items() if relation == Q and e >= now} | set(background)
        p |= {(y, x) for x, y in q}
        while True:
            more = {(x, z) for x, y in p for v, z in p if y == v} - p
            if not more:
                break
            p |= more
        found.update(((P, row), now) for row in p)
        found.update(((Q, row), now) for row in q - set(background))
    return found


_node = st.sampled_from([f"<http://example.org/{n}>" for n in "abcd"])
_rows = st.tuples(_node, _node)


@given(
    st.lists(_rows, max_size=3, unique=True),
    st.dictionaries(st.tuples(st.sampled_from([P, Q]), _rows), st.integers(1, 9), max_size=6),
)
def test_rows_expire_when_their_longest_derivation_does(background: list[Row], stream: Facts) -> None:
    stream = {key: e for key, e in stream.items() if not (key[0] == Q and key[1] in background)}
    assert expire(background, stream) == oracle(background, stream)


def test_plain_code_has_no_trace_of_annotations() -> None:
    store = TripleIndex(Background([("<a>", Q, "<b>")]))
    found = plan([triple_pattern(Var("y"), Q, Var("z"))], [Var("z")], store, trigger=_RULES[0][0])
    plain = compile_plan(found, store)
    annotated = compile_plan(found, store, annotation=EXPIRATION)
    assert "e0" in source_of(annotated)
    assert "e0" not in source_of(plain)
