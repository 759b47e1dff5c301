"""`--split` on every verb and every format of RDF."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyoxigraph as ox
import pytest

from tests.cli.conftest import Dotr
from tests.io.dumps.dumps import dump


def lines(path: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_the_diagnostic_of_a_dump_offers_to_split_it(dotr: Dotr) -> None:
    Path("dump.ttl").write_text(dump(10))
    ran = dotr("convert", "dump.ttl", "-o", "out.jsonl")
    assert ran.code == 3
    assert "--split sosa:Observation makes one of each" in ran.err
    assert dotr("convert", "dump.ttl", "-o", "out.jsonl", "--split", "sosa:Observation").code == 0
    found = lines("out.jsonl")
    assert [line["time"][-3:] for line in found] == [f"{n:02}Z" for n in range(10)]
    assert all(
        line["graph"].count(" .\n") == 5 and f'celsius> "{n}"' in line["graph"]
        for n, line in enumerate(found)
    )
    assert "room" not in found[0]["graph"]


def test_what_is_shared_is_in_every_graph_if_asked(dotr: Dotr) -> None:
    Path("dump.ttl").write_text(dump(4))
    dotr("convert", "dump.ttl", "-o", "out.jsonl", "--split", "sosa:resultTime", "--with-shared")
    assert [f"room{n % 3}>" in line["graph"] for n, line in enumerate(lines("out.jsonl"))] == [True] * 4


@pytest.mark.parametrize("suffix", [".nt", ".rdf", ".jsonld", ".trig", ".nq", ".ttl.gz"])
def test_every_format_of_rdf_is_taken_apart_alike(dotr: Dotr, suffix: str) -> None:
    Path("dump.ttl").write_text(dump(5))
    quads = list(ox.parse(dump(5), ox.RdfFormat.TURTLE))
    kinds = {
        ".nt": ox.RdfFormat.N_TRIPLES,
        ".rdf": ox.RdfFormat.RDF_XML,
        ".jsonld": ox.RdfFormat.JSON_LD,
        ".trig": ox.RdfFormat.TRIG,
        ".nq": ox.RdfFormat.N_QUADS,
    }
    if suffix in kinds:
        content = ox.serialize(
            [quad.triple for quad in quads] if suffix in (".nt", ".rdf") else quads, None, kinds[suffix]
        )
        assert content is not None
        Path(f"d{suffix}").write_bytes(content)
    else:
        Path(f"d{suffix}").write_bytes(gzip.compress(dump(5).encode()))
    dotr("convert", "dump.ttl", "-o", "one.jsonl", "--split", "sosa:Observation")
    assert dotr("convert", f"d{suffix}", "-o", "two.jsonl", "--split", "sosa:Observation").code == 0
    one, two = lines("one.jsonl"), lines("two.jsonl")
    assert [line["time"] for line in one] == [line["time"] for line in two]
    assert [sorted(line["graph"].splitlines()) for line in one] == [
        sorted(line["graph"].splitlines()) for line in two
    ]


def test_every_verb_takes_dumps_apart(dotr: Dotr) -> None:
    rules = """PREFIX : <http://example.org/> PREFIX sosa: <http://www.w3.org/ns/sosa/>
    RULE Hot DEFINE { dotr_e a :Hot ; :celsius ?c }
    FROM R := { SELECT ?c WHERE { ?o sosa:hasResult/:celsius ?c FILTER(?c > 6) } } WITH ?c := R.?c
    """
    Path("hot.dotr").write_text(rules)
    Path("dump.ttl").write_text(dump(9))
    split = ("--split", "sosa:Observation")
    ran = dotr("run", "hot.dotr", "dump.ttl", *split)
    assert len(ran.out.splitlines()) == 2
    assert dotr("batch", "hot.dotr", "dump.ttl", *split, "--out", "out", "--engine", "local").code == 0
    assert "".join(part.read_text() for part in sorted(Path("out").glob("part-*"))) == ran.out
    assert dotr("deploy", "hot.dotr").code == 0
    assert dotr("feed", "dump.ttl", *split).out == ran.out
    assert dotr("feed", "dump.ttl", *split).out == ""


def test_a_subject_without_a_time_is_refused_alone(dotr: Dotr) -> None:
    Path("dump.ttl").write_text(dump(2) + ":o9 a sosa:Observation .\n")
    ran = dotr(
        "convert",
        "dump.ttl",
        "-o",
        "out.jsonl",
        "--split",
        "sosa:Observation",
        "--on-error",
        "file=dead.jsonl",
    )
    assert ran.code == 0
    assert len(lines("out.jsonl")) == 2
    letters = lines("dead.jsonl")
    assert [(one["code"], one["place"]) for one in letters] == [
        ("D2101", "dump.ttl, <http://example.org/o9>")
    ]


def test_nothing_to_split_by_lists_what_there_is(dotr: Dotr) -> None:
    Path("dump.ttl").write_text(dump(2))
    ran = dotr("convert", "dump.ttl", "-o", "out.jsonl", "--split", "sosa:Sensor")
    assert ran.code == 3
    assert "D2410" in ran.err
    assert "it has sosa:Observation (2)" in ran.err
    assert dotr("convert", "dump.ttl", "-o", "out.jsonl", "--split", "ex:Sensor").code == 2


def test_streams_are_not_taken_apart(dotr: Dotr) -> None:
    Path("in.jsonl").write_text('{"time": 1, "graph": "<urn:a> <urn:p> 1 ."}\n')
    assert dotr("convert", "in.jsonl", "-o", "out.jsonl", "--split", "sosa:Observation").code == 0
    assert len(lines("out.jsonl")) == 1


def test_what_is_in_no_graph_is_counted(dotr: Dotr) -> None:
    Path("hot.dotr").write_text(
        "PREFIX : <http://example.org/>\nQUERY R := { SELECT ?s WHERE { ?s :none ?o } }\n"
    )
    extra = ":alone :of _:lost . _:lost :is 1 .\n"
    Path("dump.ttl").write_text(dump(4) + extra)
    split = ("--split", "sosa:Observation")
    reported = "5 subjects of dumps in no graph, 3 of them shared (--with-shared)"
    assert reported in dotr("run", "hot.dotr", "dump.ttl", *split).err
    assert reported in dotr("convert", "dump.ttl", "-o", "x.nq", *split).err
    assert reported in dotr("batch", "hot.dotr", "dump.ttl", *split, "--out", "out", "--engine", "local").err
    assert dotr("deploy", "hot.dotr").code == 0
    assert reported in dotr("feed", "dump.ttl", *split).err
    shared = dotr("run", "hot.dotr", "dump.ttl", *split, "--with-shared").err
    assert "2 subjects of dumps in no graph;" in shared
    Path("dump.ttl").write_text(dump(4))
    assert "no graph" not in dotr("run", "hot.dotr", "dump.ttl", *split, "--with-shared").err
