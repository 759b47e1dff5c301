"""What continues without content ends after a bounded part of it, whatever it is written and packed in."""

from __future__ import annotations

import bz2
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dotr.errors import DataError
from dotr.io.decode import documents
from dotr.io.decode.documents import open_document, read_bytes
from dotr.io.decode.limits import QuietBytes, quiet_limit
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import SourceOptions
from dotr.io.sources import Sources
from dotr.io.tables.mapping import parse_mapping

MIB = 1 << 20
UNPACKED = 80 * MIB
MAPPING = parse_mapping("# time: t|epoch(s)\n# files: *.csv*, *.json.*\n<urn:{a}> <urn:v> {v} .\n", "m.map")
LOG = b'VERSION "1.2-messages"\n'


def zst(head: bytes, unit: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(head)
        block = unit * (MIB // len(unit))
        for _ in range(UNPACKED // MIB):
            file.write(block)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def gz(head: bytes, unit: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    block = unit * (MIB // len(unit))
    parts = [packer.compress(head), *(packer.compress(block) for _ in range(UNPACKED // MIB))]
    return b"".join([*parts, packer.flush()])


def bzip(head: bytes, unit: bytes) -> bytes:
    member = bz2.compress(unit * (8 * MIB // len(unit)))
    return bz2.compress(head) + member * (UNPACKED // MIB // 8)


PACKERS: dict[str, Callable[[bytes, bytes], bytes]] = {"zst": zst, "gz": gz, "bz2": bzip}
XML = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
BOMBS = [
    ("1.nq", b"", b"# nothing\n"),
    ("1.nq", b"", b"#\n"),
    ("1.trig", b"", b"#\n"),
    ("1.trig", b"", b"\n"),
    ("1.rdfp", b"", b"#\n"),
    ("1.rdfp", b"", b" #\n\n"),
    ("1.rdfp", b"", b'H x "y" .\n'),
    ("1.rdfp", b"TX .\n", b"#\n"),
    ("1.ttl", b"", b"# " + b"x" * 997 + b"\n"),
    ("1.ttl", b"", b"@prefix a: <urn:x:> .\n"),
    ("1.trig", b"", b"PREFIX : <urn:x:>\n"),
    ("1.trig", b"", b"<urn:g> {}\n"),
    ("1.trig", b"", b"GRAPH _:b { }\nBASE <urn:x:>\n"),
    ("1.nt", b"", b"\r\n"),
    ("1.nt", LOG, b"#\n"),
    ("1.jsonl", b"", b"\n"),
    ("1.jsonld", b"[", b"{},"),
    ("1.jsonld", b"", b" "),
    ("1.rdf", XML, b"<!-- nothing -->\n"),
    ("1.csv", b"t,a,v\n1,a,2\n", b"\n"),
    ("1.csv", b"t,a,v\n1,a,2\n", b"\r\n"),
    ("1.json", b"[", b"{},[],"),
]


class Counted:
    """Counts what is unpacked: the work of a bomb."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        read = documents.Unpacked.read

        def counted(unpacked: documents.Unpacked, size: int = -1, /) -> bytes:
            part = read(unpacked, size)
            self.bytes += len(part)
            return part

        monkeypatch.setattr(documents.Unpacked, "read", counted)
        monkeypatch.setattr(documents.Unpacked, "read1", counted)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize(("name", "head", "unit"), BOMBS)
def test_a_bomb_of_nothing_is_refused_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, head: bytes, unit: bytes, packer: str
) -> None:
    path = tmp_path / f"{name}.{packer}"
    path.write_bytes(PACKERS[packer](head, unit))
    found: list[str] = []
    policy = ErrorPolicy(fail=False, sink=lambda letter: found.append(json.loads(letter)["code"]))
    read = Counted(monkeypatch)
    graphs = list(Sources([str(path)], SourceOptions(mappings=(MAPPING,)), policy))
    assert len(graphs) <= 1
    assert found == ["D2023"]
    assert read.bytes <= 40 * MIB, "of 80, twice where a letter is written"


@pytest.mark.parametrize("name", ["1.ttl", "1.rdf", "1.jsonld"])
def test_a_background_that_says_nothing_is_refused_too(tmp_path: Path, name: str) -> None:
    unit = {"1.ttl": b"#\n", "1.rdf": b"<!--x-->", "1.jsonld": b"[],"}[name]
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gz(b"", unit))
    what = "empty brackets" if name == "1.jsonld" else "blank lines and comments"
    with pytest.raises(DataError, match=rf"D2023(.|\n)*bytes of {what}"):
        read_bytes(str(path))


@pytest.mark.parametrize(
    ("limit", "quiet"), [(1, 1), (16 * MIB, 16 * MIB), (256 * MIB, 16 * MIB), (1 << 32, 1 << 28)]
)
def test_the_bound_grows_with_that_of_documents(limit: int, quiet: int) -> None:
    assert quiet_limit(limit) == quiet


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
@pytest.mark.parametrize(
    ("comments", "unit"),
    [("#", b"# a\n\n \t#\n"), ("<!--", b"<!-- a - b -- > -->\n <!---->"), ("{}", b"[{}, []],\n")],
)
def test_parts_may_be_cut_anywhere(comments: str, unit: bytes, size: int) -> None:
    text = unit * 200
    quiet = QuietBytes("f", 1_000, comments)
    parts = (quiet.take(text[at : at + size]) for at in range(0, len(text), size))
    with pytest.raises(DataError, match="D2023"):
        list(parts)


@pytest.mark.parametrize(("comments", "said"), [("#", b"<urn:a>"), ("<!--", b"<a/>"), ("{}", b"1")])
def test_something_that_is_said_begins_the_count_again(comments: str, said: bytes) -> None:
    quiet = QuietBytes("f", 100, comments)
    for _ in range(50):
        quiet.take(b" " * 60)
        quiet.take(said)


def jelly_bomb() -> bytes:
    return gz(b"", b"\0")


def test_frames_without_a_statement_are_bounded_by_their_number(tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    (tmp_path / "1.jelly.gz").write_bytes(jelly_bomb())
    with pytest.raises(DataError, match="D2023"):
        list(Sources([str(tmp_path / "1.jelly.gz")], SourceOptions(), ErrorPolicy(fail=True)))


@pytest.mark.parametrize(
    ("name", "head", "unit"),
    [
        ("1.jsonl", b"", b"{}\n"),
        ("1.nt", LOG, b"MESSAGE\n"),
        ("1.csv", b"t,a,v\n1,a,2\n", b",,\n"),
    ],
)
def test_refused_rows_and_messages_that_say_nothing_are_bounded_where_they_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, head: bytes, unit: bytes
) -> None:
    (tmp_path / f"{name}.gz").write_bytes(gz(head, unit))
    policy = ErrorPolicy(fail=False)
    read = Counted(monkeypatch)
    options = SourceOptions(mappings=(MAPPING,), max_document=64 * MIB)
    list(Sources([str(tmp_path / f"{name}.gz")], options, policy))
    assert policy.count <= (64 * MIB >> 12) + 100_000
    assert read.bytes <= 2 * MIB


def test_rows_of_nothing_in_parquet_are_bounded(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415  # for this test

    nothing = pa.nulls(200_000, pa.string())
    pq.write_table(pa.table({"t": nothing, "a": nothing, "v": nothing}), tmp_path / "1.parquet")
    mapping = parse_mapping("# time: t\n<urn:{a}> <urn:v> {v} .", "m.map")
    policy = ErrorPolicy(fail=False)
    options = SourceOptions(mappings=(mapping,), max_document=16 * MIB)
    list(Sources([str(tmp_path / "1.parquet")], options, policy))
    assert policy.count == (16 * MIB >> 12) + 2


@pytest.mark.parametrize(
    "content",
    [
        bz2.compress(b"") + bz2.compress(b"x"),
        gzip.compress(b"", mtime=0) * 3 + gzip.compress(b"x", mtime=0),
    ],
    ids=["bz2", "gzip"],
)
def test_empty_members_before_what_is_said_are_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "1.ttl.x").write_bytes(content)
    with open_document(str(tmp_path / "1.ttl.x")) as file:
        assert file.read(1) == b"x"


def test_a_skippable_frame_may_come_first(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(b"x")
    skipped = b"\x50\x2a\x4d\x18" + (2).to_bytes(4, "little") + b"ab"
    (tmp_path / "1.ttl.zst").write_bytes(skipped + sink.getvalue().to_pybytes())
    with open_document(str(tmp_path / "1.ttl.zst")) as file:
        assert file.read(1) == b"x"
