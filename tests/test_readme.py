"""What the README shows is what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dotr.cli.main import VERBS
from tests.docs.pages import run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """The fenced block behind `<!-- mark -->`."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found, f"the README has no block marked `{mark}`"
    return found[1]


def test_the_first_screen_is_what_the_demo_prints() -> None:
    ran = subprocess.run([sys.executable, "-m", "dotr", "demo"], capture_output=True, text=True, check=True)
    assert block("output: demo") == ran.stdout


def test_the_mistake_it_shows_is_reported_in_these_words(tmp_path: Path) -> None:
    (tmp_path / "fire.dotr").write_text(
        "PREFIX : <http://example.org/building#>\n"
        "RULE Fire\n"
        "DEFINE { dotr_id1 a :Fire ; :at_room ?room }\n"
        "FROM Smoke := { SELECT ?s1 ?room1 WHERE { ?o a :SmokeReading ; :sensor ?s1 . ?s1 :in ?room1 } }\n"
        "WITH ?room := Smoke.?room\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "dotr", "check", "fire.dotr"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 1
    assert block("output: check") == ran.stdout


@pytest.mark.parametrize("mark", ["why", "why not"])
def test_the_proofs_it_shows_are_what_its_commands_print(mark: str) -> None:
    line = block(f"command: {mark}").splitlines()[-1]
    verb, *words = line.split()
    assert verb == "dotr"
    command = [sys.executable, "-m", "dotr", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert block(f"output: {mark}") == ran.stdout


def test_every_verb_it_names_is_one() -> None:
    index = (ROOT / "dotr" / "docs" / "index.md").read_text(encoding="utf-8")
    for verb in re.findall(r"(?<!`)`dotr (\w+)", README + index):
        assert verb in VERBS, verb


def test_excerpts_stand_in_the_files_they_name() -> None:
    names = re.findall(r"<!-- excerpt: (\S+) -->", README)
    assert names
    for name in names:
        assert block(f"excerpt: {name}") in (ROOT / name).read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_the_engine_it_shows_runs(tmp_path: Path) -> None:
    (tmp_path / "fire.dotr").write_text(
        "PREFIX : <urn:>\nRULE Fire DEFINE { dotr_e a :Fire ; :in ?room }\n"
        "FROM Smoke := { SELECT ?room WHERE { ?o a :Smoke ; :room ?room } } WITH ?room := Smoke.?room\n",
        encoding="utf-8",
    )
    (tmp_path / "events").mkdir()
    smoke = "[] a <urn:Smoke> ; <urn:room> <urn:lab> ."
    (tmp_path / "events" / "1.ttl").write_text(smoke, encoding="utf-8")
    given = f"import sys\ngraph, sink = {smoke!r}, sys.stdout\npairs = [(13, graph), (14, graph)]\n"
    command = [sys.executable, "-c", given + block("python: engine")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout.startswith("1 Fire urn:lab\n")
    assert ran.stdout.count("> a ") + ran.stdout.count("#type> <urn:Fire>") == 2


def test_the_batch_it_shows_finds_the_same_events(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    line = f'dotr() {{ "{sys.executable}" -m dotr "$@"; }}\n{block("command: spark")}'
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout == block("output: spark")


def test_the_server_it_shows_answers_so(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert run(f"```console\n{block('session: serve')}```", tmp_path) == 6


def test_the_knowledge_base_it_shows_runs(tmp_path: Path) -> None:
    prefix = "PREFIX : <http://example.org/>\n"
    (tmp_path / "building.ttl").write_text(f"{prefix}:hall :in :house . :ann :in :garden .", encoding="utf-8")
    (tmp_path / "rooms.dlog").write_text(
        f"{prefix}[?x, :within, ?y] :- [?x, :in, ?y] .\n"
        "[?x, :within, ?z] :- [?x, :within, ?y], [?y, :in, ?z] .\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-c", block("python: knowledge base")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "http://example.org/ann http://example.org/house" in ran.stdout
    assert ran.stdout.endswith(":hall :in :house   stated\n")
