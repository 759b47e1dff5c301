"""Whatever is inserted, deleted, ends, or is ruled, over schemas that name individuals: what holds is the
closure of what is stated, and what owlrl derives.
"""

from __future__ import annotations

import os

from tests.equality import knowledge_bases

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def test_a_knowledge_base_is_what_owlrl_has_after_every_history() -> None:
    for seed in range(20_000 if DEEP else 25):
        assert knowledge_bases.History(seed).run().checked
