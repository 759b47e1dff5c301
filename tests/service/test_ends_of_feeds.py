"""A graph that only the end of an earlier feed made late is reported as that; the default stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr
from tests.cli.conftest import folder as folder

RULES = """PREFIX : <urn:>
RULE Seen DEFINE { dotr_e a :Seen ; :x ?x }
FROM Of := { SELECT ?x WHERE { ?x a :Thing } } WITH ?x := Of.?x
"""


@pytest.fixture
def fed(dotr: Dotr, folder: Path) -> Dotr:
    (folder / "seen.dotr").write_text(RULES)
    assert dotr("deploy", "seen.dotr", "-q").code == 0
    return dotr


def stream(folder: Path, name: str, *times: int) -> str:
    lines = [{"time": time, "graph": f"<urn:{name}{time}> a <urn:Thing> ."} for time in times]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"{name}.jsonl"


def test_a_graph_of_the_instant_that_the_end_closed_is_reported(fed: Dotr, folder: Path) -> None:
    first = fed("feed", stream(folder, "a", 99, 100))
    assert first.out.count('"Seen"') == 2
    second = fed("feed", stream(folder, "b", 100, 100, 100, 90))
    assert (second.code, second.out) == (0, "")
    assert "D2302" in second.err
    assert "3 graphs are late only because the end of an earlier feed closed 100" in second.err
    assert "--keep-open" in second.err
    third = fed("feed", stream(folder, "c", 100, 101, 100), "--summary", "json")
    assert json.loads(third.err.splitlines()[-1])["late_by_an_end"] == 1
    assert "1 graph is late only because" in third.err


def test_nothing_is_said_after_keep_open_or_where_time_went_on(fed: Dotr, folder: Path) -> None:
    fed("feed", stream(folder, "a", 100), "--keep-open")
    assert "D2302" not in fed("feed", stream(folder, "b", 100)).err
    assert "D2302" in fed("feed", stream(folder, "c", 100)).err
    later = fed("feed", stream(folder, "d", 102, 101))
    assert "1 late" in later.err
    assert "D2302" not in later.err


def test_with_a_lateness_all_that_the_end_closed_counts(fed: Dotr, folder: Path) -> None:
    fed("feed", stream(folder, "a", 100, 200), "--lateness", "50s")
    ran = fed("feed", stream(folder, "b", 160, 140), "--lateness", "50s")
    assert "2 late" in ran.err
    assert "1 graph is late only because" in ran.err


def test_where_late_graphs_end_a_feed_the_hint_is_the_same(fed: Dotr, folder: Path) -> None:
    fed("feed", stream(folder, "a", 100))
    ran = fed("feed", stream(folder, "b", 100), "--late", "fail")
    assert ran.code == 3
    assert "D2301" in ran.err
    assert "--keep-open" in ran.err


def test_the_help_says_so(fed: Dotr) -> None:
    text = " ".join(fed("feed", "--help").out.split())
    assert "A graph of the same time in the next feed is then late, unless this feed has --keep-open" in text


def test_graphs_out_of_order_are_one_warning_with_the_lateness_that_keeps_them(
    fed: Dotr, folder: Path
) -> None:
    ran = fed("feed", stream(folder, "a", 100, 200, 150, 140, 300), "-q")
    assert ran.err.count("warning[D2301]") == 1
    assert "2 graphs were left out" in ran.err
    assert "out of order by up to 1 min" in ran.err
    assert "--lateness 1min;" in ran.err
    kept = fed("feed", stream(folder, "b", 400, 500, 450, 440, 600), "-q", "--lateness", "1min")
    assert (kept.out.count('"Seen"'), kept.err) == (5, "")
    older = fed("feed", stream(folder, "c", 100), "-q")
    assert "1 of them: the instant was closed before this feed began" in older.err
    assert "--lateness" not in older.err
    into = fed("feed", stream(folder, "d", 700, 650), "-q", "--late", "file=late.jsonl")
    assert (into.code, into.err) == (0, "")
