"""`dotr feed` as a process: sinks, policies, following, silence, Ctrl-C, kill −9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from freezegun import freeze_time

from dotr.cli.feed import given_message
from dotr.errors import DataError
from dotr.events import Message
from dotr.io.graphs import SourceOptions
from dotr.service.feed import CheckpointPolicy, Idle
from tests.cli.conftest import HOT, SMOKE, Dotr
from tests.service.deployments import HOLDING, LASTING, SEQUENCES, deploy, feed
from tests.soak.kill_feed import trial

FEED = [sys.executable, "-m", "dotr.cli.main", "feed"]


def test_several_sinks_get_every_event_once(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    outputs = ["-o", "a.jsonl", "-o", "b.nq", "-o", "c.trig", "-o", "d.txt"]
    assert dotr("feed", "events/10.ttl", "--keep-open", *outputs)[:2] == (0, "")
    for _ in range(2):
        assert dotr("feed", "events", *outputs).code == 0
    assert json.loads(Path("a.jsonl").read_text())["rule"] == "Fire"
    assert Path("b.nq").read_text().count("generatedAtTime") == 1
    assert Path("c.trig").read_text().count("PREFIX :") == 1
    assert Path("d.txt").read_text().count("@ 12\n") == 1
    assert dotr("run", "fire.dotr", "b.nq", "-q").code == 0


def test_an_output_keeps_its_format_and_its_owner(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events", "-o", "out.nq")
    assert dotr("feed", "events", "-o", "out.nq", "--format", "jsonl").code == 5
    Path("mine.nq").write_text("precious")
    assert dotr("feed", "events", "-o", "mine.nq").code == 5
    assert Path("mine.nq").read_text() == "precious"
    assert dotr("feed", "events", "-o", "mine.nq", "--overwrite").code == 0


def test_late_graphs_are_dropped_kept_or_fatal(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events/12.ttl")
    ran = dotr("feed", "events", "--late", "fail")
    assert ran.code == 3
    assert "10.ttl" in ran.err
    assert dotr("feed", "events", "--late", "file=late.jsonl").code == 0
    assert json.loads(Path("late.jsonl").read_text())["time"] == 10
    assert "1 late graphs" in dotr("status").out


def test_lateness_lets_feeds_be_out_of_order(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events/12.ttl", "--lateness", "5s", "--keep-open")
    assert "Fire" in dotr("feed", "events/10.ttl", "--lateness", "5s").out


def test_bad_documents_are_kept_whole_and_counted(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    Path("events/11.ttl").write_bytes(b":bad \xff")
    assert dotr("feed", "events").code == 3
    ran = dotr("feed", "events", "--on-error", "file=dead.jsonl")
    assert ran.code == 0
    assert "1 document refused" in ran.err
    letter = json.loads(Path("dead.jsonl").read_text())
    assert (letter["code"], letter["base64"]) == ("D2002", "OmJhZCD/")
    dotr("feed", "events", "--on-error", "file=dead.jsonl")
    assert Path("dead.jsonl").read_text().count("\n") == 1
    assert "1 refused documents" in dotr("status").out


def test_integer_time_keeps_its_unit(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events/10.ttl", "--time-unit", "ms", "--keep-open")
    assert dotr("feed", "events", "--time-unit", "us").code == 5
    assert '"time":12,' in dotr("feed", "events").out


def test_mixed_kinds_of_time_are_refused_across_feeds(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events")
    Path("2026-01-01T00-00-00Z.ttl").write_text("")
    ran = dotr("feed", "2026-01-01T00-00-00Z.ttl")
    assert (ran.code, "D2102" in ran.err) == (3, True)


def test_a_redeployed_rule_starts_empty_and_says_so(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events/10.ttl")
    Path("fire.dotr").write_text(Path("fire.dotr").read_text().replace("> 60", "> 50"))
    dotr("deploy", "fire.dotr")
    ran = dotr("feed", "events")
    assert ran.out == ""
    assert "start with nothing remembered: Fire" in ran.err


def test_an_unchanged_rule_remembers_across_a_redeploy(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events/10.ttl")
    Path("fire.dotr").write_text("# a comment\n" + Path("fire.dotr").read_text())
    dotr("deploy", "fire.dotr")
    assert '"rule":"Fire"' in dotr("feed", "events").out


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*FEED, *arguments], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_for(condition: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]  # a callable
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_a_followed_folder_is_fed_as_it_fills_until_ctrl_c(dotr: Dotr, folder: Path) -> None:
    dotr("deploy", "fire.dotr")
    (folder / "in").mkdir()
    process = started(folder, "in", "--follow", "-o", "out.jsonl", "--commit-every", "0s")
    with process:
        (folder / "half.tmp").write_text(HOT)
        os.rename(folder / "half.tmp", folder / "in/10.ttl")
        (folder / "in/12.ttl").write_text(SMOKE)
        time.sleep(0.3)
        (folder / "in/13.ttl").write_text("")
        wait_for(lambda: (folder / "out.jsonl").exists() and (folder / "out.jsonl").stat().st_size)
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"at-least-once" not in err  # files are exactly-once
    assert json.loads((folder / "out.jsonl").read_text())["time"] == 12
    report = json.loads(dotr("status", "--format", "json").out)
    assert (report["latest"], report["watermark"]) == (13, 12)  # the last instant stays open
    assert dotr("feed", "in", "-o", "out.jsonl").code == 0
    assert (folder / "out.jsonl").read_text().count("\n") == 1


def test_a_pipe_is_fed_line_by_line_as_they_come(dotr: Dotr, folder: Path) -> None:
    dotr("deploy", "fire.dotr")
    process = started(folder, "-", "--follow", "--commit-every", "0s")
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for at, graph in ((10, HOT), (12, SMOKE), (13, "")):
            process.stdin.write(json.dumps({"time": at, "graph": graph}).encode() + b"\n")
            process.stdin.flush()
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(process.stdout.readline()))  # type: ignore[union-attr]
        reader.start()
        reader.join(20)
        assert read
        assert json.loads(read[0])["rule"] == "Fire"
        process.send_signal(signal.SIGTERM)
        _out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"an output that is not a file is at-least-once" in err


def test_a_feed_that_steps_through_ticks_stops_when_it_is_told_to(dotr: Dotr, folder: Path) -> None:
    Path("lacks.dotr").write_text(
        "PREFIX : <urn:x:> QUERY X := { SELECT ?v { ?s :v ?v } } "
        "RULE Seen DEFINE { dotr_s :seen ?v } FROM X WITH ?v := X.?v "
        "RULE Lost DEFINE { dotr_l :lost ?t } FROM EVERY 1 s AS T "
        "AND NOT X WITHIN 10 d FROM T WITH ?t := T.time"
    )
    dotr("deploy", "lacks.dotr")
    process = started(folder, "-", "--follow", "--commit-every", "0s")
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for at in (0, 1, 864_000):  # ten seconds of ticks lie between the last two
            process.stdin.write(json.dumps({"time": at, "graph": "<urn:a> <urn:x:v> 1 ."}).encode() + b"\n")
            process.stdin.flush()
        assert json.loads(process.stdout.readline())["rule"] == "Seen"
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=8)
    assert process.returncode == 130
    status = json.loads(dotr("status", "--format", "json").out)
    assert (status["latest"], status["watermark"]) == (864_000, 863_999)


def test_silence_moves_time_only_after_patience_and_stays_behind() -> None:
    with freeze_time("2026-01-01") as clock:
        idle = Idle(patience=10_000_000)
        clock.tick(9)
        assert idle.reached(100) is None
        clock.tick(1)
        assert idle.reached(100) == 100
        clock.tick(5)
        assert idle.reached(100) == 5_000_100
        idle.seen()
        assert idle.reached(100) is None


def test_in_silence_absence_is_noticed_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rules = """PREFIX : <urn:x:> RULE Silent DEFINE { dotr_s :silent ?t } FROM EVERY 10 s AS Tick
    AND NOT Beat := { SELECT ?o { ?o a :Beat } } WITHIN 15 s FROM Tick WITH ?t := Tick.time"""
    state = deploy(tmp_path, rules)
    Path("in.jsonl").write_text('{"time":100,"graph":"[] a <urn:x:Beat> ."}\n')
    with freeze_time("2026-01-01") as clock:
        feed(state, ["in.jsonl"], ["out.nq"], idle=Idle(2_000_000), follow_for=(clock, 5, 9))
    stamps = [line.split('"')[1] for line in Path("out.nq").read_text().splitlines() if "generatedAt" in line]
    assert stamps == ["120", "130"]


def test_commits_are_spaced_by_what_they_cost() -> None:
    with freeze_time("2026-01-01") as clock:
        pace = CheckpointPolicy(graphs=100, seconds=1.0)
        assert not pace.due(16)
        clock.tick(1)
        assert pace.due(16)
        begun = pace.begun()
        clock.tick(2)
        pace.done(begun)
        clock.tick(23)
        assert not pace.due(1000)
        clock.tick(1)
        assert pace.due(1000)


def test_a_large_state_that_was_loaded_is_not_saved_at_once() -> None:
    with freeze_time("2026-01-01") as clock:
        pace = CheckpointPolicy(graphs=100, size=lambda: 10)
        pace.expect(2)
        clock.tick(23)
        assert not pace.due(1000)
        clock.tick(1)
        assert pace.due(1000)


def test_a_state_that_grows_is_saved_in_a_tenth_of_the_time() -> None:
    """It grows for an hour, from nothing to a commit of 30 s, and stays so large for another."""
    with freeze_time("2026-01-01") as clock:
        second, saving, longest, last = 0, 0.0, 0, 0
        pace = CheckpointPolicy(graphs=1000, size=lambda: min(second, 3600))
        while second < 7200:
            second += 1
            clock.tick(1)
            if pace.due(1000):
                begun = pace.begun()
                cost = pace.size() / 120
                clock.tick(cost)
                second += round(cost)
                pace.done(begun)
                saving += cost
                longest, last = max(longest, second - last), second
    assert saving < 0.1 * second
    assert longest < 30 * 14


def test_growth_alone_puts_a_commit_off_for_a_minute_at_most() -> None:
    with freeze_time("2026-01-01") as clock:
        pace = CheckpointPolicy(graphs=1, size=lambda: 10**pace._count)
        pace.touched()
        begun = pace.begun()
        clock.tick(0.5)
        pace.done(begun)
        pace._count = 6
        clock.tick(59)
        assert not pace.overdue()
        clock.tick(2)
        assert pace.overdue()


def test_killed_at_any_moment_the_outputs_are_those_of_a_quiet_run(tmp_path: Path) -> None:
    struck, _seconds, size = trial(tmp_path, graphs=2000, every=50, kills=15)
    assert struck == 15
    assert size > 100_000


def test_killed_at_any_moment_what_holds_goes_on_as_it_was(tmp_path: Path) -> None:
    struck, _seconds, size = trial(tmp_path, graphs=1000, every=50, kills=6, rules=HOLDING)
    assert struck == 6
    assert size > 100_000


def test_killed_at_any_moment_what_lasts_goes_on_as_it_was(tmp_path: Path) -> None:
    struck, _seconds, size = trial(tmp_path, graphs=1000, every=50, kills=6, rules=LASTING)
    assert struck == 6
    assert size > 100_000


def test_killed_at_any_moment_sequences_go_on_as_they_were(tmp_path: Path) -> None:
    struck, _seconds, size = trial(tmp_path, graphs=1000, every=50, kills=6, rules=SEQUENCES)
    assert struck == 6
    assert size > 100_000


def test_a_first_feed_that_found_nothing_does_not_say_that_state_was_lost(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    assert dotr("feed", "nowhere.ttl").code == 3
    ran = dotr("feed", "events")
    assert "nothing remembered" not in ran.err
    assert ran.out.count("\n") == 1


@pytest.mark.parametrize(
    "outputs",
    [
        ("-o", "x.jsonl", "-o", "./x.jsonl"),
        ("-o", "x.jsonl", "--late", "file=x.jsonl"),
        ("--on-error", "file=x.jsonl", "--late", "file=x.jsonl"),
    ],
)
def test_one_file_for_two_outputs_is_refused(dotr: Dotr, outputs: tuple[str, ...]) -> None:
    dotr("deploy", "fire.dotr")
    ran = dotr("feed", "events", *outputs)
    assert (ran.code, "error[D4113]" in ran.err) == (2, True)
    assert not Path("x.jsonl").exists()


def test_an_output_that_could_not_be_made_is_not_taken_for_ours_later(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    assert dotr("feed", "events", "-o", "later/out.jsonl").code == 4
    Path("later").mkdir()
    Path("later/out.jsonl").write_text("precious")
    ran = dotr("feed", "events", "-o", "later/out.jsonl")
    assert (ran.code, "error[D5001]" in ran.err) == (5, True)
    assert Path("later/out.jsonl").read_text() == "precious"


def test_a_device_or_pipe_is_written_to_and_never_replaced(dotr: Dotr, folder: Path) -> None:
    dotr("deploy", "fire.dotr")
    os.mkfifo("out")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(Path("out").read_bytes()))
    reader.start()
    with started(
        folder, "events", "-o", "out", "-o", "out.jsonl", "-o", os.devnull, "--overwrite"
    ) as process:
        _out, err = process.communicate(timeout=20)
    reader.join(20)
    assert process.returncode == 0, err
    assert read == [Path("out.jsonl").read_bytes()]
    assert not Path(os.devnull).is_file()
    ran = dotr("feed", "events", "--late", f"file={os.devnull}", "--overwrite")
    assert (ran.code, "is not a file" in ran.err) == (4, True)


def test_a_disk_that_is_full_loses_nothing_and_the_same_command_goes_on(dotr: Dotr, folder: Path) -> None:
    dotr("deploy", "fire.dotr")
    with started(folder, "events", "-o", "/dev/full", "-o", "out.jsonl") as process:
        _out, err = process.communicate(timeout=20)
    assert process.returncode == 4
    assert b"error[D4201]: cannot write /dev/full: no space left on device" in err
    assert "not fed yet" in dotr("status").out
    assert dotr("feed", "events", "-o", "out.jsonl").code == 0
    assert Path("out.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("keep", "what"),
    [(0, "was emptied"), (1, "shrank"), (2, "changed")],
    ids=["emptied", "shrank", "changed"],
)
def test_a_fed_file_that_is_another_now_is_named_before_what_came_late(
    dotr: Dotr, keep: int, what: str
) -> None:
    dotr("deploy", "fire.dotr")
    lines = [json.dumps({"time": t, "graph": f"<urn:a> <urn:b> {t} ."}) for t in range(1, 5)]
    Path("in.jsonl").write_text("\n".join(lines) + "\n")
    assert dotr("feed", "in.jsonl").code == 0
    now = [line.replace("urn:b", "urn:c") for line in lines] if keep == 2 else lines[:keep]
    Path("in.jsonl").write_text("".join(line + "\n" for line in now))
    ran = dotr("feed", "in.jsonl")
    assert ran.code == 0
    assert f"`in.jsonl` {what} since it was fed: read again" in ran.err
    if keep:
        assert ran.err.index("since it was fed") < ran.err.index(f"{len(now)} late")
    assert "since it was fed" not in dotr("feed", "in.jsonl").err, "once"


def test_a_message_is_made_of_one_file_or_two(tmp_path: Path) -> None:
    options = SourceOptions(base="urn:x/", max_document=10_000)
    one, two, log = (str(tmp_path / name) for name in ("a.ttl", "b.nt", "c.jsonl"))
    Path(one).write_text("<urn:a> <urn:p> <b> .", encoding="utf-8")
    Path(two).write_text("<urn:a> <urn:p> <urn:c> .", encoding="utf-8")
    Path(log).write_text("", encoding="utf-8")
    added, gone = [("<urn:a>", "<urn:p>", "<urn:x/b>")], [("<urn:a>", "<urn:p>", "<urn:c>")]
    assert given_message(one, None, options) == Message(None, added, None)
    assert given_message(one, two, options) == Message(None, added, gone)
    for wrong, code in ((log, "D2010"), (str(tmp_path / "a.xyz"), "D2008")):
        with pytest.raises(DataError) as raised:
            given_message(wrong, None, options)
        assert raised.value.diagnostics[0].code == code
