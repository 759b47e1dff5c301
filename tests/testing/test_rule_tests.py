"""`dotr test`: what passes, what fails and with which words, and what is not a test file."""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dotr.cli.test import await_change
from dotr.errors import DataError, Diagnostic
from dotr.source import Source
from dotr.testing.suite import read_suite
from tests.cli.conftest import FIRE, ROOMS, Dotr

HEAT = ":r1 a :TempReading ; :sensor :s1 ; :val 70 . :s1 :is_at_location :locA ."
SMOKE = ":r2 a :SmokeReading ; :sensor :s2 . :s2 :is_at_location :locA ."
HEAD = "rules: fire.dotr\ntests:\n"
STREAM = f'    stream: [ {{ at: 10, graph: "{HEAT}" }}, {{ at: 12, graph: "{SMOKE}" }} ]\n'


def case(folder: Path, *lines: str, name: str = "a") -> None:
    body = "".join(f"    {line}\n" for line in lines)
    (folder / "a.test.yaml").write_text(f"{HEAD}  - name: {name}\n{STREAM}{body}", encoding="utf-8")


@pytest.mark.parametrize(
    "lines",
    [
        ['expect: [ { rule: Fire, at: 12, room: ":roomA" } ]'],
        ["expect: [ Fire ]", "only: true"],
        ['expect: [ { rule: Fire, room: "<http://example.org/building#roomA>" } ]'],
        ['never: [ { rule: Fire, at: 11 }, { rule: Fire, room: ":roomB" } ]'],
        ['holds: [ { at: 12, triples: ":s2 :is_in_room :roomA .", not: ":s1 :is_in_room :roomA ." } ]'],
    ],
)
def test_what_is_as_expected_passes(folder: Path, dotr: Dotr, lines: list[str]) -> None:
    case(folder, *lines)
    ran = dotr("test", "a.test.yaml")
    assert (ran.code, ran.out) == (0, "")
    assert "1 test passed" in ran.err


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["expect: [ { rule: Fire, at: 11 } ]"], ["- Fire @ 11", "it did not happen", "instead: Fire @ 12"]),
        (['expect: [ { rule: Fire, room: ":roomB" } ]'], ["- Fire  ?room :roomB", "instead: Fire @ 12"]),
        (["expect: [ Fire, Fire ]"], ["- Fire", "did not happen", "LAST HighTemp 1"]),
        (["expect: [ Fire, { rule: Fire, at: 12 } ]"], ["- Fire ", "did not happen"]),
        (["never: [ Fire ]"], ["+ Fire @ 12  ?room :roomA", "never should", "LAST HighTemp  @ 10"]),
        (["expect: []", "only: true"], ["+ Fire @ 12", "nothing expects it"]),
        (
            ['holds: [ { at: 12, triples: ":s2 :is_in_room :roomB ." } ]'],
            [":roomB does not hold @ 12", "lacks"],
        ),
        (['holds: [ { at: 12, not: ":s2 :is_in_room :roomA ." } ]'], [":roomA holds @ 12", "rooms.dlog"]),
    ],
)
def test_what_is_not_fails_and_says_why(folder: Path, dotr: Dotr, lines: list[str], words: list[str]) -> None:
    case(folder, *lines)
    ran = dotr("test", "a.test.yaml")
    assert ran.code == 1
    assert "a.test.yaml:" in ran.out
    for word in words:
        assert word in ran.out, ran.out
    assert "1 failed" in ran.err


def test_facts_take_the_place_of_graphs(folder: Path, dotr: Dotr) -> None:
    hot = '{ at: 0, room: ":r", v: 61 }'
    (folder / "a.test.yaml").write_text(
        f"{HEAD}  - name: a\n    stream:\n      - facts: {{ Fire.HighTemp: [ {hot} ], "
        'Fire.Smoke: [ { at: 9, room: ":r" }, { at: 8, room: ":q" } ] }\n'
        '    only: true\n    expect: [ { rule: Fire, at: 9, room: ":r" } ]\n',
        encoding="utf-8",
    )
    assert dotr("test", "a.test.yaml").code == 0


