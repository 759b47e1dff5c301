"""Streams of quads read without a parser: graphs, places, bookmarks and errors are those a parser finds."""

from __future__ import annotations

import io
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.decode.quads import QuadRun, quad_parts
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import Bookmark, GraphRun, ReadEvent, SourceOptions
from dotr.io.reader import FileReader

PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = f"PREFIX : <urn:x:>\n@prefix prov: <http://www.w3.org/ns/prov#> .\n@prefix xsd: <{XSD}> .\n\n"


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


VALUES = [integer(7), '"a b"', '"x"', '"é\\n"', "_:b"]
DOT = " .\n "
BRACKETS = ["{{ {} }}", "{{\n{} .\n}}", "{{ {} . }}"]


@st.composite
def documents(draw: st.DrawFn, trig: bool) -> bytes:
    """Graphs behind their stamps, now and then one that is not; now and then something is damaged."""
    names = draw(
        st.sampled_from([[f"<urn:g:{n}>" for n in range(30)], ["<urn:g:1>", "<urn:g:2>"], ["<urn:g:1>"]])
    )
    moments = draw(st.booleans())
    odd = st.just(0) if draw(st.booleans()) else st.integers(0, 40)
    parts = [HEAD] if trig else []
    sizes = draw(st.sampled_from([[1], [2], [1, 2, 2, 2, 3]]))  # of one form, or of several
    values = draw(st.sampled_from([VALUES, VALUES[:1], VALUES[:2]]))
    brackets = draw(st.sampled_from([BRACKETS, BRACKETS[:1]]))
    for number in range(draw(st.integers(1, 20))):
        name = names[number % len(names)]
        time = f'"2026-01-01T00:00:{number:02}Z"^^<{XSD}dateTime>' if moments else integer(number)
        stamp = f"{name} {PROV} {time}"
        rows = [
            f"<urn:s:{draw(st.integers(0, 2))}> <urn:p> {draw(st.sampled_from(values))}"
            for _ in range(draw(st.sampled_from(sizes)))
        ]
        match draw(odd):
            case 1:
                stamp = f"{name} a <urn:dotr:Insert>" if trig else f"{name} <urn:about> {time}"
            case 2:
                rows.append(f"{name} {PROV} {time}")
            case 3:
                rows = []
            case 4:
                stamp = f"# {stamp}"
            case 5:
                rows[0] = "<urn:s> <urn:p> <relative>"
            case 6:
                stamp = (
                    f"{stamp} .\n<urn:g:0> <urn:about> 1" if trig else f"{stamp} .\n{name} <urn:about> {time}"
                )
            case _:
                pass
        if trig:
            text = f"{stamp} .\n{name} {draw(st.sampled_from(brackets)).format(DOT.join(rows))}\n"
        else:
            text = "".join([f"{stamp} .\n", *(f"{row} {name} .\n" for row in rows)])
        if draw(odd) == 7:
            before = f"{stamp} .\n"
            text = text.removeprefix(before) + before
        parts.append(text)
    content = "".join(parts).encode()
    if draw(st.integers(0, 5)) == 0:
        place = draw(st.integers(0, len(content) - 1))
        other = draw(st.sampled_from([b"", b"\n", b" ", b"\xff", b"#", b"}", b"<", b'"', b"\\", b".", b"\t"]))
        content = content[:place] + other + content[place + 1 :]
    return content[:-1] if draw(st.integers(0, 5)) == 0 else content


def read(
    content: bytes, name: str, skip: int, fail: bool, whole: int
) -> tuple[list[Any], list[str], dict[str, int]]:
    options, policy = SourceOptions(whole=whole), ErrorPolicy(fail=fail)
    start = Bookmark("graph", skip) if skip else Bookmark("byte", 0)
    reader = FileReader(name, options, options.extractor(), policy, None, start, content)
    found: list[Any] = []
    wrong: list[str] = []
    try:
        for item in reader.items():
            found.append(item._replace(error=None) if isinstance(item, ReadEvent) else item)
            wrong += [str(item.error)] if isinstance(item, ReadEvent) and item.error else []
    except DataError as error:
        wrong.append(str(error))
    return found, wrong, reader.extractor.time_sources


@given(st.data())
def test_graphs_read_together_are_those_that_the_parser_gives(data: st.DataObject) -> None:
    """Whole and streamed, whatever the blocks are, from a bookmark on, and where errors are left out."""
    trig = data.draw(st.booleans())
    content = data.draw(documents(trig))
    name = "log.trig" if trig else "log.nq"
    whole = data.draw(st.sampled_from([1, 1 << 20]))
    skip = data.draw(st.sampled_from([0, 0, 1, 3, 7])) if whole > 1 or trig else 0
    fail = data.draw(st.booleans())
    fail = fail or (whole == 1 and trig)  # the size to which TriG is kept for dead letters is another
    block = data.draw(st.sampled_from([1 << 16, 500, 200, 40]))
    with patch("dotr.io.decode.quads._BLOCK", block):
        together = read(content, name, skip, fail, whole)
    with patch("dotr.io.decode.quads._PlainQuads.runs", return_value=iter(())):
        assert together == read(content, name, skip, fail, whole)


