"""Where ends are known when statements begin, the state is the closure of what is stated at every time."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.enrich.maintenance import Maintained
from dotr.events import FOREVER, Time
from dotr.program import Atom, DatalogRule, Var
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.reference.enrich import closure
from tests.enrich.programs import rule, term
from tests.enrich.test_materialiser import _ALL, _LEVELS, _PREDICATES, _programs, _shown, _triples

_some = st.lists(_triples((*_LEVELS[0], *_ALL, *sorted(_PREDICATES))), max_size=5)
_lasting = st.tuples(_some, st.sampled_from([1, 2, 3, 5, FOREVER]))
_steps = st.lists(
    st.tuples(st.integers(1, 2), _lasting, _some, st.sampled_from(["commit", "abandon", "undo"])),
    min_size=3,
    max_size=12,
)
_RECURSION = [
    [rule("?x p ?z", "?x p ?y", "?y p ?z")],
    [rule("?x p ?z", "?x p ?y", "?y p ?z"), rule("?y q ?x", "?x p ?y"), rule("?y p ?x", "?x q ?y")],
    [rule("?x s ?z", "?x p ?y", "?y s ?z"), rule("?x s ?y", "?x p ?y"), rule("?x a A", "?x s ?x")],
]


def _positive(rules: list[DatalogRule]) -> list[DatalogRule]:
    return [r for r in rules if all(isinstance(item, Atom) for item in r.body)]


def _through_anonymous(rules: list[DatalogRule]) -> list[DatalogRule]:
    """The same rules over anonymous properties: each is what its property is, and the other way round."""
    named: dict[str, None] = {}

    def renamed(atom: Atom) -> Atom:
        if isinstance(atom.predicate, Var) or atom.predicate == RDF_TYPE:
            return atom
        named[atom.predicate] = None
        return replace(atom, predicate=f"_:{atom.predicate}")

    x, y = Var("x"), Var("y")
    over = [
        DatalogRule(tuple(map(renamed, r.heads)), tuple(renamed(i) for i in r.body if isinstance(i, Atom)))
        for r in rules
    ]
    ways = [(name, f"_:{name}") for name in named]
    ways += [(after, before) for before, after in ways]
    return [*over, *(DatalogRule((Atom(x, new, y),), (Atom(x, old, y),)) for old, new in ways)]


_named = st.one_of(_programs().map(_positive), st.sampled_from(_RECURSION))
_rules = st.one_of(_named, _named.map(_through_anonymous))


class Stated:
    """Owns what is stated until when, literally."""

    def __init__(self, now: dict[Triple, Time]) -> None:
        self.now = now

    def change(
        self, time: Time, begun: list[Triple], end: Time, deleted: list[Triple]
    ) -> tuple[dict[Triple, Time], list[Triple], dict[Triple, Time]]:
        """Go on to a time: what begins with which end, what ends, what has another end."""
        before = self.now
        now = {t: until for t, until in before.items() if until > time and t not in deleted}
        for triple in begun:
            now[triple] = max(now.get(triple, time), end)
        self.now = now
        return (
            {t: until for t, until in now.items() if t not in before},
            [t for t in before if t not in now],
            {t: until for t, until in now.items() if t in before and before[t] != until},
        )


@given(_rules, st.dictionaries(_triples(_ALL), st.sampled_from([2, 4, FOREVER]), max_size=8), _steps)
def test_at_every_time_holds_the_closure_of_what_is_stated(
    rules: list[DatalogRule],
    start: dict[Triple, Time],
    steps: list[tuple[int, tuple[list[Triple], Time], list[Triple], str]],
) -> None:
    kept = Maintained(rules, sorted(start), ends={t: end for t, end in start.items() if end != FOREVER})
    assume(kept.expires)
    stated, time = Stated(start), 0
    assert set(kept) == closure(rules, set(start))
    for wait, (triples, lasts), deleted, fate in steps:
        until = time + wait
        while time < until:  # no end is passed over
            time += 1
            last = time == until
            begun, ended, moved = stated.change(
                time, triples if last else [], min(time + lasts, FOREVER), deleted if last else []
            )
            before = set(kept)
            if fate != "commit":
                kept.go(time, begun, ended, moved)
                kept.abandon() if fate == "abandon" else kept.undo(kept.commit())
                assert set(kept) == before
            kept.go(time, begun, ended, moved)
            change = kept.changed()
            kept.commit()
            state, expected = set(kept), closure(rules, set(stated.now))
            assert state == expected, (
                f"{_shown(rules)}\n@ {time}: missing {expected - state}\nextra {state - expected}"
            )
            assert set(change.added) == state - before
            assert set(change.removed) == before - state
            assert {triple for triple in state if kept.states(triple)} == stated.now.keys()
            assert all(kept.end_of(triple) == end for triple, end in stated.now.items())


def test_an_end_joins_nothing() -> None:
    rules = [rule("?x p ?z", "?x p ?y", "?y p ?z")]
    edges = [(term(f"n{i}"), term("p"), term(f"n{i + 1}")) for i in range(30)]
    kept = Maintained(
        rules, ends=dict.fromkeys(edges[:20], 10) | dict.fromkeys(edges[20:], 20), counting=True
    )
    kept.store.visits[0] = 0
    kept.go(10, {}, edges[:20])
    assert kept.store.visits[0] == 0
    kept.commit()
    assert set(kept) == closure(rules, set(edges[20:]))