def test_expectations_are_paired_so_that_as_many_as_possible_are_met(folder: Path, dotr: Dotr) -> None:
    facts = (
        'facts: { Fire.HighTemp: [ { at: 0, room: ":a", v: 61 }, { at: 0, room: ":b", v: 61 } ], '
        'Fire.Smoke: [ { at: 9, room: ":a" }, { at: 9, room: ":b" } ] }'
    )
    (folder / "a.test.yaml").write_text(
        f"{HEAD}  - name: a\n    stream: [ {{ {facts} }} ]\n    only: true\n"
        '    expect: [ Fire, { rule: Fire, room: ":a" } ]\n',
        encoding="utf-8",
    )
    assert dotr("test", "a.test.yaml").code == 0


SEEN = """PREFIX : <urn:>
QUERY Q := { SELECT ?v WHERE { ?o :v ?v } }
RULE Seen DEFINE { dotr_x a :Seen } FROM Q
PRIVATE RULE Helper DEFINE { dotr_x a :Helper } FROM Q
RULE Twice DEFINE { dotr_x a :Twice } FROM Helper AND EACH Q WITHIN 0 s FROM Helper ON Q.?v > 100
"""


def test_as_many_expectations_as_events_may_fit_all_of_them(folder: Path, dotr: Dotr) -> None:
    many = 1_500
    (folder / "seen.dotr").write_text(SEEN, encoding="utf-8")
    facts = ", ".join(f"{{ at: {n}, v: 1 }}" for n in range(many))
    (folder / "a.test.yaml").write_text(
        f"rules: seen.dotr\ntests:\n  - name: a\n    stream: [ {{ facts: {{ Q: [ {facts} ] }} }} ]\n"
        f"    only: true\n    expect: [ {', '.join(['Seen'] * many)} ]\n",
        encoding="utf-8",
    )
    assert dotr("test", "a.test.yaml").code == 0


def test_only_is_about_what_comes_out(folder: Path, dotr: Dotr) -> None:
    (folder / "seen.dotr").write_text(SEEN, encoding="utf-8")
    text = "rules: seen.dotr\ntests:\n  - { name: a, stream: [ { at: 1, graph: ':o :v 1 .' } ], only: true, "

    def ran(rest: str) -> int:
        (folder / "a.test.yaml").write_text(f"{text}{rest} }}\n", encoding="utf-8")
        return dotr("test", "a.test.yaml").code

    assert ran("expect: [ Seen ]") == 0
    assert ran("expect: [ Seen, Helper ]") == 0
    assert ran("expect: [ Seen ], never: [ Helper ]") == 1
    assert ran("expect: [ Helper ]") == 1
    (folder / "1.ttl").write_text("<urn:o> <urn:v> 1 .", encoding="utf-8")
    recorded = dotr("test", "--record", "1.ttl", "seen.dotr").out
    assert [e["rule"] for e in yaml.safe_load(recorded)["tests"][0]["expect"]] == ["Seen"]


