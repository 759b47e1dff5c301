"""`dotr kb shell` from standard input, and `dotr close`."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
from click.testing import CliRunner

from dotr.cli import main
from dotr.cli.kb import KnowledgeOptions, Shell, command, is_rules, made_of, prefixes_of
from dotr.knowledge_base import KnowledgeBase

BUILDING = """PREFIX : <http://e/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
:hall a :Hall ; :in :house . :Hall rdfs:subClassOf :Room .
"""
WITHIN = """PREFIX : <http://e/>
[?x, :within, ?y] :- [?x, :in, ?y] .
[?x, :within, ?z] :- [?x, :within, ?y], [?y, :in, ?z] .
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "building.ttl").write_text(BUILDING, encoding="utf-8")
    (tmp_path / "within.dlog").write_text(WITHIN, encoding="utf-8")
    return str(tmp_path / "building.ttl"), str(tmp_path / "within.dlog")


def said(arguments: list[str], lines: str) -> str:
    ran = CliRunner().invoke(command, ["shell", *arguments], input=lines, catch_exceptions=False)
    assert ran.exit_code == 0
    return ran.stdout


def test_a_session_from_standard_input(files: tuple[str, str]) -> None:
    lines = """
# a comment
insert :ann :in :hall
watch SELECT ?who { ?who :within :house }
insert until 10 :eve :in :hall
query SELECT ?who \\
  { ?who :in :hall }
ASK { :eve :within :house }
rules add [?x, :meets, ?y] :- [?x, :in, ?r], [?y, :in, ?r], FILTER(?x != ?y) .
rules remove [?a, :meets, ?b] :- [?a, :in, ?r], [?b, :in, ?r], FILTER(?a != ?b) .
delete :ann :in :hall . :x :in :y
advance 10
watch
unwatch 1
why :hall :in :house
size
quit
insert :never :in :hall
"""
    assert said(list(files), lines).splitlines() == [
        "+ :ann :in :hall",
        "+ :ann :within :hall",
        "+ :ann :within :house",
        "[1] 2 answers",
        "+ :eve :in :hall",
        "+ :eve :within :hall",
        "+ :eve :within :house",
        "[1] + ?who :eve",
        "?who",
        ":ann",
        ":eve",
        "true",
        "+ :ann :meets :eve",
        "+ :eve :meets :ann",
        "- :ann :meets :eve",
        "- :eve :meets :ann",
        "- :ann :in :hall",
        "- :ann :within :hall",
        "- :ann :within :house",
        "not stated: 1 triple of these",
        "[1] - ?who :ann",
        "- :eve :in :hall",
        "- :eve :within :hall",
        "- :eve :within :house",
        "[1] - ?who :eve",
        "[1] SELECT ?who { ?who :within :house }   1 answer",
        ":hall :in :house   stated",
        "4 triples, 3 stated; 2 rules, entailment none",
    ]


@pytest.mark.parametrize(
    ("line", "code", "status"),
    [
        ("instert :a :in :b", "D4188", 2),
        ("insert :a :in", "D2001", 3),
        ("rules add [?x, :p", "D30", 3),
        ("query SELECT ?x {", "D1201", 3),
        ("unwatch 7", "D4188", 2),
        ("prefix x", "D4188", 2),
        ("advance no", "D2", 3),
        ("rules mend", "D4188", 2),
        ("save /no/such/folder/x.kb", "D4201", 4),
    ],
)
def test_from_standard_input_the_first_mistake_ends_it(
    files: tuple[str, str],
    line: str,
    code: str,
    status: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    source = tmp_path / "lines"
    source.write_text(f"insert :first :in :hall\n{line}\ninsert :second :in :hall\n", encoding="utf-8")
    with source.open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)
        assert main.run(["kb", "shell", *files]) == status
    reported = capsys.readouterr()
    assert code in reported.err
    assert ":first" in reported.out
    assert ":second" not in reported.out


