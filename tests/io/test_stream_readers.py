"""Open files as they are read: counts, limits and fences, and the bytes of what was refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.decode.quads import QuadBlock
from dotr.io.graphs import Headed, Originals, StreamReader, all_of, first_bytes, original_of

QUADS = b"<urn:s> <urn:p> <urn:o> <urn:g> .\n<urn:s> <urn:p> <urn:o> <urn:h> .\n"


def test_a_tap_counts_and_reads_no_further_than_its_limit() -> None:
    stream = StreamReader(io.BytesIO(b"3456789"), "f", count=3, limit=8)
    assert (stream.read(2), stream.count, stream.ended) == (b"34", 5, False)
    assert (stream.read(), stream.count) == (b"567", 8)
    assert (stream.read(1), stream.ended) == (b"", True)
    assert StreamReader(io.BytesIO(b"12"), "f").read() == b"12"


def test_a_fence_is_as_far_as_nothing_may_come_of_what_was_read() -> None:
    stream = StreamReader(io.BytesIO(b"x" * 20), "f", count=100, fence=8)
    assert stream.read(8) == b"x" * 8
    stream.settled()
    assert stream.read(8) == b"x" * 8
    with pytest.raises(DataError) as raised:
        stream.read(1)
    assert raised.value.diagnostics[0].code == "D2006"


def test_the_first_bytes_go_on_to_a_whole_line() -> None:
    class Slow(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 3))

    stream = StreamReader(Slow(b"<urn:s> <urn:p>\n<rest>"), "f.ttl")
    head = first_bytes(stream, "f.ttl")
    assert b"\n" in head
    assert len(head) < 20
    assert first_bytes(StreamReader(io.BytesIO(b"no end"), "f.ttl"), "f.ttl") == b"no end"


def test_a_head_comes_before_the_rest_and_nothing_twice() -> None:
    file = Headed(b"abc", StreamReader(io.BytesIO(b"def"), "f"))
    assert [file.read(2), file.read(2), file.read(2), file.read(), file.read()] == [
        b"ab",
        b"c",
        b"de",
        b"f",
        b"",
    ]
    assert Headed(b"abc", StreamReader(io.BytesIO(b"def"), "f")).read() == b"abc"


def test_originals_of_streamed_blocks_lie_between_their_ends() -> None:
    stream = StreamReader(io.BytesIO(QUADS), "f.nq")
    head = stream.read(10)
    originals = Originals(stream, head, Format.NQUADS, "f.nq", "urn:base:")
    stream.read()
    first = QuadBlock("<urn:g>", [("<urn:s>", "<urn:p>", "<urn:o>")], end=34)
    assert originals.of(first) == QUADS[:34]
    originals.passed(first)
    second = QuadBlock("<urn:h>", end=68)
    assert originals.of(second) == QUADS[34:]
    assert originals.of(QuadBlock("<urn:h>", end=69)) is None, "not read"


def test_originals_of_a_document_grouped_whole_are_found_by_name_at_its_end() -> None:
    stream = StreamReader(io.BytesIO(QUADS), "f.nq")
    originals = Originals(stream, b"", Format.NQUADS, "f.nq", "urn:base:")
    block = QuadBlock("<urn:h>", [("<urn:s>", "<urn:p>", "<urn:o>")], end=2, whole=True)
    stream.read()
    assert originals.of(block) is None, "it may go on"
    assert original_of(block, originals) == original_of(block, None) == block.text().encode()
    stream.read()
    assert original_of(block, originals) == QUADS[34:]


def test_all_of_a_refused_file_is_what_can_still_be_had(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert all_of(str(path), b"kept", 3) == b"kept"
    assert all_of(str(path), None, 5) == b"12345"
    packed = tmp_path / "f.gz"
    packed.write_bytes(gzip.compress(b"12345"))
    assert all_of(str(packed), None, 5) == b"12345"
    assert all_of(str(packed), None, 4) == b"", "too long"
    assert all_of(str(tmp_path), None, 5) == b"", "a folder"
