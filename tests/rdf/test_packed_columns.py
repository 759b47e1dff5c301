"""A small background as bytes: what was saved is loaded, and a damaged one is refused."""

from __future__ import annotations

import pytest

from dotr.errors import EngineError
from dotr.rdf.index import columns
from dotr.rdf.index import packed_contents as contents

P, Q, A, B, C = "<urn:p>", "<urn:q>", "<urn:a>", "<urn:b>", '"line\\nend"'
FORWARD = {P: {A: B, B: [A, C]}, Q: {A: C}}
BACKWARD = {P: {B: A, A: B, C: B}, Q: {C: A}}


def saved() -> bytes:
    return b"".join(contents(FORWARD, BACKWARD, [P, Q, A, B, C]))


def test_what_was_saved_is_loaded() -> None:
    found = list(columns(memoryview(saved())))
    assert [predicate for predicate, _, _ in found] == [P, Q]
    for predicate, (forward, several), (backward, others) in found:
        assert {key: sorted([v] if isinstance(v, str) else v) for key, v in forward.items()} == {
            key: sorted([v] if isinstance(v, str) else v) for key, v in FORWARD[predicate].items()
        }
        assert backward == BACKWARD[predicate]
        assert (several, others) == (predicate == P, False)


def test_a_background_without_triples() -> None:
    assert list(columns(memoryview(b"".join(contents({}, {}, []))))) == []


@pytest.mark.parametrize("at", [0, 20, 40, -1])
def test_a_changed_byte_is_noticed(at: int) -> None:
    data = bytearray(saved())
    data[at] ^= 1
    with pytest.raises(EngineError, match="D5101"):
        list(columns(memoryview(bytes(data))))
