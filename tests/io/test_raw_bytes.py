"""The bytes of one graph of a quad document, and what cannot be told apart."""

from __future__ import annotations

from dotr.io.decode.documents import Format
from dotr.io.decode.quads import RawBytes, pieces


def test_a_tape_has_what_is_not_through_yet() -> None:
    tape = RawBytes(10)
    for part in (b"abc", b"def", b"ghi"):
        tape.take(part)
    assert tape.between(11, 15) == b"bcde"
    assert (tape.between(9, 12), tape.between(12, 20), tape.between(12, 12)) == (None, None, None)
    tape.passed(15)
    assert tape.start == 13, "a part goes when all of it is through"
    assert (tape.between(12, 14), tape.between(13, 14)) == (None, b"d")
    assert tape.everything() is None
    tape.passed(16)
    assert tape.start == 16


def test_a_tape_with_a_limit_forgets_its_head() -> None:
    tape = RawBytes(0, limit=5)
    tape.take(b"abc")
    assert tape.everything() == b"abc"
    tape.take(b"def")
    assert (tape.everything(), tape.between(3, 6)) == (None, b"def")


def test_lines_of_quads_go_to_their_graph_with_the_unreadable_ones_before() -> None:
    a, b = b"<urn:s> <urn:p> <urn:o> <urn:g> .", b"<urn:s> <urn:p> <urn:o> <urn:h> ."
    content = b"\n".join([a, b"junk", b, a, b"<urn:g> <urn:t> 'x' .", b"more junk"]) + b"\n"
    found = pieces(content, Format.NQUADS, "f", None)
    assert found["<urn:h>"] == b"junk\n" + b + b"\n"
    assert found["<urn:g>"].startswith(a + b"\n" + a + b"\n")
    assert found[""].endswith(b"more junk\n")


def test_blocks_of_trig_are_found_by_their_braces_and_names_spelled_out() -> None:
    text = """@prefix ex: <urn:x:> . # { not a block
ex:g { ex:s ex:p "}", '''{''' . # }
}
{ ex:s ex:p ex:o }
GRAPH <urn:x:h> { ex:s ex:p ex:o }
ex:g { ex:s ex:p ex:q }
"""
    found = pieces(text.encode(), Format.TRIG, "f", None)
    assert set(found) == {"<urn:x:g>", "<urn:x:h>"}
    assert found["<urn:x:h>"] == b"<urn:x:h> { ex:s ex:p ex:o }"
    assert found["<urn:x:g>"].decode().split("\nex:g")[1] == " { ex:s ex:p ex:q }"
    assert "'''{'''" in found["<urn:x:g>"].decode()


def test_nothing_is_told_apart_where_bytes_or_names_cannot_be_read() -> None:
    assert pieces(b"<urn:g> { \xff }", Format.TRIG, "f", None) == {}
    assert pieces(b"ex:g { <urn:s> <urn:p> 1 }", Format.TRIG, "f", None) == {}
