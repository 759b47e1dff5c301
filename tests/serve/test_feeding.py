"""`dotr feed` from brokers and to hooks: at least once, across ends of every kind."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.connectors.brokers import Mosquitto, needs_mosquitto
from tests.connectors.test_webhook import Receiver

RULES = """PREFIX : <urn:x:>
RULE Seen DEFINE { dotr_s :number ?n } FROM S := { SELECT ?n { ?o :number ?n } } WITH ?n := S.?n
"""


def dotr(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "dotr.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dotr.cli.main", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], number: int | None = None) -> str:
    """What it wrote to standard error, after a signal if one is given."""
    if number is not None:
        process.send_signal(number)
    _, said = process.communicate(timeout=30)
    return said


def until(what: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert what()


def lines(numbers: Sequence[int]) -> str:
    return "".join(
        json.dumps({"time": number, "graph": f"[] <urn:x:number> {number} ."}) + "\n" for number in numbers
    )


def numbers_of(receiver: Receiver) -> list[int]:
    return [json.loads(body)["data"]["time"] for _, body in receiver.came]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "rules.dotr").write_text(RULES)
    assert dotr(folder, "deploy", "rules.dotr").returncode == 0
    return folder


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


def test_a_feed_ends_when_its_hook_has_every_event(home: Path, receiver: Receiver) -> None:
    (home / "a.jsonl").write_text(lines(range(1, 301)))
    receiver.answers = [(500, {})]
    found = dotr(home, "feed", "a.jsonl", "-o", f"webhook:{receiver.url}", "-o", "log.jsonl")
    assert found.returncode == 0, found.stderr
    assert numbers_of(receiver) == [1, *range(1, 301)]
    assert len((home / "log.jsonl").read_text().splitlines()) == 300
    assert "answers 500" in found.stderr
    assert "works again" in found.stderr
    again = dotr(home, "feed", "a.jsonl", "-o", f"webhook:{receiver.url}")
    assert again.returncode == 0
    assert len(receiver.came) == 301, "nothing is delivered twice"


def test_a_rule_of_an_output_that_is_not_deployed_is_reported(home: Path, receiver: Receiver) -> None:
    (home / "a.jsonl").write_text(lines([1, 2]))
    found = dotr(home, "feed", "a.jsonl", "-o", f"webhook:{receiver.url}?rules=No")
    assert found.returncode == 0, found.stderr
    assert "warning[D5209]: no rule `No` is deployed" in found.stderr
    assert not receiver.came


def test_ctrl_c_ends_the_wait_and_the_next_feed_goes_on(home: Path, receiver: Receiver) -> None:
    (home / "a.jsonl").write_text(lines(range(1, 51)))
    (home / "b.jsonl").write_text(lines(range(51, 61)))
    receiver.answers = [(204, {})] * 10 + [(503, {"retry-after": "60"})] * 100
    feed = started(home, "feed", "a.jsonl", "-o", f"webhook:{receiver.url}")
    until(lambda: len(receiver.came) == 11)
    time.sleep(6)
    said = ended(feed, signal.SIGINT)
    assert feed.returncode == 130
    assert "40 events are still to be delivered" in said
    assert "Ctrl-C ends the wait" in said
    assert "the next feed with the same -o goes on" in said
    receiver.answers, receiver.came = [], []
    found = dotr(home, "feed", "b.jsonl", "-o", f"webhook:{receiver.url}")
    assert found.returncode == 0, found.stderr
    assert numbers_of(receiver) == list(range(11, 61))


def test_the_status_shows_how_far_outputs_are_while_nothing_runs(home: Path, receiver: Receiver) -> None:
    (home / "a.jsonl").write_text(lines(range(1, 51)))
    receiver.answers = [(204, {})] * 10 + [(503, {"retry-after": "60"})] * 100
    board = f"webhook:?webhook={receiver.url}&name=board"
    feed = started(home, "feed", "a.jsonl", "-o", board)
    until(lambda: len(receiver.came) == 11)
    until(lambda: "answers 503" in dotr(home, "status").stdout)  # while the feed goes on, too
    ended(feed, signal.SIGINT)
    host = receiver.url.removeprefix("http://").partition("/")[0]
    assert f"output      webhook:board   40 events to deliver; fails: {host} answers 503\n" in (
        dotr(home, "status").stdout
    )
    (found,) = json.loads(dotr(home, "status", "--format", "json").stdout)["deliveries"]
    assert found == {
        "output": "webhook:board",
        "delivered": 10,
        "waiting": 40,
        "state": "failing",
        "error": f"{host} answers 503",
    }
    receiver.answers, receiver.came = [], []
    (home / "b.jsonl").write_text(lines([51]))
    assert dotr(home, "feed", "b.jsonl", "-o", board).returncode == 0
    assert "output      webhook:board   has every event\n" in dotr(home, "status").stdout
    receiver.answers = [(410, {})]
    (home / "c.jsonl").write_text(lines([52]))
    assert dotr(home, "feed", "c.jsonl", "-o", board).returncode == 0
    shown = dotr(home, "status").stdout
    assert f"output      webhook:board   wants no more: {host} answers 410\n" in shown
    assert receiver.url not in shown, "the path of a hook may be a secret"
    receiver.answers, receiver.came = [], []
    (home / "d.jsonl").write_text(lines([53]))
    assert dotr(home, "feed", "d.jsonl", "-o", board).returncode == 0
    assert not receiver.came, "it stays gone"


def test_an_output_that_is_not_named_any_more_is_forgotten_aloud(home: Path, receiver: Receiver) -> None:
    (home / "a.jsonl").write_text(lines(range(1, 6)))
    receiver.answers = [(503, {"retry-after": "60"})] * 100
    feed = started(home, "feed", "a.jsonl", "-o", f"webhook:{receiver.url}")
    until(lambda: len(receiver.came) == 1)
    ended(feed, signal.SIGINT)
    found = dotr(home, "feed", "a.jsonl")
    assert "is not named any more: 5 events it did not get" in found.stderr
    assert "not named" not in dotr(home, "feed", "a.jsonl").stderr
    receiver.answers, receiver.came = [], []
    (home / "b.jsonl").write_text(lines(range(6, 9)))
    assert dotr(home, "feed", "b.jsonl", "-o", f"webhook:{receiver.url}").returncode == 0
    assert numbers_of(receiver) == [6, 7, 8], "a new output begins with what comes"


def test_one_that_wants_no_more_does_not_hold_the_end(home: Path, receiver: Receiver) -> None:
    (home / "a.jsonl").write_text(lines(range(1, 6)))
    receiver.answers = [(410, {})]
    found = dotr(home, "feed", "a.jsonl", "-o", f"webhook:{receiver.url}")
    assert found.returncode == 0
    assert "wants no more" in found.stderr


def test_kills_lose_no_event_of_a_hook(home: Path, receiver: Receiver) -> None:
    """Fed from a growing file, killed eight times; every event comes, in order but for repetitions."""
    noise, count = random.Random(3), 2_000
    (home / "a.jsonl").write_text(lines(range(1, count + 1)))
    command = (
        "feed",
        "a.jsonl",
        "-o",
        f"webhook:{receiver.url}",
        "--commit-every",
        "20ms",
        "--commit-graphs",
        "20",
    )
    for _ in range(8):
        before = len(receiver.came)
        feed = started(home, *command)
        until(lambda before=before: len(receiver.came) > before)
        time.sleep(noise.uniform(0.0, 0.2))
        feed.kill()
        ended(feed)
    found = dotr(home, *command)
    assert found.returncode == 0, found.stderr
    assert len(receiver.came) >= count
    firsts = list(dict.fromkeys(numbers_of(receiver)))
    assert firsts == list(range(1, count + 1))
    ids = {json.loads(body)["data"]["time"]: headers["webhook-id"] for headers, body in receiver.came}
    assert all(ids[json.loads(b)["data"]["time"]] == h["webhook-id"] for h, b in receiver.came)


@needs_mosquitto
def test_a_broker_is_read_until_ctrl_c_and_gets_events(home: Path, tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    uri = f"{broker.url}/t/+?format=jsonl"
    options = ("--commit-every", "20ms", "-o", f"{broker.url}/events/{{rule}}?retain=Seen", "-o", "log.jsonl")
    came: list[int] = []
    listener = broker.client()
    listener.on_message = lambda _c, _d, message: came.append(json.loads(message.payload)["time"])
    listener.subscribe("events/#", 1)
    sender = broker.client()
    try:
        feed = started(home, "feed", uri, *options)
        until(lambda: _sessions(home) > 0)
        time.sleep(1)
        for number in range(1, 11):
            sender.publish(f"t/{number}", lines([number]), 1).wait_for_publish(5)
        until(lambda: came == list(range(1, 10)))
        said = ended(feed, signal.SIGINT)
        assert feed.returncode == 130
        assert "Traceback" not in said
        for number in range(11, 21):  # nobody is there: the broker keeps them for the session
            sender.publish(f"t/{number}", lines([number]), 1).wait_for_publish(5)
        again = started(home, "feed", uri, *options)
        until(lambda: came == list(range(1, 20)))
        status = dotr(home, "status")
        assert status.returncode == 0
        assert ended(again, signal.SIGTERM)
        assert again.returncode == 130
        assert [json.loads(line)["time"] for line in (home / "log.jsonl").read_text().splitlines()] == came
    finally:
        listener.loop_stop()
        sender.loop_stop()
        broker.stop()


def _sessions(home: Path) -> int:
    return len(list((home / ".dotr").glob("inbox.db")))


@needs_mosquitto
def test_kills_neither_lose_nor_repeat_a_message(home: Path, tmp_path: Path) -> None:
    """Messages of a broker in, a file out: each exactly once, over six kills."""
    broker, noise, count = Mosquitto(tmp_path), random.Random(7), 600
    command = ("feed", f"{broker.url}/t?format=jsonl", "-o", "log.jsonl", "--commit-every", "20ms")
    sender = broker.client()
    try:
        feed = started(home, *command)
        until(lambda: _sessions(home) > 0)
        time.sleep(1.5)
        sent = 0
        for _ in range(6):
            for number in range(sent + 1, sent + count // 6 + 1):
                sender.publish("t", lines([number]), 1)
                time.sleep(0.003)
            sent += count // 6
            time.sleep(noise.uniform(0.0, 0.5))
            feed.kill()
            ended(feed)
            feed = started(home, *command)

        def seen() -> list[int]:
            return [json.loads(line)["time"] for line in (home / "log.jsonl").read_text().splitlines()]

        until(lambda: len(seen()) >= count - 1, 30)
        ended(feed, signal.SIGINT)
        assert seen() == list(range(1, count))
    finally:
        sender.loop_stop()
        broker.stop()


def test_what_was_fed_is_explained_later(home: Path, receiver: Receiver) -> None:
    assert dotr(home, "deploy", "rules.dotr", "--keep", "1d").returncode == 0
    (home / "a.jsonl").write_text(lines([1, 2]))
    assert dotr(home, "feed", "a.jsonl", "-o", f"webhook:{receiver.url}").returncode == 0
    event = json.loads(receiver.came[1][1])["data"]["id"]
    found = dotr(home, "explain", "--dir", ".dotr", "--event", event)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("Seen  ")
    assert "a.jsonl:2" in found.stdout, "the place that it came from"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("mqtt://b",), "D4215"),
        (("mqtt://b/a%23b",), "D4215"),
        (("mqtt://b/a+/c",), "D4215"),
        (("mqtt://b/%00",), "D4215"),
        (("mqtt://b/t?client=%00",), "D4215"),
        (("a.jsonl", "-o", "mqtt://b/events/%23"), "D4215"),
        (("kafka://b:9092/a%2Fb",), "D4220"),
        (("a.jsonl", "-o", "kafka://b:9092/events {rule}"), "D4220"),
        (("ldes:javascript:alert(1)",), "D4217"),
        (("kafka:b:9092/t",), "D4217"),
        (("a.jsonl", "-o", "webhook:javascript:alert(1)"), "D4217"),
        (("a.jsonl", "-o", "mqtt:board"), "D4217"),
        (("https://ann:hush@h/x",), "D4213"),
        (("a.jsonl", "-o", "webhok:https://h/hush"), "D4213"),
        (("mqtt://b/t?formatt=x",), "D4190"),
        (("a.jsonl", "-o", "webhook:http://h/x?secret=hush"), "D4192"),
        (("a.jsonl", "-o", "webhook:http://h/x", "-o", "webhook:http://h/x?order=any"), "D4217"),
        (("a.jsonl", "-o", "webhok:http://h/x"), "D4213"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_fed(
    home: Path, arguments: Sequence[str], code: str
) -> None:
    (home / "a.jsonl").write_text(lines([1]))
    found = dotr(home, "feed", *arguments)
    assert found.returncode not in (0, 1), found.stderr
    assert code in found.stderr
    assert "hush" not in found.stderr
    assert "1 graph" not in found.stderr
