"""`dotr times` says what is there, and what could be."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Dotr


def lines(*times: object) -> str:
    return "".join(json.dumps({"time": time, "graph": ""}) + "\n" for time in times)


def test_the_least_lateness_that_loses_nothing_is_suggested(dotr: Dotr) -> None:
    Path("in.jsonl").write_text(lines(10, 40, 22, 41, 41, 39, 100))
    ran = dotr("times", "in.jsonl", "--format", "json")
    found = json.loads(ran.out)
    assert (found["graphs"], found["instants"], found["most_at_once"]) == (7, 6, 2)
    assert (found["first"], found["last"], found["kind"]) == (10, 100, "integer")
    assert found["order"]["within_files"] == {
        "out_of_order": 2,
        "most": 18_000_000,
        "ninety_nine_percent": 18_000_000,
    }
    assert "suggested  --lateness 18s" in dotr("times", "in.jsonl").out
    assert dotr("run", "fire.dotr", "in.jsonl", "--lateness", "18s", "--late", "fail").code == 0
    assert dotr("run", "fire.dotr", "in.jsonl", "--lateness", "17s", "--late", "fail").code == 3


def test_what_is_in_order_needs_no_lateness(dotr: Dotr) -> None:
    ran = dotr("times", "events")
    assert ran.code == 0
    assert ran.out == (
        "2 graphs in 2 files\nfound in   file name (2)\nrange      10 to 12 (2 s)\n"
        "instants   2 different\nstep       2 s (median)\norder      in order\n"
        "files      in order when read in the order of their names\n"
    )


def test_files_are_in_order_each_and_not_together(dotr: Dotr) -> None:
    Path("a.jsonl").write_text(lines(1, 5))
    Path("b.jsonl").write_text(lines(2, 6))
    found = json.loads(dotr("times", "a.jsonl", "b.jsonl", "--format", "json").out)
    assert found["order"]["within_files"]["out_of_order"] == 0
    assert found["order"]["across_files"]["out_of_order"] == 1
    assert found["lateness"] == 0


def test_a_long_silence_is_a_gap(dotr: Dotr) -> None:
    Path("in.jsonl").write_text(lines(*range(0, 100, 10), 500, 510))
    assert json.loads(dotr("times", "in.jsonl", "--format", "json").out)["gaps"] == [
        {"length": 410_000_000, "after": 90, "until": 500}
    ]


def test_an_epoch_is_suggested_and_not_applied(dotr: Dotr) -> None:
    Path("a.ttl").write_text("<urn:o> <urn:ts> 1700000000000 ; <urn:n> 4711 .")
    ran = dotr("times", "a.ttl")
    assert ran.code == 1
    assert "D2101" in ran.out
    assert "in ms that is 2023-11-14T22:13:20Z: --time-path urn:ts --time-unit ms" in ran.out
    assert "urn:n" not in ran.out
    ran = dotr("times", "a.ttl", "--time-path", "urn:ts", "--time-unit", "ms")
    assert ran.code == 0
    assert "range      1700000000000 to 1700000000000" in ran.out


def test_days_and_local_times_are_named_for_what_they_are(dotr: Dotr) -> None:
    Path("a.ttl").write_text('<urn:o> <urn:day> "2026-01-01" ; <urn:at> "2026-01-01T08:00:00" .')
    ran = dotr("times", "a.ttl")
    assert "could be   urn:day: `2026-01-01`\n           a day, not an instant: choose one" in ran.out
    assert "its beginning\n           2026-01-01T00:00:00Z, its end 2026-01-01T24:00:00Z, or when" in ran.out
    assert "without a zone: --time-path urn:at --time-zone" in ran.out


def test_a_table_of_days_is_refused_with_the_choice(dotr: Dotr) -> None:
    Path("t.csv").write_text("day,v\n2026-01-02,1\n")
    choice = '# time: day|datetime("%Y-%m-%d", "Europe/Berlin")'
    assert f"`day` is a day: its beginning is {choice}\n" in dotr("map", "new", "t.csv").out
    Path("t.map").write_text("# time: day\n<urn:a> <urn:p> {v} .\n")
    ran = dotr("times", "t.csv", "--map", "t.map")
    assert f"choose: its beginning is {choice}\n" in ran.out
    Path("t.map").write_text(f"{choice}\n<urn:a> <urn:p> {{v}} .\n")
    assert (
        "range      2026-01-01T23:00:00Z to 2026-01-01T23:00:00Z"
        in dotr("times", "t.csv", "--map", "t.map").out
    )


def test_refused_documents_are_counted_by_code(dotr: Dotr) -> None:
    Path("in.jsonl").write_text(lines("2026-01-01T00:00:00Z", "2026-01-01T00:00:01", "noon") + "{}\n")
    found = json.loads(dotr("times", "in.jsonl", "--format", "json").out)
    assert [(one["code"], one["documents"]) for one in found["refused"]] == [
        ("D2014", 1),
        ("D2103", 1),
        ("D2105", 1),
    ]


def test_the_option_names_the_zone_of_every_verb(dotr: Dotr) -> None:
    Path("in.jsonl").write_text(lines("2026-07-01T02:00:00"))
    for verb in (("run", "fire.dotr", "in.jsonl"), ("times", "in.jsonl")):
        assert dotr(*verb, "--time-zone", "Europe/Berlin").code == 0
    dotr("convert", "in.jsonl", "-o", "out.jsonl", "--time-zone", "Europe/Berlin")
    assert json.loads(Path("out.jsonl").read_text())["time"] == "2026-07-01T00:00:00Z"
    ran = dotr("times", "in.jsonl", "--time-zone", "Europe/Berln")
    assert ran.code == 2
    assert "did you mean `Europe/Berlin`?" in ran.err
