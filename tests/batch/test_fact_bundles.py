"""Bundles of facts: what goes into a shuffle comes out of it in order, and a bundle says nothing twice."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.batch import facts as fact_bundles
from dotr.batch.facts import COUNTED, FINDING, MARK, REFUSED, FactRow, bundle, bundled, unbundled
from dotr.batch.work import fact_batches, fact_rows

_texts = st.sampled_from(["", "0\t<urn:x:a>", '1\t"ä"\t\n2\t3', "MARK"])


@st.composite
def tasks(draw: st.DrawFn) -> list[list[FactRow]]:
    """What extracting tasks give: an instant is one row a part, whichever task it is in."""
    instants = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(-99, 99) | st.just(MARK)), unique=True))
    rows: list[FactRow] = [(part, time, draw(_texts)) for part, time in instants]
    apart = st.tuples(st.sampled_from([REFUSED, FINDING, COUNTED]), st.integers(-9, 9), st.text(max_size=3))
    rows += draw(st.lists(apart, max_size=3))
    found: list[list[FactRow]] = [[] for _ in range(draw(st.integers(1, 4)))]
    for row in draw(st.permutations(rows)):
        found[draw(st.integers(0, len(found) - 1))].append(row)
    return found


@given(tasks(), st.sampled_from([1, 2, 5, 100]), st.randoms(use_true_random=False))
def test_rows_come_back_in_order(given_: list[list[FactRow]], gathered: int, random: Random) -> None:
    rows = [row for task in given_ for row in task]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fact_bundles, "GATHERED", gathered)
        batches = [batch for task in given_ for batch in fact_batches(task)]
        shuffled = [
            row for b in batches for row in zip(*(b.column(i).to_pylist() for i in range(3)), strict=True)
        ]
        random.shuffle(shuffled)
        found = list(unbundled(sorted(shuffled, key=lambda row: row[:2])))
    key = lambda row: (row[0], row[1])  # noqa: E731  # beside its two uses
    assert [key(row) for row in found] == sorted(map(key, rows))
    assert sorted(found) == sorted(rows)


def test_a_text_that_many_instants_have_is_sent_once() -> None:
    rows = [(7, time, f"0\t<http://example.org/rooms/{time % 10}>") for time in range(60_000)]
    ((part, first, content),) = next(bundled(rows))
    assert (part, first) == (7, 0)
    assert len(content) < 12 * len(rows) + 2_000
    (batch,) = fact_batches(rows)
    assert list(fact_rows([batch])) == rows


def test_of_a_log_in_order_no_two_bundles_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is in no order, what overlaps is."""
    opened: list[int] = []
    before = fact_bundles._before

    def counting(heap: fact_bundles._Heap, bound: int) -> object:
        found = list(before(heap, bound))
        opened.append(len(heap))
        return found

    monkeypatch.setattr(fact_bundles, "_before", counting)
    several = [bundle(0, [(time, "") for time in range(start, start + 100)]) for start in range(0, 2000, 100)]
    assert len(list(unbundled(several))) == 2_000
    assert max(opened) == 0
    several = [bundle(0, [(time, "") for time in range(start, start + 200)]) for start in range(0, 2000, 10)]
    opened.clear()
    assert len(list(unbundled(several))) == 40_000
    assert 15 < max(opened) <= 20
