"""The view of a feed and of a server on a terminal: what it shows, when it is not there, what it leaves."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from dotr.cli.live import EventLine, Look, SourceLine, drawn
from tests.cli.terminals import OnTerminal, Screen

RULES = """PREFIX : <urn:x:>
RULE Hot DEFINE { dotr_f a :Hot ; :in ?room }
FROM Q := { SELECT ?room ?v { ?o :celsius ?v ; :room ?room FILTER(?v > 60) } } WITH ?room := Q.?room
RULE Note DEFINE { dotr_n a :Note ; :words ?words }
FROM N := { SELECT ?words { ?o :words ?words } } WITH ?words := N.?words
"""
WORDS = "\x1b[31mred \x9b2J \x07 \x1b]0;title\x07 \u202eback\n\tend"


def line(time: int, celsius: int) -> str:
    graph = f"<urn:o{time}> <urn:x:celsius> {celsius} ; <urn:x:room> <urn:x:room{time}> ; "
    graph += f"<urn:x:words> {json.dumps(WORDS)} ."
    return json.dumps({"time": time, "graph": graph}) + "\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    deploy = [sys.executable, "-m", "dotr", "deploy", "rules.dotr"]
    subprocess.run(deploy, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "in").mkdir()
    lines = [line(n, 50 + n) for n in range(40)] + ['{"time": 41, "graph": "<urn:o"}\n', line(0, 99)]
    (tmp_path / "in" / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


Start = Callable[..., OnTerminal]


@pytest.fixture
def start(place: Path) -> Iterator[Start]:
    """`dotr` on a terminal, ended after the test."""
    begun: list[OnTerminal] = []

    def begin(*arguments: str, **more: object) -> OnTerminal:
        begun.append(OnTerminal(place, *arguments, **more))  # type: ignore[arg-type]  # passed on
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


FOLLOW = ("feed", "in", "--follow", "--on-error", "skip", "--commit-every", "0s")


@pytest.mark.parametrize("columns", [40, 72, 100, 200])
def test_a_feed_that_is_followed_shows_how_it_is_doing(start: Start, columns: int) -> None:
    ran = start(*FOLLOW, columns=columns)
    shown = ran.until(lambda text: "room38" in text and "refused" in text)
    assert "dotr feed .dotr" in shown
    assert "closed up to 38" in shown
    assert "41 graphs" in shown
    assert "dead letters  2  refused 1, late 1" in shown
    assert "● Hot" in shown
    assert "● Note" in shown
    view = shown[shown.index("dotr feed .dotr") :]
    assert max(map(len, view.splitlines())) <= columns - 3
    assert ran.screen.hidden
    assert ran.screen.styled


def test_what_data_hold_reaches_no_terminal_as_sequences(start: Start) -> None:
    ran = start(*FOLLOW, columns=200)  # a screen that obeys nothing but drawing
    shown = ran.until(lambda text: "room38" in text)
    assert r"\x1b[31mred \x9b2J \x07 \x1b]0;title\x07 \u202eback\n\tend" in shown
    ran.interrupt()
    for raw in ("\x1b[31mred", "\x9b", "\x07", "\x1b]", "\u202e"):
        assert raw not in ran.written


@pytest.mark.parametrize("columns", [40, 100])
def test_ctrl_c_leaves_the_summary_alone(start: Start, columns: int) -> None:
    ran = start(*FOLLOW, columns=columns)
    ran.until(lambda text: "room38" in text)
    assert ran.interrupt() == 130
    left = "".join(ran.screen.text.split())  # wherever lines break
    head = "dotr:eventsareintheviewalone:-oFILEwritesthem,--plainprintsthem"
    assert left.startswith(f"{head}warning[D2301]:1graph")
    assert "dotr:41graphs" in left
    assert "●" not in left
    assert "closedupto38;" in left
    assert left.endswith("dotr:stopped")
    assert not ran.screen.hidden


@pytest.mark.parametrize(
    ("more", "environment"),
    [
        (("--plain",), {}),
        (("--format", "jsonl"), {}),
        (("-o", "-"), {}),
        ((), {"NO_COLOR": "1"}),
        ((), {"TERM": "dumb"}),
        (("--quiet",), {}),
    ],
)
def test_lines_stay_lines_where_they_are_wanted(
    start: Start, more: tuple[str, ...], environment: dict[str, str]
) -> None:
    ran = start("feed", "in", "--follow", "--on-error", "skip", *more, columns=2000, environment=environment)
    shown = ran.until(lambda text: "room38" in text)
    assert "dead letters" not in shown
    assert "view alone" not in shown
    assert not ran.screen.hidden
    assert r"\u009b2J" in shown
    assert not set(ran.written) & set("\x1b\x07\x9b\u202e")
    events = [one for one in shown.splitlines() if ":Hot" in one]
    assert sorted({int(n) for one in events for n in re.findall(r"room(\d+)", one)}) == list(range(11, 39))


def test_a_pipe_gets_the_lines_of_before_while_a_terminal_shows_the_view(start: Start, place: Path) -> None:
    read, write = os.pipe()
    ran = start(*FOLLOW, out=write)
    os.close(write)
    ran.until(lambda text: "room38" in text)
    ran.interrupt()
    with open(read, encoding="utf-8") as stream:
        through = stream.read()
    done = subprocess.run(
        [sys.executable, "-m", "dotr", "feed", "in", "--dir", "other", "--on-error", "skip", "--keep-open"],
        cwd=deployed_again(place),
        capture_output=True,
        check=True,
    )
    assert through.encode() == done.stdout
    assert through.count("\n") == 28 + 39


def deployed_again(place: Path) -> Path:
    deploy = [sys.executable, "-m", "dotr", "deploy", "rules.dotr", "--dir", "other"]
    subprocess.run(deploy, cwd=place, check=True, capture_output=True)
    return place


def test_files_get_their_events_beside_the_view(start: Start, place: Path) -> None:
    ran = start(*FOLLOW, "-o", "out.jsonl")
    ran.until(lambda text: "room38" in text)
    ran.interrupt()
    assert len((place / "out.jsonl").read_text(encoding="utf-8").splitlines()) == 28 + 39


def test_what_is_found_is_printed_above_the_view(start: Start, place: Path) -> None:
    ran = start(*FOLLOW, "--max-jump", "10s")
    ran.until(lambda text: "room38" in text)
    with open(place / "in" / "a.jsonl", "a", encoding="utf-8") as stream:
        stream.write(line(10_000, 70))
    ran.until(lambda text: "refused 2" in text)
    assert ran.interrupt() == 130


def test_a_server_shows_how_it_is_doing_below_its_log(start: Start) -> None:
    ran = start("serve", "rules.dotr", "--listen", "127.0.0.1:0", columns=110)
    found = ran.until(lambda text: "no event yet" in text)
    url = re.search(r"http://127\.0\.0\.1:\d+", found)
    assert url is not None
    with httpx.Client(base_url=url[0], trust_env=False) as client:
        headers = {"content-type": "application/x-ndjson"}
        for lines in (line(1, 70) + line(2, 80) + line(3, 20), "{}\n"):
            client.post("/v1/streams/input", content=lines, headers=headers)
        shown = ran.until(lambda text: "room2" in text and "dead letters" in text)
    assert shown.splitlines()[0].startswith("dotr serves .dotr on http://127.0.0.1:")
    assert "closed up to 2" in shown
    assert r"\x1b[31mred" in shown
    assert "input  3 graphs" in shown
    assert ran.interrupt() == 0
    assert ran.screen.text.splitlines()[-1] == "stopped"
    assert "● " not in ran.screen.text
    assert not ran.screen.hidden


@pytest.mark.parametrize(("more", "environment"), [(("--plain",), {}), ((), {"NO_COLOR": "1"})])
def test_a_server_with_plain_lines_writes_its_log_alone(
    start: Start, more: tuple[str, ...], environment: dict[str, str]
) -> None:
    ran = start("serve", "rules.dotr", "--listen", "127.0.0.1:0", *more, environment=environment)
    ran.until(lambda text: "dotr serves" in text)
    assert ran.interrupt() == 0
    assert "\x1b" not in ran.written
    serves, stopped = ran.screen.text.splitlines()
    assert serves.startswith("dotr serves .dotr on http://127.0.0.1:")
    assert stopped == "^Cstopped"


@pytest.mark.parametrize("columns", [1, 20, 40, 79, 80, 200, 400])
@pytest.mark.parametrize("rows", [5, 24])
def test_the_view_is_no_larger_than_the_terminal(columns: int, rows: int) -> None:
    look = Look(
        title="dotr feed a/very/long/folder/" + "x" * 100,
        watermark="2026-01-05T08:00:00.123456Z",
        graphs=123_456_789,
        events=5,
        sources=[SourceLine("kafka/readings/0", "2026-01-05T08:00:01Z", 5, "idle")],
        last=[EventLine(f"2026-01-05T08:00:0{n}Z", "規則" * n, "?x " + "e\u0301" * 300) for n in range(8)],
        rules=["規則"],
        letters={"D2102": 3},
        more=["1 commit"],
    )
    out = io.StringIO()
    console = Console(file=out, width=columns, height=rows, color_system=None)
    console.print(drawn(look, (1.0, 1234.5), 3725.0, console))
    lines = out.getvalue().splitlines()
    assert max(map(console_width, lines)) <= max(1, min(columns - 3, 200))
    if rows == 24:
        assert sum("●" in one or "…" in one for one in lines) >= 8


def console_width(text: str) -> int:
    from rich.cells import cell_len  # noqa: PLC0415  # as it is drawn

    return cell_len(text)


def test_a_screen_that_is_written_to_with_other_sequences_fails_the_test() -> None:
    for raw in ("\x1b]0;t\x07", "\x1b[2J", "\x07", "\x9b", "\x1b[3;1H"):
        with pytest.raises(AssertionError):
            Screen(40).write(raw)
