"""The background index holds exactly the triples it was given, in either direction, and as bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import EngineError
from dotr.rdf.index import Background, content_hash, has, many

_TERMS = [f"<http://example.org/{name}>" for name in "abcd"] + ['"1"', "_:b"]
_TRIPLES = st.lists(st.tuples(*[st.sampled_from(_TERMS)] * 3), max_size=40)


@given(_TRIPLES, _TRIPLES)
def test_index_holds_what_it_was_given_whatever_came_when(first: list, second: list) -> None:
    index = Background(first)
    index.extend(second)
    triples = set(first) | set(second)
    assert sorted(index) == sorted(triples)
    assert len(index) == len(triples)
    backward = {
        (s, p, o) for p, column in index.backward.items() for o, ss in column.items() for s in many(ss)
    }
    assert backward == triples
    assert all(triple in index for triple in triples)
    assert index.forward == Background(triples).forward
    for predicate, column in index.forward.items():
        assert (predicate in index.several_forward) == any(isinstance(v, tuple) for v in column.values())
        assert index.size(predicate) == sum(p == predicate for _, p, _ in triples)
    for term in _TERMS:
        assert set(index.predicates_from(term)) == {p for s, p, _ in triples if s == term}
        assert set(index.predicates_into(term)) == {p for _, p, o in triples if o == term}


@given(_TRIPLES)
def test_saved_index_loads_as_it_was(triples: list) -> None:
    index = Background(triples)
    loaded = Background.load(index.save())
    assert loaded.forward == index.forward
    assert loaded.backward == index.backward
    assert loaded.several_forward == index.several_forward
    assert len(loaded) == len(index)


def test_absent_triples_are_not_found() -> None:
    index = Background([("<a>", "<p>", "<b>"), ("<a>", "<p>", "<c>")])
    assert ("<a>", "<p>", "<d>") not in index
    assert ("<b>", "<p>", "<b>") not in index
    assert ("<a>", "<q>", "<b>") not in index


def test_long_values_are_found_by_bisection() -> None:
    values = tuple(sorted(f"<{n}>" for n in range(100)))
    assert all(has(values, value) for value in values)
    assert not has(values, "<100>")
    assert not has(values, "<zzz>")


@pytest.mark.parametrize("damage", [b"", b"dotr background 1\n", b"dotr background 0\n"])
def test_bytes_of_another_version_are_refused(damage: bytes) -> None:
    with pytest.raises(EngineError, match="D5101"):
        Background.load(damage)


def test_damaged_bytes_are_refused() -> None:
    saved = bytearray(Background([("<a>", "<p>", "<b>")]).save())
    saved[-1] ^= 1
    with pytest.raises(EngineError, match="D5101"):
        Background.load(bytes(saved))


def test_content_hash_knows_no_order() -> None:
    triples = [(f"<{n}>", "<p>", f"<{n % 7}>") for n in range(50)]
    shuffled = random.Random(1).sample(triples, 50) + triples[:3]
    assert content_hash(triples) == content_hash(shuffled)
    assert content_hash(triples) != content_hash(triples[1:])
