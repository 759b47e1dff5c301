"""A maintained state is the closure of what is stated; what a change gives is the difference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dotr.datalog.maintenance import Maintained
from dotr.ir import DatalogRule
from dotr.rdf.terms import Triple
from dotr.reference.datalog import closure
from tests.datalog.test_materialiser import _graphs, _programs, _shown

_changes = st.lists(st.tuples(_graphs, _graphs), min_size=1, max_size=5)


def check(
    kept: Maintained, rules: list[DatalogRule], stated: set[Triple], before: set[Triple]
) -> set[Triple]:
    """The state after a change is the closure, and the change is the difference."""
    expected = closure(rules, stated)
    change = kept.changed()
    kept.commit()
    state = set(kept)
    assert state == expected, (
        f"{_shown(rules)}\nmissing {expected - state}\nextra {state - expected}\nbefore {before}\n{stated}"
    )
    assert len(kept) == len(state)
    assert set(change.added) == expected - before
    assert set(change.removed) == before - expected
    assert {triple for triple in state if kept.states(triple)} == stated
    return expected


@given(_programs(), _graphs, _changes)
def test_after_every_change_holds_the_closure_of_what_is_stated(
    rules: list[DatalogRule], start: set[Triple], changes: list[tuple[set[Triple], set[Triple]]]
) -> None:
    kept = Maintained(rules, sorted(start))
    stated, before = set(start), closure(rules, start)
    for insert, delete in changes:
        useless = kept.open(sorted(insert), sorted(delete))
        assert useless == len(delete - stated)
        stated = (stated - delete) | insert
        before = check(kept, rules, stated, before)
