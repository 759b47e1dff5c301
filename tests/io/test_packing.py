"""Compressed outputs: what is unpacked is what was written, and the bytes depend on that alone."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from dotr.errors import EngineError
from dotr.io import outputs as packing
from dotr.io.decode.documents import read_bytes
from dotr.io.outputs import BLOCK, Packer, open_output

KINDS = ["gz", "zst"]


def text(size: int) -> bytes:
    """Lines that compress as events do."""
    draw, found = Random(size), bytearray()
    while len(found) < size:
        found += b'{"time": %d, "rule": "Hot", "id": "urn:dotr:Hot:%x"}\n' % (
            len(found),
            draw.getrandbits(80),
        )
    return bytes(found[:size])


def pieces(content: bytes, seed: int) -> Iterable[bytes]:
    draw, at = Random(seed), 0
    while at < len(content):
        size = draw.choice((1, 100, 70_000, BLOCK, 3 * BLOCK + 1))
        yield content[at : at + size]
        at += size


def packed(kind: str, parts: Iterable[bytes]) -> bytes:
    packer = Packer(kind)
    found = b"".join(map(packer.add, parts)) + packer.end(always=True)
    packer.close()
    return found


def unpacked(content: bytes, folder: Path) -> bytes:
    (folder / "packed").write_bytes(content)
    return read_bytes(str(folder / "packed"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 9 * BLOCK + 17])
def test_the_bytes_depend_on_the_content_alone(kind: str, size: int, tmp_path: Path) -> None:
    content = text(size)
    whole = packed(kind, [content])
    assert unpacked(whole, tmp_path) == content
    for seed in range(3):
        assert packed(kind, pieces(content, seed)) == whole


def test_the_head_of_gzip_has_no_time_and_no_name() -> None:
    whole = packed("gz", [b"content"])
    assert whole[:3] == b"\x1f\x8b\x08"
    assert whole[3:8] == bytes(5), "no flags, no time"
    assert gzip.decompress(whole) == b"content"


@pytest.mark.parametrize("kind", KINDS)
def test_members_follow_each_other(kind: str, tmp_path: Path) -> None:
    contents = [text(10), text(3 * BLOCK), b"", text(BLOCK), text(5)]
    packer, members = Packer(kind), []
    for content in contents:
        members.append(b"".join(map(packer.add, pieces(content, 1))) + packer.end())
    packer.close()
    assert members[2] == b"", "nothing was added"
    assert [unpacked(member, tmp_path) if member else b"" for member in members] == contents
    assert unpacked(b"".join(members), tmp_path) == b"".join(contents)


@pytest.mark.parametrize("kind", KINDS)
def test_few_blocks_are_held(kind: str) -> None:
    packer, most = Packer(kind), 0
    for _ in range(40):
        packer.add(text(BLOCK))
        most = max(most, len(packer._blocks))
    packer.close()
    assert most <= packing._WAITING


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_is_reported_as_without_compression(kind: str, tmp_path: Path) -> None:
    draw = Random(1)
    output = open_output(str(tmp_path / f"out.jsonl.{kind}"), packed=True)
    output._stream = Full()  # type: ignore[attr-defined]  # a file of its own
    parts = (draw.randbytes(BLOCK) for _ in range(40))
    with pytest.raises(EngineError, match="D4201"):
        list(map(output.write_bytes, parts))
    output.abandon()
    assert not (tmp_path / f"out.jsonl.{kind}").exists()


class Full:
    """A file on a full disk."""

    closed = False

    def write(self, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    def flush(self) -> None:
        """Nothing is buffered."""
