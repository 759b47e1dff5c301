"""What a default graph says of a graph's name beyond its stamp is in no graph: counted, and named once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr
from tests.cli.conftest import folder as folder

PROV = "http://www.w3.org/ns/prov#"
RULES = """PREFIX : <urn:>
RULE Seen DEFINE { dotr_e a :Seen ; :x ?x }
FROM Of := { SELECT ?x WHERE { ?x a :Thing } } WITH ?x := Of.?x
"""


def quads(many: int, *, said: bool) -> str:
    lines = []
    for n in range(many):
        lines.append(
            f'<urn:g{n}> <{PROV}generatedAtTime> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        )
        if said:
            lines.append(f"<urn:g{n}> <{PROV}wasAttributedTo> <urn:sensor> .")
        lines.append(f"<urn:t{n}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Thing> <urn:g{n}> .")
    if said:
        lines.append('<urn:g1> <urn:label> "the last one" .')
    return "\n".join(lines) + "\n"


def trig(many: int) -> str:
    return "".join(
        f"<urn:g{n}> <{PROV}generatedAtTime> {n} ; <{PROV}wasAttributedTo> <urn:sensor> . "
        f"<urn:g{n}> {{ <urn:t{n}> a <urn:Thing> }}\n"
        for n in range(many)
    )


@pytest.fixture
def written(folder: Path) -> Path:
    (folder / "seen.dotr").write_text(RULES)
    (folder / "q.nq").write_text(quads(2, said=True))
    (folder / "plain.nq").write_text(quads(2, said=False))
    (folder / "t.trig").write_text(trig(3))
    return folder


SAID = f"3 triples about graphs, in a default graph, left out (<{PROV}wasAttributedTo> 2, <urn:label> 1)"


def test_a_run_counts_it_and_names_it_once(dotr: Dotr, written: Path) -> None:
    ran = dotr("run", "seen.dotr", "q.nq")
    assert ran.err.count(SAID) == 1
    assert ran.out.count('"Seen"') == 2
    assert f"3 triples about graphs, in a default graph, left out (<{PROV}wasAttributedTo> 3)" in (
        dotr("run", "seen.dotr", "t.trig").err
    )


def test_stamps_alone_are_no_loss(dotr: Dotr, written: Path) -> None:
    assert "about graphs" not in dotr("run", "seen.dotr", "plain.nq").err
    (written / "m.jsonl").write_text(
        '{"time": 1, "insert": "<urn:a> a <urn:Thing> .", "delete": "<urn:b> a <urn:Thing> ."}\n'
    )
    dotr("convert", "m.jsonl", "-o", "m.nq")
    assert "about graphs" not in dotr("convert", "m.nq", "-o", "n.trig").err


def test_feeds_conversions_and_batches_say_it_too(dotr: Dotr, written: Path) -> None:
    assert SAID in dotr("convert", "q.nq", "-o", "q.jsonl").err
    dotr("deploy", "seen.dotr", "-q")
    assert SAID in dotr("feed", "q.nq").err
    assert SAID in dotr("batch", "seen.dotr", "q.nq", "--out", "out", "--engine", "local").err


def test_the_summary_in_json_has_it(dotr: Dotr, written: Path) -> None:
    found = json.loads(dotr("run", "seen.dotr", "q.nq", "--summary", "json").err.splitlines()[-1])
    assert found["beside"] == {"said": 3, f"said <{PROV}wasAttributedTo>": 2, "said <urn:label>": 1}
    plain = json.loads(dotr("run", "seen.dotr", "plain.nq", "--summary", "json").err.splitlines()[-1])
    assert "beside" not in plain


def test_of_many_predicates_a_few_are_named(dotr: Dotr, written: Path) -> None:
    stamp = f'<urn:g> <{PROV}generatedAtTime> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    said = "".join(f"<urn:g> <urn:p{n}> <urn:o> .\n" for n in range(40))
    (written / "many.nq").write_text(stamp + said + "<urn:t> <urn:p> <urn:o> <urn:g> .\n")
    err = dotr("run", "seen.dotr", "many.nq").err
    assert "40 triples about graphs" in err
    assert err.count("<urn:p") == 7