def test_a_file_that_is_refused_does_not_keep_others_from_running(folder: Path, dotr: Dotr) -> None:
    case(folder, "expect: [ Fire ]")
    (folder / "0.test.yaml").symlink_to(folder / "nowhere.yaml")
    (folder / "b.test.yaml").write_text("rules: fire.dotr\ntests: []\n", encoding="utf-8")
    ran = dotr("test", ".", "--junit", "out.xml")
    assert ran.code == 3
    assert "1 test passed; 2 files refused" in ran.err
    assert "D2003" in ran.err
    assert "this file has no test" in ran.err
    suites = ElementTree.parse(folder / "out.xml").getroot()  # noqa: S314  # our own
    assert [(s.get("tests"), s.get("errors")) for s in suites] == [("1", "1"), ("1", "1"), ("1", "0")]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "D4401", "empty"),
        ("rules: [", "D4401", "not YAML"),
        ("[" * 3000, "D4401", "deep"),
        ("rules: fire.dotr\ntests: 3\n", "D4401", "`tests` is a list"),
        ("rules: fire.dotr\ntest: []\n", "D4401", "did you mean `tests`"),
        (HEAD + "  - { name: a, expects: [ Fire ] }\n", "D4401", "did you mean `expect`"),
        (HEAD + "  - { name: a, stream: [] }\n", "D4401", "expects nothing"),
        (HEAD + "  - { name: a, only: yes }\n", "D4401", "neither true nor false"),
        (HEAD + "  - { name: a, expect: [ Fier ] }\n", "D4402", "did you mean `Fire`"),
        (HEAD + '  - { name: a, expect: [ { rule: Fire, rom: ":a" } ] }\n', "D4402", "did you mean `room`"),
        (HEAD + "  - { name: a, expect: [ { rule: Fire, room: room23 } ] }\n", "D4403", "cannot be read"),
        (HEAD + "  - { name: a, expect: [ { rule: Fire, room: room23 } ] }\n", "D4403", '`"room23"`'),
        (HEAD + '  - { name: a, expect: [ { rule: Fire, room: ":a , :b" } ] }\n', "D4403", "one term"),
        (HEAD + "  - { name: a, stream: [ { map: a.map } ], only: true }\n", "D4401", "without a table"),
        (HEAD + "  - { name: a, stream: [ { from: a.csv } ], only: true }\n", "D2003", "a.csv"),
        (
            HEAD + "  - { name: a, stream: [ { from: fire.dotr, map: no.map } ], only: true }\n",
            "D2003",
            "no.map",
        ),
        (HEAD + '  - { name: a, expect: [ { rule: Fire, room: ":a . :b :c :d" } ] }\n', "D4403", "one term"),
        (HEAD + "  - { name: a, expect: [ { rule: Fire, at: 10:30 } ] }\n", "D4403", "a.test.yaml:3"),
        (HEAD + '  - { name: a, holds: [ { at: 1, triples: "[] :p :o ." } ] }\n', "D4403", "blank node"),
        (HEAD + "  - { name: a, stream: [ { at: 1 } ], only: true }\n", "D4401", "brings nothing"),
        (
            HEAD + "  - { name: a, stream: [ { facts: { Q: [ { at: 1 } ] } } ], only: true }\n",
            "D4402",
            "query",
        ),
        ("rules: fire.dotr\nprefixes: { x: 'http://e> <a' }\ntests: []\n", "D4401", "not an absolute IRI"),
        (HEAD + "  - { name: a, expect: [ { rule: Fire, room: '[]' } ] }\n", "D4403", "blank node"),
        ("rules: fire.dotr\ntests: []\n", "D4401", "has no test"),
        (HEAD + '  - { name: a, expect: [ { rule: Fire, rom: ":a" } ] }\n', "D4402", "a.test.yaml:3:40"),
        ("rules: nowhere.dotr\ntests: [ { name: a, only: true } ]\n", "D1310", "nowhere.dotr"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_at_its_place(
    folder: Path, dotr: Dotr, text: str, code: str, words: str
) -> None:
    (folder / "a.test.yaml").write_text(text, encoding="utf-8")
    ran = dotr("test", "a.test.yaml")
    assert ran.code in (1, 3)
    assert words in ran.out + ran.err
    assert code in ran.out + ran.err or code == "D1310"
    assert "Traceback" not in ran.err


def test_coverage_names_what_no_test_did(folder: Path, dotr: Dotr) -> None:
    case(folder, "expect: [ Fire ]")
    ran = dotr("test", "--coverage", "a.test.yaml")
    assert "a.test.yaml: 6 of 8 covered" in ran.out
    assert "rule Fire: LAST HighTemp: ON was never false" in ran.out
    case(folder, "never: [ { rule: Fire, at: 1 } ]")
    (folder / "rooms.dlog").write_text(ROOMS + ":never(?x, ?y) :- :nothing(?x, ?y) .\n", encoding="utf-8")
    ran = dotr("test", "--coverage", "a.test.yaml")
    assert "rooms.dlog:3:1  Datalog rule at line 3 derived nothing" in ran.out


def test_a_page_of_coverage_has_the_rules_and_what_no_test_did_below_its_line(
    folder: Path, dotr: Dotr
) -> None:
    (folder / "a.test.yaml").write_text(
        HEAD + "  - { name: 'a <b> test', only: true }\n  - { name: bad, expect: [ Fire ] }\n",
        encoding="utf-8",
    )
    ran = dotr("test", "a.test.yaml", "--coverage-html", "c.html", "--coverage")
    assert ran.code == 1
    page = (folder / "c.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    shown = html.unescape(re.sub(r"<[^>]*>", "\n", page))
    first, *missing = [
        line.strip() for line in ran.out.splitlines() if "covered" in line or "  fire.dotr:" in line
    ]
    assert missing
    assert first.removeprefix("a.test.yaml: ") in shown
    for line in missing:
        place, what = line.split("  ", 1)
        number = place.split(":")[1]
        at = rf'<div class="line bad"><span class="n">{number}</span>.*?</div>'
        at += '(?:<div class="missing">[^<]*</div>)*'
        below = re.search(at, page)
        assert below is not None, line
        assert html.escape(what) in below[0]
    assert 'class="line good"' in page or "0 of" in first
    assert "a <b> test" in shown
    assert "FAILED a.test.yaml · bad" in shown
    assert "AND LAST HighTemp" in shown
    assert dotr("test", "a.test.yaml", "--coverage-html", "c.html").code == 5
    again = dotr("test", "a.test.yaml", "--coverage-html", "c.html", "--overwrite")
    assert (again.code, (folder / "c.html").read_text(encoding="utf-8")) == (1, page)
    assert dotr("test", "a.test.yaml", "--coverage-html", "x", "--junit", "x").code == 2


def test_junit_has_every_test(folder: Path, dotr: Dotr) -> None:
    (folder / "a.test.yaml").write_text(
        HEAD + "  - { name: good, only: true }\n  - { name: bad, expect: [ Fire ] }\n", encoding="utf-8"
    )
    assert dotr("test", "a.test.yaml", "--junit", "out.xml").code == 1
    (suite,) = ElementTree.parse(folder / "out.xml").getroot()  # noqa: S314  # our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert [(c.get("name"), [e.tag for e in c]) for c in suite] == [("good", []), ("bad", ["failure"])]
    assert dotr("test", "a.test.yaml", "--junit", "out.xml").code == 5


def test_what_is_recorded_passes_and_notices_a_change(folder: Path, dotr: Dotr) -> None:
    (folder / "10.ttl").write_text(f"PREFIX : <http://example.org/building#>\n{HEAT}", encoding="utf-8")
    (folder / "12.ttl").write_text(f"PREFIX : <http://example.org/building#>\n{SMOKE}", encoding="utf-8")
    ran = dotr("test", "--record", "10.ttl", "--record", "12.ttl", "fire.dotr")
    assert yaml.safe_load(ran.out)["tests"][0]["expect"] == [{"rule": "Fire", "at": 12, "room": ":roomA"}]
    (folder / "a.test.yaml").write_text(ran.out, encoding="utf-8")
    assert dotr("test", "a.test.yaml").code == 0
    (folder / "fire.dotr").write_text(FIRE.replace("?v > 60", "?v > 80"), encoding="utf-8")
    assert dotr("test", "a.test.yaml").code == 1


def test_a_file_is_taken_in_its_own_order(folder: Path, dotr: Dotr) -> None:
    lines = [f'{{"time": {time}, "graph": ""}}' for time in (10, 30, 20)]
    (folder / "late.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert "D2301" in dotr("test", "--record", "late.jsonl", "fire.dotr").err
    text = "rules: fire.dotr\n{}tests: [ {{ name: a, only: true, stream: [ {{ from: late.jsonl }} ] }} ]\n"
    (folder / "a.test.yaml").write_text(text.format(""), encoding="utf-8")
    assert "D2301" in dotr("test", "a.test.yaml").out
    (folder / "a.test.yaml").write_text(text.format("lateness: 10 s\n"), encoding="utf-8")
    assert dotr("test", "a.test.yaml").code == 0


def test_a_folder_stands_for_the_test_files_below_it(folder: Path, dotr: Dotr) -> None:
    assert "D4404" in dotr("test", ".").err
    case(folder, "expect: [ Fire ]")
    assert dotr("test", ".").code == 0


def test_pytest_collects_test_files_with_our_key_and_no_others(folder: Path) -> None:
    case(folder, "expect: [ { rule: Fire, at: 11 } ]", name="early")
    (folder / "other.test.yaml").write_text("a: 1\n", encoding="utf-8")
    plugin = ["-p", "no:dotr", "-p", "dotr.testing.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-v", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    assert "instead: Fire @ 12" in done.stdout
    case(folder, "expect: [ Fire ]")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["examples", "patterns"])
def test_everything_shipped_passes_its_tests(folder: str, dotr: Dotr) -> None:
    ran = dotr("test", str(ROOT / folder))
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("library", sorted(p.name for p in (ROOT / "patterns").glob("*.dotr")))
def test_every_pattern_library_has_tests(library: str) -> None:
    assert (ROOT / "patterns" / library.replace(".dotr", ".test.yaml")).exists()


def test_watching_runs_again_when_a_rule_changes_and_ends_with_ctrl_c(folder: Path) -> None:
    case(folder, "expect: [ Fire ]")
    command = [sys.executable, "-m", "dotr", "test", "--watch", "a.test.yaml"]
    with (
        subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # it may be ignored
        ) as ran,
        ExitStack() as stack,
    ):
        stack.callback(ran.kill)
        assert ran.stderr is not None
        assert ran.stdout is not None

        def until(words: str) -> None:
            for line in ran.stderr or ():
                if words in line:
                    return
            raise AssertionError(words)

        until("waiting for a change")
        (folder / "fire.dotr").write_text(FIRE.replace("?v > 60", "?v > 80"), encoding="utf-8")
        until("1 failed")
        until("waiting for a change")
        (folder / "fire.dotr").write_text("RULE", encoding="utf-8")  # in the middle of an edit
        until("error[")
        until("waiting for a change")
        ran.send_signal(signal.SIGINT)
        assert ran.wait(30) == 130
        assert "it did not happen" in ran.stdout.read()


def test_a_change_while_tests_run_is_not_missed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a").write_text("1")
    begun = os.stat(folder / "a").st_mtime_ns
    path = str(folder / "a")
    os.utime(path, ns=(begun, begun + 1))
    await_change([path], {}, begun)  # written after the first run began
    await_change([path], {path: (begun, 1)}, begun + 2)  # and during a later one
    monkeypatch.setattr("dotr.cli.test.time.sleep", _asleep)
    with pytest.raises(_Asleep):
        await_change([path, str(folder / "b")], {}, begun + 1)


class _Asleep(Exception):  # noqa: N818
    pass


def _asleep(_seconds: float) -> None:
    raise _Asleep


LINES = st.sampled_from(
    [
        "rules: fire.dotr",
        "tests:",
        "  - name: a",
        "    stream: [ { at: 1, graph: '' } ]",
        "    expect: [ Fire, { rule: Fire, at: 2 } ]",
        "    only: true",
        "    never: *a",
        "    holds: [ { at: 1, triples: ':a :b :c .' } ]",
        "  - &a { name: b, only: true, stream: [ { from: nowhere.ttl } ] }",
        "prefixes: { x: 'http://e#', '': 3 }",
        "time_unit: ms",
        "lateness: 5 min",
        "background: [ a, b ]",
        "? [ 1, 2 ]",
        "\t- x",
        "---",
        "!!python/object:os.system x",
        "\u0000",
    ]
)


@given(st.lists(LINES, max_size=12).map("\n".join) | st.text(max_size=40))
def test_any_text_is_a_suite_or_is_refused_with_a_place(text: str) -> None:
    refused: tuple[Diagnostic, ...] = ()
    try:
        suite = read_suite(Source("a.test.yaml", text))
        assert suite.rules or suite.text is not None
    except DataError as error:
        refused = tuple(error.diagnostics)
    for one in refused:
        assert one.code == "D4401"
        assert one.span is not None
        one.render()


def test_a_table_is_tested_through_its_mapping(folder: Path, dotr: Dotr) -> None:
    (folder / "t.csv").write_text("when,room\n10,a\n20,b\n", encoding="utf-8")
    (folder / "t.map").write_text("# time: when\n[] <urn:seen> <urn:{room}> .\n", encoding="utf-8")
    (folder / "seen.dotr").write_text(
        "PREFIX : <urn:>\nRULE Seen DEFINE { dotr_s a :Seen ; :in ?room }\n"
        "FROM Look := { SELECT ?room WHERE { ?o :seen ?room } } WITH ?room := Look.?room\n",
        encoding="utf-8",
    )
    written = dotr("test", "--record", "t.csv", "--map", "t.map", "seen.dotr").out
    assert "- { from: t.csv, map: t.map }" in written
    (folder / "a.test.yaml").write_text(written, encoding="utf-8")
    assert dotr("test", "a.test.yaml").code == 0
    (folder / "t.map").write_text("# time: when\n[] <urn:seen> <urn:c{room}> .\n", encoding="utf-8")
    ran = dotr("test", "a.test.yaml")
    assert ran.code == 1
    assert "expected, but it did not happen" in ran.out
    (folder / "a.test.yaml").write_text(written.replace(", map: t.map", ""), encoding="utf-8")
    assert "D2407" in dotr("test", "a.test.yaml").out
    assert "--map is for --record" in dotr("test", "--map", "t.map", "a.test.yaml").err
