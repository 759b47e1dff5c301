"""The benchmarks of what lasts at a small size: all that are measured side by side give the same answers."""

from __future__ import annotations

import pytest

from . import lasting


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5])
def test_windows_over_trees_are_the_same_recomputed_deleted_and_expired(share: float) -> None:
    took = lasting.imars_step(200, share, 6)  # asserts that all three hold as many triples
    assert took.keys() == {"ours", "dred", "naive"}


@pytest.mark.parametrize("kind", ["taxonomy", "database", "dl"])
def test_rules_and_facts_that_go_and_come_leave_what_there_was(kind: str) -> None:
    row = lasting.volz_kind(kind, 3, 200, 2)
    assert {"set up", "facts 10%", "facts 15%", "rule median", "rule worst"} < row.keys()


@pytest.mark.parametrize("name", sorted(lasting.PATTERNS))
def test_signed_answers_add_up_to_those_asked_again(name: str) -> None:
    changes = lasting.updates(600, 30)
    assert lasting.delta_pattern(lasting.PATTERNS[name], changes, 3)["answers"] > 0


def test_two_windows_are_joined() -> None:
    assert lasting.windows_rate(3, 200, rooms=20)["events"] > 0


def test_a_change_looks_at_as_many_rows_in_a_window_of_any_size() -> None:
    work = [lasting.imars_work(window) for window in (1_000, 4_000)]
    assert max(work) <= 1.1 * min(work)


def test_one_percent_of_a_window_is_a_twentieth_of_the_work_of_closing_it() -> None:
    """Of 5,000 triples 50 come and 50 go: rows looked at and moved, against those that closing makes."""
    pool = lasting.trees(10_000, 5_000)
    closed = lasting.Maintained(lasting.parse_datalog(lasting.TRANSITIVE), pool[:5_000])
    assert 20 * 50 * lasting.imars_work(5_000, 50, 5) <= len(closed)


def test_a_single_fact_looks_at_as_many_rows_among_any_number_of_facts() -> None:
    counts = []
    for facts in (500, 4_000):
        text, triples = lasting.ontology("taxonomy", 4, facts)
        kept = lasting.Maintained(lasting.parse_datalog(text), triples, counting=True)
        some = [triple for triple in triples if triple[2].count("_") == 4][:50]  # of the lowest classes
        kept.store.visits[0] = 0
        for triple in some:
            for change in ((), [triple]), ([triple], ()):
                kept.open(*change)
                kept.commit()
        counts.append(kept.store.visits[0] / len(some))
    assert counts[0] > 0
    assert counts[1] <= 1.3 * counts[0] + 1


def test_ground_and_star_patterns_cache_no_more_than_the_papers_bounds() -> None:
    """A bit for each triple of a ground pattern; for a star, what stands beside one of its constants."""
    changes = lasting.updates(3_000, 40)
    held = set()
    model = lasting.model_of(lasting.PATTERNS["ground"])
    star = lasting.model_of(lasting.PATTERNS["star"])
    for new, old in changes:
        held.difference_update(old)
        held.update(new)
        for one in model, star:
            one.change(dict.fromkeys(new, lasting.FOREVER), old, 0)
        assert len(model.kept) <= 2
        assert len(star.kept) == sum(o in ("<urn:p1>", "<urn:p2>") for _, _, o in held)
