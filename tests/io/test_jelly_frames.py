"""Jelly from text and back: what is written is read, and what a frame may not have is refused."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

pytest.importorskip("pyjelly", reason="the extra `jelly`")

from pyjelly import jelly

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io.decode import jelly as decode
from dotr.io.decode.jelly import JellyEventWriter, JellyFrames, JellyText

QUADS = """<urn:s> <urn:p> "a\\n\\"b\\""@en <urn:g> .
_:b <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g> .
<urn:g> <urn:t> "x" .
"""


def lines(text: bytes) -> list[str]:
    return sorted(" ".join(line.split()) for line in text.decode().splitlines())


def test_frames_are_read_as_they_were_written_one_at_a_time() -> None:
    frames = JellyFrames()
    content = (
        frames.frame(QUADS) + frames.frame("") + frames.frame(QUADS.replace("urn:s", "urn:" + "s" * 200))
    )
    text = JellyText(io.BytesIO(content), "f")
    assert (text.quads, text.log) == (True, False)
    first = text.read(1 << 20)
    assert lines(first) == sorted(QUADS.splitlines())
    assert b"s" * 200 in text.read(1 << 20)
    assert text.read(1) == b""
    again = JellyText(io.BytesIO(content), "f")
    assert again.seek(10) == 10
    assert again.read(1 << 20) == first[10:]


def test_a_stream_of_nothing_has_its_options(tmp_path: Path) -> None:
    writer = JellyEventWriter(str(tmp_path / "e.jelly"), Clock())
    writer.close()
    writer.close()
    content = (tmp_path / "e.jelly").read_bytes()
    assert content
    text = JellyText(io.BytesIO(content), "f")
    assert (text.quads, text.read()) == (True, b"")


def frame(*rows: jelly.RdfStreamRow) -> bytes:
    content = jelly.RdfStreamFrame(rows=rows).SerializeToString()
    return bytes([len(content)]) + content


@pytest.mark.parametrize("cut", [1, 5, -1])
def test_a_file_that_ends_early_is_refused(cut: int) -> None:
    content = JellyFrames().frame(QUADS)
    with pytest.raises(DataError) as raised:
        JellyText(io.BytesIO(content[:cut]), "f").read()
    assert raised.value.diagnostics[0].code == "D2412"


def test_frames_without_options_and_beyond_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = jelly.RdfStreamRow(name=jelly.RdfNameEntry(id=1, value="a"))
    with pytest.raises(DataError) as raised:
        JellyText(io.BytesIO(frame(row)), "f").read()
    assert "options" in raised.value.diagnostics[0].label
    content = JellyFrames().frame(QUADS)
    monkeypatch.setattr(decode, "MAX_FRAME", 20)
    with pytest.raises(DataError) as raised:
        JellyText(io.BytesIO(content), "f").read()
    assert "20 bytes" in raised.value.diagnostics[0].label


@pytest.mark.parametrize("bad", [b"a> b", b"a{bc", b"a\nbc", b"a<bc"])
def test_an_iri_cannot_end_its_term(bad: bytes) -> None:
    content = JellyFrames().frame("<urn:aXXb> <urn:p> <urn:o> <urn:g> .\n")
    assert b"aXXb" in content
    with pytest.raises(DataError) as raised:
        JellyText(io.BytesIO(content.replace(b"aXXb", bad)), "f").read()
    assert "is not an IRI" in raised.value.diagnostics[0].label
