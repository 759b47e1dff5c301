"""Whatever is inserted, held, deleted, ends, or is ruled, over schemas that name individuals: what holds is
the closure of what is stated, and what owlrl derives.
"""

from __future__ import annotations

import os

from tests.equality import knowledge_bases, streams

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def test_a_knowledge_base_is_what_owlrl_has_after_every_history() -> None:
    for seed in range(20_000 if DEEP else 25):
        assert knowledge_bases.History(seed).run().checked


def test_what_lasts_in_a_stream_is_what_owlrl_has_after_every_history() -> None:
    noted = 0
    for seed in range(20_000 if DEEP else 25):
        history = streams.History(seed).run()
        noted += history.noted
    assert noted, "an equality that is held touches an individual of the schema, now and then"


def test_a_triple_among_terms_that_are_all_the_same_has_a_proof() -> None:
    knowledge_bases.History(701_970).run()  # 794 triples, 30,000 derivations
