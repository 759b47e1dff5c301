"""Feeds of what lasts that fail at any write, also while other rules and another background come to hold."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dotr.errors import EngineError
from dotr.service.journal import Journal
from tests.service.deployments import LASTING, REACH, FailingDisk, deploy, deploy_from, doors, feed, stream

MAP = "BACKGROUND <map.ttl>\n"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A deployment that from 6 on has another map and other rules, and a stream in in.jsonl."""
    monkeypatch.chdir(tmp_path)
    Path("reach.dlog").write_text(REACH)
    Path("map.ttl").write_text("<urn:x:a> <urn:x:door> <urn:x:b> .")
    found = deploy(tmp_path, LASTING.replace("HOLD *", MAP + "HOLD *"))
    Path("map.ttl").write_text("<urn:x:b> <urn:x:door> <urn:x:c> . <urn:x:a> <urn:x:status> 0 .")
    later = (
        LASTING.replace("HOLD *", MAP + "HOLD *").replace("20 s", "5 s").replace("RULE Shut", "RULE Locked")
    )
    deploy_from(tmp_path, later, 6)
    lines = [line for number, one in enumerate(stream(8, bad=False)) for line in (one, *doors(one, number))]
    Path("in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return found


def test_a_write_that_fails_while_other_rules_come_to_hold_is_made_good(state: str, tmp_path: Path) -> None:
    shutil.copytree(state, "quiet")
    feed("quiet", ["in.jsonl"], ["quiet.nq"], every=10**9)
    expected = Path("quiet.nq").read_bytes()
    assert b"noway" in expected
    at = 0
    while True:
        at += 1
        folder = str(tmp_path / f"run{at}")
        shutil.copytree(state, folder)
        disk, reported = FailingDisk(at), "D4201"
        try:
            feed(folder, ["in.jsonl"], [f"{folder}/out.nq"], disk=disk, every=7)
        except EngineError as error:
            reported = error.diagnostics[0].code
        assert reported == "D4201"
        feed(folder, ["in.jsonl"], [f"{folder}/out.nq"], every=5)
        assert Path(f"{folder}/out.nq").read_bytes() == expected, f"after a failure at write {at}"
        with Journal(folder) as journal:
            assert journal.plan() is None
            assert any("Locked" in text for text in (journal.deployed().texts or {}).values())
        if disk.count < at:
            break
    assert at > 60