def test_at_a_prompt_it_goes_on_and_completes(capsys: pytest.CaptureFixture[str]) -> None:
    written: list[str] = []
    shell = Shell(KnowledgeBase(terms="canonical", prefixes={"": "http://e/"}), written.append)
    shell.run(["bad", "insert :a :inside :b", "prefix ex: <http://x/>", "prefix"], forgiving=True)
    assert "D4188" in capsys.readouterr().err
    assert "".join(written) == "+ :a :inside :b\nPREFIX : <http://e/>\nPREFIX ex: <http://x/>\n"
    assert shell.completions("in") == ["insert"]
    assert shell.completions(":i") == [":inside"]


def test_a_saved_file_is_opened(files: tuple[str, str], tmp_path: Path) -> None:
    saved = str(tmp_path / "building.kb")
    said(list(files), f"insert :ann :in :hall\nsave {saved}")
    assert said([saved], "size") == "7 triples, 4 stated; 2 rules, entailment none\n"


def closed(path: Path) -> set[str]:
    return {str(quad.triple) for quad in ox.parse(path=str(path))}


def test_the_closure_is_written_in_the_format_of_its_name(files: tuple[str, str], tmp_path: Path) -> None:
    found = []
    for ending in ("ttl", "nt", "rdf", "jsonld", "trig", "nq"):
        path = tmp_path / f"closed.{ending}"
        assert main.run(["close", *files, "-o", str(path), "-q"]) == 0
        found.append(closed(path))
    assert len(found[0]) == 4
    assert all(one == found[0] for one in found)
    both = tmp_path / "both.ttl"
    assert main.run(["close", *files, "--entailment", "rdfs", "-o", str(both), "-q"]) == 0
    assert closed(both) > found[0]
    derived = tmp_path / "derived.nt"
    assert main.run(["close", files[0], "--only-derived", "-o", str(derived), "-q"]) == 0
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    assert closed(derived) == {f"<http://e/hall> {kind} <http://e/Room>"}


def test_what_cannot_be_closed_says_why(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.ttl"
    bad.write_text(f"{BUILDING} :hall a <http://www.w3.org/2002/07/owl#Nothing> .", encoding="utf-8")
    assert main.run(["close", str(bad)]) == 3
    assert "cls-nothing2" in capsys.readouterr().err
    assert main.run(["close", str(bad), "--keep-contradictions"]) == 0
    reported = capsys.readouterr()
    assert "cls-nothing2" in reported.err
    assert "e/Room" in reported.out
    assert main.run(["close", files[0], "-o", str(tmp_path / "x.csv")]) == 3
    assert "D2008" in capsys.readouterr().err
    assert main.run(["close", files[0], "--format", "nt", "-o", str(tmp_path / "x.ttl")]) == 2
    assert "D4127" in capsys.readouterr().err
    assert main.run(["close", files[0], "-o", files[0]]) != 0
    assert Path(files[0]).read_text(encoding="utf-8") == BUILDING


def test_files_of_a_knowledge_base_are_rules_or_rdf_and_bring_their_prefixes(tmp_path: Path) -> None:
    data, rules = tmp_path / "a.ttl", tmp_path / "r.dlog"
    schema = "e:C <http://www.w3.org/2000/01/rdf-schema#subClassOf> e:D . e:a a e:C ."
    data.write_text(f"@prefix e: <urn:e#> .\nPREFIX f: <urn:f#>\n{schema}")
    rules.write_text("[?x, <urn:p>, ?x] :- [?x, a, <urn:e#C>] .")
    assert [is_rules(name) for name in ("a.dlog", "a.dotr", "a.ttl", "dlog")] == [True, True, False, False]
    assert prefixes_of(str(data)) == [("e", "urn:e#"), ("f", "urn:f#")]
    assert prefixes_of(str(rules)) == []
    member = ("<urn:e#a>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:e#D>")
    closed = made_of([str(data)], KnowledgeOptions(base="urn:x"))
    assert member in closed
    assert closed.prefixes["e"] == "urn:e#"
    own = made_of([str(data), str(rules)], KnowledgeOptions(base="urn:x"))
    assert member not in own
    assert ("<urn:e#a>", "<urn:p>", "<urn:e#a>") in own
    assert member in made_of([str(data), str(rules)], KnowledgeOptions("rdfs", base="urn:x"))
