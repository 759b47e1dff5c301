"""Templates of graphs: where a cell may go, what its place is, and that braces cannot be smuggled in."""

from __future__ import annotations

import pytest

from dotr.errors import DataError
from dotr.io.tables.mapping import (
    BareSlot,
    Cell,
    ColumnFilter,
    IriSlot,
    LiteralSlot,
    Slot,
    cells_of,
    parse_cell,
    parse_template,
)

BASE = "http://base.org/"


def object_of(text: str) -> Slot:
    ((_, _, found),) = parse_template(f"PREFIX : <urn:x:> :s :p {text} .", "m.map", BASE)
    return found


def test_a_cell_has_filters_with_texts_names_and_numbers() -> None:
    assert parse_cell('a b | map("x,|y", -1.5, ms)|iri', "p") == Cell(
        "a b", (ColumnFilter("map", ("x,|y", -1.5, "ms")), ColumnFilter("iri"))
    )
    assert parse_cell("{a}", "p") == parse_cell("a", "p") == Cell("a")
    assert parse_cell(r'a|map("\"")', "p").filters[0].arguments == ('"',)
    for wrong in ("", "{}", "a|", "a|map(", "a{b", "a|UPPER"):
        with pytest.raises(DataError):
            parse_cell(wrong, "p")


def test_the_place_of_a_cell_says_what_becomes_of_it() -> None:
    a = Cell("a")
    assert object_of("{a}") == BareSlot(a)
    assert object_of('"{a}"') == LiteralSlot((a,))
    assert object_of('"{a} °C"@en') == LiteralSlot((a, " °C"), language="en")
    assert object_of("{a}^^<urn:t>") == LiteralSlot((a,), datatype="urn:t")
    assert object_of("<urn:{a}/x>") == IriSlot(("urn:", a, "/x"))
    assert object_of(":{a}") == IriSlot(("urn:x:", a))
    assert object_of("<{a}>") == IriSlot((BASE, a)), "relative"
    whole = Cell("a", (ColumnFilter("iri"),))
    assert object_of("<{a|iri}/x>") == IriSlot((whole, "/x")), "relative to nothing"
    assert object_of('"{{a}}"') == '"{a}"'
    assert object_of('"cell0of{a}"') == LiteralSlot(("cell0of", a)), "the word is in the text already"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (":s :p\n{a", "`{a` is not a cell"),
        (":s :p\n'x { y' .", "a brace in a string"),
        (":s :p\n'x'^^<urn:{a}> .", "a cell in a datatype"),
        (":s :p\n_:{a} .", "a cell in the blank node"),
    ],
)
def test_where_no_cell_can_be_is_said_with_its_line(text: str, says: str) -> None:
    with pytest.raises(DataError) as raised:
        parse_template(f"PREFIX : <urn:x:>\n{text}", "m.map", BASE)
    found = raised.value.diagnostics[0]
    assert (found.code, says in found.message) == ("D2401", True), found.message
    assert found.place in ("m.map", "m.map:3")


def test_messages_of_the_parser_name_columns_not_words() -> None:
    with pytest.raises(DataError) as raised:
        parse_template("<urn:s> nope:{temp} 1 .", "m.map", BASE)
    assert "cell0of" not in str(raised.value)


def test_blank_nodes_are_named_alike_and_cells_come_in_order() -> None:
    text = "[] <urn:p> [ <urn:q> {b} ] ; <urn:r> '{a}' . # {c} is a comment"
    triples = parse_template(text, "m.map", BASE)
    assert {s for s, _, _ in triples} == {"_:row0", "_:row1"}
    assert [cell.column for cell in cells_of(triples)] == ["b", "a"]
    assert triples == parse_template(text, "m.map", BASE)
