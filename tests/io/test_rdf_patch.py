"""RDF Patch row by row: transactions, prefixes, times, which row counts last, and what is refused where."""

from __future__ import annotations

import pytest

from dotr.errors import DataError
from dotr.events import Message
from dotr.io.decode.json_lines import Line
from dotr.io.decode.rdf_patch import Patches, content_of

S, P = "<urn:s>", "<urn:p>"


def lines(text: str) -> list[Line]:
    return [Line(row.strip().encode(), number, 0) for number, row in enumerate(text.split("\n"), 1)]


def transactions(patches: Patches, text: str) -> list[list[Line]]:
    return [done for line in lines(text) if (done := patches.take(line)) is not None]


def message(text: str) -> Message:
    patches = Patches("f")
    (done,) = transactions(patches, text)
    part = patches.part(done)
    assert isinstance(part, Message)
    return part


def code(text: str) -> tuple[str, str]:
    patches = Patches("f")

    def all_parts() -> None:
        for done in transactions(patches, text):
            patches.part(done)

    with pytest.raises(DataError) as raised:
        all_parts()
    first = raised.value.diagnostics[0]
    return first.code, first.place


def test_of_several_rows_of_one_triple_the_last_counts() -> None:
    found = message('TX .\nA <urn:s> <urn:p> "1" .\nA <urn:s> <urn:p> "2" .\nD <urn:s> <urn:p> "1" .\nTC .')
    assert (found.insert, found.delete) == ([(S, P, '"2"')], [(S, P, '"1"')])
    again = message('TX .\nD <urn:s> <urn:p> "1" .\nA <urn:s> <urn:p> "1" .\nTC .')
    assert (again.insert, again.delete) == ([(S, P, '"1"')], None)


def test_an_empty_transaction_inserts_nothing_and_is_a_message() -> None:
    found = message("TX .\n# nothing\nTC .")
    assert (found.graph, found.insert, found.delete) == (None, [], None)


def test_prefixes_hold_from_their_row_on_and_go_with_theirs() -> None:
    patches = Patches("f")
    (done,) = transactions(patches, 'PA "ex" "urn:x:" .\nPA : <urn:y:> .\nTX .\nA ex:a :b "1"^^ex:t .\nTC .')
    part = patches.part(done)
    assert isinstance(part, Message)
    assert part.insert == [("<urn:x:a>", "<urn:y:b>", '"1"^^<urn:x:t>')]
    assert transactions(patches, 'PD "ex" .') == []
    assert patches.prefixes == {"": "urn:y:"}


def test_a_bookmark_has_the_time_and_the_prefixes() -> None:
    patches = Patches("f")
    transactions(patches, 'H time "12" .\nH id <uuid:1> .\nPA "b" "urn:b:" .\nPA "a" "urn:a:" .')
    assert patches.bookmark == "12\na\turn:a:\nb\turn:b:"
    again = Patches("f").resumed(patches.bookmark)
    assert (again.time, again.prefixes, again) == ("12", patches.prefixes, patches)
    assert Patches("f").resumed(Patches("f").bookmark) == Patches("f")


def test_labels_of_systems_become_labels_of_turtle_each_its_own() -> None:
    found = message("TX .\nA _:a.b <urn:p> <_:a-b> .\nTC .")
    assert found.insert is not None
    ((subject, _, object_),) = found.insert
    assert subject[:2] == object_[:2] == "_:"
    assert subject != object_


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A <urn:s> <urn:p> <urn:o> .", ("D2204", "f:1")),
        ("TX .\nA <urn:s> <urn:p> <urn:o>", ("D2204", "f:2")),
        ("TX .\nTX .\nTC .", ("D2204", "f:2")),
        ("TX .\nX <urn:s> .\nTC .", ("D2204", "f:2")),
        ("TX .\n\nA <urn:s> <urn:p> .\nTC .", ("D2204", "f:2")),
        ("TX .\nA <urn:s> ex:p <urn:o> .\nTC .", ("D2204", "f:2")),
        ("TX .\nA <urn:s> <urn:p> <urn:o> .\nA <urn:s> 'p' <urn:o> .\nTC .", ("D2204", "f:3")),
        ("PA ex .", ("D2204", "f:1")),
        ("TX .\nA <urn:s> <urn:p> <urn:o> <urn:g> .\nTC .", ("D2205", "f:2")),
        ("TX .\nA <urn:s> <urn:p> <urn:o> .\nTA .", ("D2205", "f:3")),
    ],
)
def test_what_is_refused_with_its_row(text: str, expected: tuple[str, str]) -> None:
    assert code(text) == expected


def test_a_row_that_is_no_triple_is_found_among_good_ones() -> None:
    good = "A <urn:s> <urn:p> <urn:o> ."
    assert code(f'TX .\n{good}\nA "s" <urn:p> <urn:o> .\n{good}\nTC .')[1] == "f:3"


def test_an_open_transaction_is_said_at_its_beginning() -> None:
    patches = Patches("f")
    assert transactions(patches, "# head\nTX .\nA <urn:s> <urn:p> <urn:o> .") == []
    assert patches.unfinished().diagnostics[0].place == "f:2"
    assert content_of(patches.open) == b"TX .\nA <urn:s> <urn:p> <urn:o> .\n"
