"""A column of its own type for each variable of WITH (`--schema typed`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.emit.templates import RuleTemplate
from dotr.errors import UsageError
from dotr.events import Clock, Composite
from dotr.io import event_tables
from dotr.io.event_tables import TypedTableWriter, decoded, joined_kinds
from dotr.io.events import open_sink
from dotr.io.outputs import FileOutput
from dotr.lang import parse_program
from dotr.rdf.terms import XSD, Term, canonical_literal, list_of

CLOCK = Clock(True, 1_000_000)
PROGRAM = parse_program(
    """PREFIX : <urn:x:>
RULE A DEFINE { dotr_a a :A } FROM S := { SELECT ?v WHERE { ?s :p ?v } } WITH ?v := S.?v
RULE B DEFINE { dotr_b a :B } FROM S := { SELECT ?v WHERE { ?s :p ?v } } WITH ?v := S.?v, ?w := S.?v
""",
    "r.dotr",
)
A, B = map(RuleTemplate, PROGRAM.rules)


def typed(value: str, name: str) -> Term:
    return f'"{value}"^^<{XSD}{name}>'


VALUES: dict[str, tuple[Term, ...]] = {
    "integer": (typed("0", "integer"), typed("-12", "integer"), typed("9223372036854775807", "integer")),
    "decimal": (typed("2.5", "decimal"), typed("-0.000000000000000001", "decimal")),
    "double": (typed("2.5", "double"), canonical_literal(typed("1e100", "double")), typed("INF", "double")),
    "boolean": (typed("true", "boolean"), typed("false", "boolean")),
    "dateTime": (typed("2026-07-01T12:00:00Z", "dateTime"), typed("1969-12-31T23:59:59.000001Z", "dateTime")),
    "iri": ("<urn:x:a>", "<http://example.org/ü>"),
    "string": ('""', '"a \\"b\\"\\n ü"'),
    "list": (list_of(['"a"', "<urn:x>"]), list_of([])),
    "term": (
        '"a"@en',
        "_:b0",
        typed("9223372036854775808", "integer"),
        typed("2.5", "float"),
        typed("2026-07-01T12:00:00+02:00", "dateTime"),
        typed("x", "integer"),
        typed("2026-07-01", "date"),
    ),
}


def written(path: Path, values: list[Term], group: int = 1 << 13) -> pa.Table:
    before, event_tables.TABLE_ROWS = event_tables.TABLE_ROWS, group
    try:
        writer = TypedTableWriter(str(path), CLOCK, PROGRAM.rules)
        for number, value in enumerate(values):
            writer.add([Composite(A, f"urn:dotr:A:{number}", ((0,), number * 1_000_000, (), (value,)))])
        writer.close()
    finally:
        event_tables.TABLE_ROWS = before
    return pq.read_table(path)


def terms(column: Any, kind: str) -> list[Term]:
    """The terms of a column."""
    return event_tables._widened(column.combine_chunks(), kind, "term").to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", VALUES)
def test_a_column_has_the_type_of_its_values_and_gives_their_terms_again(kind: str, tmp_path: Path) -> None:
    table = written(tmp_path / "e.parquet", list(VALUES[kind]))
    field = table.schema.field("v")
    assert field.metadata == {b"dotr.kind": kind.encode()}
    assert field.type == event_tables.kind_types()[kind]
    found = table.column("v").to_pylist() if kind == "term" else terms(table.column("v"), kind)
    assert found == list(VALUES[kind])


def test_variables_of_other_rules_are_null(tmp_path: Path) -> None:
    writer = TypedTableWriter(str(tmp_path / "e.parquet"), CLOCK, PROGRAM.rules)
    one, two = VALUES["integer"][:2]
    writer.add([Composite(A, "urn:dotr:A:1", ((0,), 5_000_000, (), (one,)))])
    writer.add([Composite(B, "urn:dotr:B:1", ((1,), 5_000_000, (), (one, two)))])
    writer.close()
    assert pq.read_table(tmp_path / "e.parquet").to_pylist() == [
        {"time": 5, "rule": "A", "id": "urn:dotr:A:1", "v": 0, "w": None},
        {"time": 5, "rule": "B", "id": "urn:dotr:B:1", "v": 0, "w": -12},
    ]


def test_a_table_without_events_has_its_columns(tmp_path: Path) -> None:
    assert written(tmp_path / "e.parquet", []).schema.names == ["time", "rule", "id", "v", "w"]


@given(
    values=st.lists(st.sampled_from([term for some in VALUES.values() for term in some]), max_size=12),
    group=st.integers(1, 4),
)
def test_a_column_of_several_kinds_is_widened(
    values: list[Term], group: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However rows are grouped: integers beside decimals are decimals, all else are N-Triples."""
    table = written(tmp_path_factory.mktemp("typed") / "e.parquet", values, group)
    kind = ""
    for value in values:
        kind = joined_kinds(kind, decoded(value)[0])
    assert (table.schema.field("v").metadata or {}).get(b"dotr.kind", b"").decode() == kind
    if kind == "term":
        found = table.column("v").to_pylist()
        for value, one in zip(values, found, strict=True):
            assert value == one or value == one.replace("#decimal", "#integer")
    elif kind not in ("", "decimal"):
        assert terms(table.column("v"), kind) == values


def test_text_has_no_typed_columns(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        open_sink("csv", lambda: FileOutput(str(tmp_path / "e.csv"), False), PROGRAM, typed=PROGRAM.rules)
    assert refused.value.diagnostics[0].code == "D4151"
