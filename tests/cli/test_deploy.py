"""`dotr deploy`, `undeploy`, `status`: what is registered, what a redeploy keeps, what is refused."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from dotr.service.outbox import Cursors
from tests.cli.conftest import Dotr

TWO = """PREFIX : <urn:x:>
RULE Fire DEFINE { dotr_x :of ?r } FROM Smoke := { SELECT ?r { ?o a :Smoke ; :room ?r } } WITH ?r := Smoke.?r
RULE Alarm DEFINE { dotr_x :for ?r } FROM Fire WITH ?r := Fire.?r
"""


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_deploy_says_what_is_new_and_a_dry_run_does_nothing(dotr: Dotr) -> None:
    assert lines(dotr("deploy", "fire.dotr", "--dry-run").out)[0] == "+ Fire new"
    assert not Path(".dotr").exists()
    assert dotr("deploy", "fire.dotr").code == 0
    assert Path(".dotr/deployment.db").exists()


def test_a_redeploy_says_what_keeps_its_state_and_why_not(dotr: Dotr) -> None:
    Path("two.dotr").write_text(TWO)
    dotr("deploy", "two.dotr")
    assert lines(dotr("deploy", "two.dotr").out) == [
        "= Fire the same: keeps what it remembers",
        "= Alarm the same: keeps what it remembers",
    ]
    Path("two.dotr").write_text(TWO.replace(":room ?r }", ":room ?r . ?r a :Room }"))
    reported = lines(dotr("deploy", "two.dotr", "--dry-run").out)
    assert reported == [
        "~ Fire its query `Smoke` changed: would start with nothing remembered",
        "~ Alarm rule `Fire`, which it reads, changed: would start with nothing remembered",
    ]
    Path("two.dotr").write_text(
        TWO.replace("dotr_x :for ?r", "dotr_x :for ?r ; a :Alarm").replace("Fire", "Blaze")
    )
    reported = lines(dotr("deploy", "two.dotr").out)
    assert reported == [
        "+ Blaze new",
        "~ Alarm its text changed: starts with nothing remembered",
        "- Fire is removed, with what it remembers",
    ]


def test_what_was_deployed_runs_whatever_becomes_of_the_files(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    for name in ("fire.dotr", "rooms.dlog", "building.ttl"):
        Path(name).write_text("nonsense")
    assert json.loads(dotr("feed", "events").out)["rule"] == "Fire"


def test_a_bad_program_is_not_deployed(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    Path("fire.dotr").write_text("RULE nonsense")
    ran = dotr("deploy", "fire.dotr")
    assert (ran.code, ran.out) == (3, "")
    assert dotr("feed", "events").out


def test_several_files_may_be_deployed_one_after_the_other(dotr: Dotr) -> None:
    Path("two.dotr").write_text(TWO.replace("Fire", "Blaze"))
    dotr("deploy", "fire.dotr")
    reported = lines(dotr("deploy", "two.dotr").out)
    assert reported == ["= Fire the same: keeps what it remembers", "+ Blaze new", "+ Alarm new"]
    assert dotr("deploy", "two.dotr", "--dir", ".dotr").code == 0
    Path("three.dotr").write_text(TWO)
    assert dotr("deploy", "three.dotr").code == 3  # a second rule `Fire`


def test_undeploy_refuses_while_another_rule_reads_the_events(dotr: Dotr) -> None:
    Path("two.dotr").write_text(TWO)
    dotr("deploy", "two.dotr")
    ran = dotr("undeploy", "Fire")
    assert ran.code == 5
    assert "`Alarm`" in ran.err
    assert dotr("undeploy", "Alarm").code == 0
    assert dotr("undeploy", "Alarm").code == 3
    assert dotr("undeploy", "Fire").code == 0
    assert [rule["rule"] for rule in json.loads(dotr("status", "--format", "json").out)["rules"]] == []
    assert "+ Fire new" in lines(dotr("deploy", "two.dotr").out)


def test_status_says_how_far_it_is_and_what_every_rule_did(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    assert "not fed yet" in dotr("status").out
    dotr("feed", "events", "-o", "out.nq")
    report = json.loads(dotr("status", "--format", "json").out)
    assert (report["watermark"], report["latest"], report["graphs"], report["late"]) == (12, 12, 2, 0)
    (rule,) = report["rules"]
    assert (rule["rule"], rule["events"], rule["last"], rule["horizon"]) == ("Fire", 1, 12, 300_000_000)
    (output,) = report["outputs"].values()
    assert (output["format"], output["length"]) == ("nquads", Path("out.nq").stat().st_size)
    assert len(output["tail"]) == 32  # what it ends with, as it was committed
    text = dotr("status").out
    assert "watermark   12" in text
    assert "5 min" in text


def test_status_reads_a_deployment_of_an_older_format_and_changes_nothing(dotr: Dotr) -> None:
    packed = Path(__file__).parents[1] / "service" / "format7.db.gz"
    database = Path(".dotr/deployment.db")
    database.parent.mkdir()
    database.write_bytes(gzip.decompress(packed.read_bytes()))
    ran = dotr("status")
    assert (ran.code, ran.err) == (0, "")
    assert "fed         45 graphs" in ran.out
    assert database.read_bytes() == gzip.decompress(packed.read_bytes())


def test_status_shows_an_output_that_has_ended_on_one_line(dotr: Dotr) -> None:
    """What the other side answered may be in the error."""
    dotr("deploy", "fire.dotr")
    with Cursors(".dotr") as cursors:
        cursors.move("board", 0, "ended\nit answers \x1b]0;x\x07\r\nBad")
    assert (
        "output      board   has every event; has ended: it answers \\x1b]0;x\\x07 Bad\n"
        in dotr("status").out
    )


@pytest.mark.parametrize("verb", [("feed", "events"), ("status",), ("undeploy", "Fire")])
def test_without_a_deployment_there_is_a_hint(dotr: Dotr, verb: tuple[str, ...]) -> None:
    ran = dotr(*verb)
    assert ran.code == 3
    assert "dotr deploy" in ran.err


def test_a_folder_that_cannot_be_written_is_reported(dotr: Dotr) -> None:
    Path("taken").write_text("")
    ran = dotr("deploy", "fire.dotr", "--dir", "taken/state")
    assert ran.code == 4
    assert "error[D4201]" in ran.err


def test_deploying_a_library_says_how_it_is_used(dotr: Dotr) -> None:
    Path("library.dotr").write_text("PARAMETER ?patience\n" + TWO)
    ran = dotr("deploy", "library.dotr")
    assert (ran.code, ran.out) == (3, "")


def test_a_rule_that_was_taken_out_may_be_defined_by_another_file(dotr: Dotr) -> None:
    Path("two.dotr").write_text(TWO)
    Path("other.dotr").write_text(TWO.split("RULE Alarm")[0].replace("Smoke", "Gas"))
    dotr("deploy", "two.dotr")
    assert "error[D1104]" in dotr("deploy", "other.dotr").err
    dotr("undeploy", "Alarm")
    dotr("undeploy", "Fire")
    ran = dotr("deploy", "other.dotr")
    assert (ran.code, lines(ran.out)) == (0, ["+ Fire new"])
    graph = "@prefix : <urn:x:> . [] a :Gas ; :room 1 ."
    Path("in.jsonl").write_text(json.dumps({"time": 1, "graph": graph}) + "\n")
    assert json.loads(dotr("feed", "in.jsonl").out)["rule"] == "Fire"
    again = dotr("deploy", "two.dotr")  # its rules are back, and one of them is there twice
    assert (again.code, "error[D1104]" in again.err) == (3, True)
    dotr("undeploy", "Fire")
    assert lines(dotr("deploy", "two.dotr").out) == ["+ Fire new", "+ Alarm new"]


def test_a_rule_of_a_library_is_taken_out_under_the_name_of_its_import(dotr: Dotr) -> None:
    Path("library.dotr").write_text(TWO)
    Path("uses.dotr").write_text("IMPORT <library.dotr> AS East IMPORT <library.dotr> AS West")
    dotr("deploy", "uses.dotr")
    assert dotr("undeploy", "East_Alarm").code == 0
    assert dotr("undeploy", "East_Fire").code == 0
    report = json.loads(dotr("status", "--format", "json").out)
    assert [rule["rule"] for rule in report["rules"]] == ["West_Fire", "West_Alarm"]


def test_a_redeploy_reads_the_files_that_the_given_one_names(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    Path("two.dotr").write_text(TWO.replace("Fire", "Blaze"))
    Path("rooms.dlog").write_text(Path("rooms.dlog").read_text().replace(":is_in_room(?c", ":lies_in(?c"))
    assert lines(dotr("deploy", "two.dotr", "--dry-run").out)[0].startswith("= Fire the same")
    assert lines(dotr("deploy", "fire.dotr").out) == [
        "~ Fire Datalog rules that its queries reach changed: starts with nothing remembered"
    ]
    assert dotr("feed", "events").out == ""


def test_a_deployment_in_a_folder_that_cannot_be_written_can_be_looked_at(
    dotr: Dotr, monkeypatch: pytest.MonkeyPatch
) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events")
    expected = dotr("status").out

    def unable(*_: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr("dotr.service.journal.Journal._open", unable)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert dotr("status").out == expected
    assert dotr("deploy", "fire.dotr", "--dry-run").code == 0
    ran = dotr("feed", "events")
    assert (ran.code, "error[D4201]" in ran.err) == (4, True)
    Path(".dotr/deployment.db-wal").write_bytes(b"what was not taken over yet")
    assert dotr("status").code == 4


def test_a_rule_that_looks_at_one_instant_reaches_back_for_nothing(dotr: Dotr) -> None:
    Path("two.dotr").write_text(TWO.split("RULE Alarm")[0])
    dotr("deploy", "two.dotr")
    assert dotr("status").out.splitlines()[-1].endswith(" 0 s")


def test_an_instant_that_is_open_is_said_to_be(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events", "--keep-open")
    assert "watermark   11   (before the latest, 12)" in dotr("status").out
    dotr("feed", "events")
    assert "watermark   12   (up to the latest, 12)" in dotr("status").out


def test_quiet_says_nothing_but_warnings(dotr: Dotr, folder: Path) -> None:
    (folder / "seen.dotr").write_text(
        "PREFIX : <urn:>\nRULE Seen DEFINE { dotr_e a :Seen ; :x ?x }\n"
        "FROM Of := { SELECT ?x WHERE { ?x a :Thing } } WITH ?x := Of.?x\n"
    )
    assert dotr("deploy", "seen.dotr", "-q") == (0, "", "")
    assert dotr("deploy", "seen.dotr", "--quiet", "--from", "5") == (0, "", "")
    assert "planned" in dotr("deploy", "seen.dotr", "--from", "6").err
