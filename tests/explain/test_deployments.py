"""`dotr explain` over a deployment: what it keeps, what is read again, and what is said of the rest."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from dotr.io.feeds import FileSource
from dotr.io.graphs import SourceOptions
from dotr.service.deployment import deployed_program
from dotr.service.feed import CheckpointPolicy, FeedOptions, keeping_of, open_feed
from dotr.service.history import Asked, FedDeployment, Question
from dotr.service.history import explained as reasons
from dotr.service.journal import Journal, KeptChange, KeptMessage, KeptRow, read_kept, write_kept
from dotr.service.outbox import Outbox, OutboxReader
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

PAIRS = """PREFIX : <urn:>
BACKGROUND <map.ttl>
RULES <in.dlog>
QUERY A := { SELECT ?x ?r WHERE { ?x a :A ; :in ?r } }
QUERY B := { SELECT ?x ?r WHERE { ?x a :B ; :in ?r } }
RULE Pair DEFINE { dotr_p a :Pair ; :of ?a ; :and ?b } FROM B
AND LAST A WITHIN 10 s FROM B ON A.?r = B.?r
WITH ?a := A.?x, ?b := B.?x
CONSUMING A
RULE Many DEFINE { dotr_m a :Many ; :of ?r } FROM Pair AND LAST Again := Pair WITHIN 20 s BEFORE Pair
WITH ?r := Pair.?a
"""
INSIDE = "PREFIX : <urn:>\n:in(?x, ?r) :- :at(?x, ?d), :of(?d, ?r) .\n"
HELD = """PREFIX : <urn:>
HOLD :in LATEST
QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }
RULE Left DEFINE { dotr_l a :Left } FROM L := DSTREAM In WITH ?x := L.?x, ?y := L.?y
"""


def lines_of(path: str, lines: list[dict[str, object]]) -> str:
    Path(path).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def pairs(start: int, count: int) -> list[dict[str, object]]:
    kinds = ("A", "B", "A", "A", "B")
    return [
        {"time": start + i, "graph": f"<urn:o{start + i}> a <urn:{kinds[i % 5]}> ; <urn:at> <urn:d{i % 2}> ."}
        for i in range(count)
    ]


@pytest.fixture
def deployed(dotr: Dotr, folder: Path) -> Path:
    (folder / "pairs.dotr").write_text(PAIRS)
    (folder / "in.dlog").write_text(INSIDE)
    (folder / "map.ttl").write_text("<urn:d0> <urn:of> <urn:r> .\n<urn:d1> <urn:of> <urn:r> .\n")
    return folder


def explained(dotr: Dotr, *asked: str, code: int = 0) -> str:
    ran = dotr("explain", *asked)
    assert ran.code == code, ran.err
    return ran.out


def last_event(dotr: Dotr, source: str) -> str:
    ran = dotr("run", "pairs.dotr", source, "--format", "jsonl", "-q")
    found: str = json.loads(ran.out.splitlines()[-1])["id"]
    return found


def test_what_is_kept_explains_as_the_sources_would(dotr: Dotr, deployed: Path) -> None:
    assert dotr("deploy", "pairs.dotr", "--keep", "1h").code == 0
    for number, start in enumerate((0, 40, 80)):
        lines_of(f"{number}.jsonl", pairs(start, 40))
        assert dotr("feed", f"{number}.jsonl", "--commit-graphs", "7", "-q").code == 0
    whole = lines_of("whole.jsonl", [line for start in (0, 40, 80) for line in pairs(start, 40)])
    wanted = explained(dotr, "pairs.dotr", whole)
    for number in range(3):
        Path(f"{number}.jsonl").unlink()
    reported = explained(dotr, "--dir", ".dotr")
    for number in range(3):
        for line in range(1, 41):
            wanted = wanted.replace(f"whole.jsonl:{40 * number + line}\n", f"{number}.jsonl:{line}\n")
    assert reported == wanted
    assert "in.dlog:2" in reported
    assert "background  map.ttl:1" in reported
    event = last_event(dotr, whole)
    assert explained(dotr, "--event", event).startswith(f"{event.split(':')[2]}  {event}")
    not_fired = explained(dotr, "--why-not", "Pair", "--at", "119", code=0)
    assert "Pair" in not_fired


def test_what_is_too_old_goes_and_what_is_left_explains_alike(dotr: Dotr, deployed: Path) -> None:
    source = lines_of("long.jsonl", pairs(0, 400))
    assert dotr("deploy", "pairs.dotr", "--keep", "60s").code == 0
    assert dotr("feed", source, "--commit-graphs", "10", "-q", "-o", "events.jsonl").code == 0
    status = json.loads(dotr("status", "--format", "json").out)["kept"]
    assert status["for"] == 60_000_000
    assert 60 <= status["graphs"] <= 120
    assert 280 <= status["since"] <= 340
    assert status["bytes"] > 0
    assert "kept        " in dotr("status").out
    events = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
    recent = [event for event in events if event["time"] >= 370]
    assert len(recent) > 5
    for event in recent:
        asked = ["--event", event["id"], "--format", "json"]
        mine = json.loads(explained(dotr, *asked))
        other = json.loads(explained(dotr, "pairs.dotr", source, *asked))
        assert mine == other
    ran = dotr("explain", "--event", events[0]["id"])
    assert (ran.code, "D4173" in ran.err) == (3, True)


def test_what_lasts_is_explained_from_a_state(dotr: Dotr, folder: Path) -> None:
    (folder / "held.dotr").write_text(HELD)
    moves = [{"time": t, "graph": f"<urn:a{t % 3}> <urn:in> <urn:r{t % 7}> ."} for t in range(200)]
    source = lines_of("moves.jsonl", moves)
    assert dotr("deploy", "held.dotr", "--keep", "20s").code == 0
    assert dotr("feed", source, "--commit-graphs", "10", "-q").code == 0
    assert explained(dotr) == explained(dotr, "held.dotr", source)
    assert json.loads(dotr("status", "--format", "json").out)["kept"]["graphs"] < 100


def test_late_graphs_and_refused_instants_are_left_out_again(dotr: Dotr, deployed: Path) -> None:
    lines = [*pairs(0, 20), {"time": 3, "graph": "<urn:late> a <urn:A> ; <urn:at> <urn:d0> ."}, *pairs(20, 5)]
    source = lines_of("s.jsonl", lines)
    assert dotr("deploy", "pairs.dotr", "--keep", "1h").code == 0
    assert dotr("feed", source, "--late", "drop", "-q").code == 0
    reported = explained(dotr, "--rule", "Pair", "--at", "21")
    assert reported == explained(dotr, "pairs.dotr", source, "--rule", "Pair", "--at", "21", "--late", "drop")


def test_other_rules_begin_to_keep_anew(dotr: Dotr, deployed: Path) -> None:
    assert dotr("deploy", "pairs.dotr", "--keep", "1h").code == 0
    assert dotr("feed", lines_of("a.jsonl", pairs(0, 20)), "-q").code == 0
    assert dotr("deploy", "pairs.dotr").code == 0
    assert json.loads(dotr("status", "--format", "json").out)["kept"]["graphs"] == 20
    (deployed / "pairs.dotr").write_text(PAIRS.replace("WITHIN 10 s", "WITHIN 9 s"))
    assert dotr("deploy", "pairs.dotr").code == 0
    assert json.loads(dotr("status", "--format", "json").out)["kept"]["graphs"] == 0
    assert dotr("feed", lines_of("b.jsonl", pairs(40, 20)), "-q").code == 0
    assert explained(dotr).startswith(("Pair", "Many"))
    assert dotr("deploy", "pairs.dotr", "--keep", "0s").code == 0
    assert "kept" not in json.loads(dotr("status", "--format", "json").out)


def test_so_much_is_kept_as_rules_look_back(dotr: Dotr, deployed: Path) -> None:
    ran = dotr("deploy", "pairs.dotr", "--keep", "5s")
    assert "kept for 30 s: the rules look back that far" in ran.err
    with Journal(".dotr", exclusive=False) as journal:
        assert journal.keeps() == 30_000_000


def test_without_keep_the_sources_are_read_again(dotr: Dotr, deployed: Path) -> None:
    assert dotr("deploy", "pairs.dotr").code == 0
    a, b = lines_of("a.jsonl", pairs(0, 20)), lines_of("b.jsonl", pairs(20, 20))
    for source in (a, b):
        assert dotr("feed", source, "-q").code == 0
    whole = explained(dotr, "pairs.dotr", a, b)
    ran = dotr("explain", "--dir", ".dotr")
    assert (ran.out, ran.err) == (whole, "")
    lines_of("b.jsonl", pairs(20, 20) + pairs(40, 20))  # it grew: what was fed is what is explained
    assert dotr("explain").out == whole
    lines_of("b.jsonl", [*pairs(20, 19), {"time": 39, "graph": ""}])
    assert "`b.jsonl` changed since it was fed" in dotr("explain").err
    Path("b.jsonl").unlink()
    ran = dotr("explain")
    assert "`b.jsonl`, which was fed, is gone" in ran.err
    assert ran.out
    Path("a.jsonl").unlink()
    assert "D4189" in dotr("explain").err


def test_messages_that_a_command_gave_are_read_again(dotr: Dotr, folder: Path) -> None:
    (folder / "held.dotr").write_text(HELD)
    (folder / "gone.ttl").write_text("<urn:a> <urn:in> <urn:r> .")
    assert dotr("deploy", "held.dotr").code == 0
    moves = lines_of("m.jsonl", [{"time": 1, "graph": "<urn:a> <urn:in> <urn:r> ."}])
    assert dotr("feed", moves, "-q").code == 0
    assert dotr("feed", "--delete", "gone.ttl", "--at", "5", "-q").code == 0
    assert "held since 1 until 5: deleted" in explained(dotr)


def test_questions_that_do_not_fit_a_deployment(dotr: Dotr, deployed: Path) -> None:
    assert "D5201" in dotr("explain").err
    assert dotr("deploy", "pairs.dotr").code == 0
    assert "D4189" in dotr("explain").err
    lines_of("a.jsonl", pairs(0, 20))
    assert "D4171" in dotr("explain", "pairs.dotr", "a.jsonl", "--dir", ".dotr").err
    assert "D4171" in dotr("explain", "pairs.dotr").err
    assert "D4171" in dotr("explain", "--background", "map.ttl").err


def test_a_feed_with_rules_of_its_own_keeps_nothing(dotr: Dotr, deployed: Path) -> None:
    assert dotr("deploy", "pairs.dotr", "--keep", "1h").code == 0
    assert dotr("feed", lines_of("a.jsonl", pairs(0, 20)), "-q").code == 0
    (deployed / "more.ttl").write_text("<urn:d2> <urn:of> <urn:r> .")
    ran = dotr("feed", lines_of("b.jsonl", pairs(40, 20)), "-q", "--background", "more.ttl")
    assert "what was kept for explanations is deleted" in ran.err
    assert json.loads(dotr("status", "--format", "json").out)["kept"]["graphs"] == 0


def test_no_more_is_kept_than_the_limit() -> None:
    connection = sqlite3.connect(":memory:")
    from dotr.service.journal import KEPT_TABLES as TABLES  # noqa: PLC0415  # beside its only use

    connection.executescript(TABLES)

    def rows(query: str) -> list[tuple[object, ...]]:
        return connection.execute(query).fetchall()

    for number in range(6):
        messages = [KeptMessage(number, [[f"<urn:{number}>", "<urn:p>", f'"{i}"']], "s") for i in range(50)]
        change = KeptChange(rows=[KeptRow(number, {"at": number}), KeptRow(number, None, messages)])
        write_kept(connection.execute, rows, change, limit=900)
    left = read_kept(rows)
    assert left[0].state is not None
    assert 0 < len(left) < 12
    assert left[-1].messages[-1] == KeptMessage(5, [["<urn:5>", "<urn:p>", '"49"']], "s")


def with_a_kept_log(dotr: Dotr, monkeypatch: pytest.MonkeyPatch, count: int) -> list[dict[str, object]]:
    """The events of a deployment that keeps `count` messages, some of them out of order, in many parts."""
    monkeypatch.setattr("dotr.service.feed._RUN", 1)
    assert dotr("deploy", "pairs.dotr", "--keep", "1d").code == 0
    lines = pairs(0, count)
    for place in range(10, count - 10, 17):
        lines[place], lines[place + 3] = lines[place + 3], lines[place]
    lines_of("log.jsonl", lines)
    ran = dotr("feed", "log.jsonl", "--lateness", "4s", "--commit-graphs", "50", "-o", "out.jsonl", "-q")
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


def test_an_event_is_explained_alike_from_the_state_before_all_that_it_can_need(
    dotr: Dotr, deployed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = with_a_kept_log(dotr, monkeypatch, 800)
    fed = FedDeployment(".dotr")
    assert sum(row.state is not None for row in fed.kept) > 10
    assert {event["rule"] for event in events} == {"Pair", "Many"}
    for event in [*events[:5], *events[::23], *events[-5:]]:
        whole = reasons(fed, Question(event_id=str(event["id"])))
        near = reasons(fed, Question(event_id=str(event["id"]), time=int(str(event["time"])) * 1_000_000))
        assert near.values() == whole.values()
        assert near.written("text") == whole.written("text")


@pytest.mark.parametrize("count", [400, 1600])
def test_how_much_is_run_again_does_not_depend_on_how_much_is_kept(
    dotr: Dotr, deployed: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    events = with_a_kept_log(dotr, monkeypatch, count)
    fed = FedDeployment(".dotr")
    for event in (events[3], events[len(events) // 2], events[-1]):
        time, name = int(str(event["time"])) * 1_000_000, event["id"]
        asked = Asked(lambda one, _: one.id == name, True, time, 0, False, False, nearby=True)  # noqa: B023  # run here
        history = fed.run(asked)
        assert history.wanted_event is not None
        assert len(history.times()) <= 64 + 64 + 50, "a stretch, what a commit keeps, and what rules reach"


def test_the_time_of_an_event_is_found_where_a_server_keeps_its_events(
    dotr: Dotr, deployed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.service.feed._RUN", 1)
    assert dotr("deploy", "pairs.dotr", "--keep", "1d").code == 0
    lines_of("log.jsonl", pairs(0, 500))
    with Journal(".dotr") as journal:
        program = deployed_program(journal.deployed())
        feed = open_feed(journal, program, FeedOptions(unit=1_000_000), CheckpointPolicy(50, 0.0), print)
        feed.sinks = [Outbox()]
        feed.keeping = keeping_of(journal, feed.pipeline)
        feed.resume()
        feed.run(FileSource(["log.jsonl"], SourceOptions(unit=1_000_000), fail=True, follow=False))
        feed.close()
    with OutboxReader(".dotr") as reader:
        rows = reader.after(0)
    fed, ran = FedDeployment(".dotr"), []
    run = fed.run
    monkeypatch.setattr(fed, "run", lambda asked: ran.append(asked) or run(asked))
    assert fed.when(rows[-1].id) == rows[-1].time
    assert fed.when("urn:dotr:Pair:none") is None
    found = reasons(fed, Question(event_id=rows[-1].id))
    assert found.happened
    assert [(one.nearby, one.until) for one in ran] == [(True, rows[-1].time)]


def test_what_lasts_is_explained_from_the_first_message_on(
    dotr: Dotr, deployed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.service.feed._RUN", 1)
    Path("held.dotr").write_text(HELD)
    assert dotr("deploy", "held.dotr", "--keep", "1d").code == 0
    lines = [{"time": 0, "graph": "<urn:o> <urn:in> <urn:a> ."}]
    lines += [{"time": n, "graph": f"<urn:p{n}> <urn:b> 1 ."} for n in range(1, 300)]
    lines_of("log.jsonl", [*lines, {"time": 300, "graph": "<urn:o> <urn:in> <urn:b> ."}])
    assert dotr("feed", "log.jsonl", "-o", "out.jsonl", "-q").code == 0
    text = reasons(FedDeployment(".dotr"), Question(rule="Left", time=300_000_000, at="300")).written("text")
    assert "log.jsonl:1" in text


READINGS = """PREFIX : <urn:>
QUERY A := { SELECT ?x ?v WHERE { ?x a :A ; :v ?v } }
QUERY B := { SELECT ?x ?v WHERE { ?x a :B ; :v ?v } }
"""


@pytest.mark.parametrize(
    "rule",
    [
        "FROM A AFTER 7 s AS Due AND NOT B WITHIN 5 s FROM Due ON B.?v = A.?v WITH ?a := A.?x",
        "FROM B AND EACH A WITHIN 15 s FROM B ON A.?v != B.?v WITH ?a := A.?x CONSUMING A",
        "FROM B AND SUM(A.?v) AS ?a OVER A WITHIN 20 s FROM B ON A.?v > 0 WITH ?a := ?a",
    ],
    ids=["after", "consuming", "sum"],
)
def test_leaves_that_waited_in_a_state_have_their_places(
    dotr: Dotr, deployed: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """Messages that were taken and not yet run when a state was kept are in the state, without places."""
    monkeypatch.setattr("dotr.service.feed._RUN", 1)
    monkeypatch.setattr("dotr.service.feed._SHARE", 0)
    Path("readings.dotr").write_text(f"{READINGS}RULE R DEFINE {{ dotr_r a :R ; :of ?a }} {rule}\n")
    assert dotr("deploy", "readings.dotr", "--keep", "1d").code == 0
    lines = [
        {"time": n, "graph": f"<urn:o{n}> a <urn:{'AAB'[n * n % 7 % 3]}> ; <urn:v> {n % 4} ."}
        for n in range(400)
    ]
    for place in range(10, 380, 17):
        lines[place], lines[place + 3] = lines[place + 3], lines[place]
    lines_of("log.jsonl", lines)
    ran = dotr("feed", "log.jsonl", "--lateness", "4s", "--commit-graphs", "50", "-o", "out.jsonl", "-q")
    assert ran.code == 0, ran.err
    events = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    fed = FedDeployment(".dotr")
    bounds = [row.time // 1_000_000 for row in fed.kept if row.state is not None and row.time is not None]
    near_a_state = [one for one in events if any(0 <= int(one["time"]) - at <= 16 for at in bounds)]
    assert len(near_a_state) > 10
    for event in near_a_state:
        time = int(event["time"]) * 1_000_000
        near = reasons(fed, Question(event_id=event["id"], time=time)).written("text")
        assert near == reasons(fed, Question(event_id=event["id"])).written("text")
        assert "stream @" not in near