def log(count: int, trig: bool) -> bytes:
    lines = [HEAD] if trig else []
    for n in range(count):
        name, row = f"<urn:g:{n}>", f"<urn:s:{n % 3}> <urn:p> {integer(n)}"
        lines.append(f"{name} {PROV} {integer(n)} .\n")
        lines.append(f"{name} {{ {row} }}\n" if trig else f"{row} {name} .\n")
    return "".join(lines).encode()


def test_usual_streams_are_read_together() -> None:
    for name in ("log.nq", "log.trig"):
        content = log(5_000, name.endswith("trig"))
        for whole in (1, 1 << 24):
            options = SourceOptions(whole=whole)
            reader = FileReader(name, options, options.extractor(), ErrorPolicy(), None, content=content)
            runs = [item for item in reader.runs() if isinstance(item, GraphRun)]
            assert sum(len(run.times) for run in runs) == 4_999  # the first says which clock it is
            assert len(runs) < 20


def test_an_error_behind_many_graphs_has_its_place() -> None:
    for name in ("log.nq", "log.trig"):
        content = log(3_000, name.endswith("trig")) + b"<urn:g:x> <urn:p>\n"
        found, wrong, _ = read(content, name, 0, fail=True, whole=1)
        lines = content.count(b"\n")
        assert f"{name}:{lines}:" in wrong[0] or f"{name}:{lines + 1}:" in wrong[0]
        assert len(found) >= 2_990


def test_an_error_over_two_lines_behind_other_graphs_names_one_place() -> None:
    """The parser's own count begins where it began to read."""
    for name in ("log.nq", "log.trig"):
        content = log(3_000, name.endswith("trig")) + b"<urn:g:x> <urn:\np> 1 .\n"
        lines = content.count(b"\n")
        for whole in (1, 1 << 24):
            _, wrong, _ = read(content, name, 0, fail=True, whole=whole)
            assert any(f"{name}:{lines - more}:" in wrong[0] for more in (0, 1))
            assert "Parser error" not in wrong[0]


def test_a_head_that_is_wrong_is_refused_though_nothing_uses_it() -> None:
    content = b"PREFIX : <urn:x:a#b#>\n" + log(20, trig=True)
    for whole in (1, 1 << 24):
        found, wrong, _ = read(content, "log.trig", 0, fail=True, whole=whole)
        assert not [item for item in found if not isinstance(item, ReadEvent)]
        assert "D2001" in wrong[0]


def test_what_a_pipe_has_given_is_read_at_once() -> None:
    """A graph is there when the next one has begun with a quad, not later."""
    sent = log(4, trig=False).splitlines(keepends=True)
    given = iter(sent)
    taken: list[bytes] = []

    class Pipe(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            taken.append(next(given, b""))
            return taken[-1]

    names = []
    for part in quad_parts(Pipe(), Format.NQUADS, "<stdin>", whole=0):
        assert isinstance(part, QuadRun)
        names += part.names
        assert len(taken) <= 2 * len(names) + 2 or not taken[-1]
    assert names == [f"<urn:g:{n}>" for n in range(4)]


@pytest.mark.parametrize("old", ["<urn:s> <urn:q>", "<urn:q>", "<urn:o>", PROV, "<urn:o> <urn:g:70>"])
@pytest.mark.parametrize("trig", [False, True])
def test_what_all_graphs_before_had_is_looked_for_in_each(old: str, trig: bool) -> None:
    """One subject, one property, one name: until one graph has another."""
    graphs = []
    for n in range(100):
        rows = [f"<urn:s> <urn:p> {integer(n)}", "<urn:s> <urn:q> <urn:o>"]
        named = f" <urn:g:{n}> .\n"
        stamp = f"<urn:g:{n}> {PROV} {integer(n)} .\n"
        inside = f"<urn:g:{n}> {{ {DOT.join(rows)} }}\n" if trig else "".join(row + named for row in rows)
        graphs.append(stamp + inside)
    other = {"<urn:s> <urn:q>": "<urn:t> <urn:q>", "<urn:o> <urn:g:70>": "<urn:o> <urn:g:99>"}.get(
        old, "<urn:other>"
    )
    graphs[70] = graphs[70].replace(old, other)
    content, name = "".join(graphs).encode(), "log.trig" if trig else "log.nq"
    for whole in (1, 1 << 20):
        with patch("dotr.io.decode.quads._BLOCK", 2_000):
            together = read(content, name, 0, fail=True, whole=whole)
        with patch("dotr.io.decode.quads._PlainQuads.runs", return_value=iter(())):
            assert together == read(content, name, 0, fail=True, whole=whole)
