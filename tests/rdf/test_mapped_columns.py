"""A background that is read from a file is the one of dicts: looked up, changed, gone through; or refused."""

import mmap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import EngineError
from dotr.rdf import index as background
from dotr.rdf import mapped as mapped_columns
from dotr.rdf.index import Background, has, many
from dotr.rdf.mapped import DIGEST, MAGIC, MappedColumn, MappedValues, opened

_TERMS = [f"<http://example.org/{n}>" for n in range(24)] + ['"é\\n"@de', '"𝔸"', "_:b"]
_TERM = st.sampled_from(_TERMS)
_PREDICATE = st.sampled_from(["<p>", "<q>", "<http://example.org/1>"])
_TRIPLE = st.tuples(_TERM, _PREDICATE, _TERM)
_TRIPLES = st.lists(_TRIPLE, max_size=120)
_WAYS = ("insert", "remove", "insert_all", "remove_all", "extend")


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Every index is large, nearly nothing is remembered, and a few values are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "LARGE", 0)
        patch.setattr(mapped_columns, "REMEMBERED", 12)
        patch.setattr(mapped_columns, "_SPREAD", 5)
        yield


def _mapped(triples: list) -> Background:
    return Background.load(Background(triples).save())


def _same(index: Background, plain: Background) -> None:
    """Whether both have the same triples, however they are asked."""
    triples = sorted(plain)
    assert sorted(index) == triples
    assert len(index) == len(triples)
    for own, other in ((index.forward, plain.forward), (index.backward, plain.backward)):
        for predicate, column in other.items():
            mapped = own.get(predicate, {})
            assert len(mapped) == len(column)
            assert bool(mapped) == bool(column)
            assert sorted(mapped) == sorted(mapped.keys()) == sorted(column)
            assert {k: sorted(many(v)) for k, v in mapped.items()} == {
                k: sorted(many(v)) for k, v in column.items()
            }
            assert sum(len(many(v)) for v in mapped.values()) == plain.size(predicate)
            for term in [*_TERMS, '"\ud800"']:
                found, wanted = mapped.get(term), column.get(term)
                assert sorted(many(found)) == sorted(many(wanted))
                assert isinstance(found, str) == isinstance(wanted, str)
                assert (term in mapped) == (term in column)
                if not (found is None or isinstance(found, str)):
                    assert all(has(found, value) == has(wanted, value) for value in _TERMS)
    for predicate in plain.forward:
        assert index.size(predicate) == plain.size(predicate)
        assert (predicate in index.several_forward) >= (
            any(not isinstance(v, str) for v in plain.forward[predicate].values())
        )
    for term in _TERMS:
        assert set(index.predicates_from(term)) == set(plain.predicates_from(term))
        assert set(index.predicates_into(term)) == set(plain.predicates_into(term))
    assert all(triple in index for triple in triples)


@given(_TRIPLES)
def test_what_is_looked_up_in_the_file_is_what_dicts_have(triples: list) -> None:
    _same(_mapped(triples), Background(triples))


@given(_TRIPLES, st.lists(st.tuples(st.sampled_from(_WAYS), _TRIPLES), max_size=4))
def test_changes_hide_what_the_file_has(triples: list, changes: list) -> None:
    index, plain = _mapped(triples), Background(triples)
    for way, some in changes:
        for one in (index, plain):
            if way in ("insert", "remove"):
                for triple in some:
                    getattr(one, way)(*triple)
            elif way == "extend":
                one.extend(some)
            else:
                here = set(one)
                for predicate in ("<p>", "<q>"):
                    rows = {(s, o) for s, p, o in some if p == predicate}
                    rows = {r for r in rows if ((r[0], predicate, r[1]) in here) == (way == "remove_all")}
                    if rows:
                        getattr(one, way)(predicate, sorted(rows))
        _same(index, plain)
    _same(Background.load(index.save()), plain)


@given(_TRIPLES)
def test_equal_triples_are_equal_files(triples: list) -> None:
    saved = Background(triples).save()
    assert Background(triples[::-1] + triples).save() == saved
    assert Background.load(saved).save() == saved


def test_many_values_are_read_as_they_are_looked_at() -> None:
    index = _mapped([("<s>", "<p>", f"<{n:03}>") for n in range(300)])
    values = index.forward["<p>"]["<s>"]
    assert isinstance(values, MappedValues)
    assert [values[0], values[-1], values[299]] == ["<000>", "<299>", "<299>"]
    assert values[2:4] == ("<002>", "<003>")
    assert has(values, "<123>")
    assert not has(values, "<3>")
    with pytest.raises(IndexError):
        values[300]


def test_lookups_remember_so_much_and_no_more() -> None:
    index = _mapped([(f"<{n}>", "<p>", f"<{n}>") for n in range(500)])
    column = index.forward["<p>"]
    assert isinstance(column, MappedColumn)
    for n in range(600):
        assert column.get(f"<{n}>") == (f"<{n}>" if n < 500 else None)
        assert len(dict.keys(column)) <= 12
    index.insert("<new>", "<p>", "<0>")
    index.remove("<7>", "<p>", "<7>")
    for n in range(600):
        column.get(f"<{n}>")
    assert column["<new>"] == "<0>"
    assert column["<7>"] is None


def _cuts() -> list[int]:
    return [0, 10, len(MAGIC), len(MAGIC) + 2 * DIGEST + 8, 120, -1, -4]


@pytest.mark.parametrize("cut", _cuts())
def test_a_file_that_is_cut_off_is_refused(cut: int) -> None:
    saved = Background([(f"<{n}>", "<p>", f"<{n % 3}>") for n in range(50)]).save()
    with pytest.raises(EngineError, match="D5101"):
        Background.load(saved[:cut])
    with pytest.raises(EngineError, match="D5101"):
        Background.load(saved + b"0000")


def is_whole(saved: bytes) -> bool:
    try:
        opened(saved).file.test_all()
    except EngineError:
        return False
    return True


def test_whatever_byte_is_damaged_there_is_a_diagnostic_and_no_wrong_answer() -> None:
    triples = [(f"<{n}>", "<p>", f"<{n % 3}>") for n in range(20)] + [("<1>", "<q>", "<2>")]
    saved = Background(triples).save()
    assert is_whole(saved)
    codes = set()
    for place in range(len(saved)):
        for wrong in (0x00, 0xFF, saved[place] ^ 0x10):
            broken = saved[:place] + bytes([wrong]) + saved[place + 1 :]
            if broken == saved:
                continue
            assert not is_whole(broken)
            try:
                _same(Background.load(broken), Background(triples))
            except EngineError as error:
                codes.add(error.diagnostics[0].code)
    assert codes == {"D5101"}


def test_a_damaged_file_is_not_saved_again() -> None:
    saved = bytearray(Background([(f"<{n}>", "<p>", f"<{n % 3}>") for n in range(50)]).save())
    saved[-1] ^= 1
    with pytest.raises(EngineError, match="D5101"):
        Background.load(bytes(saved)).save()


def test_a_file_is_mapped_not_read(tmp_path: Path) -> None:
    path = tmp_path / "background"
    triples = [(f"<{n}>", "<p>", f"<{n % 3}>") for n in range(50)]
    path.write_bytes(b"beside" + Background(triples).save() + b"it")
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    index = Background.load(data, 6, len(data) - 2)
    assert is_whole(bytes(data[6:-2]))
    assert sorted(index) == sorted(triples)
