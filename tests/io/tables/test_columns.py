"""Rows that are made together are those made one by one, errors and all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.io.tables.cells import CellError
from dotr.io.tables.compiled import CompiledMapping

from .test_templates import HOSTILE, compiled

EVERYTHING = """# time: time
# missing: NA, -
<http://example.org/{a}/x?q={b}> :text {a} ; :said {b}@en ; :both "{a} and {b} {{ }}", "a {a}" ; :of :{b} .
<http://example.org/{a}> :deep [ :value {b} ] ; :other {b|strip|lower} ; :none {a|default("none")} .
"""
TYPED = ("integer", "decimal", "double", "float", "boolean", "dateTime", "date", "byte")
INSTANTS = (
    'datetime("iso", "Europe/Berlin")',
    'datetime("iso", "UTC")',
    'datetime("%d/%m/%Y %H:%M", "Europe/Berlin")',
    'datetime("%d/%m/%Y %H:%M:%S", "Australia/Lord_Howe")',
    'strip|datetime("%d/%m/%Y %I:%M %p", "UTC")',
    "epoch(s)",
    "epoch(ms)",
    "epoch(us)",
)
texts = st.one_of(
    st.sampled_from([*HOSTILE, "", "NA", "-", " ", "\n", "a\nb", "\ud800"]),
    st.text(max_size=6),
    st.none(),
)
numbers = st.one_of(
    st.sampled_from(["-0", "-0.0", "0.0", "00", "1.", ".5", "5.00", "1.2.00", "1e5.00", "+1", "1\n2", "INF"]),
    st.sampled_from(["true", "1", "2026-02-29", "2026-07-01T12:00:00Z", "2026-07-01T12:00:00.50+00:00", ""]),
    st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{0,20})?", fullmatch=True),
    st.from_regex(r"20[0-9]{2}-0[1-9]-[0-3]1T1[0-9]:00:00(\.[0-9]{1,9})?(Z|\+01:00)?", fullmatch=True),
    st.floats(allow_nan=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
)
clocks = st.one_of(
    st.from_regex(
        r"([23]5|01|1)/(10|03|7)/2026 ([01]?[0-9]|2[0-4]):[0-6][0-9](:[0-6][0-9]|:00\.5| [AP]M)?",
        fullmatch=True,
    ),
    st.from_regex(r"2026-(10-25|03-29|07-1)[ T][0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z?", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,19}(\.5)?", fullmatch=True),
    st.sampled_from(
        ["29/03/2026 02:30", "25/10/2026 02:30", "05/04/2026 01:45:00", "2026-07-1T012:00:00", ""]
    ),
)


def one_by_one(mapping: CompiledMapping, rows: Sequence[Sequence[str | None]]) -> list[object]:
    def made(row: Sequence[str | None]) -> object:
        try:
            return mapping.part(row)
        except CellError as error:
            return reported(error)

    return [made(row) for row in rows]


def reported(found: object) -> object:
    return (found.code, found.column, found.message) if isinstance(found, CellError) else found


def same(mapping: CompiledMapping, rows: Sequence[Sequence[str | None]]) -> None:
    assert [reported(part) for part in mapping.parts(rows)] == one_by_one(mapping, rows)


@given(st.lists(st.tuples(texts, texts, texts), max_size=40))
def test_texts_and_iris(rows: list[tuple[str | None, ...]]) -> None:
    same(compiled(EVERYTHING), rows)


@pytest.mark.parametrize("datatype", TYPED)
@given(st.lists(st.tuples(numbers, numbers), max_size=40))
def test_typed_cells(datatype: str, rows: list[tuple[str | None, ...]]) -> None:
    mapping = compiled(f":s :a {{a}}^^xsd:{datatype} ; :b {{b}}^^xsd:{datatype} .", ("a", "b"))
    same(mapping, rows)
    for row in rows:  # what is usual in all rows shows alone
        same(mapping, [row])


@pytest.mark.parametrize("instant", INSTANTS)
@given(st.lists(clocks, max_size=40))
def test_instants_in_the_graph_and_of_the_row(instant: str, cells: list[str]) -> None:
    mapping = compiled(f"# time: a|{instant}\n:s :at {{a|{instant}}} .", ("a",))
    rows = [(cell,) for cell in cells]
    same(mapping, rows)
    for some in ([cells] if cells else []) + [[cell] for cell in cells]:
        found = mapping.instants(some)
        for cell, time in zip(some, found, strict=True):
            try:
                expected: object = mapping.times[cell]
            except CellError as error:
                expected = reported(error)
            assert reported(time) == expected


@given(st.lists(clocks, max_size=20))
def test_times_as_they_stand(cells: list[str]) -> None:
    mapping = compiled("# time: a\n:s :p 1 .", ("a",))
    for some in [cells, *([cell] for cell in cells)]:
        expected = []
        for cell in some:
            try:
                expected.append(mapping.times[cell])
            except CellError as error:
                expected.append(reported(error))
        assert list(map(reported, mapping.instants(some))) == expected


def test_one_row_in_error_leaves_the_others() -> None:
    mapping = compiled(":s :p {a}^^xsd:decimal .", ("a",))
    rows = [(f"{n}.5",) for n in range(1000)]
    rows[700] = ("warm",)
    found = list(mapping.parts(rows))
    assert [n for n, part in enumerate(found) if isinstance(part, CellError)] == [700]


def test_rows_of_a_mapping_without_cells() -> None:
    mapping = compiled(":s :p 1 .", ("a",))
    assert len(list(mapping.parts([("x",), ("y",)]))) == 2
    assert len(list(compiled(":s :p 1 .", ()).parts([(), ()]))) == 2
