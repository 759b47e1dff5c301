"""Paths that are empty, impossible, lead nowhere, or name what is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr

BEFORE = ("fire.dotr", "rooms.dlog", "building.ttl", "events/10.ttl", "events/12.ttl")


def contents() -> dict[str, bytes]:
    return {name: Path(name).read_bytes() for name in BEFORE}


@pytest.mark.parametrize("output", BEFORE)
def test_what_is_read_is_never_overwritten(dotr: Dotr, output: str) -> None:
    before = contents()
    as_text = ["-o", output, "--overwrite", "--format", "text"]
    for arguments in (
        ["run", "fire.dotr", "events", *as_text],
        ["run", "fire.dotr", "events", "--on-error", f"file={output}", "--overwrite"],
        ["query", "fire.dotr", "events", "--at", "12", "ask.rq", *as_text],
    ):
        Path("ask.rq").write_text("SELECT ?s WHERE { ?s ?p ?o }")
        ran = dotr(*arguments)
        assert (ran.code, "D5002" in ran.err) == (5, True), (arguments, ran)
        assert contents() == before
    assert not list(Path().rglob("*.part"))


def test_links_to_what_is_read_are_what_is_read(dotr: Dotr) -> None:
    before = contents()
    os.symlink("events/10.ttl", "soft.jsonl")
    os.link("events/10.ttl", "hard.jsonl")
    for name in ("soft.jsonl", "hard.jsonl"):
        assert dotr("run", "fire.dotr", "events", "-o", name, "--overwrite").code == 5
    assert contents() == before


def test_the_part_of_an_earlier_run_can_be_read_but_not_overwritten_meanwhile(dotr: Dotr) -> None:
    Path("out.nq.part").write_text("<urn:a> <urn:p> <urn:o> <urn:g> .\n")
    os.symlink("out.nq.part", "log.nq")
    ran = dotr("run", "fire.dotr", "log.nq", "-o", "out.nq", "--overwrite")
    assert (ran.code, "D5002" in ran.err) == (5, True)
    assert Path("out.nq.part").read_text() == "<urn:a> <urn:p> <urn:o> <urn:g> .\n"


def test_a_conversion_onto_its_source_is_refused(dotr: Dotr) -> None:
    assert dotr("convert", "events", "-o", "log.jsonl").code == 0
    before = Path("log.jsonl").read_bytes()
    assert dotr("convert", "log.jsonl", "-o", "log.jsonl", "--overwrite").code == 5
    assert Path("log.jsonl").read_bytes() == before
    assert dotr("convert", "log.jsonl", "-o", "archive").code == 0
    files = sorted(p.name for p in Path("archive").iterdir())
    assert dotr("convert", "archive", "-o", "archive", "--overwrite").code == 5
    assert sorted(p.name for p in Path("archive").iterdir()) == files


def test_a_batch_does_not_replace_the_log_it_reads(dotr: Dotr) -> None:
    assert dotr("batch", "fire.dotr", "--log", "events", "--out", "found", "--engine", "local").code == 0
    files = sorted(p.name for p in Path("found").iterdir())
    ran = dotr("batch", "fire.dotr", "--log", "found", "--out", "found", "--engine", "local", "--overwrite")
    assert (ran.code, "D5002" in ran.err) == (5, True)
    assert sorted(p.name for p in Path("found").iterdir()) == files


def test_a_feed_does_not_write_into_what_it_reads_nor_over_its_deployment(dotr: Dotr) -> None:
    assert dotr("deploy", "fire.dotr").code == 0
    before = contents()
    for output in ("events/10.ttl", "events/new.nq", "events/below/new.nq", ".dotr/deployment.db"):
        ran = dotr("feed", "events", "-o", output, "--overwrite", "--format", "nquads")
        assert (ran.code, "D5002" in ran.err) == (5, True), output
    assert dotr("feed", "events/*.nq", "events", "-o", "events/new.nq").code == 5
    assert contents() == before
    assert dotr("feed", "events", "-o", "events.nq").code == 0
    assert dotr("status").code == 0


@pytest.mark.usefixtures("folder")
def test_standard_output_is_not_appended_to_what_is_read() -> None:
    Path("log.jsonl").write_text('{"time": 10, "graph": ""}\n')
    command = f"{sys.executable} -m dotr run fire.dotr log.jsonl >> log.jsonl"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=30)
    assert (ran.returncode, b"D5002" in ran.stderr) == (5, True)


def test_an_empty_name_is_no_output(dotr: Dotr) -> None:
    assert dotr("deploy", "fire.dotr").code == 0
    for arguments in (
        ["run", "fire.dotr", "events", "-o", ""],
        ["query", "fire.dotr", "ask.rq", "-o", ""],
        ["feed", "events", "-o", ""],
        ["convert", "events", "-o", ""],
        ["batch", "fire.dotr", "--log", "events", "--out", "", "--engine", "local"],
        ["deploy", "fire.dotr", "--dir", ""],
        ["demo", "--copy", ""],
    ):
        ran = dotr(*arguments)
        assert (ran.code, ran.out) == (2, ""), arguments


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_nothing_can_have_is_a_usage_error(dotr: Dotr, name: str) -> None:
    for arguments in (
        ["run", name, "events"],
        ["run", "fire.dotr", name],
        ["run", "fire.dotr", "events", "-o", name],
        ["query", "fire.dotr", name],
        ["fmt", name],
        ["convert", "events", "-o", f"{name}.nq"],
        ["deploy", "fire.dotr", "--dir", name],
        ["batch", "fire.dotr", "--log", "events", "--out", name, "--engine", "local"],
        ["demo", "--copy", name],
    ):
        ran = dotr(*arguments)
        assert (ran.code, "D4114" in ran.err) == (2, True), arguments


def test_a_name_too_long_is_no_fault_of_ours(dotr: Dotr) -> None:
    name = "x" * 5000
    for arguments in (
        ["status", "--dir", name],
        ["deploy", "fire.dotr", "--dir", name],
        ["demo", "--copy", name],
    ):
        ran = dotr(*arguments)
        assert (ran.code, "D4203" in ran.err) == (4, True), arguments


def test_a_link_that_leads_nowhere_is_a_refused_file(dotr: Dotr) -> None:
    os.symlink("gone.ttl", "events/11.ttl")
    os.symlink("circle.ttl", "events/circle.ttl")
    assert dotr("deploy", "fire.dotr").code == 0
    for arguments in (
        ["run", "fire.dotr", "events", "--on-error", "skip"],
        ["feed", "events", "--on-error", "skip"],
        ["convert", "events", "-o", "log.nq", "--on-error", "skip"],
        ["batch", "fire.dotr", "--log", "events", "--out", "o", "--engine", "local", "--on-error", "skip"],
    ):
        ran = dotr(*arguments)
        assert (ran.code, "2 documents refused" in ran.err) == (0, True), (arguments, ran.err)
    assert "D2003" in dotr("run", "fire.dotr", "events").err


def test_pipes_and_devices_in_a_folder_are_no_files(dotr: Dotr) -> None:
    os.mkfifo("events/pipe.ttl")
    os.symlink("/dev/zero", "events/zero.ttl")
    os.symlink(".", "events/self.ttl")
    ran = dotr("run", "fire.dotr", "events")
    assert (ran.code, ran.out.count("\n")) == (0, 1)
