"""Compressed sources are what is in them, bounded, and refused when they are damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dotr.errors import DataError
from dotr.io.decode.documents import format_of, open_document, plain_name, read_bytes
from dotr.io.graphs import Bookmark, SourceOptions
from dotr.io.sources import Sources

LINES = "".join(f'{{"time": {n}, "graph": "<urn:s> <urn:p> {n} ."}}\n' for n in range(2000)).encode()


def zipped(content: bytes, *names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("in.jsonl",):
            archive.writestr(name, content)
    return out.getvalue()


def zstd(content: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(content)
    return out.getvalue().to_pybytes()


KINDS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
    ".zip": zipped,
}


def code_of(path: Path, **options: int) -> str:
    with pytest.raises(DataError) as error:
        list(Sources([str(path)], SourceOptions(**options)))  # type: ignore[arg-type]  # names of options
    return error.value.diagnostics[0].code


@pytest.mark.parametrize("ending", KINDS)
def test_what_is_in_it_is_read(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"in.jsonl{ending}"
    file.write_bytes(KINDS[ending](LINES))
    assert [graph.time for graph in Sources([str(file)])] == [n * 1_000_000 for n in range(2000)]
    assert [graph.time for graph in Sources([str(tmp_path)])][-1] == 1_999_000_000


@pytest.mark.parametrize("ending", KINDS)
def test_reading_goes_on_behind_a_bookmark(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"in.jsonl{ending}"
    file.write_bytes(KINDS[ending](LINES))
    end = LINES.index(b'{"time": 1500')
    rest = Sources([str(file)], bookmarks={str(file): Bookmark("byte", end)})
    assert next(iter(rest)).time == 1_500_000_000


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("cut", [20, 0.5])
def test_what_is_damaged_is_reported(tmp_path: Path, ending: str, cut: float) -> None:
    file = tmp_path / f"in.jsonl{ending}"
    content = KINDS[ending](LINES)
    file.write_bytes(content[: int(cut if cut > 1 else len(content) * cut)])
    assert code_of(file) == "D2007"
    middle = len(content) // 2
    file.write_bytes(content[:middle] + b"\xff" * 60 + content[middle + 60 :])
    assert code_of(file) in ("D2007", "D2014", "D2002")


@pytest.mark.parametrize("ending", KINDS)
def test_what_grows_without_a_graph_is_bounded(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"in.jsonl{ending}"
    file.write_bytes(KINDS[ending](b" " * (20 << 20)))
    assert code_of(file, max_document=1 << 20) == "D2006"
    with pytest.raises(DataError):
        read_bytes(str(file), 1 << 20)


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl.zip"
    file.write_bytes(zipped(LINES, "a.jsonl", "b.jsonl"))
    assert code_of(file) == "D2411"


def test_an_archive_is_what_its_file_is_called(tmp_path: Path) -> None:
    file = tmp_path / "readings.zip"
    file.write_bytes(zipped(b"<urn:s> <urn:p> 1 .", "folder/12.ttl"))
    assert plain_name(str(file)) == str(tmp_path / "12.ttl")
    assert format_of(str(file)) is not None
    assert [graph.time for graph in Sources([str(file)])] == [12_000_000]


def test_a_text_that_begins_like_an_archive_is_a_text(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes(b"BZh,PK\n1,2\n")
    with open_document(str(file)) as opened:
        assert opened.read() == b"BZh,PK\n1,2\n"
