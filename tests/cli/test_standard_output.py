"""`-` is standard output for every option that names a file to write, and no folder is called so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Dotr

RULES = """PREFIX : <urn:>
RULE Seen DEFINE { dotr_e a :Seen ; :x ?x }
FROM Of := { SELECT ?x WHERE { ?x a :Thing } } WITH ?x := Of.?x
"""
LINE = '{"time": 100, "graph": "<urn:a> a <urn:Thing> ."}\n'
ASKED = "SELECT ?x WHERE { ?x a <urn:Thing> }"


@pytest.fixture
def seen(folder: Path) -> Path:
    (folder / "seen.dotr").write_text(RULES)
    (folder / "in.jsonl").write_text(LINE)
    (folder / "things.ttl").write_text("<urn:a> a <urn:Thing> .")
    (folder / "asked.rq").write_text(ASKED)
    return folder


WRITERS = {
    "run": ("run", "seen.dotr", "in.jsonl"),
    "query": ("query", "things.ttl", ASKED),
    "watch": ("watch", "asked.rq", "in.jsonl"),
    "close": ("close", "things.ttl"),
    "state": ("state", "seen.dotr", "in.jsonl", "--at", "100"),
    "explain": ("explain", "seen.dotr", "in.jsonl"),
    "compare": ("compare", "seen.dotr", "seen.dotr", "in.jsonl"),
    "spark": ("spark", "entry-point"),
    "convert": ("convert", "in.jsonl"),
}


@pytest.mark.parametrize("verb", WRITERS)
def test_a_hyphen_is_standard_output(dotr: Dotr, seen: Path, verb: str) -> None:
    before = sorted(seen.iterdir())
    ran = dotr(*WRITERS[verb], "-o", "-")
    assert ran.code == 0, ran.err
    assert ran.out
    assert sorted(seen.iterdir()) == before
    if verb not in ("spark", "convert"):
        assert ran.out == dotr(*WRITERS[verb]).out


def test_what_is_converted_to_standard_output_is_a_source_again(dotr: Dotr, seen: Path) -> None:
    written = dotr("convert", "in.jsonl", "-o", "-", "-q").out
    (seen / "again.jsonl").write_text(written)
    assert dotr("run", "seen.dotr", "again.jsonl", "-q").out == dotr("run", "seen.dotr", "in.jsonl", "-q").out


def test_a_feed_writes_to_standard_output_beside_files(dotr: Dotr, seen: Path) -> None:
    dotr("deploy", "seen.dotr")
    ran = dotr("feed", "in.jsonl", "-o", "-", "-o", "out.jsonl")
    assert ran.out == (seen / "out.jsonl").read_text() != ""
    assert not (seen / "-").exists()


def test_enriched_graphs_go_to_standard_output_where_events_do_not(dotr: Dotr, seen: Path) -> None:
    ran = dotr("run", "seen.dotr", "in.jsonl", "-o", "out.jsonl", "--emit-state", "-")
    assert '"time":100' in ran.out
    both = dotr("run", "seen.dotr", "in.jsonl", "--emit-state", "-")
    assert (both.code, both.out) == (2, "")
    assert "two outputs go to standard output" in both.err
    assert not (seen / "-").exists()


@pytest.mark.parametrize(
    "asked",
    [
        ("batch", "seen.dotr", "in.jsonl", "--out", "-"),
        ("batch", "seen.dotr", "in.jsonl", "--out", "out", "--emit-state", "-"),
        ("stream", "seen.dotr", "--source", "rate", "--checkpoint", "there", "--out", "-"),
        ("docs", "-o", "-"),
    ],
)
def test_a_folder_is_not_standard_output(dotr: Dotr, seen: Path, asked: tuple[str, ...]) -> None:
    ran = dotr(*asked)
    assert ran.code == 2
    assert "standard output" in ran.err
    assert not (seen / "-").exists()
