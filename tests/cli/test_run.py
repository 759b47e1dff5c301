"""`dotr run`: the paper's example in every format, and every bad input with its exit code."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import HOT, SMOKE, Dotr

FIRE = re.compile(r"\{ urn:dotr:Fire:[a-z2-7]{24} a :Fire ; :at_room :roomA \} @ 12\n")


def test_the_papers_example_prints_one_fire(dotr: Dotr) -> None:
    ran = dotr("run", "fire.dotr", "events", "--format", "text")
    assert ran.code == 0
    assert FIRE.fullmatch(ran.out)
    assert "2 graphs at 2 instants; 1 event (Fire 1); time from file name" in ran.err


def test_the_same_bytes_come_out_whatever_the_hash_seed(folder: Path) -> None:
    outputs = set()
    for seed in range(4):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-m", "dotr.cli.main", "run", "fire.dotr", "events"]
        outputs.add(
            subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True).stdout
        )
    assert len(outputs) == 1


def test_in_a_pipe_json_lines_come_out(dotr: Dotr) -> None:
    event = json.loads(dotr("run", "fire.dotr", "events").out)
    assert list(event) == ["rule", "time", "id", "bindings", "match", "graph"]
    assert (event["rule"], event["time"], list(event["match"])) == ("Fire", 12, ["Smoke", "HighTemp"])


@pytest.mark.parametrize("format_", ["trig", "nquads", "jsonl"])
def test_an_output_file_is_a_source(dotr: Dotr, format_: str) -> None:
    file = {"trig": "out.trig", "nquads": "out.nq", "jsonl": "out.jsonl"}[format_]
    assert dotr("run", "fire.dotr", "events", "--format", format_, "-o", file).code == 0
    Path("again.dotr").write_text(
        "PREFIX : <http://example.org/building#> RULE Again DEFINE { dotr_x :of ?room } "
        "FROM F := { SELECT ?room { ?f a :Fire ; :at_room ?room } } WITH ?room := F.?room"
    )
    ran = dotr("run", "again.dotr", file, "--format", "text")
    assert re.fullmatch(r"\{ urn:dotr:Again:\w+ :of :roomA \} @ 12\n", ran.out)


CHAIN = """PREFIX : <http://example.org/building#>
PRIVATE RULE Hot DEFINE { dotr_x a :Hot }
FROM Temp := { SELECT ?r WHERE { ?r a :TempReading } } WITH ?r := Temp.?r
RULE Warm DEFINE { dotr_x a :Warm ; :of ?r } FROM Hot WITH ?r := Hot.?r
RULE Smoky DEFINE { dotr_x a :Smoky } FROM Smoke := { SELECT ?r WHERE { ?r a :SmokeReading } }
RULE After DEFINE { dotr_x a :After } FROM Smoky AND EACH Warm WITHIN 1 h FROM Smoky
"""


def test_events_of_private_rules_are_neither_printed_nor_counted(dotr: Dotr) -> None:
    Path("chain.dotr").write_text(CHAIN)
    ran = dotr("run", "chain.dotr", "events")
    assert [json.loads(line)["rule"] for line in ran.out.splitlines()] == ["Warm", "Smoky", "After"]
    assert "3 events (Warm 1, Smoky 1, After 1)" in ran.err


def test_only_and_except_choose_events_and_change_none(dotr: Dotr) -> None:
    Path("chain.dotr").write_text(CHAIN)
    lines = {json.loads(line)["rule"]: line for line in dotr("run", "chain.dotr", "events").out.splitlines()}
    assert dotr("run", "chain.dotr", "events", "--only", "After").out.splitlines() == [lines["After"]]
    both = dotr("run", "chain.dotr", "events", "--only", "After, Warm", "--except", "Warm", "--verify")
    assert both.out.splitlines() == [lines["After"]]
    assert dotr("run", "chain.dotr", "events", "--except", "After", "--except", "Warm").out.splitlines() == [
        lines["Smoky"]
    ]


def test_a_rule_that_only_does_not_know_is_reported_with_the_nearest(dotr: Dotr) -> None:
    Path("chain.dotr").write_text(CHAIN)
    ran = dotr("run", "chain.dotr", "events", "--only", "Warn")
    assert ran.code == 2
    assert "error[D4150]: `Warn` of --only is not a rule" in ran.err
    assert "did you mean `Warm`?" in ran.err
    assert (
        "is private: its events are never output"
        in dotr("run", "chain.dotr", "events", "--except", "Hot").err
    )


def test_standard_input_is_a_source(folder: Path) -> None:
    line = json.dumps({"time": 10, "graph": HOT}) + "\n" + json.dumps({"time": 12, "graph": SMOKE}) + "\n"
    command = [sys.executable, "-m", "dotr.cli.main", "run", "fire.dotr", "-", "-q"]
    ran = subprocess.run(command, cwd=folder, input=line.encode(), capture_output=True, check=True)
    assert ran.stdout.count(b"\n") == 1
    assert ran.stderr == b""


def test_an_output_is_not_overwritten_unless_asked(dotr: Dotr) -> None:
    Path("out.jsonl").write_text("precious")
    ran = dotr("run", "fire.dotr", "events", "-o", "out.jsonl")
    assert (ran.code, Path("out.jsonl").read_text()) == (5, "precious")
    assert "--overwrite" in ran.err
    assert dotr("run", "fire.dotr", "events", "-o", "out.jsonl", "--overwrite").code == 0
    assert json.loads(Path("out.jsonl").read_text())["rule"] == "Fire"
    assert not list(Path().glob("*.part"))


def test_what_an_unfinished_run_emitted_does_not_pass_as_finished(dotr: Dotr) -> None:
    Path("events/13.ttl").write_text("PREFIX : <urn:x:> :a :b 1 .")
    Path("events/13b.jsonl").write_text('{"time":14,"graph":""}\n{"time":13,"graph":""}\nbroken')
    ran = dotr("run", "fire.dotr", "events", "-o", "out.nq", "--format", "nquads")
    assert ran.code == 3
    assert not Path("out.nq").exists()


def test_what_was_emitted_before_an_error_is_valid_output(dotr: Dotr) -> None:
    lines = [{"time": 10, "graph": HOT}, {"time": 12, "graph": SMOKE}, {"time": 13, "graph": ""}]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\nbroken\n")
    ran = dotr("run", "fire.dotr", "log.jsonl")
    assert ran.code == 3
    assert json.loads(ran.out)["rule"] == "Fire"
    assert "log.jsonl:4" in ran.err
    ran = dotr("run", "fire.dotr", "log.jsonl", "-o", "out.jsonl")
    assert ran.code == 3
    assert "out.jsonl.part" in ran.err
    assert json.loads(Path("out.jsonl.part").read_text())["rule"] == "Fire"
    assert dotr("run", "fire.dotr", "log.jsonl", "-o", "out.jsonl").code == 5


def test_an_unsorted_stream_is_fatal_with_a_hint_unless_disorder_is_allowed(dotr: Dotr) -> None:
    lines = [{"time": 12, "graph": SMOKE}, {"time": 10, "graph": HOT}]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ran = dotr("run", "fire.dotr", "log.jsonl")
    assert ran.code == 3
    assert "error[D2301]" in ran.err
    assert "log.jsonl:2" in ran.err
    assert "--lateness" in ran.err
    assert '"time":12' in dotr("run", "fire.dotr", "log.jsonl", "--lateness", "2s").out
    dropped = dotr("run", "fire.dotr", "log.jsonl", "--late", "drop")
    assert (dropped.code, dropped.out) == (0, "")
    assert "1 late" in dropped.err


def test_two_outputs_are_never_one_file(dotr: Dotr) -> None:
    ran = dotr("run", "fire.dotr", "events", "-o", "x", "--late", "file=./x", "--overwrite")
    assert (ran.code, Path("x").exists(), "D4113" in ran.err) == (2, False, True)
    assert dotr("run", "fire.dotr", "events", "--late", "file=y", "--on-error", "file=y").code == 2


def test_late_graphs_in_a_file_can_be_fed_again(dotr: Dotr) -> None:
    lines = [{"time": 12, "graph": SMOKE}, {"time": 10, "graph": HOT}]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert dotr("run", "fire.dotr", "log.jsonl", "--late", "file=late.jsonl").code == 0
    assert json.loads(Path("late.jsonl").read_text())["time"] == 10
    Path("events/10.ttl").unlink()
    assert '"time":12' in dotr("run", "fire.dotr", "events", "late.jsonl").out


@pytest.mark.parametrize(
    ("file", "content", "code", "place"),
    [
        ("events/11.ttl", b":a :b", "D2001", "11.ttl:1:1"),
        ("events/11.ttl", b"<urn:a> <urn:b> .", "D2001", "11.ttl:1:17"),
        ("events/notime.ttl", b"<urn:a> <urn:b> 1 .", "D2101", "notime.ttl"),
        ("events/2026-01-01T00-00-00Z.ttl", b"", "D2102", "2026-01-01T00-00-00Z.ttl"),
        ("events/2026-01-01T00-00-00.ttl", b"", "D2103", "2026-01-01T00-00-00.ttl"),
        ("events/11.ttl", b"\xff", "D2002", "11.ttl:1:1"),
        ("events/11.ttl.gz", gzip.compress(b"<urn:a> <urn:b> 1 .", mtime=0)[:-5], "D2007", "11.ttl.gz"),
        ("building.ttl", b"<urn:a> <urn:b> .", "D2001", "building.ttl:1:17"),
        ("events/11.ttl", b"<urn:a> <urn:b> <<( <urn:a> <urn:b> 1 )>> .", "D2004", "11.ttl"),
    ],
)
def test_bad_data_is_one_diagnostic_with_place_and_exit_code_3(
    dotr: Dotr, file: str, content: bytes, code: str, place: str
) -> None:
    Path(file).write_bytes(content)
    ran = dotr("run", "fire.dotr", "events")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.count("error[") == 1
    assert f"error[{code}]" in ran.err
    assert place in ran.err
    assert "Traceback" not in ran.err


def test_an_output_in_a_folder_that_is_not_there_names_the_folder(dotr: Dotr) -> None:
    ran = dotr("run", "fire.dotr", "events", "-o", "nosuch/deep/x.jsonl")
    assert ran.code == 4
    assert "there is no folder `nosuch/deep`" in ran.err
    assert "mkdir -p nosuch/deep" in ran.err


def test_a_misspelt_background_is_reported_at_its_line_with_the_nearest_name(dotr: Dotr) -> None:
    path = Path("fire.dotr")
    path.write_text(path.read_text().replace("<building.ttl>", "<bilding.ttl>"))
    for ran in (dotr("run", "fire.dotr", "events"), dotr("check", "fire.dotr")):
        assert "error[D2003]: there is no `bilding.ttl`" in ran.out + ran.err
        assert "--> fire.dotr:3:12" in ran.out + ran.err
        assert "did you mean `building.ttl`?" in ran.out + ran.err


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("WITH ?room := Smoke.?room", "WITH ?room := Smoke.?rom"), "rom"),
        (("FROM Smoke", "FORM Smoke"), "fire.dotr:7"),
        (("ON HighTemp.?room", "ON HighTemp.?rom"), "rom"),
        (("SELECT ?room ?v WHERE {", "SELECT ?room ?v WHERE "), "fire.dotr"),
        (("<rooms.dlog>", "<halls.dlog>"), "halls.dlog"),
        (("<building.ttl>", "<house.ttl>"), "house.ttl"),
    ],
)
def test_a_bad_program_is_exit_code_3_with_its_place(dotr: Dotr, change: tuple[str, str], found: str) -> None:
    path = Path("fire.dotr")
    path.write_text(path.read_text().replace(*change))
    ran = dotr("run", "fire.dotr", "events")
    assert (ran.code, ran.out) == (3, "")
    assert "error[D" in ran.err
    assert found in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "arguments", [("none.dotr", "events"), ("fire.dotr", "nothing"), ("fire.dotr", "*.nq")]
)
def test_a_missing_file_is_exit_code_3(dotr: Dotr, arguments: tuple[str, str]) -> None:
    ran = dotr("run", *arguments)
    assert (ran.code, ran.out) == (3, "")
    assert "error[D" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "fire.dotr"),
        ("run", "fire.dotr", "events", "--nonsense"),
        ("run", "fire.dotr", "events", "--lateness", "soon"),
        ("run", "fire.dotr", "events", "--on-error", "perhaps"),
        ("run", "fire.dotr", "events", "--max-document", "0"),
        ("run", "fire.dotr", "events", "--time-path", "no iri"),
        ("run", "fire.dotr", "events", "--time-unit", "weeks"),
        ("rnu",),
    ],
)
def test_wrong_usage_is_exit_code_2(dotr: Dotr, arguments: tuple[str, ...]) -> None:
    ran = dotr(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err


def test_bad_documents_may_be_put_aside_with_their_bytes(dotr: Dotr) -> None:
    Path("events/11.ttl").write_text(":bad")
    ran = dotr("run", "fire.dotr", "events", "--on-error", "file=dead.jsonl", "--format", "text")
    assert ran.code == 0
    assert FIRE.fullmatch(ran.out)
    assert "1 document refused" in ran.err
    letter = json.loads(Path("dead.jsonl").read_text())
    assert (letter["document"], letter["code"]) == (":bad", "D2001")
    assert dotr("run", "fire.dotr", "events", "--on-error", "skip").code == 0


def test_an_unwritable_output_is_exit_code_4(dotr: Dotr) -> None:
    ran = dotr("run", "fire.dotr", "events", "-o", "no/such/folder/out.nq")
    assert ran.code == 4
    assert "error[D4201]" in ran.err


def test_a_full_disk_is_reported_and_is_exit_code_4(dotr: Dotr) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    ran = dotr("run", "fire.dotr", "events", "-o", "/dev/full")
    assert ran.code == 4
    assert "no space left" in ran.err


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    lines = [json.dumps({"time": t, "graph": HOT if t % 2 else SMOKE}) for t in range(2000)]
    Path("log.jsonl").write_text("\n".join(lines))
    command = f"{sys.executable} -m dotr.cli.main run fire.dotr log.jsonl -q | head -n 1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert json.loads(ran.stdout)["rule"] == "Fire"


def test_more_background_and_rules_may_be_given(dotr: Dotr) -> None:
    program = Path("fire.dotr")
    bare = program.read_text().replace("BACKGROUND <building.ttl>", "").replace("RULES <rooms.dlog>", "")
    program.write_text(bare)
    assert dotr("run", "fire.dotr", "events").out == ""
    ran = dotr("run", "fire.dotr", "events", "--background", "building.ttl", "--rules", "rooms.dlog")
    assert ran.out.count("\n") == 1


def test_data_cannot_command_the_terminal(dotr: Dotr) -> None:
    Path("events/11\x1b[2J.ttl").write_text(":bad")
    ran = dotr("run", "fire.dotr", "events")
    assert ran.code == 3
    assert "\x1b" not in ran.err


def test_verify_runs_the_literal_reading_beside_the_engine(dotr: Dotr) -> None:
    assert dotr("run", "fire.dotr", "events", "--verify").out == dotr("run", "fire.dotr", "events").out != ""
    assert dotr("run", "fire.dotr", "events", "--materialize", "all").out != ""


def test_the_summary_counts_matches_without_a_value_of_with(dotr: Dotr) -> None:
    Path("o.dotr").write_text(
        "PREFIX : <urn:> QUERY T := { SELECT ?t ?c WHERE { ?t a :T OPTIONAL { ?t :c ?c } } }"
        "RULE Warm DEFINE { dotr_w a :Warm ; :c ?c } FROM T WITH ?c := T.?c"
    )
    graphs = ["<urn:t> a <urn:T> ; <urn:c> 5 .", "<urn:t> a <urn:T> ."]
    lines = [{"time": time, "graph": graph} for time, graph in enumerate(graphs)]
    Path("o.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "; 1 match without a value of WITH (Warm 1); " in dotr("run", "o.dotr", "o.jsonl").err
